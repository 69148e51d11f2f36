"""Every figure of every device is asked for on its own: what one cannot say costs nothing else, and is said once. Pure."""

from __future__ import annotations

from ...core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# What became of a question that got no answer.
UNSUPPORTED = "unsupported"  # never asked again
DENIED = "denied"  # never asked again; there is a cure
LOST = "lost"  # the device has gone, and all its figures with it
TROUBLE = "trouble"  # asked again, later and later

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0


class Failure(NamedTuple):
    """Why there was no answer."""

    kind: str
    text: str
    """A whole sentence for the user, with the cure where there is one."""
    label: str = ""
    figure: str = ""
    """Both given: what several figures have in common is said in one sentence."""


class Guard:
    """Asks questions of the devices of one source, and remembers which need not be asked again.

    `explain` turns an exception into a Failure, given the device's label and what was asked.
    """

    def __init__(
        self,
        now: Callable[[], float],
        errors: type[Exception] | tuple[type[Exception], ...],
        explain: Callable[[Exception, str, str], Failure],
    ) -> None:
        self._now = now
        self._errors = errors
        self._explain = explain
        self._pauses: dict[tuple[str, str], tuple[float, float]] = {}
        self._silent: set[tuple[str, str]] = set()
        self._notes: list[str] = []
        self._untold: dict[str, list[str]] = {}
        self.lost: set[str] = set()
        self.reasons: dict[tuple[str, str], str] = {}
        """(device, figure) → why it is not measured."""
        self.kinds: dict[tuple[str, str], str] = {}
        """(device, figure) → what became of the question."""

    def ask(self, device: str, what: str, call: Callable[..., Any], *arguments: Any) -> Any:
        """The answer, or None."""
        if self._pauses and self.is_paused(device, what):
            return None
        try:
            answer = call(*arguments)
        except self._errors as error:
            self.fail(device, what, self._explain(error, device, what))
            return None
        if self._pauses:
            self.succeed(device, what)
        return answer

    def is_paused(self, device: str, what: str) -> bool:
        """Whether it need not be asked now, or ever."""
        until, _ = self._pauses.get((device, what), (0.0, 0.0))
        return self._now() < until

    def succeed(self, device: str, what: str) -> None:
        """What may have gone wrong before is over."""
        key = (device, what)
        if key in self._pauses:
            del self._pauses[key], self.reasons[key], self.kinds[key]

    def fail(self, device: str, what: str, failure: Failure) -> None:
        """Take note of a question without an answer."""
        key = (device, what)
        self.reasons[key] = failure.text
        self.kinds[key] = failure.kind
        if failure.kind == LOST:
            self.lost.add(device)
            self.say(device, LOST, failure.text)
            return
        pause = float("inf")
        if failure.kind == TROUBLE:
            _, last = self._pauses.get(key, (0.0, _FIRST_PAUSE_SECONDS / 2))
            pause = min(2 * last, _LONGEST_PAUSE_SECONDS)
        self._pauses[key] = (self._now() + pause, pause)
        # Trouble with a device is usually trouble with all of it; what concerns them all is told apart.
        is_whole = failure.kind == TROUBLE and device != ""
        if failure.kind == UNSUPPORTED and failure.label:
            self._untold.setdefault(failure.label, []).append(failure.figure)
        else:
            self.say(device, TROUBLE if is_whole else what, failure.text)

    def say(self, device: str, what: str, text: str) -> None:
        """Something for the user, once."""
        if (device, what) not in self._silent:
            self._silent.add((device, what))
            self._notes.append(text)

    def take_notes(self) -> tuple[str, ...]:
        """What there is to say since the last call."""
        notes, self._notes = self._notes, []
        untold, self._untold = self._untold, {}
        notes.extend(f"{label} does not tell its {_enumerate(figures)}." for label, figures in untold.items())
        return tuple(notes)


def _enumerate(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
