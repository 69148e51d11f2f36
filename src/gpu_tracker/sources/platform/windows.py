"""Windows: pipes that can be waited for beside the ends of processes, the table of processes, and job objects.

Imported on Windows only. Whatever is waited for is a handle: a number as elsewhere, of another kind than those of files.
"""

# ruff: noqa: E402
from __future__ import annotations

import sys

assert sys.platform == "win32"

import _winapi
import ctypes
import errno
import functools
import os
import time
from ctypes import wintypes
from struct import Struct

from ...core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

READABLE = 1
_kernel32: Any = ctypes.WinDLL("kernel32", use_last_error=True)
_ntdll: Any = ctypes.WinDLL("ntdll")

# From winnt.h and winbase.h.
_SYNCHRONIZE, _QUERY_LIMITED, _TERMINATE, _READ_MEMORY = 0x100000, 0x1000, 0x0001, 0x0010
_FIRST_INSTANCE, _MOST_INSTANCES, _PIPE_BYTES = 0x80000, 1, 1 << 16
_INHERITED = 1
_STILL_ACTIVE = 259
_WAIT_TIMEOUT = 258
_CHUNK_BYTES = 1 << 16
_ENDED_PIPE = (109, 232, 233)  # broken, being closed, nobody at the other end
_TICKS_PER_SECOND = 10_000_000  # of a FILETIME
KILLED = 1
"""The exit code of a process that was terminated by us."""

# winternl.h: SYSTEM_PROCESS_INFORMATION of 64-bit systems, its beginning. Next row, threads, waits for storage; begin, user and kernel
# time; the name's length and address; number and parent; size of the address space, page faults, largest and present working set; bytes
# read and written.
_ROW = Struct("<II 8x I 12x qqq H 6x Q 8x QQ 24x Q I 4x QQ 80x QQ 8x")
_SYSTEM_PROCESS_INFORMATION, _LENGTH_MISMATCH = 5, 0xC0000004
_PROCESS_BASIC_INFORMATION = 0
# Of 64-bit processes: where the parameters are in the environment block, and where the command line is in those.
_PARAMETERS_OFFSET, _COMMAND_LINE_OFFSET = 0x20, 0x70
_ADDRESS, _TEXT = Struct("<Q"), Struct("<H6xQ")
_SPARE_BYTES = 1 << 16
_CREATE_SUSPENDED, _BREAKAWAY = 0x4, 0x01000000
_JOB_ACCOUNTING, _JOB_PROCESSES, _JOB_LIMITS = 1, 3, 9
_KILL_ON_CLOSE, _BREAKAWAY_OK = 0x2000, 0x800
_LIMITS = Struct("<16x I 124x")  # JOBOBJECT_EXTENDED_LIMIT_INFORMATION: its flags
_FEW_PROCESSES = 1000

for _name in ("OpenProcess", "CreateJobObjectW", "GetCurrentProcess", "CreateToolhelp32Snapshot"):
    getattr(_kernel32, _name).restype = wintypes.HANDLE


class TableRow(NamedTuple):
    """A process in the system's table."""

    n_threads: int
    major_faults: int
    started_ticks: int
    """By the wall clock; that tells it from another of the same number."""
    cpu_seconds: float
    name: str
    pid: int
    parent_pid: int
    """Whoever has that number by now need not be the one that started it."""
    virtual_bytes: int
    page_faults: int
    peak_rss_bytes: int
    rss_bytes: int
    read_bytes: int
    written_bytes: int


def is_wine() -> bool:
    """Whether this is not Windows, but Wine, which does not know all that Windows knows."""
    return hasattr(_ntdll, "wine_get_version")


# ---- Pipes.


