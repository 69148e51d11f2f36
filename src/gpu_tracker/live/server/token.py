"""The secret in the address. It is kept per port, so that pages find a server again that was restarted."""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys

from ...core.system import fcntl, posix

_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_BYTES = 32
# Who is not the user. The modes of Windows say nothing of them; there the folder is the user's own.
_OTHERS = 0 if sys.platform == "win32" else 0o077


def find_folder() -> str:
    """Where it is kept; only the user can read it."""
    if sys.platform == "win32" and "LOCALAPPDATA" in os.environ:
        return os.path.join(os.environ["LOCALAPPDATA"], "gpu-tracker")
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "gpu-tracker")


def find_token(folder: str, port: int, *, is_new: bool = False) -> str:
    """The token of that port. Where nothing can be kept, it is a new one each time."""
    path = _name(folder, port)
    known = None if is_new else _read(path)
    if known is not None:
        return known
    made = secrets.token_urlsafe(_BYTES)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        _write(path, made)
    except OSError:
        pass  # a home that cannot be written to; pages will not find the next server
    return made


def hold_token(folder: str, port: int) -> int | None:
    """Show that the server of that port is the user's own, until the descriptor is closed; None where that cannot be shown."""
    try:
        fd = posix.open(_name(folder, port), posix.O_RDONLY | posix.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    return fd


def forget_token(folder: str, port: int) -> None:
    """Somebody else may have listened there, and have been told; not so if it is a server of the user's own."""
    path = _name(folder, port)
    try:
        fd = posix.open(path, posix.O_RDONLY | posix.O_NOFOLLOW)
    except OSError:
        return  # there is none
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
    except OSError:
        pass  # it is held
    finally:
        os.close(fd)


def _name(folder: str, port: int) -> str:
    return os.path.join(folder, f"serve-{port}.token")


def _read(path: str) -> str | None:
    try:
        fd = posix.open(path, posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_NONBLOCK)
    except OSError:
        return None
    try:
        status = os.fstat(fd)
        is_secret = stat.S_ISREG(status.st_mode) and not status.st_mode & _OTHERS
        content = os.read(fd, 100) if is_secret and status.st_uid == posix.geteuid() else b""
    finally:
        os.close(fd)
    text = content.decode("ascii", "replace")
    return text if _TOKEN.fullmatch(text) else None


def _write(path: str, token: str) -> None:
    draft = f"{path}.{os.getpid()}"
    with open(
        posix.open(draft, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_NOFOLLOW, 0o600), "w"
    ) as file:
        file.write(token)
    os.replace(draft, path)
