"""What is imported when: a job waits for the command line and the sampler to start, and gets no package that it did not ask for."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tools.imports import FILES, PACKAGE, imports_of, room_of

# Packages that may be missing, or are dear: imported inside the function of the one file that needs them.
OPTIONAL = {
    "msgspec": "recording",
    "psutil": "sources",
    "pynvml": "sources",
    "pandas": "exports",
    "polars": "exports",
    "pyarrow": "exports",
    "matplotlib": "reports",
    "IPython": "integrations",
    "opentelemetry": "sinks",
    "tornado": "live",
}
# A guest in another package is a class of that package: its module imports it, and nobody of ours imports that module.
GUESTS = {
    "integrations/keras.py": {"keras"},
    "integrations/lightning.py": {"lightning", "pytorch_lightning"},
    "integrations/transformers.py": {"transformers"},
}
# What takes long to import.
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


@pytest.mark.parametrize("file", FILES)
def test_optional_packages_are_imported_where_they_are_used(file: str) -> None:
    """Neither the user's process nor the start of the sampler pays for them."""
    for name, is_at_top in imports_of(file):
        if name in OPTIONAL:
            assert room_of(file) == OPTIONAL[name], file
            assert not is_at_top, file


@pytest.mark.parametrize("file", FILES)
def test_other_packages_have_one_guest_each(file: str) -> None:
    """Only whoever imports the guest imports the package."""
    others = set().union(*(packages for guest, packages in GUESTS.items() if guest != file))
    modules = {guest.removesuffix(".py").rpartition("/")[2] for guest in GUESTS}
    tree = ast.parse((PACKAGE / file).read_text())
    ours = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    named = {part for node in ours for part in (node.module or "").split(".")}
    named |= {alias.name for node in ours for alias in node.names}

    assert not others & {name for name, _ in imports_of(file)}, file
    assert not modules & named, file


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
