"""SHOW. One file per format: a `NAME` and `render(report) -> str`; adding a format is one file and one name here."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .build import Report

FORMATS = ("text", "json")


def render(report: Report, format_name: str) -> str:
    """A report in the format of that name."""
    text: str = import_module(f".as_{format_name}", __name__).render(report)
    return text
