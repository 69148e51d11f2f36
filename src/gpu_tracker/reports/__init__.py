"""SHOW. One file per format: a `NAME`, `render(report) -> str`, and `join(texts) -> str` for several of them.

Adding a format is one file and one name here.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .build import Report

FORMATS = ("text", "json")


def render(report: Report, format_name: str) -> str:
    """A report in the format of that name."""
    text: str = import_module(f".{format_name}", __name__).render(report)
    return text


def join(texts: Sequence[str], format_name: str) -> str:
    """Reports in that format, one after the other; a single one stays as it is."""
    if len(texts) == 1:
        return texts[0]
    text: str = import_module(f".{format_name}", __name__).join(texts)
    return text
