"""Who may import whom. A wrong import fails here, with the name of the file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpu_tracker.cli import COMMANDS
from tools.imports import FILES, PACKAGE, imports_of, room_of
from tools.list_pure import is_pure

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
    "live": {"analysis", "recording", "reports"},
    "exports": {"analysis", "recording", "reports"},
    "sinks": {"analysis", "recording"},
    # OFFER
    "api": {
        *("analysis", "exports", "instrument", "integrations"),
        *("recording", "reports", "sampler", "sinks", "sources"),
    },
    "integrations": {"analysis", "api", "instrument", "reports"},
    "cli": {
        *("analysis", "api", "exports", "instrument", "live"),
        *("recording", "reports", "sampler", "sinks", "sources"),
    },
    "__init__": {
        *("analysis", "api", "instrument", "integrations"),
        *("recording", "reports", "sinks", "sub_tracker", "tracker"),
    },
    "__main__": {"cli"},
    "sub_tracker": {"analysis", "api"},
    "tracker": {"api"},
}
PURE = [file for file in FILES if is_pure(PACKAGE / file)]


@pytest.mark.parametrize("file", FILES)
def test_a_room_imports_only_what_it_may(file: str) -> None:
    """The table above is the house."""
    rooms = {name.removeprefix("ours:") for name, _ in imports_of(file) if name.startswith("ours:")}

    assert rooms <= ALLOWED[room_of(file)] | {"core"}, file


@pytest.mark.parametrize("file", FILES)
def test_nobody_inside_imports_the_package_root(file: str) -> None:
    """That is where import cycles come from."""
    assert "gpu_tracker" not in {name for name, _ in imports_of(file)}, file


@pytest.mark.parametrize("file", PURE)
def test_pure_files_touch_nothing(file: str) -> None:
    """No clock, no file, no process: values in, values out."""
    forbidden = {"os", "time", "sys", "select", "signal", "subprocess", "io", "pathlib"}

    assert not forbidden & {name for name, _ in imports_of(file)}, file


def test_sources_and_reports_never_meet() -> None:
    """The recording is the wall between them."""
    assert "reports" not in ALLOWED["sources"] | ALLOWED["sampler"] | ALLOWED["recording"]
    assert "sources" not in ALLOWED["reports"] | ALLOWED["analysis"]


def test_the_document_names_every_module() -> None:
    """In the row of its folder, so that a reader finds the place for a change without opening one."""
    document = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text()
    rows = dict(re.findall(r"^\| `([\w/]+)` \| (.*) \|$", document, re.MULTILINE))
    unnamed = []
    for file in FILES:
        folder, _, module = file.removesuffix(".py").rpartition("/")
        while folder and folder not in rows:  # a folder without a row is in that of its parent
            folder, _, module = folder.rpartition("/")
        is_listed_elsewhere = folder == "exports" or (folder == "cli" and module in COMMANDS)
        if folder and module != "__init__" and not is_listed_elsewhere:
            unnamed += [file] * (re.search(rf"`{module}[`/.]", rows[folder]) is None)

    assert unnamed == []
