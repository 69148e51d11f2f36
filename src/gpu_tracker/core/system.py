"""The operating system's calls under their POSIX names, wherever this runs."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from . import windows as fcntl, windows as posix, windows as resource
else:
    import fcntl as fcntl
    import posix as posix
    import resource as resource
