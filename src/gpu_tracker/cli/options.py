"""The options that several commands share, and how they become settings."""

from __future__ import annotations

import argparse

from ..api.session import Wishes
from ..core.config import (
    DEFAULT_MAX_OVERHEAD,
    Settings,
    check,
    check_gpu_uuids,
    check_gpu_vendors,
    check_labels,
)
from ..core.errors import UsageError
from ..reports.contract import list_formats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


HELP_COLUMNS = 80
_NO_BREAK = "\xa0"


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Of a fixed width: to ask the terminal for its own, argparse imports half a library for every option."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=HELP_COLUMNS)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Only lines that are too long are broken; of an example what is two spaces apart stays whole."""
        return "".join(f"{indent}{part}\n" for line in text.splitlines() for part in _break(line, width))


def _break(line: str, width: int) -> list[str]:
    import re
    import textwrap

    if len(line) <= width:
        return [line]
    words = line.lstrip()
    margin = line[: len(line) - len(words)]
    if margin:
        words = re.sub("(?<! ) (?! )", _NO_BREAK, words)
    parts = textwrap.wrap(
        words,
        width,
        initial_indent=margin,
        subsequent_indent=margin,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [part.replace(_NO_BREAK, " ") for part in parts]


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence."""

    def __init__(self, *, prog: str, description: str | None, usage: str | None = None) -> None:
        super().__init__(prog=prog, description=description, usage=usage, formatter_class=_Formatter)

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the whole usage."""
        raise UsageError(f"{message[:1].upper()}{message[1:]}.", f"See `{self.prog} --help`.")


def add_measuring(parser: argparse.ArgumentParser) -> None:
    """How to measure."""
    parser.add_argument(
        "--st",
        "--sleep-time",
        dest="sleep_time",
        metavar="SECONDS",
        default="1.0",
        help="seconds between two usage collections (default 1.0, at least 0.01)",
    )
    parser.add_argument(
        "--nec",
        "--expected-cores",
        dest="n_expected_cores",
        metavar="N",
        help="number of cores expected to be used (default: those the job may use)",
    )
    parser.add_argument(
        "--guuids",
        "--gpu-uuids",
        dest="gpu_uuids",
        metavar="UUIDS",
        help="comma separated UUIDs (or their beginnings, numbers, names) of the GPUs whose utilization counts "
        "(default: those that the job uses)",
    )
    parser.add_argument(
        "--gpu",
        metavar="VENDOR",
        help="whose GPUs to look at: nvidia, amd, intel, apple (or several, with commas), none (default: all found)",
    )
    parser.add_argument(
        "--disable-logs", action="store_true", help="say nothing about what could not be measured"
    )


def add_recording(parser: argparse.ArgumentParser, default: str | None) -> None:
    """What to keep."""
    parser.add_argument(
        "--record",
        metavar="DIR|FILE",
        default=default,
        help="where to write the recording: a .jsonl file, or a directory to put one in"
        + (f" (default {default})" if default else " (default: none is written)"),
    )
    parser.add_argument("--name", metavar="NAME", help="what to call the run, in its recording")
    parser.add_argument(
        "--label",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a label to find the run by, in its recording (any number of them)",
    )
    parser.add_argument(
        "--no-record", dest="record", action="store_const", const=None, help="write no recording"
    )
    parser.add_argument(
        "--tf",
        "--tracking-file",
        dest="tracking_file",
        metavar="FILE",
        help="write a row per window to FILE (.csv or .sqlite) while the job runs",
    )
    parser.add_argument(
        "--full-resolution", action="store_true", help="record every look, without bounding the file"
    )
    parser.add_argument(
        "--max-overhead",
        metavar="SHARE",
        default=str(DEFAULT_MAX_OVERHEAD),
        help=f"share of one core that measuring may cost (default {DEFAULT_MAX_OVERHEAD})",
    )


def add_output(parser: argparse.ArgumentParser, document: str) -> None:
    """Where the result goes, and how it looks."""
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write the result to FILE ('-': standard output); its suffix may tell the format",
    )
    formats = ", ".join(list_formats(document))
    parser.add_argument("-f", "--format", help=f"one of {formats} (default text)")


def to_settings(options: argparse.Namespace) -> Settings:
    """The settings that the options ask for, checked."""
    uuids = getattr(options, "gpu_uuids", None)
    try:
        return check(
            Settings(
                sleep_time=_to_float("--st", options.sleep_time),
                ram_unit=getattr(options, "ram_unit", "gigabytes"),
                gpu_ram_unit=getattr(options, "gpu_ram_unit", "gigabytes"),
                time_unit=getattr(options, "time_unit", "hours"),
                n_expected_cores=_to_int("--nec", options.n_expected_cores),
                gpu_uuids=check_gpu_uuids(
                    None if uuids is None else [uuid for uuid in uuids.split(",") if uuid]
                ),
                disable_logs=options.disable_logs,
                max_overhead=_to_float("--max-overhead", options.max_overhead),
                full_resolution=options.full_resolution,
                gpu_vendors=check_gpu_vendors(options.gpu),
                name=options.name,
                labels=check_labels(_to_labels(options.label)),
            )
        )
    except ValueError as error:
        raise UsageError(f"{error}") from None


def to_wishes(options: argparse.Namespace, default: str | None = None) -> Wishes:
    """What is to be kept. A recording in the default directory is nobody's express wish."""
    return Wishes(options.record, options.record != default, options.tracking_file)


def _to_float(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{option} of {text!r} is not a number.") from None


def _to_labels(texts: list[str]) -> dict[str, str]:
    labels = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign:
            raise UsageError(f"--label of {text!r} has no value.", "Write it as NAME=VALUE.")
        labels[name] = value
    return labels


def _to_int(option: str, text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        raise UsageError(f"{option} of {text!r} is not a whole number.") from None
