"""One way to render every document: a value in, text or bytes out. Pure.

A document is a value class. To add a format, write one function and add one entry to the table below. The caller
names the format, or the suffix of the output file decides.
"""

from __future__ import annotations

from ..core import load_module
from ..core.errors import UsageError
from ..core.text import neutralize_lines, to_ascii
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Format → suffixes of its files.
_SUFFIXES = {
    "text": (".txt",),
    "json": (".json",),
    "markdown": (".md",),
    "html": (".html",),
    "svg": (".svg",),
    "png": (".png",),
    "pdf": (".pdf",),
}
# Document → format → module and function.
# fmt: off
_RENDERERS = {
    "Report": {
        "text": "report.to_text", "json": "plain.to_json", "markdown": "markdown.to_markdown", "html": "html.page.to_html",
        "svg": "svg.to_svg", "png": "plot.to_png", "pdf": "plot.to_pdf",
    },
    "Reports": {
        "text": "report.join_texts", "json": "plain.items_to_json", "markdown": "markdown.join_markdown", "html": "html.several.show_reports",
    },
    "Comparison": {
        "text": "comparison.to_text", "json": "comparison.to_json", "markdown": "markdown.compare_to_markdown", "html": "html.several.show_comparison",
    },
    "Combined": {
        "text": "job.to_text", "json": "plain.to_json", "markdown": "markdown.combine_to_markdown", "html": "html.several.show_job",
    },
    "Runs": {
        "text": "runs.to_text", "json": "plain.items_to_json", "markdown": "markdown.list_to_markdown", "html": "html.several.show_runs",
    },
    "Diagnosis": {"text": "diagnosis.to_text", "json": "diagnosis.to_json"},
    "SizingReport": {"text": "sizing.to_text", "json": "sizing.to_json"},
    "SubTrackingResults": {"text": "sub_tracking.to_text", "json": "sub_tracking.to_json"},
    "CodeBlockComparison": {"text": "sub_tracking.compare_to_text", "json": "sub_tracking.compare_to_json"},
    "ResourceUsage": {"text": "paper.to_text", "json": "paper.to_json"},
}
# fmt: on
# Formats that draw, so that the document needs its charts.
WITH_CHARTS = frozenset({"html"})


class View(NamedTuple):
    """What the output can show."""

    columns: int | None = None
    """The width of a terminal; None for no limit."""
    has_unicode: bool = True
    has_colour: bool = False


_PLAIN = View()
# Made by matplotlib, and not text.
PLOTTED = frozenset({"png", "pdf"})
_FOR_PEOPLE = frozenset({"text", "markdown"})


def list_formats(document: str) -> tuple[str, ...]:
    """The formats available for a class of documents."""
    return tuple(_RENDERERS[document])


def choose_format(document: str, name: str | None, path: str | None = None) -> str:
    """The named format; without a name, the one of the file's suffix, or text if it has none.

    Raises `TrackerError` if it needs a package that is missing: better before a long job than after it.
    """
    chosen = _choose_format(document, name, path)
    if chosen in PLOTTED:
        from .plot import need_matplotlib

        need_matplotlib()
    return chosen


def _choose_format(document: str, name: str | None, path: str | None) -> str:
    formats = list_formats(document)
    if name is None:
        stem, dot, suffix = (path or "").rpartition("/")[2].rpartition(".")
        if not stem:
            return formats[0]
        known = {known: form for form in formats for known in _SUFFIXES[form]}
        if dot + suffix.lower() not in known:
            raise UsageError(
                f"Unknown format {dot + suffix!r}.", f"Use {' or '.join(known)}, or name it with -f."
            )
        return known[dot + suffix.lower()]
    if name == "pickle":
        raise UsageError(
            "Pickle is not offered: loading such a file runs whatever code it holds.",
            "Use -f json, or keep a recording (--record FILE.jsonl).",
        )
    if name not in formats:
        valid = " or ".join(f'"{form}"' for form in sorted(formats))
        raise UsageError(f'"{name}" is not a valid format. Valid values are {valid}.')
    return name


def render(document: Any, format_name: str, view: View = _PLAIN) -> str | bytes:
    """The document in that format, ending with a newline if it is text."""
    module, _, function = _RENDERERS[type(document).__name__][format_name].rpartition(".")
    renderer: Callable[[Any, View], str | bytes] = getattr(load_module(f"{__package__}.{module}"), function)
    rendered = renderer(document, view)
    # Whatever a recording contains, nothing of it controls a terminal. Colours are ours.
    if isinstance(rendered, str) and format_name == "text" and not view.has_colour:
        rendered = neutralize_lines(rendered)
    return fit(rendered, view) if isinstance(rendered, str) and format_name in _FOR_PEOPLE else rendered


def fit(text: str, view: View) -> str:
    """The text in characters that the output can show."""
    return text if view.has_unicode else to_ascii(text)
