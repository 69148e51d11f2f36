"""The sampler's own process: small, independent, and gone as soon as it is not needed.

It is started by exec, never by forking the tracked program, whose memory it would keep alive.
"""

from __future__ import annotations

import gc
import os
import sys
import time

from ..core.model import NO_PROCESS
from ..core.system import posix, resource
from ..instrument.mailbox import make_mailbox, remove_leftovers, remove_mailbox
from ..recording.lock import hold
from ..sources import SAMPLER_NAME
from ..sources.platform import (
    READABLE,
    has_other_end,
    is_ready,
    make_poll,
    open_exit,
    read_exit_code,
    read_pipe,
    take_name,
    write_pipe,
)
from .handle.wire import FINAL, Inbox, pack
from .loop import Sampler
from .prepare import prepare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..core.model import Gpu, RootFigures
    from .handle.wire import Plan, Request, Start
    from .observer import Observer
    from .prepare import Prepared

# The second is the unnamed recording. Windows numbers them when they are made.
_COMMANDS, _RECORDING, _REPLIES = 0, 3, 4
_UNTIL_AN_EVENT = None
# A driver that is slow to name its devices is no reason to keep a job waiting.
_RESOLVE_SECONDS = 5.0


def main(commands: int = 0, replies: int = 4, unnamed_recording: str = "") -> None:
    """Close inherited descriptors, then serve until told to stop or until the owner has ended."""
    global _COMMANDS, _RECORDING, _REPLIES
    if sys.platform == "win32":
        from .handle.windows import adopt

        _COMMANDS, _RECORDING, _REPLIES = adopt(commands, replies, unnamed_recording)
    gc.freeze()  # what was imported stays
    gc.enable()
    os.chdir("/")
    _close_what_was_inherited()
    # So that it can be killed whatever happens.
    _send("started", os.getpid())
    _allow_many_descriptors()
    take_name(SAMPLER_NAME)
    service = Service()
    try:
        service.run()
    except Exception as error:  # noqa: BLE001 - the tracker must be informed of any error
        _send("failed", f"{type(error).__name__}: {error}")  # what is in the mailbox is the tracker's now
    else:
        service.tidy_up()
    # Not sys.exit: a thread may hang in a driver.
    os._exit(0)


