"""What the user's program holds of its sampler on Windows: handles, and a file that the system removes with them."""

# ruff: noqa: E402
from __future__ import annotations

import sys

assert sys.platform == "win32"

import nt
import os

from ...sources.platform import windows


class Handle:
    """Takes ownership of a handle."""

    path = ""
    """Of a file: what another process opens it by."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    @property
    def number(self) -> int:
        """The number; -1 once it is closed."""
        return self._handle

    def close(self) -> None:
        """Close it, once."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            windows.close_handle(handle)


def make_pipe() -> tuple[Handle, Handle]:
    """The reading and the writing end."""
    reading, writing = windows.make_pipe()
    return Handle(reading), Handle(writing)


class _UnnamedFile(Handle):
    """A descriptor instead of a handle."""

    def __init__(self, path: str) -> None:
        super().__init__(open_unnamed(path, os.O_CREAT | os.O_EXCL | os.O_RDWR))
        self.path = path

    def close(self) -> None:
        """Close it, once."""
        fd, self._handle = self._handle, -1
        if fd >= 0:
            nt.close(fd)


def make_unnamed_file() -> Handle:
    """A file that nobody finds, and that is gone with the last process that has it open."""
    folder = os.environ.get("TEMP") or os.getcwd()
    return _UnnamedFile(f"{folder}/gpu-tracker-{os.urandom(8).hex()}.tmp")


def open_unnamed(path: str, flags: int) -> int:
    """Open a file that is removed once nobody has it open."""
    return nt.open(path, flags | nt.O_BINARY | nt.O_TEMPORARY | nt.O_NOINHERIT, 0o600)


def start(python: str, paths: list[str], commands: int, replies: int, unnamed: str) -> int:
    """Start the interpreter with the two ends of pipes that are its own; its number."""
    boot = (
        "import gc, sys; gc.disable(); _, commands, replies, unnamed, *paths = sys.argv; sys.path += paths; "
        "from gpu_tracker.sampler.child import main; main(int(commands), int(replies), unnamed)"
    )
    words = [python, "-I", "-S", "-c", boot, str(commands), str(replies), unnamed, *paths]
    return windows.spawn_apart(windows.quote(words), dict(os.environ), [commands, replies])


def adopt(commands: int, replies: int, unnamed: str) -> tuple[int, int, int]:
    """In the sampler: the commands, the unnamed recording and the replies that it was started with."""
    for handle in (commands, replies):
        os.set_handle_inheritable(handle, False)
    return commands, open_unnamed(unnamed, os.O_APPEND | os.O_WRONLY), replies
