"""SHOW. A recording as a file for other programs.

A format is a module with `NAME`, `SUFFIXES`, `HOLDS_ALL_TABLES`, `NEEDS_SAMPLES` (in the report) and
`write(path, report, tables)`. A new one is one file and one name here.
"""

from __future__ import annotations

import os
from importlib import import_module

from ..core.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

# In this order: a name that ends with `.trace.json` also ends with `.json`.
FORMATS = ("csv", "parquet", "sqlite", "trace", "json")


def find_format(path: str, wanted: str | None = None) -> ModuleType:
    """The format of that name; without a name, the one of the file's suffix."""
    if wanted is not None:
        if wanted not in FORMATS:
            raise UsageError(f'"{wanted}" is not a valid format. Valid values are {", ".join(FORMATS)}.')
        return import_module(f".{wanted}", __name__)
    suffixes: list[str] = []
    for name in FORMATS:
        module = import_module(f".{name}", __name__)
        if path.lower().endswith(module.SUFFIXES):
            return module
        suffixes += module.SUFFIXES
    raise UsageError(f"Unknown format {os.path.splitext(path)[1]!r}.", f"Use {', '.join(suffixes)}.")
