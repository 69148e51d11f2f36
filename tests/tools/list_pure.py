"""Print the files that touch nothing but values, for whoever measures how much of them is tested.

A module is one if its opening lines say "Pure"; those of a few folders are held to the same.
"""

from __future__ import annotations

import ast
from pathlib import Path

FOLDERS = ("accounts", "analysis", "core", "recording", "reports")
# What only Windows runs.
ELSEWHERE = "windows.py"
PACKAGE = Path(__file__).parents[2] / "src" / "gpu_tracker"


def is_pure(path: Path) -> bool:
    """Whether its opening lines say so."""
    return "Pure" in (ast.get_docstring(ast.parse(path.read_text())) or "")


if __name__ == "__main__":
    files = [
        path.relative_to(PACKAGE)
        for path in sorted(PACKAGE.rglob("*.py"))
        if (path.relative_to(PACKAGE).parts[0] in FOLDERS and path.name != ELSEWHERE) or is_pure(path)
    ]
    print(",".join(f"*/gpu_tracker/{file.as_posix()}" for file in files))
