"""A terminal has room for one panel: whoever holds the claim draws it. It ends with the process."""

from __future__ import annotations

import os

from ..core.system import fcntl

# Whoever opens it gets his own terminal: not the same for everybody.
_OWN_TERMINAL = "/dev/tty"


class Claim:
    """A lock on the terminal's device, opened anew: a descriptor that was inherited would share it with others."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._held: int | None = None

    def take(self) -> bool:
        """Whether it is ours, or nobody can have it: another user's device, or a system without such locks."""
        self.give_back()
        try:
            self._held = _open_again(self._fd)
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.give_back()
            return False
        except OSError:
            self.give_back()
        return True

    def is_free(self) -> bool:
        """Whether it could be taken now."""
        is_free = self.take()
        self.give_back()
        return is_free

    def give_back(self) -> None:
        """The next one may draw."""
        if self._held is not None:
            os.close(self._held)
            self._held = None


def _open_again(fd: int) -> int:
    path = os.ttyname(fd)
    if path == _OWN_TERMINAL:
        raise OSError
    return os.open(path, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
