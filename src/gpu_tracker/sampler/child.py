"""The sampler's own process: small, alone, and gone as soon as nobody needs it.

It is started by exec, never by fork of the tracked program, whose memory it would keep alive.
"""

from __future__ import annotations

import os
import select
import time

from ..core.model import RootFigures
from ..instrument.mailbox import make_place, remove_leftovers, remove_place
from ..recording.schema import (
    encode_end,
    encode_framework,
    encode_header,
    encode_mark,
    encode_metric_totals,
    encode_region,
)
from ..recording.writer import Writer
from ..sources import SAMPLER_NAME
from .handle.wire import FINAL, Inbox, Plan, Start, pack
from .loop import Sampler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .observer import Observer

_COMMANDS, _REPLIES, _RECORDING = 0, 1, 3  # the recording for which nobody gave a name
_UNTIL_SOMETHING_HAPPENS = None


def main(tracker_version: str) -> None:
    """Let go of what was inherited, and serve until told to stop or until there is nobody left."""
    os.chdir("/")
    _close_what_was_inherited()
    _allow_many_descriptors()
    _take_name()
    service = Service(tracker_version)
    try:
        service.run()
    except Exception as error:  # noqa: BLE001 - whatever it is, the tracker must hear of it
        _send("failed", f"{type(error).__name__}: {error}")
    service.tidy_up()
    # Not sys.exit: a thread may hang in a driver.
    os._exit(0)


def _allow_many_descriptors() -> None:
    """Every process that we follow costs two; the limit of the job need not be ours."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except (OSError, ValueError):
        pass  # then those beyond it are read without keeping files open


def _take_name() -> None:
    try:
        with open("/proc/self/comm", "w", encoding="ascii") as file:
            file.write(SAMPLER_NAME)
    except OSError:
        pass  # a name is for people and for other trackers; it can do without


def _close_what_was_inherited() -> None:
    """A pipe of the job's that stayed open here would never end for whoever reads it."""
    try:
        fds = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        return
    for fd in fds:
        if fd > _RECORDING:
            try:
                os.close(fd)
            except OSError:
                continue  # the descriptor of the listing itself


