"""Whether a sampler sees that nobody reads its answers any more."""

from __future__ import annotations

import json
import os


def main() -> None:
    """While somebody may write to its standard input, with something in it, and after that."""
    from gpu_tracker.sampler.child import _has_owner

    reading, writing = os.pipe()
    os.dup2(reading, 0)
    told = [_has_owner()]
    os.write(writing, b"x")
    told.append(_has_owner())
    os.close(writing)
    told.append(_has_owner())
    print(json.dumps(told))


if __name__ == "__main__":
    main()
