"""Optional packages, imported when needed."""

from __future__ import annotations

from importlib import import_module

from ..core.errors import TrackerError
from ..core.version import DISTRIBUTION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

_EXTRAS = {"pandas": "pandas", "polars": "polars", "pyarrow": "arrow", "pyarrow.parquet": "arrow"}


def need(package: str) -> ModuleType:
    """The package, or an error that says how to install it."""
    try:
        return import_module(package)
    except ImportError:
        raise TrackerError(
            f"This needs {package.partition('.')[0]}, which is not installed.",
            f"Install it with: pip install '{DISTRIBUTION}[{_EXTRAS[package]}]'",
        ) from None
