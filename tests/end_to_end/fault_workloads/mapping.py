"""Maps memory until that is refused, stays for a moment, and fails: mapping.py."""

from __future__ import annotations

import time


def main() -> None:
    """In pieces, so that the limit is nearly reached."""
    pieces = []
    try:
        while True:
            pieces.append(bytearray(4_000_000))
    except MemoryError:
        time.sleep(1.5)
        raise


if __name__ == "__main__":
    main()
