"""The operating system's calls under their POSIX names, wherever this runs."""

from __future__ import annotations

import sys
from time import monotonic_ns as monotonic_ns

if sys.platform == "win32":
    from . import windows as fcntl, windows as posix, windows as resource
else:
    import fcntl as fcntl
    import posix as posix
    import resource as resource


if sys.platform == "win32" and sys.version_info < (3, 13):
    from .windows import monotonic_ns as monotonic_ns  # in smaller steps


def prints_any_letter() -> bool:
    """Whether standard output takes all of Unicode: a pipe on Windows takes one alphabet."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return bool(encoding.lower().startswith("utf"))
