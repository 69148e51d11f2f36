"""Healthy programs of many kinds get no serious finding, and none that is wrong about them."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path

import pytest

from end_to_end.faults import Scene, tracker

PYTHON = sys.executable
# What is true of many healthy programs, or of a machine on which other tests run: there a program waits for cores.
BUSY = {"one-core", "cpu-percent", "crowded-machine", "oversubscribed"}
HARMLESS: dict[str, set[str]] = {"sleep": set(), "server": {"crowded-machine"}}

# Long enough to be judged, however fast the machine is.
FOR_SECONDS = "end=$(($(date +%s) + 6)); while [ $(date +%s) -lt $end ]; do"
LOOP = "import time; end = time.monotonic() + 6\nwhile time.monotonic() < end: "
POOL = """
import time, multiprocessing as m
def work(n):
    end = time.monotonic() + 0.2
    while time.monotonic() < end: n += 1
    return n
if __name__ == "__main__":
    with m.Pool(2) as pool: pool.map(work, range(60))
"""
BUILD = "all: " + " ".join(f"a{n}.o" for n in range(24)) + "\n%.o: %.c\n\tcc -O2 -c $< -o $@\n"
PROGRAM = "\n".join(f"double f{n}(double x) {{ return x * x + {n}; }}" for n in range(150))

# In the foreground: else `timeout` interrupts its child twice, and a server that ends of the first fails of the second.
COMMANDS = {
    "build": ["sh", "-c", f"{FOR_SECONDS} make -sB -j2; done"],
    "tests": [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_many.py"],
    "matrices": [PYTHON, "-c", f"import numpy as n; a = n.random.rand(500, 500); {LOOP}a @ a".replace("; import time", "\nimport time")],
    "pipeline": ["sh", "-c", f"{FOR_SECONDS} sort lines | grep 7 | sort -r | uniq -c > out; done"],
    "server": ["timeout", "--foreground", "--preserve-status", "-s", "INT", "6", PYTHON, "-m", "http.server", "0"],
    "imports": [PYTHON, "-c", f"import asyncio, email, http.client, unittest, sqlite3, ctypes, decimal\n{LOOP}[str(n) for n in range(999)]"],
    "compression": [PYTHON, "-c", f"import lzma, os; data = os.urandom(300_000)\n{LOOP}lzma.compress(data)"],
    "database": [PYTHON, "-c", "import sqlite3; c = sqlite3.connect('x.db'); c.execute('create table t (a, b)')\n"
        f"{LOOP}c.executemany('insert into t values (?, ?)', ((n, str(n)) for n in range(9999))); c.commit()"],
    "pool": [PYTHON, "pool.py"],
    "sleep": ["sleep", "6"],
}  # fmt: skip


def prepare(directory: Path) -> None:
    """What the commands work on."""
    (directory / "Makefile").write_text(BUILD)
    for number in range(24):
        (directory / f"a{number}.c").write_text(PROGRAM)
    (directory / "pool.py").write_text(POOL)
    (directory / "lines").write_text("\n".join(str(n * 7919 % 1_000_003) for n in range(200_000)))
    (directory / "test_many.py").write_text(
        "import pytest, time\n@pytest.mark.parametrize('n', range(100))\ndef test_it(n): time.sleep(0.06)\n"
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_a_healthy_program_is_called_healthy(scene: Scene, name: str) -> None:
    """With samples ten times a second, so that a few seconds are judged like minutes."""
    if name == "matrices" and importlib.util.find_spec("numpy") is None:
        pytest.skip("numpy is not installed")
    if name == "build" and not (shutil.which("make") and shutil.which("cc")):
        pytest.skip("there is no compiler")
    prepare(scene.directory)

    outcome = scene.run(
        tracker("run", "--record", "x.jsonl", "--st", "0.1", "-o", "x.json", "--", *COMMANDS[name])
    )

    report = json.loads((scene.directory / "x.json").read_text())
    assert outcome.returncode == 0, outcome.stderr
    assert len(report["unjudged"]) > 10, "the run was too short to be judged"
    assert {finding["rule"] for finding in report["findings"]} <= HARMLESS.get(name, BUSY)
    assert not [finding for finding in report["findings"] if finding["severity"] == "serious"]
