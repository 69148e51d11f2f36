"""Whose an exception is that comes up while a region is entered or left: ours goes no further, the program's must."""

from __future__ import annotations

import os
import struct

_OUR_KINDS = (
    OSError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    RuntimeError,
    ImportError,
    MemoryError,
    SystemError,
    BufferError,
    struct.error,
)


def is_ours(error: BaseException) -> bool:
    """Whether our own code has failed, rather than a signal handler that has interrupted it (a time limit, say)."""
    if not isinstance(error, _OUR_KINDS):
        return False  # as another thread may set it, at any point of our code
    filename = ""
    traceback = error.__traceback__
    while traceback is not None:
        filename = traceback.tb_frame.f_code.co_filename
        traceback = traceback.tb_next
    return filename.startswith(_OUR_PLACES)


# No handler is frozen, but the machinery of imports is.
_OUR_PLACES = (
    f"{os.path.dirname(os.path.dirname(is_ours.__code__.co_filename))}{os.sep}",
    "<frozen ",
)
