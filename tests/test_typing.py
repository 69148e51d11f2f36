"""What a type checker tells a user's program about the public names."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import gpu_tracker

PROGRAM = Path(__file__).parent / "typed" / "user_program.py"
# Where the paper's result classes are, and those for code blocks: modules of the existing tool, no names of ours.
THEIR_MODULES = {"tracker", "sub_tracker"}


def test_a_program_with_strict_types_finds_them_all_typed(tmp_path: Path) -> None:
    """The installed package is checked against, with no settings but `--strict`."""
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        "",
        "--cache-dir",
        str(tmp_path / "cache"),
    ]
    done = subprocess.run([*command, str(PROGRAM)], cwd=tmp_path, capture_output=True, text=True)

    assert done.stdout.splitlines() == ["Success: no issues found in 1 source file"], done.stderr


def test_the_program_uses_every_public_name() -> None:
    """A new name needs a line there."""
    used = {
        node.attr
        for node in ast.walk(ast.parse(PROGRAM.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "gput"
    }

    assert used - THEIR_MODULES == set(gpu_tracker.__all__)


def test_every_public_name_is_there() -> None:
    """Each is loaded when it is first asked for."""
    assert [name for name in gpu_tracker.__all__ if not hasattr(gpu_tracker, name)] == []