def _allow_many_descriptors() -> None:
    """Each tracked process takes two; the job's soft limit need not apply here."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except (OSError, ValueError):
        pass  # processes beyond the limit are read without keeping files open


def _close_what_was_inherited() -> None:
    """A pipe of the job kept open here would never end for its reader; nor would ours in a command of ours."""
    if sys.platform == "win32":
        return  # nothing was
    for fd in (_RECORDING, _REPLIES):
        os.set_inheritable(fd, False)
    try:
        fds = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        return
    for fd in fds:
        if fd > _REPLIES:
            try:
                os.close(fd)
            except OSError:
                continue  # the descriptor of the listing itself


class Service:
    """Answers the tracker's messages between two readings."""

    def __init__(self) -> None:
        self._commands: dict[str, Callable[..., None]] = {
            "prepare": self._prepare,
            "begin": self._begin,
            "totals": self._send_totals,
            "discount": self._discount,
            "signal": self._note_signal,
            "stop": self._stop,
            "observe": self._observe,
            "resolve": self._resolve,
        }
        self._inbox = Inbox()
        self._unread: list[tuple[str, tuple[Any, ...]]] = []
        self._poll = make_poll()
        self._poll.register(_COMMANDS, READABLE)
        self._commands_alone = make_poll()
        self._commands_alone.register(_COMMANDS, READABLE)
        self._mailbox: str | None = None
        self._prepared: Prepared | None = None
        self._sampler: Sampler | None = None
        self._observer: Observer | None = None
        self._root_fd = self._owner_fd = -1
        self._owner_pid = self._root_pid = 0
        self._start_nanoseconds = 0
        self._ended_seconds: float | None = None
        self._latest_end_seconds = float("inf")
        """The root had ended by then, and everything was read."""
        self._exit_code: int | None = None
        self._is_over = False
        self._asked_until_seconds: float | None = None
        """Until then somebody may ask again."""

    def run(self) -> None:
        """Serve until the end."""
        while not self._is_over:
            for fd, _ in self._poll.poll(self._milliseconds_to_wait()):
                if fd == _COMMANDS:
                    self._read_commands()
                elif fd == self._root_fd:
                    self._note_end_of_root(self._need_sampler())
                elif fd == self._owner_fd:
                    self._end_alone()
            self._tick_if_due()
            self._obey()  # what came meanwhile
            self._is_over |= self._is_forgotten()

    def tidy_up(self) -> None:
        """Remove the mailbox."""
        if self._sampler is not None and self._sampler.instruments is not None:
            self._sampler.instruments.close()
        if self._mailbox is not None:
            remove_mailbox(self._mailbox)
            remove_leftovers(self._mailbox)

    def _tick_if_due(self) -> None:
        sampler = self._sampler
        if sampler is None or self._is_over or self._ended_seconds is not None:
            return
        now = time.monotonic()
        if sampler.deadlines.wait_seconds(now) == 0:
            sampler.tick(now)
            if not sampler.is_root_alive():
                self._note_end_of_root(sampler)

    def _is_forgotten(self) -> bool:
        return self._asked_until_seconds is not None and time.monotonic() >= self._asked_until_seconds

    def _milliseconds_to_wait(self) -> float | None:
        if self._asked_until_seconds is not None:
            return max(0.0, 1000 * (self._asked_until_seconds - time.monotonic())) + 1
        if self._sampler is None or self._ended_seconds is not None:
            return _UNTIL_AN_EVENT
        # Rounded up: waking slightly early would only mean waiting again.
        wait = self._sampler.deadlines.wait_seconds(time.monotonic())
        return float(int(wait * 1000) + 1 if wait else 0)

    def _read_commands(self) -> None:
        if not self._take_in():
            self._end_alone()
        self._obey()

    def _take_in(self) -> bool:
        """Take in what has come; whether more can come."""
        if not self._commands_alone.poll(0):
            return True
        chunk = read_pipe(_COMMANDS)
        self._unread += self._inbox.feed(chunk)
        return bool(chunk)

    def _obey(self) -> None:
        while self._unread and not self._is_over:
            word, values = self._unread.pop(0)
            self._commands[word](*values)

    def _hear_discounts(self) -> float:
        """CPU seconds that were discounted while readings were taken; everything else waits for its turn."""
        self._take_in()
        seconds = sum((float(values[0]) for word, values in self._unread if word == "discount"), 0.0)
        self._unread = [message for message in self._unread if message[0] != "discount"]
        return seconds

    def _prepare(self, plan: Plan) -> None:
        self._owner_pid = plan.owner_pid
        if plan.mailbox is not None and make_mailbox(plan.mailbox) is None:
            plan = plan._replace(mailbox=None)
        self._mailbox = plan.mailbox
        fd, refusal = _RECORDING, ""
        if plan.recording_path is not None:
            try:
                fd = posix.open(plan.recording_path, posix.O_APPEND | posix.O_WRONLY)
                hold(fd)
            except OSError as error:
                plan, refusal = plan._replace(recording_path=None), str(error.strerror)
        self._prepared = prepare(plan, fd)
        self._owner_fd = self._watch(self._owner_pid)
        _send("ready", refusal)

    def _begin(self, start: Start) -> None:
        if self._prepared is None:
            raise RuntimeError("the job began before the plan was known")
        self._sampler = Sampler(self._prepared, start, self._hear_discounts)
        self._root_pid, self._start_nanoseconds = start[:2]
        if self._root_pid not in (self._owner_pid, NO_PROCESS):
            self._root_fd = self._watch(self._root_pid)

    def _send_totals(self, request: int) -> None:
        sampler = self._need_sampler()
        end = sampler.totals_now(self._ended_seconds or time.monotonic())
        _send("totals", request, sampler.describe(end))

    def _discount(self, seconds: float) -> None:
        if self._sampler is not None:
            self._sampler.discount(seconds)

    def _note_signal(self, at_nanoseconds: int, number: int) -> None:
        if self._sampler is not None:
            self._sampler.note_signal(at_nanoseconds / 1e9, number)

    def _stop(
        self,
        at_nanoseconds: int,
        figures: RootFigures | None,
        exit_code: int | None,
        reason: str,
        exception: str | None,
        notes: tuple[str, ...],
    ) -> None:
        if reason == "stopped" and self._ended_seconds is not None:
            reason, exit_code = "ended", self._exit_code
        self._finish(self._need_sampler(), at_nanoseconds / 1e9, figures, reason, exit_code, exception, notes)

    def _observe(self, number: int, request: Request) -> None:
        """For live views; a sampler that tracks a job is never asked this."""
        from .observer import Observer

        self._observer = self._observer or Observer()
        observation = self._observer.observe(request, is_wanted=_has_owner)
        linger = request.linger_seconds
        self._asked_until_seconds = None if linger is None else time.monotonic() + linger
        _send("observation", number, observation)

    def _resolve(self, request: int, names: tuple[str, ...], vendors: tuple[str, ...] | None) -> None:
        import threading

        from ..sources.gpu.connect import list_gpus
        from ..sources.gpu.visible import resolve_gpus

        gpus: list[Gpu] = []
        thread = threading.Thread(target=lambda: gpus.extend(list_gpus(vendors)), daemon=True)
        thread.start()
        thread.join(_RESOLVE_SECONDS)
        try:
            # Without devices, or if they are not known yet, names are not checked: the same script must run on a laptop, too.
            _send("resolved", request, resolve_gpus(names, gpus) if gpus else names, None)
        except ValueError as error:
            _send("resolved", request, None, str(error))

    def _watch(self, pid: int) -> int:
        fd = open_exit(pid)
        if fd >= 0:
            self._poll.register(fd, READABLE)
        return fd

    def _note_end_of_root(self, sampler: Sampler) -> None:
        """The root has ended. Read once more, then wait without a timer until the result is requested."""
        self._ended_seconds = time.monotonic()
        if self._root_fd >= 0:
            self._poll.unregister(self._root_fd)
        self._exit_code = read_exit_code(self._root_pid, self._root_fd)
        sampler.read(self._ended_seconds)
        # Where only its first thread has ended, the others may go on.
        if self._root_fd >= 0 and is_ready(self._root_fd, 0):
            self._latest_end_seconds = time.monotonic()
        if self._owner_pid == self._root_pid:
            self._end_alone()
        else:
            _send("ended")

    def _end_alone(self) -> None:
        """The owner has ended and will not request the result: write it and exit."""
        if self._sampler is not None and not self._is_over:
            at_seconds = self._ended_seconds or time.monotonic()
            # Either the tracked program has ended with its tracker, or only the tracker of another was killed.
            reason = "abandoned" if self._owner_pid == self._root_pid else "tracker killed"
            self._finish(self._sampler, at_seconds, None, reason, None)
        self._is_over = True

    def _finish(
        self,
        sampler: Sampler,
        now_seconds: float,
        figures: RootFigures | None,
        reason: str,
        exit_code: int | None,
        exception: str | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        self._is_over = True
        at = self._find_end(sampler, now_seconds, is_from_its_parent=figures is not None)
        started = self._start_nanoseconds / 1e9
        end = sampler.finish(max(0.0, at - started), figures, reason, exit_code, exception, notes)
        _send("totals", FINAL, sampler.describe(end))

    def _find_end(self, sampler: Sampler, told_seconds: float, *, is_from_its_parent: bool) -> float:
        """When it was over. A parent knows best, unless it was itself stopped when the root ended.

        A whole job was over when the last of it was seen, although another step might have followed.
        """
        if is_from_its_parent:
            return min(told_seconds, self._latest_end_seconds)
        return sampler.find_pause() or self._ended_seconds or told_seconds

    def _need_sampler(self) -> Sampler:
        if self._sampler is None:
            raise RuntimeError("a message came before the job began")
        return self._sampler


def _has_owner() -> bool:
    """Whether the other end of the commands is still open."""
    return has_other_end(_COMMANDS)


def _send(word: str, *values: Any) -> None:
    message = pack(word, *values)
    try:
        write_pipe(_REPLIES, message)
    except OSError:
        pass  # the tracker has ended; the commands will end, too
