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
        self._said: dict[str, None] = {}
        self._left_out: dict[str, int] = {}

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
        self.say(f"The recording was read only up to byte {offset}: {why}.")

    def leave_out(self, what: str) -> None:
        """Note one more valid line that was left out, since no run has so many of its kind."""
        self._left_out[what] = self._left_out.get(what, 0) + 1

    def say(self, sentence: str) -> None:
        """Note something else that is wrong, once."""
        self._said[sentence] = None

    def __len__(self) -> int:
        n_sentences = min(len(self._numbers_by_offset), _MOST_SENTENCES + 1)
        return len(self._said) + len(self._left_out) + n_sentences

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, index: int) -> str: ...
        @overload
        def __getitem__(self, index: slice) -> tuple[str, ...]: ...

    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        first = list(self._numbers_by_offset.items())[:_MOST_SENTENCES]
        n_more = len(self._numbers_by_offset) - len(first) + self._n_uncounted
        sentences = [*self._said]
        sentences += [
            f"{n} more lines about {what} were left out: there are too many."
            for what, n in self._left_out.items()
        ]
        sentences += [f"{_name(*line)} of the recording is damaged and was left out." for line in first]
        if n_more:
            sentences.append(f"{n_more} more lines are damaged too.")
        return tuple(sentences)[index]


def _name(offset: int, number: int | None) -> str:
    return f"The line at byte {offset}" if number is None else f"Line {number}"
