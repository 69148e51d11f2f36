"""Who may import whom. A wrong import fails here, with the name of the file."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import gpu_tracker

PACKAGE = Path(gpu_tracker.__file__).parent
LEAVES = {"errors", "units", "values", "version"}
# Room → the rooms it may import. A room may always import itself.
ALLOWED: dict[str, set[str]] = {
    **{leaf: set() for leaf in LEAVES},
    "model": {"values"},
    "usage": set(),
    "tally": {"model"},
    "config": {"sources", "units", "values"},
    # What passes between a process of the job and the sampler: where, and how it is written there.
    "place": set(),
    "board": {"place", "values"},
    "frameworks": {"model", "place"},
    "own_memory": set(),
    "marking": {"board", "own_memory", "regions"},
    "regions": {"board", "frameworks", "marking", "own_memory", "place"},
    # One look for people: what the sampler sends, and what the views are made of.
    "observation": {"model", "values"},
    "sources": {"model", "observation", "values"},
    "recording": {"errors", "model", "units", "values"},
    "sampler": {
        "board",
        "errors",
        "model",
        "observation",
        "place",
        "recording",
        "sources",
        "tally",
        "values",
        "version",
    },
    # Recorded runs side by side: loaded without the tracker too.
    "comparing": {"analysis", "errors", "recording", "reports"},
    "analysis": {"model", "observation", "tally", "units", "values"},
    "reports": {"analysis", "config", "errors", "model", "observation", "units", "usage", "values"},
    "tracker": {
        "config",
        "errors",
        "model",
        "own_memory",
        "place",
        "recording",
        "regions",
        "reports",
        "sampler",
        "usage",
        "version",
    },
    "api": {"tracker"},
    # The front door for recordings: loaded without the tracker too.
    "recordings": {"analysis", "errors", "exports", "model", "recording", "reports"},
    "exports": {"analysis", "errors", "reports"},
    # The front door for devices: loaded without the tracker, which it does not need.
    "devices": {"observation", "sampler"},
    "cli": {
        "analysis",
        "comparing",
        "config",
        "errors",
        "exports",
        "model",
        "observation",
        "place",
        "recording",
        "reports",
        "sampler",
        "sources",
        "units",
        "values",
        "version",
    },
    "__init__": {"api", "comparing", "devices", "recordings", "regions", "tracker", "version"},
    "__main__": {"cli"},
}
# Packages that may be missing, or are dear: imported inside the function of the one file that needs them.
OPTIONAL = {
    "psutil": "sources",
    "pynvml": "sources",
    "pandas": "exports",
    "polars": "exports",
    "pyarrow": "exports",
}
PURE = [
    "analysis/checkup.py",
    "analysis/combine.py",
    "analysis/compare.py",
    "analysis/figures.py",
    "analysis/limits.py",
    "analysis/listing.py",
    "analysis/frameworks.py",
    "analysis/live.py",
    "analysis/ranks.py",
    "analysis/regions.py",
    "analysis/summary.py",
    "analysis/tables.py",
    "exports/about.py",
    "model.py",
    "observation.py",
    "recording/damage.py",
    "recording/encode.py",
    "recording/fields.py",
    "recording/schema.py",
    "recording/secrets.py",
    "recording/tracking_rows.py",
    "sampler/account.py",
    "sampler/budget.py",
    "sampler/clock.py",
    "sampler/framework_account.py",
    "sampler/gpu_account.py",
    "sampler/ledger.py",
    "sampler/region_account.py",
    "sampler/salvage.py",
    "sampler/sharing.py",
    "sources/guard.py",
    "sources/visible.py",
    "tally.py",
    "units.py",
]
# The hook is no part of the house: the job's own Python reads it, and finds the package by its name.
FILES = sorted(
    path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if path.parent.name != "hook"
)


def room_of(file: str) -> str:
    """The folder, or the module's own name."""
    return file.split("/", maxsplit=1)[0].removesuffix(".py")


def imports_of(file: str) -> list[tuple[str, bool]]:
    """Every module that a file names, ours as `room`, and whether that is at the top of the file."""
    tree = ast.parse((PACKAGE / file).read_text())
    depth = file.count("/")
    names = []
    top = set(map(id, tree.body))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [(alias.name.split(".")[0], id(node) in top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.append(((node.module or "").split(".")[0], id(node) in top))
        elif isinstance(node, ast.ImportFrom):
            inside = node.level <= depth
            parts = (node.module or "").split(".")
            targets = [parts[0]] if parts[0] else [alias.name for alias in node.names]
            names += [(room_of(file) if inside else f"ours:{target}", id(node) in top) for target in targets]
    return names


@pytest.mark.parametrize("file", FILES)
def test_a_room_imports_only_what_it_may(file: str) -> None:
    """The table above is the house."""
    rooms = {name.removeprefix("ours:") for name, _ in imports_of(file) if name.startswith("ours:")}

    assert rooms <= ALLOWED[room_of(file)], file


@pytest.mark.parametrize("file", FILES)
def test_nobody_inside_imports_the_package_root(file: str) -> None:
    """That is where import cycles come from."""
    assert "gpu_tracker" not in {name for name, _ in imports_of(file)}, file


@pytest.mark.parametrize("file", FILES)
def test_optional_packages_are_imported_where_they_are_used(file: str) -> None:
    """Neither the user's process nor the start of the sampler pays for them."""
    for name, is_at_top in imports_of(file):
        if name in OPTIONAL:
            assert room_of(file) == OPTIONAL[name], file
            assert not is_at_top, file


@pytest.mark.parametrize("file", PURE)
def test_pure_files_touch_nothing(file: str) -> None:
    """No clock, no file, no process: values in, values out."""
    forbidden = {"os", "time", "sys", "select", "signal", "subprocess", "io", "pathlib"}

    assert not forbidden & {name for name, _ in imports_of(file)}, file


def test_sources_and_reports_never_meet() -> None:
    """The recording is the wall between them."""
    assert "reports" not in ALLOWED["sources"] | ALLOWED["sampler"] | ALLOWED["recording"]
    assert "sources" not in ALLOWED["reports"] | ALLOWED["analysis"]


def test_importing_and_tracking_loads_nothing_of_others() -> None:
    """The user's process gets no third-party module, not even while tracking."""
    code = (
        "import sys, gpu_tracker\n"
        "with gpu_tracker.Tracker(disable_logs=True) as tracker: pass\n"
        "str(tracker)\n"
        "foreign = [name for name, module in sys.modules.items()\n"
        "    if 'site-packages' in (getattr(module, '__file__', None) or '')\n"
        "    and not name.startswith('gpu_tracker')]\n"
        "print([name for name in foreign if not name.startswith(('_distutils', 'coverage', 'a1_'))])\n"
    )

    assert subprocess.check_output([sys.executable, "-I", "-c", code], text=True).strip() == "[]"
