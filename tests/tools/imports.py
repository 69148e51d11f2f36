"""What every module of the package imports."""

from __future__ import annotations

import ast
from pathlib import Path

import gpu_tracker

PACKAGE = Path(gpu_tracker.__file__).parent
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