class _Reading:
    """The reading end of a pipe. A read is always under way, so that something can be waited for."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._pending: Any = None
        self._chunk: bytes | None = None

    def find_event(self) -> int | None:
        """What is signalled once there is something to read; None if there is."""
        if self._chunk is None and self._pending is None:
            try:
                self._pending, _ = _winapi.ReadFile(self._handle, _CHUNK_BYTES, overlapped=True)
            except OSError as error:
                if error.winerror not in _ENDED_PIPE:
                    raise
                self._chunk = b""
        if self._chunk is not None:
            return None
        event: int = self._pending.event
        return event

    def take(self) -> bytes:
        """What has come; nothing once the other end is closed. Waits for one of both."""
        if self.find_event() is not None:
            try:
                self._pending.GetOverlappedResult(True)
                self._chunk = bytes(self._pending.getbuffer())
            except OSError as error:
                if error.winerror not in _ENDED_PIPE:
                    raise
                self._chunk = b""
            self._pending = None
        chunk = self._chunk or b""
        self._chunk = None if chunk else b""
        return chunk

    def cancel(self) -> None:
        """Nobody will take what comes."""
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None


_readings: dict[int, _Reading] = {}


def make_pipe() -> tuple[int, int]:
    """The reading and the writing end."""
    name = rf"\\.\pipe\gpu-tracker-{os.getpid()}-{os.urandom(8).hex()}"
    reading = _winapi.CreateNamedPipe(
        name,
        _winapi.PIPE_ACCESS_INBOUND | _winapi.FILE_FLAG_OVERLAPPED | _FIRST_INSTANCE,
        0,
        _MOST_INSTANCES,
        _PIPE_BYTES,
        _PIPE_BYTES,
        0,
        0,
    )
    try:
        writing = _winapi.CreateFile(
            name, _winapi.GENERIC_WRITE, 0, 0, _winapi.OPEN_EXISTING, _winapi.FILE_FLAG_OVERLAPPED, 0
        )
    except OSError:
        _winapi.CloseHandle(reading)
        raise
    return reading, writing


def read_pipe(handle: int) -> bytes:
    """What has come; nothing once the other end is closed."""
    reading = _find_reading(handle)
    return b"" if reading is None else reading.take()


def write_pipe(handle: int, message: bytes) -> None:
    """All of it. OSError if nobody is there to read it."""
    while message:
        pending, _ = _winapi.WriteFile(handle, message, overlapped=True)
        n_bytes, _ = pending.GetOverlappedResult(True)
        message = message[n_bytes:]


def close_handle(handle: int) -> None:
    """Close it, and forget it."""
    reading = _readings.pop(handle, None)
    if reading is not None:
        reading.cancel()
    _winapi.CloseHandle(handle)


# ---- Waiting.


class Poll:
    """What `select.poll` is elsewhere: waits for pipes and ends of processes."""

    def __init__(self) -> None:
        self._handles: list[int] = []

    def register(self, handle: int, _events: int = READABLE) -> None:
        """Wait for this one too."""
        self._handles.append(handle)

    def unregister(self, handle: int) -> None:
        """Not any more."""
        self._handles.remove(handle)

    def poll(self, milliseconds: float | None = None) -> list[tuple[int, int]]:
        """Those that are ready by then; with None, wait as long as it takes."""
        events = {handle: _find_event(handle) for handle in self._handles}
        waiting = [event for event in events.values() if event is not None]
        if len(waiting) == len(events):
            _wait_for_one(waiting, milliseconds)
        return [(handle, READABLE) for handle, event in events.items() if _is_signalled(event)]


def _find_reading(handle: int) -> _Reading | None:
    """None for what is no pipe."""
    if handle not in _readings:
        try:
            is_pipe = _winapi.GetFileType(handle) == _winapi.FILE_TYPE_PIPE
        except OSError:
            return None
        if not is_pipe:
            return None
        _readings[handle] = _Reading(handle)
    return _readings[handle]


def _find_event(handle: int) -> int | None:
    reading = _find_reading(handle)
    return handle if reading is None else reading.find_event()


def _is_signalled(event: int | None) -> bool:
    return event is None or _winapi.WaitForSingleObject(event, 0) == _winapi.WAIT_OBJECT_0


def _wait_for_one(events: list[int], milliseconds: float | None) -> None:
    """Until one is signalled, or the time has passed. In the main thread an interrupt is heard meanwhile."""
    deadline = None if milliseconds is None else time.perf_counter() + milliseconds / 1e3
    while True:
        left = _winapi.INFINITE
        if deadline is not None:
            left = max(0, -int(-1e3 * (deadline - time.perf_counter()) // 1))
        if not events:
            time.sleep(left / 1e3)
            return
        try:
            _winapi.WaitForMultipleObjects(events, False, left)
        except InterruptedError:
            continue  # the handler has run, and has not raised
        return


def is_ready(handle: int, seconds: float) -> bool:
    """Whether there is something to read, or the process has ended, within that time."""
    poll = Poll()
    poll.register(handle)
    return bool(poll.poll(1e3 * max(0.0, seconds)))


def has_other_end(handle: int) -> bool:
    """Whether somebody may still write to the reading end of a pipe."""
    try:
        _winapi.PeekNamedPipe(handle, 0)
    except OSError as error:
        return error.winerror not in _ENDED_PIPE
    return True


# ---- Processes.


def open_process(pid: int, access: int = _SYNCHRONIZE | _QUERY_LIMITED) -> int:
    """A handle, by which a process stays known after its end. OSError if there is none, or it is of another user."""
    handle: int | None = _kernel32.OpenProcess(access, False, pid)
    if not handle:
        raise ctypes.WinError(ctypes.get_last_error())
    return handle


def open_exit(pid: int) -> int:
    """A handle that is signalled when the process ends; -1 if that cannot be known."""
    try:
        return open_process(pid)
    except OSError:
        return -1


def exists(pid: int) -> bool:
    """Whether a process of that number runs."""
    try:
        handle = open_process(pid)
    except OSError as error:
        return error.errno == errno.EACCES  # another user's
    try:
        return not _is_signalled(handle)
    finally:
        _winapi.CloseHandle(handle)


def wait_until_ended(pid: int, seconds: float) -> bool:
    """Whether a process ends in that time, or has ended."""
    handle = open_exit(pid)
    if handle < 0:
        return True
    try:
        return is_ready(handle, seconds)
    finally:
        _winapi.CloseHandle(handle)


def read_exit_code(handle: int) -> int | None:
    """How a process has ended; None while it runs."""
    if not _is_signalled(handle):
        return None
    return _winapi.GetExitCodeProcess(handle)


def terminate(pid: int) -> None:
    """End it at once. OSError if there is none."""
    handle = open_process(pid, _TERMINATE)
    try:
        _winapi.TerminateProcess(handle, KILLED)
    finally:
        _winapi.CloseHandle(handle)


def read_times(handle: int) -> float | None:
    """CPU seconds of a process that runs or has ended; None under Wine, which tells them of ourselves only."""
    if is_wine():
        return None
    times = (ctypes.c_uint64 * 4)()
    places = [ctypes.byref(times, 8 * index) for index in range(4)]
    if not _kernel32.GetProcessTimes(wintypes.HANDLE(handle), *places):
        return None
    return (times[2] + times[3]) / _TICKS_PER_SECOND


def read_peak_bytes(handle: int) -> int | None:
    """The largest working set of a process that runs or has ended; None where that is not known any more."""
    counters = (ctypes.c_size_t * 9)()
    _kernel32.K32GetProcessMemoryInfo(wintypes.HANDLE(handle), counters, ctypes.sizeof(counters))
    return counters[1] or None


def read_arguments(pid: int) -> str | None:
    """The command line of a process; None if it cannot be read."""
    try:
        handle = open_process(pid, _QUERY_LIMITED | _READ_MEMORY)
    except OSError:
        return None
    try:
        basics = _read_information(handle, _PROCESS_BASIC_INFORMATION, 48)
        (block,) = _ADDRESS.unpack_from(basics, 8)
        (parameters,) = _ADDRESS.unpack(_read_memory(handle, block + _PARAMETERS_OFFSET, _ADDRESS.size))
        text = _read_memory(handle, parameters + _COMMAND_LINE_OFFSET, _TEXT.size)
        length, address = _TEXT.unpack(text)
        return _read_memory(handle, address, length).decode("utf-16-le", "replace")
    except OSError:
        return None
    finally:
        _winapi.CloseHandle(handle)


def _read_information(handle: int, kind: int, n_bytes: int) -> bytes:
    buffer = ctypes.create_string_buffer(n_bytes)
    if _ntdll.NtQueryInformationProcess(wintypes.HANDLE(handle), kind, buffer, n_bytes, None):
        raise OSError(errno.EIO, "Windows does not report it")
    return buffer.raw


def _read_memory(handle: int, address: int, n_bytes: int) -> bytes:
    buffer = ctypes.create_string_buffer(n_bytes)
    if not _kernel32.ReadProcessMemory(
        wintypes.HANDLE(handle), ctypes.c_void_p(address), buffer, ctypes.c_size_t(n_bytes), None
    ):
        raise OSError(errno.EIO, "the memory of the process cannot be read")
    return buffer.raw


def read_table() -> list[TableRow]:
    """All processes. OSError if the system does not list them."""
    global _table_bytes
    needed = ctypes.c_uint32()
    while True:
        buffer = ctypes.create_string_buffer(_table_bytes)
        status = _ntdll.NtQuerySystemInformation(
            _SYSTEM_PROCESS_INFORMATION, buffer, len(buffer), ctypes.byref(needed)
        )
        if not status:
            return list(_parse_table(buffer))
        if status & 0xFFFFFFFF != _LENGTH_MISMATCH:
            raise OSError(errno.EIO, f"the table of processes cannot be read ({status & 0xFFFFFFFF:#x})")
        _table_bytes = max(2 * _table_bytes, needed.value + _SPARE_BYTES)


_table_bytes = 4 * _SPARE_BYTES


def _parse_table(buffer: ctypes.Array[ctypes.c_char]) -> Iterator[TableRow]:
    address, offset = ctypes.addressof(buffer), 0
    content = memoryview(buffer)
    while True:
        step, n_threads, faults, started, user, kernel, length, name, *rest = _ROW.unpack_from(buffer, offset)
        start = name - address
        text = bytes(content[start : start + length]).decode("utf-16-le", "replace") if name else ""
        yield TableRow._make((n_threads, faults, started, (user + kernel) / _TICKS_PER_SECOND, text, *rest))
        if not step:
            return
        offset += step


# ---- This process and this machine.


def read_own_memory() -> tuple[int, int]:
    """The working set of this process, and its largest."""
    counters = (ctypes.c_size_t * 9)()
    _kernel32.K32GetProcessMemoryInfo(
        wintypes.HANDLE(_kernel32.GetCurrentProcess()), counters, ctypes.sizeof(counters)
    )
    return counters[2], counters[1]


@functools.cache
def read_machine_ram_bytes() -> int:
    """The memory of this machine."""
    status = (ctypes.c_uint64 * 8)()
    Struct("<I").pack_into(status, 0, ctypes.sizeof(status))
    _kernel32.GlobalMemoryStatusEx(status)
    return status[1]


# ---- Starting processes.


class _StartupInfo:
    """What `CreateProcess` wants to know."""

    dwFlags = 0  # noqa: N815 - as it calls it
    wShowWindow = 0  # noqa: N815
    hStdInput = hStdOutput = hStdError = None  # noqa: N815

    def __init__(self, inherited: list[int]) -> None:
        self.lpAttributeList = {"handle_list": inherited} if inherited else None


class JobObject:
    """Starts one process, and knows what it and its descendants have used; they end if this process is killed."""

    def __init__(self) -> None:
        self._job: int = _kernel32.CreateJobObjectW(None, None) or 0
        self._thread = 0
        self._limit(_KILL_ON_CLOSE | _BREAKAWAY_OK)

    def start(self, program: str, command_line: str) -> tuple[int, int]:
        """Start a program that waits to be resumed: its number, and a handle of it. OSError if that is not possible."""
        process, self._thread, pid, _ = _winapi.CreateProcess(
            program,
            command_line,
            None,
            None,
            False,
            _CREATE_SUSPENDED,
            dict(os.environ),
            None,
            _StartupInfo([]),
        )
        _kernel32.AssignProcessToJobObject(wintypes.HANDLE(self._job), wintypes.HANDLE(process))
        return pid, process

    def resume(self) -> None:
        """Let it run."""
        _kernel32.ResumeThread(wintypes.HANDLE(self._thread))
        _winapi.CloseHandle(self._thread)

    def read_cpu_seconds(self) -> float:
        """Of all processes so far."""
        used = (ctypes.c_uint64 * 6)()
        self._query(_JOB_ACCOUNTING, used)
        return (used[0] + used[1]) / _TICKS_PER_SECOND

    def list_pids(self) -> list[int]:
        """Those that run."""
        room = _FEW_PROCESSES
        while True:
            found = (ctypes.c_size_t * (1 + room))()
            is_complete = self._query(_JOB_PROCESSES, found)
            n_running, n_listed = divmod(found[0], 1 << 32)[::-1]
            if is_complete or n_listed >= n_running:
                return list(found[1 : 1 + n_listed])
            room = 2 * n_running

    def close(self) -> None:
        """Let its processes run on."""
        job, self._job = self._job, 0
        if job:
            self._limit(_BREAKAWAY_OK, job)
            _winapi.CloseHandle(job)

    def _query(self, kind: int, into: Any) -> bool:
        job = wintypes.HANDLE(self._job)
        return bool(_kernel32.QueryInformationJobObject(job, kind, into, ctypes.sizeof(into), None))

    def _limit(self, flags: int, job: int = 0) -> None:
        limits = ctypes.create_string_buffer(_LIMITS.size)
        _LIMITS.pack_into(limits, 0, flags)
        _kernel32.SetInformationJobObject(wintypes.HANDLE(job or self._job), _JOB_LIMITS, limits, len(limits))


def spawn_apart(command_line: str, environment: dict[str, str], inherited: list[int]) -> int:
    """Start a program without a console, that Ctrl-C does not reach, with these handles and no others; its number."""
    for handle in inherited:
        os.set_handle_inheritable(handle, True)
    flags = _winapi.DETACHED_PROCESS | _winapi.CREATE_NEW_PROCESS_GROUP
    try:
        # What a job object counts and ends is not for us, if it lets us go.
        started = _create(command_line, flags | _BREAKAWAY, environment, inherited)
    except PermissionError:
        started = _create(command_line, flags, environment, inherited)
    process, thread, pid, _ = started
    _winapi.CloseHandle(thread)
    _winapi.CloseHandle(process)
    return pid


def _create(
    command_line: str, flags: int, environment: dict[str, str], inherited: list[int]
) -> tuple[int, int, int, int]:
    return _winapi.CreateProcess(
        None,
        command_line,
        None,
        None,
        bool(inherited),
        flags,
        environment,
        None,
        _StartupInfo(inherited),
    )


def quote(words: list[str]) -> str:
    """A command line of these words, as the C runtime takes it apart again."""
    return " ".join(map(_quote_word, words))


def _quote_word(word: str) -> str:
    if word and not any(letter in word for letter in ' \t"'):
        return word
    quoted, n_backslashes = '"', 0
    for letter in word:
        if letter == "\\":
            n_backslashes += 1
            continue
        # Before a quote each backslash counts for half.
        quoted += "\\" * (n_backslashes * (2 if letter == '"' else 1)) + ("\\" if letter == '"' else "")
        quoted += letter
        n_backslashes = 0
    return quoted + "\\" * (2 * n_backslashes) + '"'
