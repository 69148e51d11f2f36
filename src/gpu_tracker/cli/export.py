"""Write a recording as CSV, Parquet, SQLite, JSON or a trace, for other programs."""

from __future__ import annotations

from ..analysis.summary import are_gpus_known
from ..analysis.tables import TABLES, make_table
from ..api.reporting import report_on
from ..core.errors import UsageError
from ..core.units import check_memory_unit, check_time_unit
from ..exports import FORMATS, find_format
from ..exports.draft import drafted, read_mode
from ..recording.reader import load
from ..recording.tracking_file import TrackingFile, check_tracking_name
from ..recording.tracking_rows import TrackingUnits
from ..reports.build import build
from .options import Parser
from .output import refuse_same, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from contextlib import AbstractContextManager

    from ..core.model import RecordingData

_ALL = "all"
_TABLES, _TRACKING = "tables", "tracking"


def main(arguments: list[str]) -> int:
    """The file appears once it is complete."""
    options = make_parser().parse_args(arguments)
    if options.layout not in (_TABLES, _TRACKING):
        raise UsageError(f'"{options.layout}" is not a layout. Layouts are {_TABLES} and {_TRACKING}.')
    if options.layout == _TRACKING and options.table is not None:
        raise UsageError(f"The layout {_TRACKING} has only one table.", "Leave out --table.")
    refuse_same(options.output, [options.file])
    recording = (_write_tracking if options.layout == _TRACKING else _write_tables)(options)
    for problem in recording.problems:
        say(problem)
    return 0


def make_parser() -> Parser:
    """Its options."""
    parser = Parser(prog="gpu-tracker export", description=__doc__)
    parser.add_argument("file", metavar="FILE", help="a recording (.jsonl)")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        required=True,
        help="output file; its suffix is the format: .csv, .parquet, .sqlite, .json, .trace.json",
    )
    parser.add_argument("-f", "--format", help=f"one of {', '.join(FORMATS)} (default: by the suffix)")
    parser.add_argument(
        "--table",
        help=f"one of {', '.join(TABLES)}, or {_ALL} "
        "(default: all into .sqlite and .json, samples into .csv and .parquet)",
    )
    parser.add_argument(
        "--layout",
        default=_TABLES,
        help=f"{_TABLES}, or {_TRACKING}: the columns of a tracking file (.csv or .sqlite)",
    )
    for option, what in (("--ru", "RAM"), ("--gru", "GPU RAM")):
        parser.add_argument(
            option, default="gigabytes", metavar="UNIT", help=f"unit of {what} in that layout"
        )
    parser.add_argument("--tu", default="hours", metavar="UNIT", help="unit of time named in that layout")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")
    return parser


def _write_tables(options: argparse.Namespace) -> RecordingData:
    writer = find_format(options.output, options.format)
    names = _choose_tables(options.table, writer.NAME, writer.HOLDS_ALL_TABLES)
    recording = load(options.file)
    report = (report_on if writer.NEEDS_SAMPLES else build)(recording)
    with _drafted(options) as draft:
        writer.write(draft, report, [make_table(recording, name) for name in names])
    return recording


def _write_tracking(options: argparse.Namespace) -> RecordingData:
    units = _check_units(options)
    check_tracking_name(options.output)
    recording = load(options.file)
    gpus, are_all_known = recording.gpus, are_gpus_known(recording)
    with _drafted(options) as draft:
        file = TrackingFile(draft, recording.header, units, options.output)
        try:
            for sample in recording.samples:
                file.add(sample, gpus, are_all_known=are_all_known)
        finally:
            file.close(gpus, are_all_known=are_all_known)
    return recording


def _drafted(options: argparse.Namespace) -> AbstractContextManager[str]:
    """A new file, for the same readers as the recording: it holds the same."""
    return drafted(options.output, may_replace=options.overwrite, mode=read_mode(options.file))


def _check_units(options: argparse.Namespace) -> TrackingUnits:
    try:
        check_memory_unit(options.ru, "RAM")
        check_memory_unit(options.gru, "GPU RAM")
        check_time_unit(options.tu)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return TrackingUnits(options.ru, options.gru, options.tu)


def _choose_tables(wanted: str | None, format_name: str, holds_all: bool) -> tuple[str, ...]:
    wanted = wanted or (_ALL if holds_all else "samples")
    if wanted == _ALL and not holds_all:
        raise UsageError(f"A {format_name} file holds one table.", f"Choose one of {', '.join(TABLES)}.")
    if wanted not in (*TABLES, _ALL):
        raise UsageError(f'"{wanted}" is not a table. Tables are {", ".join(TABLES)} and {_ALL}.')
    return tuple(TABLES) if wanted == _ALL else (wanted,)
