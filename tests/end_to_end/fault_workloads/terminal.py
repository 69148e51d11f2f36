"""Tells how it stands with its terminal."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """As an interactive program would check it."""
    print("terminals", [os.isatty(fd) for fd in (0, 1, 2)])
    print("foreground", os.tcgetpgrp(0) == os.getpgrp())
    print("size", tuple(os.get_terminal_size()))
    print("name", os.ttyname(0))
    print("answer", input("question? "), flush=True)
    sys.exit(3)


if __name__ == "__main__":
    main()
