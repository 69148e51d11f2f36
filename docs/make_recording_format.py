"""Write the tables of fields in recording-format.md from the code: python docs/make_recording_format.py [--check].

A test runs it with --check, so the document and the code cannot disagree.
"""

from __future__ import annotations

import ast
import inspect
import sys

from generated import update

from gpu_tracker.analysis import tables
from gpu_tracker.core import model
from gpu_tracker.recording import tracking_rows

# A kind of line, or part of one, and its class.
_CLASSES = (
    ("header", "Header"),
    ("header.allocation", "Allocation"),
    ("header.identity", "Identity"),
    ("event", "Event"),
    ("event.gpu", "Gpu"),
    ("region", "RegionTotals"),
    ("calls", "Call"),
    ("gaps", "RegionGaps"),
    ("metrics", "MetricRow"),
    ("metric_totals", "MetricTotals"),
    ("process", "ProcessTotals"),
    ("peak", "PeakMoment"),
    ("peak.processes", "PeakProcess"),
    ("framework", "FrameworkMemory"),
    ("end", "End"),
    ("end.totals", "Totals"),
    ("peaks", "Peaks"),
    ("peaks.gpus", "GpuPeaks"),
    ("peaks.gpu_processes", "GpuProcessPeak"),
    ("gpus", "GpuSample"),
    ("gpu_counters", "GpuCounters"),
    ("counters", "TreeCounters"),
    ("stalls", "Stalls"),
    ("energy", "MachineEnergy"),
)


# What has another name or form in a line than in its class.
_NAMES = {("event", "at_seconds"): "at", ("metrics", "at_seconds"): "at"}
_FORMS = {
    ("header.identity", "labels"): "object of str",
    ("metrics", "at_seconds"): "list of float",
    ("metrics", "values"): "object of lists of float, str or null",
    ("metrics", "step"): "list of float, str or null",
    ("metrics", "pid"): "list of int",
}


def render() -> str:
    """The tables as Markdown."""
    parts = [_render_class(heading, name) for heading, name in _CLASSES]
    samples = ", ".join(f"`{name}`" for name, _ in tables.SAMPLE_COLUMNS)
    devices = (*model.GpuSample.__annotations__, *model.GpuCounters.__annotations__)
    gpus = ", ".join(f"`gpuN_{name}`" for name in devices if name != "uuid")
    parts.append(
        f"### Columns of an exported table of samples\n\n{samples}; for each device, N counting from 0 in the "
        f"order of the table `gpus`: {gpus} (a JSON list).\n"
    )
    tracking = ", ".join(f"`{name}`" for name, _ in tracking_rows.DATA_COLUMNS)
    parts.append(f"### Columns of a tracking file\n\n{tracking}.\n")
    return "\n".join(parts)


def _render_class(heading: str, name: str) -> str:
    kind = getattr(model, name)
    notes = _read_notes(kind)
    rows = [
        f"| `{_NAMES.get((heading, field), field)}` | {_FORMS.get((heading, field)) or _format_type(annotation)} "
        f"| {notes.get(field, '')} |"
        for field, annotation in kind.__annotations__.items()
    ]
    summary = inspect.cleandoc(kind.__doc__ or "")
    return "\n".join([f"### {heading}", "", summary, "", "| field | type | |", "|---|---|---|", *rows, ""])


def _format_type(annotation: str) -> str:
    return annotation.replace(" | None", " or null").replace("|", "or")


def _read_notes(kind: type) -> dict[str, str]:
    """The docstring below each field, by field."""
    (body,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(body, ast.ClassDef)
    notes = {}
    for field, note in zip(body.body, body.body[1:], strict=False):
        match field, note:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                notes[name] = " ".join(text.split())
    return notes


if __name__ == "__main__":
    sys.exit(update(__file__, "recording-format.md", render(), sys.argv[1:]))
