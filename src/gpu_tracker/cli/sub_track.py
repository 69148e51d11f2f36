"""Analyze, combine and compare code blocks, as in gpu-tracker 5."""

from __future__ import annotations

import os

from ..analysis.sub_tracking import STATISTICS, analyze, compare
from ..api.comparisons import load_groups
from ..api.sub_tracking import check_statistic, combine_block_files, load_results
from ..core.errors import UsageError
from ..core.text import count_of
from ..recording.naming import SUFFIX
from ..recording.sub_tracking import read_events, read_tracking_table
from ..reports.contract import choose_format, render
from .options import Parser, add_output, read_object
from .output import Output, refuse_same, say
from .report import main as report

_KEYS = ("file_path_map", "statistic")
_EXAMPLE = '{"file_path_map": {"before": "a.json", "after": "b.json"}, "statistic": "max"}'
_NO_SESSIONS = "Nothing to compare: name files with -m NAME=FILE, or in a configuration file."


def main(arguments: list[str]) -> int:
    """The result goes to standard output."""
    action = make_parser().parse_args(arguments[:1]).action
    return _ACTIONS[action](arguments[1:])


def make_parser() -> Parser:
    """What it can do; each has options of its own."""
    parser = Parser(
        prog="gpu-tracker sub-track",
        description=__doc__,
        usage="gpu-tracker sub-track {analyze,combine,compare} [options]",
    )
    parser.add_argument("action", choices=tuple(_ACTIONS), help="see `gpu-tracker sub-track ACTION --help`")
    return parser


def make_action_parsers() -> tuple[Parser, ...]:
    """The options of each."""
    return _make_analyze_parser(), _make_combine_parser(), _make_compare_parser()


def _analyze(arguments: list[str]) -> int:
    """Show what each code block used."""
    options = _make_analyze_parser().parse_args(arguments)
    if options.tf.endswith(SUFFIX):
        return _report(options.tf, options.stf, options.format, options.output)
    if options.stf is None:
        raise UsageError(f"{options.tf} needs a sub-tracking file.", "Name it with --stf.")
    format_name = choose_format("SubTrackingResults", options.format, options.output)
    output = Output(options.output)
    refuse_same(options.output, (options.tf, options.stf))
    results = analyze(read_tracking_table(options.tf), read_events(options.stf))
    if results.unpaired:
        say(
            f"{count_of(results.unpaired, 'row')} of {options.stf} left out: a begin without its end, or the reverse."
        )
    output.write(render(results, format_name, output.find_view(1)), otherwise=1)
    return 0


def _make_analyze_parser() -> Parser:
    parser = Parser(prog="gpu-tracker sub-track analyze", description=_analyze.__doc__)
    parser.add_argument(
        "--tf",
        metavar="FILE",
        required=True,
        help="a tracking file (.csv or .sqlite), or a recording (.jsonl)",
    )
    parser.add_argument("--stf", metavar="FILE", help="the sub-tracking file; a recording needs none")
    add_output(parser, "SubTrackingResults")
    return parser


def _report(path: str, blocks: str | None, format_name: str | None, output: str | None) -> int:
    if blocks is not None:
        raise UsageError(f"{path} is a recording, which has its own code blocks.", "Leave out --stf.")
    given = (("-f", format_name), ("-o", output))
    return report([path, *(word for option, value in given if value is not None for word in (option, value))])


def _combine(arguments: list[str]) -> int:
    """Write the rows of several sub-tracking files to one."""
    options = _make_combine_parser().parse_args(arguments)
    paths = [path for several in options.paths for path in several]
    if any(path.endswith(SUFFIX) for path in (*paths, options.stf)):
        raise UsageError(
            "Recordings need not be combined: each has the code blocks of all processes of its job.",
            "For the ranks of one job: gpu-tracker combine FILE...",
        )
    if len(paths) == 1 and os.path.isdir(paths[0]):
        paths = _list_files(paths[0], os.path.splitext(options.stf)[1])
    combine_block_files(paths, options.stf)
    return 0


