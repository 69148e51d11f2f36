"""Read the kernel's small files."""

from __future__ import annotations

import os

from ..core.system import posix


def read_file(path: str) -> bytes:
    """The whole file, which the kernel may return in pieces."""
    fd = posix.open(path, posix.O_RDONLY)
    try:
        chunks = []
        while chunk := os.read(fd, 65536):
            chunks.append(chunk)
        return b"".join(chunks)
    finally:
        os.close(fd)


def read_text(path: str) -> str:
    """The whole file as text; invalid UTF-8 is replaced."""
    return read_file(path).decode("utf-8", "replace")
