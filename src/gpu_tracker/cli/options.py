"""Options that several commands share, and the settings they become."""

from __future__ import annotations

import argparse

from ..api.session import Wishes
from ..core.config import (
    DEFAULT_MAX_OVERHEAD,
    Settings,
    check,
    check_gpu_uuids,
    check_labels,
    choose_gpu_vendors,
)
from ..core.errors import UsageError
from ..core.vendors import VENDORS
from ..recording.find import find_all
from ..reports.contract import list_formats
from .output import refuse_same
from .track import DEFAULT_DIRECTORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from ..analysis.energy import CarbonFactor
    from ..analysis.prices import Machine


HELP_COLUMNS = 80
_NO_BREAK = "\xa0"
_UNKNOWN = "unrecognized arguments: "  # as argparse has it
# Beyond these somebody has mistaken the unit.
_MOST_GRAMS, _MOST_PUE = 5000, 10


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Fixed width: to ask the terminal for its own, argparse imports half a library for every option."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=HELP_COLUMNS)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Break only lines that are too long; in examples, keep what is two spaces apart together."""
        lines = _join_sentences(text.splitlines())
        return "".join(f"{indent}{part}\n" for line in lines for part in _break(line, width))


def _join_sentences(lines: list[str]) -> list[str]:
    """A line that does not end its sentence continues on the next, unless that is indented."""
    joined: list[str] = []
    for line in lines:
        last = joined[-1] if joined else ""
        is_open = last and not last.startswith(" ") and not last.endswith((".", ":"))
        if is_open and line and not line.startswith(" "):
            joined[-1] = f"{last} {line}"
        else:
            joined.append(line)
    return joined


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
    """Reports errors in one sentence."""

    def __init__(self, *, prog: str, description: str | None, usage: str | None = None) -> None:
        super().__init__(prog=prog, description=description, usage=usage, formatter_class=_Formatter)
        self.offers: dict[str, tuple[str, ...]] = {}
        """Values of arguments, by their names, for completion: a wrong one is answered where it is used."""

    def format_help(self) -> str:
        """Examples first."""
        from .examples import show_examples

        return show_examples(self.prog) + super().format_help()

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the whole usage. Misplaced arguments of a job may be secret."""
        from ..recording.secrets import mask_secrets

        hint = self._suggest(message.removeprefix(_UNKNOWN).split(" ")[0]) if _UNKNOWN in message else ""
        message = " ".join(mask_secrets(message.split(" ")))
        raise UsageError(f"{message[:1].upper()}{message[1:]}.", hint or f"See `{self.prog} --help`.")

    def _suggest(self, word: str) -> str:
        from difflib import get_close_matches

        near = get_close_matches(word.partition("=")[0], self._option_string_actions, n=1)
        return f"Did you mean {near[0]}?" if near else ""


def add_places(parser: argparse.ArgumentParser, name: str, meaning: str) -> None:
    """Which recordings are meant."""
    parser.add_argument(name, metavar=name.upper().rstrip("S"), nargs="*", help=meaning)
    add_job(parser)


def add_job(parser: argparse.ArgumentParser) -> None:
    """Of directories, only the recordings of one job."""
    parser.add_argument(
        "--job", metavar="ID", help=f"only this job in these directories (default {DEFAULT_DIRECTORY})"
    )


def find_places(places: list[str], job: str | None) -> list[str]:
    """The recordings that are meant. UsageError if there are none."""
    if not places and job is None:
        raise UsageError("Name recordings, directories of them, or a job (--job ID).")
    return find_all(places or [DEFAULT_DIRECTORY], job)


def add_measuring(parser: Parser) -> None:
    """Add the options that say how to measure."""
    parser.add_argument(
        "--st",
        "--sleep-time",
        dest="sleep_time",
        metavar="SECONDS",
        default="1.0",
        help="seconds between samples (default 1.0, at least 0.01)",
    )
    parser.add_argument(
        "--nec",
        "--expected-cores",
        dest="n_expected_cores",
        metavar="N",
        help="number of cores the job should use (default: those it may use)",
    )
    parser.add_argument(
        "--guuids",
        "--gpu-uuids",
        dest="gpu_uuids",
        metavar="UUIDS",
        help="comma-separated UUIDs (or prefixes, indices, names) of the GPUs whose utilization counts "
        "(default: those the job uses)",
    )
    parser.add_argument(
        "--gpu",
        metavar="VENDOR",
        help=f"GPU vendors to measure: {', '.join(VENDORS)} (several with commas), or none (default: all found)",
    )
    parser.offers["gpu"] = (*VENDORS, "none")
    parser.add_argument(
        "--disable-logs", action="store_true", help="print no notes about what could not be measured"
    )


def add_recording(parser: argparse.ArgumentParser, default: str | None) -> None:
    """Add the options that say what to keep."""
    parser.add_argument(
        "--record",
        metavar="DIR|FILE",
        default=default,
        help="write the recording to this .jsonl file, or into this directory"
        + (f" (default {default})" if default else " (default: no recording)"),
    )
    parser.add_argument("--name", metavar="NAME", help="name of the run, kept in its recording")
    parser.add_argument(
        "--label",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="label of the run, kept in its recording (repeatable)",
    )
    parser.add_argument(
        "--no-record", dest="record", action="store_const", const=None, help="write no recording"
    )
    parser.add_argument(
        "--tf",
        "--tracking-file",
        dest="tracking_file",
        metavar="FILE",
        help="write a row per sample to FILE (.csv or .sqlite) while the job runs",
    )
    parser.add_argument("--overwrite", action="store_true", help="let the tracking file replace another")
    parser.add_argument(
        "--full-resolution", action="store_true", help="record every reading; the file may grow large"
    )
    parser.add_argument(
        "--max-overhead",
        metavar="SHARE",
        default=str(DEFAULT_MAX_OVERHEAD),
        help=f"share of one core that measuring may use (default {DEFAULT_MAX_OVERHEAD})",
    )


def add_limits(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Add the options of a gate."""
    parser.add_argument("--fail-if", metavar="LIMIT", action="append", default=[], help=meaning)
    parser.add_argument(
        "--allow-missing",
        action="store_true",
        help="do not fail for figures, regions or metrics that a run does not have",
    )