def _make_combine_parser() -> Parser:
    parser = Parser(prog="gpu-tracker sub-track combine", description=_combine.__doc__)
    parser.add_argument("--stf", metavar="FILE", required=True, help="the new file (.csv or .sqlite)")
    parser.add_argument(
        "-p",
        metavar="FILE",
        dest="paths",
        action="append",
        nargs="+",
        required=True,
        help="files to combine (repeatable), or one directory of them",
    )
    return parser


def _list_files(directory: str, suffix: str) -> list[str]:
    try:
        names = sorted(os.listdir(directory))
    except OSError as error:
        raise UsageError(f"Cannot read {directory}: {error.strerror}.") from None
    return [os.path.join(directory, name) for name in names if name.endswith(suffix)]


def _compare(arguments: list[str]) -> int:
    """Compare results of `analyze -f json`, or recordings."""
    options = _make_compare_parser().parse_args(arguments)
    sessions, statistic = _read_config(options.cconfig)
    sessions |= dict(_parse_session(text) for several in options.sessions for text in several)
    statistic = options.stat or statistic
    if not sessions:
        raise UsageError(_NO_SESSIONS)
    refuse_same(options.output, sessions.values())
    if all(path.endswith(SUFFIX) for path in sessions.values()):
        return _compare_recordings(sessions, statistic, options.format, options.output)
    if any(path.endswith(SUFFIX) for path in sessions.values()):
        raise UsageError("Recordings cannot be compared with results of `sub-track analyze`.")
    format_name = choose_format("CodeBlockComparison", options.format, options.output)
    output = Output(options.output)
    results = {name: load_results(path) for name, path in sessions.items()}
    comparison = compare(results, check_statistic(statistic or "mean"))
    if format_name != "text":
        for note in comparison.notes:
            say(note)
    output.write(render(comparison, format_name, output.find_view(1)), otherwise=1)
    return 0


def _make_compare_parser() -> Parser:
    parser = Parser(prog="gpu-tracker sub-track compare", description=_compare.__doc__)
    parser.add_argument(
        "-m",
        metavar="NAME=FILE",
        dest="sessions",
        action="append",
        nargs="+",
        default=[],
        help="a file of results (.json) or a recording (.jsonl), and its name (repeatable)",
    )
    parser.add_argument("--stat", help=f"one of {', '.join(STATISTICS)} (default mean)")
    parser.add_argument("--cconfig", metavar="FILE", help=f"a JSON file with both, such as {_EXAMPLE}")
    add_output(parser, "CodeBlockComparison")
    return parser


def _compare_recordings(
    sessions: dict[str, str], statistic: str | None, wanted: str | None, path: str | None
) -> int:
    if statistic is not None:
        raise UsageError(
            "--stat is for results of `sub-track analyze`.",
            "Leave it out: a comparison of recordings has totals, means and peaks.",
        )
    format_name, output = choose_format("Comparison", wanted, path), Output(path)
    comparison = load_groups([(name, [file]) for name, file in sessions.items()])
    output.write(render(comparison, format_name, output.find_view(1)), otherwise=1)
    return 0


def _parse_session(text: str) -> tuple[str, str]:
    name, sign, path = text.partition("=")
    if not sign or not name or not path:
        raise UsageError(f"-m {text!r} is not a name and a file.", "Write it as NAME=FILE.")
    return name, path


def _read_config(path: str | None) -> tuple[dict[str, str], str | None]:
    """The sessions and the statistic of a configuration file."""
    content = {} if path is None else read_object(path, _EXAMPLE)
    unknown = [repr(name) for name in content if name not in _KEYS]
    if unknown:
        raise UsageError(f"{path}: unknown {', '.join(unknown)}.", f"Names are {' and '.join(_KEYS)}.")
    sessions, statistic = (content.get(name) for name in _KEYS)
    sessions = {} if sessions is None else sessions
    if not isinstance(sessions, dict) or not all(isinstance(file, str) for file in sessions.values()):
        raise UsageError(f"{path}: {_KEYS[0]} must hold names and files.", f"Such as {_EXAMPLE}.")
    if statistic is not None and not isinstance(statistic, str):
        raise UsageError(f"{path}: {_KEYS[1]} must be one of {', '.join(STATISTICS)}.")
    return sessions, statistic


_ACTIONS = {"analyze": _analyze, "combine": _combine, "compare": _compare}
