"""SHOW. A recording as a file for other programs.

A format is a module with `NAME`, `SUFFIXES`, `HOLDS_ALL_TABLES` and `write(path, report, tables)`. A new one is one
file and one name here.
"""

from __future__ import annotations

import os
from importlib import import_module

from ..core.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

FORMATS = ("csv", "parquet", "sqlite", "json")


def find_format(path: str) -> ModuleType:
    """The format for a file's suffix."""
    suffixes: list[str] = []
    for name in FORMATS:
        module = import_module(f".{name}", __name__)
        if path.lower().endswith(module.SUFFIXES):
            return module
        suffixes += module.SUFFIXES
    raise UsageError(f"Unknown format {os.path.splitext(path)[1]!r}.", f"Use {', '.join(suffixes)}.")
