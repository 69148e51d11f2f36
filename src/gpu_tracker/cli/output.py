"""Where results go: a file, whole or not at all, or standard output. Checked before the job starts."""

from __future__ import annotations

import os
import stat
import sys

from ..errors import UsageError


class Output:
    """A place for one text. None is the given stream, `-` is standard output."""

    def __init__(self, path: str | None) -> None:
        self._path = None if path in (None, "-") else os.path.abspath(str(path))
        self._is_stdout = path == "-"
        self._draft: str | None = None
        if self._path is not None:
            self._prepare(self._path)

    @property
    def is_file(self) -> bool:
        """Whether the text goes to a file."""
        return self._path is not None

    def write(self, text: str, otherwise: int) -> None:
        """Put the text in place; `otherwise` is the descriptor to use if it was given no place."""
        if self._path is None:
            write_all(1 if self._is_stdout else otherwise, text)
        elif self._draft is None:
            with open(self._path, "w", encoding="utf-8") as file:
                file.write(text)
        else:
            with open(self._draft, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(self._draft, self._path)
            self._draft = None

    def discard(self) -> None:
        """Leave nothing behind."""
        if self._draft is not None:
            os.unlink(self._draft)
            self._draft = None

    def _prepare(self, path: str) -> None:
        """Prove that it can be written, by making the draft that will take its place."""
        try:
            if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
                os.close(os.open(path, os.O_WRONLY))  # a device or a pipe cannot be replaced
                return
            draft = f"{path}.{os.getpid()}.tmp"
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        except OSError as error:
            raise UsageError(f"Cannot write to {path}: {error.strerror}.") from None
        self._draft = draft


def write_all(fd: int, text: str) -> None:
    """Write to a stream that may be closed at the other end (`| head`): then nobody wants it."""
    sys.stdout.flush()
    content = text.encode("utf-8", "backslashreplace")
    try:
        while content:
            content = content[os.write(fd, content) :]
    except OSError:
        pass
