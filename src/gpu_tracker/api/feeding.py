"""Feeds the sinks of a tracker: each from a thread of its own, so that none keeps the job or another one waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

from ..analysis.published import Point, sum_up
from ..core.errors import UsageError
from ..sinks import Sink
from ..sinks.reader import PublishedReader
from .following import Monitor, describe_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.model import RecordingData
    from ..recording.follow import Source

_SHORTEST_SECONDS = 1.0
# What feeding may cost, as a share of the time of a core.
_MOST_SENDING = 0.01
# How long a program waits for a sink at its end: it may be at the other end of the world.
_FAREWELL_SECONDS = 5.0
_HANGS = "it does not return"


def check_sinks(sinks: object) -> tuple[Sink, ...]:
    """All of them, or the only one. UsageError unless they are sinks."""
    if isinstance(sinks, Sink | str) or not isinstance(sinks, Iterable):
        return (_check_sink(sinks),)
    return tuple(map(_check_sink, sinks))


def _check_sink(sink: object) -> Sink:
    if not isinstance(sink, Sink):
        raise UsageError(
            f"{type(sink).__name__} is not a sink.", "Use one such as gpu_tracker.sinks.wandb(run)."
        )
    return sink


class Feed:
    """One sink. What goes wrong with it is kept for the notes, and harms nobody."""

    def __init__(self, sink: Sink, source: Source, every_seconds: float | None) -> None:
        self._sink = sink
        self._reader = PublishedReader(source)
        self._n_sent = 0
        self._n_lost = 0
        self._reason = ""
        self._step = 0
        self._has_returned = False
        self._monitor = Monitor(
            f"{sink.name} is not fed",
            self._send_newest,
            _SHORTEST_SECONDS if every_seconds is None else every_seconds,
            self._fail,
            most_share=_MOST_SENDING,
            farewell_seconds=_FAREWELL_SECONDS,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What went wrong, in a sentence."""
        if not self._reason:
            return ()
        n_points = self._n_sent + self._n_lost
        return (f"{self._sink.name} did not get {self._n_lost} of {n_points} points: {self._reason}",)

    def is_calling(self) -> bool:
        """Whether the code that runs now was called by this."""
        return self._monitor.is_calling()

    def close(self) -> None:
        """Send what is new for the last time."""
        self._has_returned = self._monitor.close()

    def finish(self, recording: RecordingData) -> None:
        """Send the figures of the whole run, unless the sink is still busy."""
        if not self._has_returned:
            self._fail(_HANGS)
            return
        point = Point(time.time(), self._step, sum_up(recording))
        thread = threading.Thread(target=self._give, args=(self._sink.finish, point), daemon=True)
        thread.start()
        thread.join(_FAREWELL_SECONDS)
        if thread.is_alive():
            self._fail(_HANGS)

    def _send_newest(self) -> None:
        point = self._reader.look_for_point()
        if point is not None:
            self._step = point.step
            self._give(self._sink.send, point)

    def _give(self, take: Callable[[Point], object], point: Point) -> None:
        try:
            take(point)
            self._n_sent += 1
        except BaseException as error:  # noqa: BLE001 - it is the user's, or of somebody else's server
            self._fail(describe_error(error))

    def _fail(self, reason: str) -> None:
        """The first reason is the one to tell."""
        self._n_lost += 1
        self._reason = self._reason or reason
