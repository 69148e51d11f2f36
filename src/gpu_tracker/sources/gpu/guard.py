"""Queries each figure of each device on its own: one failure costs no other figure, and is reported once. Pure."""

from __future__ import annotations

from ...core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Kinds of failure.
UNSUPPORTED = "unsupported"  # never tried again
DENIED = "denied"  # never tried again, but the user can fix it
LOST = "lost"  # the device is lost, with all its figures
TROUBLE = "trouble"  # tried again, at growing intervals

# What is missing is tried again soon, and the more rarely the longer it has been missing, so that little more is missed...
_FIRST_PAUSE_SECONDS = 0.1
_PAUSE_SHARE = 0.1
_LONGEST_PAUSE_SECONDS = 60.0
# ...and for this share of the time at most: meanwhile nothing else is read.
_MOST_TIME = 0.05


def choose_pause(missing_seconds: float, took_seconds: float) -> float:
    """How long to wait before trying again what has been missing for so long, and last took so long to try."""
    pause = max(_FIRST_PAUSE_SECONDS, min(_PAUSE_SHARE * missing_seconds, _LONGEST_PAUSE_SECONDS))
    return max(pause, took_seconds / _MOST_TIME)


class Failure(NamedTuple):
    """Why a query failed."""

    kind: str
    text: str
    """A sentence for the user, with the fix if there is one."""
    label: str = ""
    figure: str = ""
    """With a label, several unsupported figures are listed in one sentence."""


class Notes:
    """Sentences for the user, each given once."""

    def __init__(self) -> None:
        self._said: set[tuple[str, str]] = set()
        self._notes: list[str] = []

    def say(self, device: str, what: str, text: str) -> None:
        """Give the user a note, once."""
        if (device, what) not in self._said:
            self._said.add((device, what))
            self._notes.append(text)

    def take_notes(self) -> tuple[str, ...]:
        """Sentences for the user since the last call."""
        notes, self._notes = self._notes, []
        return tuple(notes)


class Guard(Notes):
    """Queries the devices of one source, and remembers which queries not to repeat.

    `explain` turns an exception into a Failure, given the device and the figure.
    """

    def __init__(
        self,
        now: Callable[[], float],
        errors: type[Exception] | tuple[type[Exception], ...],
        explain: Callable[[Exception, str, str], Failure],
    ) -> None:
        super().__init__()
        self._now = now
        self._errors = errors
        self._explain = explain
        self._pauses: dict[tuple[str, str], tuple[float, float]] = {}
        """(device, figure) → until when it is not queried, and since when it fails."""
        self._unsupported: dict[str, list[str]] = {}
        self._answered: set[tuple[str, str]] = set()
        self.lost: set[str] = set()
        self.reasons: dict[tuple[str, str], str] = {}
        """(device, figure) → why it is not measured."""
        self.kinds: dict[tuple[str, str], str] = {}
        """(device, figure) → kind of failure."""

    def ask(self, device: str, what: str, call: Callable[..., Any], *arguments: Any) -> Any:
        """The value, or None."""
        if self._pauses and self.is_paused(device, what):
            return None
        began_seconds = self._now()
        try:
            answer = call(*arguments)
        except self._errors as error:
            self.fail(device, what, self._explain(error, device, what), self._now() - began_seconds)
            return None
        self._answered.add((device, what))
        if self._pauses:
            self.succeed(device, what)
        return answer

    def is_paused(self, device: str, what: str) -> bool:
        """Whether not to query it now, or ever again."""
        until, _ = self._pauses.get((device, what), (0.0, 0.0))
        return self._now() < until

    def succeed(self, device: str, what: str) -> None:
        """Forget an earlier failure."""
        key = (device, what)
        if key in self._pauses:
            del self._pauses[key]
            self.reasons.pop(key, None)
            self.kinds.pop(key, None)

    def fail(self, device: str, what: str, failure: Failure, took_seconds: float = 0.0) -> None:
        """Record a failure after so long, and report it once."""
        key = (device, what)
        if failure.kind == UNSUPPORTED and failure.label and key in self._answered:
            # What has worked is supported.
            failure = Failure(TROUBLE, f"{failure.label} did not report {failure.figure} for a while.")
        self.reasons[key] = failure.text
        self.kinds[key] = failure.kind
        if failure.kind == LOST:
            self.lost.add(device)
            self.say(device, LOST, failure.text)
            return
        now = self._now()
        is_first = key not in self._pauses
        _, since = self._pauses.get(key, (0.0, now))
        # One that took long once need not do so again.
        pause = choose_pause(now - since, 0.0 if is_first else took_seconds)
        self._pauses[key] = (now + (pause if failure.kind == TROUBLE else float("inf")), since)
        # Trouble with one figure of a device is usually trouble with all of them: one note is enough.
        is_whole = failure.kind == TROUBLE and device != ""
        if failure.kind == UNSUPPORTED and failure.label:
            self._unsupported.setdefault(failure.label, []).append(failure.figure)
        else:
            self.say(device, TROUBLE if is_whole else what, failure.text)

    def take_notes(self) -> tuple[str, ...]:
        """Sentences for the user since the last call."""
        unsupported, self._unsupported = self._unsupported, {}
        lists = (f"{label} does not report {_enumerate(figures)}." for label, figures in unsupported.items())
        return (*super().take_notes(), *lists)


def _enumerate(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
