"""One way to show every document: a value in, text or bytes out. Pure.

A document is a value class. Showing it in another format is one function and one entry in the table below; whoever
writes a document asks for a format by its name, or lets the name of the file tell it.
"""

from __future__ import annotations

from importlib import import_module

from ..core.errors import UsageError
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Format → how files in it are called.
_SUFFIXES = {"text": (".txt",), "json": (".json",)}
# Document → format → module and function.
_RENDERERS = {
    "Report": {"text": "report.to_text", "json": "plain.to_json"},
    "Reports": {"text": "report.join_texts", "json": "plain.items_to_json"},
    "Comparison": {"text": "comparison.to_text", "json": "comparison.to_json"},
    "Combined": {"text": "job.to_text", "json": "plain.to_json"},
    "Runs": {"text": "runs.to_text", "json": "plain.items_to_json"},
    "Diagnosis": {"text": "diagnosis.to_text", "json": "diagnosis.to_json"},
    "ResourceUsage": {"text": "paper.to_text", "json": "paper.to_json"},
}


class View(NamedTuple):
    """What the place can show where a document goes."""

    columns: int | None = None
    """The width of a screen; None: as wide as it likes."""
    has_unicode: bool = True
    has_colour: bool = False


_ANYWHERE = View()


def list_formats(document: str) -> tuple[str, ...]:
    """The formats that a document of that class can be shown in."""
    return tuple(_RENDERERS[document])


def choose_format(document: str, name: str | None, path: str | None = None) -> str:
    """The format of that name; without a name the one that the file's name tells, or text."""
    formats = list_formats(document)
    if name is None:
        known = (form for form in formats if path and path.lower().endswith(_SUFFIXES[form]))
        return next(known, formats[0])
    if name not in formats:
        wanted = " or ".join(f'"{form}"' for form in sorted(formats))
        raise UsageError(f'"{name}" is not a valid format. Valid values are {wanted}.')
    return name


def render(document: Any, format_name: str, view: View = _ANYWHERE) -> str | bytes:
    """The document in that format, ending with a newline if it is text."""
    module, _, function = _RENDERERS[type(document).__name__][format_name].partition(".")
    shown: Callable[[Any, View], str | bytes] = getattr(import_module(f".{module}", __package__), function)
    return shown(document, view)