def add_carbon(parser: argparse.ArgumentParser) -> None:
    """Add the options that turn energy into carbon dioxide."""
    parser.add_argument(
        "--carbon", metavar="G", help="grams of CO2 per kWh of electricity: also show the CO2 of the run"
    )
    parser.add_argument(
        "--pue",
        metavar="N",
        help="power usage effectiveness of the building, with --carbon (default 1.0: not counted)",
    )


def to_factor(options: argparse.Namespace) -> CarbonFactor | None:
    """What the user states about the electricity, checked."""
    if options.carbon is None:
        if options.pue is not None:
            raise UsageError("--pue needs --carbon.", "State the grams of CO2 per kWh, such as --carbon 381.")
        return None
    grams, pue = to_float("--carbon", options.carbon), to_float("--pue", options.pue or "1")
    if not 0 <= grams <= _MOST_GRAMS:
        raise UsageError(f"--carbon: {options.carbon} g/kWh is not between 0 and {_MOST_GRAMS}.")
    if not 1 <= pue <= _MOST_PUE:
        raise UsageError(f"--pue: {options.pue} is not between 1 and {_MOST_PUE}.")
    from ..analysis.energy import CarbonFactor  # seldom asked for

    return CarbonFactor(grams, pue)


def add_prices(parser: argparse.ArgumentParser) -> None:
    """Add --prices."""
    from ..analysis.prices import COLUMNS  # only two commands have it

    parser.add_argument(
        "--prices",
        metavar="FILE",
        help=f"also name the cheapest machine that fits; a CSV file with the columns {', '.join(COLUMNS)}",
    )


def read_prices(path: str | None) -> tuple[Machine, ...]:
    """The machines of a table of prices; none without one."""
    if path is None:
        return ()
    from ..analysis.prices import parse_prices  # seldom asked for

    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return parse_prices(file.readlines())
    except OSError as error:
        raise UsageError(f"Cannot read {path}: {error.strerror}.") from None
    except ValueError as error:
        raise UsageError(f"{path} is not a table of prices: {error}.") from None


def read_object(path: str, example: str) -> dict[str, Any]:
    """A JSON object in a configuration file."""
    import json

    try:
        with open(path, encoding="utf-8-sig") as file:
            content = json.load(file)
    except OSError as error:
        raise UsageError(f"Cannot read {path}: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}.") from None
    if not isinstance(content, dict):
        raise UsageError(f"{path} does not hold a JSON object.", f"Write it as {example}.")
    return content


def add_output(parser: Parser, document: str) -> None:
    """Add -o and -f."""
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write the result to FILE ('-': standard output); the suffix may set the format",
    )
    formats = list_formats(document)
    parser.add_argument("-f", "--format", help=f"one of {', '.join(formats)} (default text)")
    parser.offers["format"] = formats


def add_rules(parser: argparse.ArgumentParser) -> None:
    """Add --rules."""
    parser.add_argument(
        "--rules",
        metavar="FILE",
        help="thresholds of findings to change, and rules to switch off (`gpu-tracker explain RULE` shows how; "
        "default: the file that GPU_TRACKER_RULES names)",
    )


def to_settings(options: argparse.Namespace) -> Settings:
    """The settings, checked."""
    uuids = getattr(options, "gpu_uuids", None)
    try:
        return check(
            Settings(
                sleep_time=to_float("--st", options.sleep_time),
                ram_unit=getattr(options, "ram_unit", "gigabytes"),
                gpu_ram_unit=getattr(options, "gpu_ram_unit", "gigabytes"),
                time_unit=getattr(options, "time_unit", "hours"),
                n_expected_cores=_to_int("--nec", options.n_expected_cores),
                gpu_uuids=check_gpu_uuids(
                    None if uuids is None else [uuid for uuid in uuids.split(",") if uuid]
                ),
                disable_logs=options.disable_logs,
                max_overhead=to_float("--max-overhead", options.max_overhead),
                full_resolution=options.full_resolution,
                gpu_vendors=choose_gpu_vendors(options.gpu, getattr(options, "gpu_brand", None)),
                name=options.name,
                labels=check_labels(_to_labels(options.label)),
            )
        )
    except ValueError as error:
        raise UsageError(f"{error}") from None


def to_wishes(options: argparse.Namespace) -> Wishes:
    """What to keep. UsageError if a result would replace it: better before a long job than after it."""
    made = (("recording", options.record), ("tracking file", options.tracking_file))
    reports, summary = getattr(options, "report", ()), getattr(options, "summary", None)
    for what, kept in made:
        for path in (options.output, *reports, summary):
            refuse_same(path, () if kept is None else (kept,), what)
    return Wishes(options.record, options.tracking_file, options.overwrite)


def to_float(option: str, text: str) -> float:
    """The number that an option has."""
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{option}: {text!r} is not a number.") from None


def _to_labels(texts: list[str]) -> dict[str, str]:
    labels = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign:
            raise UsageError(f"--label {text!r} has no value.", "Write it as NAME=VALUE.")
        labels[name] = value
    return labels


def _to_int(option: str, text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        raise UsageError(f"{option}: {text!r} is not a whole number.") from None