class Service:
    """Answers the tracker's messages between two looks."""

    def __init__(self, tracker_version: str) -> None:
        self._tracker_version = tracker_version
        self._inbox = Inbox()
        self._poll = select.poll()
        self._poll.register(_COMMANDS, select.POLLIN)
        self._owner_pid = 0
        self._regions_place: str | None = None
        self._sampler: Sampler | None = None
        self._observer: Observer | None = None
        self._root_fd = self._owner_fd = -1
        self._root_pid = 0
        self._start_nanoseconds = 0
        self._is_tracking = False
        self._ended_seconds: float | None = None
        self._is_over = False

    def run(self) -> None:
        """Until it is over."""
        while not self._is_over:
            for fd, _ in self._poll.poll(self._milliseconds_to_wait()):
                if fd == _COMMANDS:
                    self._read_commands()
                elif fd == self._root_fd:
                    self._note_end_of_root()
                elif fd == self._owner_fd:
                    self._end_alone()
            self._tick_if_due()

    def tidy_up(self) -> None:
        """Throw away what the job's processes wrote for us."""
        if self._regions_place is not None:
            remove_place(self._regions_place)
            remove_leftovers(self._regions_place)

    def _tick_if_due(self) -> None:
        if not self._is_tracking or self._is_over or self._ended_seconds is not None:
            return
        sampler, now = self._need_sampler(), time.monotonic()
        if sampler.deadlines.wait_seconds(now) == 0:
            sampler.tick(now)
            if not sampler.is_root_alive():
                self._note_end_of_root()

    def _milliseconds_to_wait(self) -> float | None:
        if not self._is_tracking or self._ended_seconds is not None:
            return _UNTIL_SOMETHING_HAPPENS
        # Rounded up: waking a fraction too early would only mean waiting again.
        wait = self._need_sampler().deadlines.wait_seconds(time.monotonic())
        return float(int(wait * 1000) + 1 if wait else 0)

    def _read_commands(self) -> None:
        chunk = os.read(_COMMANDS, 65536)
        if not chunk:
            self._end_alone()
        for word, values in self._inbox.feed(chunk):
            getattr(self, f"_do_{word}")(*values)

    def _do_prepare(self, *plan: Any) -> None:
        """Everything that takes time and does not need the root to be there yet."""
        asked = Plan(*plan)
        self._owner_pid = asked.owner_pid
        if asked.regions_place is not None and make_place(asked.regions_place) is not None:
            self._regions_place = asked.regions_place
        path = asked.recording_path
        fd = _RECORDING if path is None else os.open(path, os.O_APPEND | os.O_WRONLY)
        self._sampler = Sampler(asked, self._tracker_version, Writer(fd))
        self._owner_fd = self._watch(self._owner_pid)
        _send("ready", os.getpid())

    def _do_begin(self, *start: Any) -> None:
        sampler = self._need_sampler()
        sampler.begin(Start(*start))
        self._is_tracking = True
        self._root_pid, self._start_nanoseconds, _ = start
        if self._root_pid != self._owner_pid:
            self._root_fd = self._watch(self._root_pid)

    def _do_totals(self, request: int) -> None:
        sampler = self._need_sampler()
        end = sampler.totals_now(self._ended_seconds or time.monotonic())
        self._reply(request, end)

    def _do_stop(self, at_nanoseconds: int, figures: tuple[Any, ...] | None, exit_code: int | None) -> None:
        self._finish(
            at_nanoseconds / 1e9,
            RootFigures(*figures) if figures else None,
            "stopped" if exit_code is None else "exited",
            exit_code,
        )

    def _do_discount(self, seconds: float) -> None:
        if self._is_tracking:
            self._need_sampler().discount(seconds)

    def _do_observe(self, request: int, *wish: Any) -> None:
        """For people who want to know what is going on; a sampler that tracks is never asked this."""
        from ..core.observation import encode
        from .observer import Observer, Wish

        self._observer = self._observer or Observer()
        observation = self._observer.observe(Wish(*wish), is_wanted=_has_owner)
        _send("observation", request, os.getpid(), encode(observation))

    def _do_resolve(self, request: int, names: tuple[str, ...], vendors: tuple[str, ...] | None) -> None:
        from ..sources.gpu.connect import list_gpus
        from ..sources.gpu.visible import resolve_gpus

        gpus = list_gpus(vendors)
        try:
            # Without any device there is nothing to compare with: the same script runs on a laptop, too.
            _send("resolved", request, resolve_gpus(names, gpus) if gpus else names, None)
        except ValueError as error:
            _send("resolved", request, None, str(error))

    def _watch(self, pid: int) -> int:
        """A descriptor that becomes readable when the process ends, where the kernel offers one."""
        try:
            fd = os.pidfd_open(pid)
        except (AttributeError, OSError):
            return -1
        self._poll.register(fd, select.POLLIN)
        return fd

    def _note_end_of_root(self) -> None:
        """The root has gone. Look once more, then wait without a clock for whoever wants the result."""
        sampler = self._need_sampler()
        if self._root_fd >= 0:
            self._poll.unregister(self._root_fd)
        self._ended_seconds = time.monotonic()
        sampler.look(self._ended_seconds)
        if self._owner_pid == self._root_pid:
            self._end_alone()
        else:
            _send("ended")

    def _end_alone(self) -> None:
        """Nobody is there to ask for the result: write it down and go."""
        if self._is_tracking and not self._is_over:
            self._finish(self._ended_seconds or time.monotonic(), None, "abandoned", None)
        self._is_over = True

    def _finish(
        self,
        now_seconds: float,
        figures: RootFigures | None,
        reason: str,
        exit_code: int | None,
    ) -> None:
        self._is_over = True
        at = (self._ended_seconds or now_seconds) if figures is None else now_seconds
        started = self._start_nanoseconds / 1e9
        end = self._need_sampler().finish(max(0.0, at - started), figures, reason, exit_code)
        self._reply(FINAL, end)

    def _reply(self, request: int, end: Any) -> None:
        sampler = self._need_sampler()
        inside = sampler.inside
        told = (
            []
            if inside is None
            else [
                [encode_region(region) for region in inside.list_regions()],
                [encode_framework(memory) for memory in inside.list_frameworks()],
                [encode_metric_totals(totals) for totals in inside.metric_totals.values()],
            ]
        )
        marks = [encode_mark(mark) for mark in sampler.marks]
        _send("totals", request, encode_header(sampler.header), encode_end(end), marks, *told)

    def _need_sampler(self) -> Sampler:
        if self._sampler is None:
            raise RuntimeError("a message came before the plan")
        return self._sampler


def _has_owner() -> bool:
    """Whether there is still somebody at the other end of the commands."""
    poll = select.poll()
    poll.register(_COMMANDS, 0)  # a hangup is always told
    return not poll.poll(0)


def _send(word: str, *values: Any) -> None:
    message = pack(word, *values)
    try:
        while message:
            message = message[os.write(_REPLIES, message) :]
    except OSError:
        pass  # nobody listens any more; the end of the commands will say so too
