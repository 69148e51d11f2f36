"""How soon a report's page is ready in a real browser, beside an empty page in the same browser; and how large it is."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from benchmarks.bench import Bench, Rounds
from benchmarks.jobs import run_inside, time_command, workload
from benchmarks.rows import Goal, Row

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "page"

_BROWSER = os.environ.get("REAL_BROWSER", os.path.join(sys.prefix, "browser"))
_OPTIONS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
_IS_READY = "document.documentElement.dataset.ready !== undefined"
_EMPTY = '<!DOCTYPE html><html lang="en" data-ready="0"><title>empty</title></html>'
_MONTHS = {
    "thirty days with 2 GPUs": (2, 0, 0),
    "thirty days with 8 GPUs": (8, 0, 0),
}
_MOST_MEGABYTES, _MOST_MILLISECONDS = 2.0, 1000.0
_SLOWEST = 6.0


def measure(bench: Bench) -> list[Row]:
    """Nothing without a browser."""
    reason = _find_reason()
    if reason:
        bench.say(f"{NAME}: left out, {reason}")
        return []
    with tempfile.TemporaryDirectory() as folder, _browse() as browser:
        pages = _make_pages(bench, folder)
        ready = {
            name: Row(f"page of {name}: ready", "times an empty page", Goal(high=_SLOWEST)) for name in pages
        }
        waits = {
            name: Row(f"page of {name}: ready", "ms", Goal(high=_MOST_MILLISECONDS), 0) for name in pages
        }
        sizes = {name: Row(f"page of {name}: size", "MB", Goal(high=_MOST_MEGABYTES), 2) for name in pages}
        for name, path in pages.items():
            sizes[name].add(bench.ours.name, os.path.getsize(path) / 1e6)
        empty = _write(folder)
        _load(browser, empty)  # the first page of a browser is slow
        for _ in bench.rounds(NAME, Rounds(15, 0), Rounds(5, 0)):
            for name, path in pages.items():
                seconds = _load(browser, path)
                waits[name].add(bench.ours.name, 1000 * seconds)
                ready[name].add(bench.ours.name, seconds / _load(browser, empty))
    return [*waits.values(), *ready.values(), *sizes.values()]


def _find_reason() -> str:
    """Why there is no browser."""
    from importlib.util import find_spec

    if find_spec("playwright") is None:
        return "playwright is not installed (make .venv/.browser)"
    if not os.path.exists(os.path.join(_BROWSER, "path")):
        return f"{_BROWSER} was not filled by tests/tools/install_browser.sh (make .venv/.browser)"
    return ""


@contextmanager
def _browse() -> Iterator[Any]:
    from playwright.sync_api import (  # type: ignore[import-not-found, unused-ignore]
        sync_playwright,
    )

    with open(os.path.join(_BROWSER, "path"), encoding="utf-8") as file:
        path = file.read().strip()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(_OPTIONS))
        yield browser
        browser.close()


def _make_pages(bench: Bench, folder: str) -> dict[str, str]:
    """The files, by what they show."""
    command = os.path.join(bench.ours.bin, "gpu-tracker")
    fresh = os.path.join(folder, "fresh.jsonl")
    time_command(
        bench.ours, [command, "run", "--st", "0.1", "--record", fresh, "--", *workload("fixed_work")]
    )
    recordings = {"a fresh run": fresh}
    for name, what in _MONTHS.items():
        bench.say(f"{NAME}: {name}")
        recordings[name] = os.path.join(folder, f"{what[0]}.jsonl")
        run_inside(bench.ours, "month", recordings[name], *what)
    pages = {name: f"{path}.html" for name, path in recordings.items()}
    for name, path in recordings.items():
        time_command(bench.ours, [command, "report", path, "-o", pages[name]])
    return pages


def _write(folder: str) -> str:
    path = os.path.join(folder, "empty.html")
    with open(path, "w", encoding="utf-8") as file:
        file.write(_EMPTY)
    return path


def _load(browser: Any, path: str) -> float:
    """Seconds from the request until everything is drawn, in a window of its own."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    began = time.perf_counter()
    page.goto(f"file://{path}")
    page.wait_for_function(_IS_READY)
    elapsed = time.perf_counter() - began
    context.close()
    return elapsed
