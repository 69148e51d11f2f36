"""Who may import whom. A wrong import fails here, with the name of the file."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import gpu_tracker
from tools.list_pure import is_pure

PACKAGE = Path(gpu_tracker.__file__).parent
# Folder → the folders it may import; it may always import itself. `core` is for everybody.
ALLOWED: dict[str, set[str]] = {
    "core": set(),
    # MEASURE
    "sources": set(),
    "accounts": {"instrument"},
    "instrument": set(),
    "sampler": {"accounts", "instrument", "recording", "sources"},
    # KEEP
    "recording": set(),
    # EXPLAIN
    "analysis": {"accounts"},
    # SHOW
    "reports": {"analysis", "api"},
    "live": {"analysis"},
    "exports": {"analysis", "reports"},
    # OFFER
    "api": {"analysis", "exports", "instrument", "recording", "reports", "sampler", "sources"},
    "cli": {"analysis", "api", "exports", "instrument", "live", "recording", "reports", "sampler", "sources"},
    "__init__": {"analysis", "api", "reports"},
    "__main__": {"cli"},
}
# Packages that may be missing, or are dear: imported inside the function of the one file that needs them.
OPTIONAL = {
    "psutil": "sources",
    "pynvml": "sources",
    "pandas": "exports",
    "polars": "exports",
    "pyarrow": "exports",
    "matplotlib": "reports",
}
# What takes long to import: a job waits for the command line and for the sampler to start.
SLOW = {
    *(
        "argparse",
        "collections",
        "contextlib",
        "ctypes",
        "dataclasses",
        "enum",
        "functools",
        "importlib",
        "inspect",
    ),
    *("json", "pathlib", "re", "shutil", "signal", "subprocess", "tempfile", "threading", "typing"),
}
STARTS = {
    "command line": "sys.argv[1:] = ['run', '--', 'true']; from gpu_tracker.cli import main; main()",
    "sampler": "import gpu_tracker.sampler.child",
}
# The hook is no part of the house: the job's own Python reads it, and finds the package by its name.
FILES = sorted(
    path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if path.parent.name != "hook"
)


PURE = [file for file in FILES if is_pure(PACKAGE / file)]


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

    assert rooms <= ALLOWED[room_of(file)] | {"core"}, file


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


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_nothing_slow_is_imported_at_the_start(start: str, tmp_path: Path) -> None:
    """From the first module to the last, as the interpreter itself reports them."""
    code = f"import sys; sys.path.append({str(PACKAGE.parent)!r}); {start}"
    command = [sys.executable, "-I", "-S", "-X", "importtime", "-c", code]
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stderr
    imported = {
        line.rpartition("|")[2].strip() for line in told.splitlines() if line.startswith("import time:")
    }

    assert "gpu_tracker.core" in imported
    assert not imported & SLOW
