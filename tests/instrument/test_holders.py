"""Who keeps an object alive, by name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("holding.py")


def test_whoever_keeps_an_object_is_named_as_one_would_write_it() -> None:
    """From a variable down to it; by function where there is none. Looking keeps nothing."""
    done = subprocess.run([sys.executable, str(PROGRAM)], capture_output=True, text=True, check=True)

    found = json.loads(done.stdout)

    assert found.pop("circle") in ("an object of type Box", "an object of type dict")
    assert found == {
        "variable": "kept",
        "list": "kept[1]",
        "dictionary": "kept['x'][0]",
        "attribute": "kept.thing",
        "attribute in a dictionary": "kept.thing",
        "slot": "kept.thing",
        "deep": "kept['x'].thing[0]",
        "deque": "kept",
        "partial": "kept",
        "output of a cell": "Out[3]",
        "another module": "json.kept[0]",
        "closure": "make_closure.<locals>.<lambda>(), a function that refers to it",
        "traceback": "thing of fail(), kept by a traceback",
        "left by looking": "[]",
        "generator": "thing of yield_with_a_thing(), which has not ended",
        "thread": "thing of wait_with_a_thing(), which runs",
        "unfollowed dictionary": "kept['x']",
        "unfollowed inside each other": "kept[0][1]['x'][0]",
        "unfollowed and shared": None,
        "circle by name": None,
    }
