"""A program with experiments at its top level; prints what came of them as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

import gpu_tracker as gput

told: dict[str, Any] = {}
cache: dict[str, Any] = {}


class Load:
    """Something large that can be followed."""

    def __init__(self, size_bytes: int) -> None:
        self.content = bytearray(size_bytes)


before = Load(1000)
with gput.experiment("a", keep=("score",)) as first:
    import decimal  # noqa: F401 - it must stay

    data = Load(100_000_000)
    text = b"x" * 50_000_000
    score = [0.9]
    before = Load(2000)

    def tool() -> None:
        """Neither deleted nor looked at."""

    _hidden = 3
    cache["text"] = [text]
    cache["data"] = data
told["names"] = [
    name for name in ("data", "text", "score", "before", "decimal", "tool", "_hidden") if name in globals()
]
told["first"] = first.report
cache.clear()

with gput.experiment("clean", quiet=True) as second:
    data = Load(100_000_000)
told["second"] = second.report


def in_a_function() -> Any:
    """Where variables cannot be deleted from outside."""
    with gput.experiment("function", quiet=True) as third:
        data = Load(1_000_000)
    return third.report, data.content is not None


told["third"] = in_a_function()


def fail() -> None:
    """With something in its variable."""
    held = Load(20_000_000)
    told["held"] = bool(held)
    raise ValueError("no")


try:
    with gput.experiment("fails", quiet=True) as fourth:
        local = Load(5000)
        other = [local]
        fail()
except ValueError as error:
    told["error"] = str(error)
told["fourth"] = fourth.report
with gput.Tracker(disable_logs=True) as outer, gput.experiment("inner", quiet=True):
    pass
told["regions"] = [region.path for region in outer.report.regions] if outer.report else None
for wrong in ("model", (3,)):
    try:
        gput.experiment("x", keep=wrong)  # type: ignore[arg-type]
    except gput.UsageError as error:
        told.setdefault("wrong", []).append(str(error))
print(json.dumps(told), file=sys.stderr)
