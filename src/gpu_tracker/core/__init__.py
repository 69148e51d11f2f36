"""The base of everything else: values, figures, units, text. It imports no other part of the package.

Here are stand-ins for two modules that take long to import, for processes that must start quickly.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as signal
    from typing import Any
else:
    import _signal as signal  # the same functions, with numbers instead of enumerations


def list_signals(*names: str) -> tuple[int, ...]:
    """Those of these signals that this system has."""
    return tuple(getattr(signal, name) for name in names if hasattr(signal, name))


def load_module(name: str) -> Any:
    """The module of that name; what `importlib.import_module` does."""
    __import__(name)
    return sys.modules[name]
