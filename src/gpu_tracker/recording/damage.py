"""The damaged lines of a recording, as a few sentences. Pure."""

from __future__ import annotations

from collections.abc import Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import overload

_MOST_SENTENCES = 10
_MOST_KEPT = 1000


class Damage(Sequence[str]):
    """The damaged lines found so far: a sentence for each of the first, and one for the rest."""

    def __init__(self) -> None:
        self._numbers_by_offset: dict[int, int | None] = {}
        self._n_uncounted = 0
        self._last_offset = -1
        self._stopped: tuple[str, ...] = ()

    def note(self, offset: int, number: int | None = None) -> None:
        """Note that the line at this offset was left out; its number may not be known."""
        if len(self._numbers_by_offset) < _MOST_KEPT:
            self._numbers_by_offset.setdefault(offset, number)
        elif offset > self._last_offset:  # a completely damaged file must not fill the memory
            self._n_uncounted += 1
        self._last_offset = max(self._last_offset, offset)

    def stop(self, offset: int, n_useless: int) -> None:
        """Note that the file was not read beyond this offset."""
        why = f"{n_useless} lines are damaged or empty"
        self._stopped = (f"The recording was read only up to byte {offset}: {why}.",)

    def __len__(self) -> int:
        return min(len(self._numbers_by_offset), _MOST_SENTENCES + 1) + len(self._stopped)

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, index: int) -> str: ...
        @overload
        def __getitem__(self, index: slice) -> tuple[str, ...]: ...

    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        first = list(self._numbers_by_offset.items())[:_MOST_SENTENCES]
        n_more = len(self._numbers_by_offset) - len(first) + self._n_uncounted
        sentences = [f"{_name(*line)} of the recording is damaged and was left out." for line in first]
        if n_more:
            sentences.append(f"{n_more} more lines are damaged too.")
        return (*self._stopped, *sentences)[index]


def _name(offset: int, number: int | None) -> str:
    return f"The line at byte {offset}" if number is None else f"Line {number}"
