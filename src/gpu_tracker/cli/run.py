"""Run a command and report what it and all its descendants used."""

from __future__ import annotations

import os
import sys

from ..api.session import Wishes
from ..core.config import RULES_VARIABLE, SAY_VARIABLE, Settings, check
from ..core.errors import WRONG_DATA, TrackerError, UsageError
from ..core.model import UNWRITTEN
from ..core.text import neutralize
from ..core.values import NamedTuple
from ..reports.choices import NO_CHOICES, Choices
from ..reports.contract import choose_format, fit, list_formats, render
from .defects import survive
from .output import Output, say, say_gate
from .track import (
    ALL,
    DEFAULT_DIRECTORY,
    FIRST,
    NONE,
    choose_say,
    hint_at_batch_script,
    may_print,
    track_command,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.findings.judge import Changes
    from ..analysis.limits import Limit
    from ..api.session import Session
    from ..core.model import RecordingData
    from ..reports.build import Report
    from ..sampler.handle.process import SamplerProcess
    from .options import Parser
    from .showing import Showing

_EPILOG = """\
Exit code: that of the job. With --fail-if, if the job succeeds: 1 if a limit is broken, 2 if something could not be
checked, 3 if the result could not be written or the recording broke off, else 0.
"""


_SHORTEST_LIVE_SECONDS, _LONGEST_LIVE_SECONDS = 0.1, 86400
_WITHOUT_CHARTS = {"text", "json"}


class Request(NamedTuple):
    """What to run, and what to do with the result."""

    command: list[str]
    settings: Settings
    wishes: Wishes = Wishes(DEFAULT_DIRECTORY)
    output: str | None = None
    format_name: str = "text"
    limits: tuple[Limit, ...] = ()
    allow_missing: bool = False
    frameworks: bool = False
    choices: Choices = Choices()
    reports: tuple[str, ...] = ()
    """More files for the report."""
    summary: str | None = None
    """A file to append it to, as Markdown."""
    live: Live | None = None
    say: str | None = None
    """Which ranks of a job print."""


class Live(NamedTuple):
    """How to show the job while it runs."""

    is_shown: bool = True
    seconds: float | None = None
    """Between two pictures or lines; None for what suits the place."""
    notify: str | None = None
    """A command to run for each finding."""


def main(arguments: list[str], sampler: SamplerProcess | None) -> int:
    """The summary goes to standard error; standard output belongs to the job."""
    request = parse(arguments)
    command, settings = request.command, request.settings
    is_quiet = not may_print(request.say)
    settings = settings._replace(disable_logs=settings.disable_logs or is_quiet)
    hint_at_batch_script(choose_say(settings))
    output = Output(request.output)
    output.refuse_binary(request.format_name, otherwise=2)
    extras = _find_extras(request)
    if request.frameworks:
        _hook_into_python()
    showing = None if request.live is None else _prepare_showing(request, request.live)
    tracked = track_command(sampler, command, settings, request.wishes, showing)
    code, session, recording = tracked.ending.returncode, tracked.session, tracked.recording
    path = session.recording_path
    is_kept, failed = False, TrackerError.exit_code
    if recording is not None:
        if showing is not None:
            survive(lambda: showing.finish(session, recording), None, path)
        is_kept = survive(
            lambda: show(
                None if is_quiet and request.output is None else output,
                session,
                recording,
                request.format_name,
                settings,
                extras,
                request.choices,
            ),
            False,
            path,
        )
        name = settings.name or os.path.basename(command[0])
        failed = survive(lambda: _check(request, name, session, recording), failed, path)
        unwritten = [event.text for event in recording.events if event.kind == UNWRITTEN]
        is_kept &= not unwritten
        if is_quiet and request.limits and unwritten:
            say(unwritten[0])  # the exit code, which no report explains
    if not request.limits:
        return code  # whatever happens to the result
    return code or failed or (0 if is_kept else TrackerError.exit_code)


def parse(arguments: list[str]) -> Request:
    """What the arguments ask for. Most jobs need no option, and importing argparse takes as long as starting Python."""
    first = arguments[0] if arguments else ""
    if first.startswith("-") and first != "--":
        return parse_options(arguments)
    return Request(_find_command(arguments), check(Settings()), choices=Choices(read_rules(None)))


def parse_options(arguments: list[str]) -> Request:
    """The same, with options."""
    from .options import to_factor, to_settings, to_wishes

    options = make_parser().parse_args(arguments)
    return Request(
        _find_command(options.command),
        format_name=choose_format("Report", options.format, options.output),
        settings=to_settings(options),
        wishes=to_wishes(options),
        output=options.output,
        limits=_parse_limits(options.fail_if),
        allow_missing=options.allow_missing,
        frameworks=options.frameworks,
        choices=Choices(read_rules(options.rules), to_factor(options)),
        reports=tuple(options.report),
        summary=options.summary,
        live=_to_live(options.live, options.notify),
        say=options.say,
    )


def make_parser() -> Parser:
    """Its options."""
    import argparse

    from .options import (
        Parser,
        add_carbon,
        add_limits,
        add_measuring,
        add_output,
        add_recording,
        add_rules,
    )

    parser = Parser(
        prog="gpu-tracker run",
        usage="gpu-tracker run [options] -- command [arguments...]",
        description=__doc__,
    )
    add_measuring(parser)
    parser.epilog = _EPILOG
    add_recording(parser, DEFAULT_DIRECTORY)
    add_carbon(parser)
    add_output(parser, "Report")
    add_rules(parser)
    parser.add_argument(
        "--report",
        metavar="FILE",
        action="append",
        default=[],
        help="also write the report to FILE; its suffix is the format (repeatable)",
    )
    parser.add_argument(
        "--summary",
        metavar="FILE",
        help='also append the report to FILE as Markdown, such as "$GITHUB_STEP_SUMMARY"',
    )
    add_limits(
        parser, "exit with 1 if the job succeeds but this holds, such as 'peak_ram > 8GB' (repeatable)"
    )
    parser.add_argument(
        "--frameworks",
        action="store_true",
        help="also record what PyTorch, JAX and TensorFlow hold on GPUs, through a hook in the job's Python processes "
        "(not needed if the job uses regions)",
    )
    parser.add_argument(
        "--live",
        metavar="SECONDS",
        nargs="?",
        const="",
        help="show the job while it runs: below its output on a terminal (every second), as a line on standard error "
        "elsewhere (every 60 s); write `--` before the command",
    )
    parser.add_argument(
        "--notify",
        metavar="CMD",
        help="run CMD in a shell when something goes wrong with the job, with the sentence as its last argument",
    )
    parser.add_argument(
        "--say",
        choices=(ALL, FIRST, NONE),
        help=f"which ranks of a parallel job print (default {FIRST}, or ${SAY_VARIABLE}); recordings are written by all",
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, help="the command and its arguments")
    return parser


def _to_live(seconds: str | None, notify: str | None) -> Live | None:
    if seconds is None and notify is None:
        return None
    if not seconds:
        return Live(seconds is not None, None, notify)
    try:
        number = float(seconds)
    except ValueError:
        number = 0.0
    if not _SHORTEST_LIVE_SECONDS <= number <= _LONGEST_LIVE_SECONDS:
        raise UsageError(
            f"--live: {seconds!r} is not a number of seconds from {_SHORTEST_LIVE_SECONDS} to {_LONGEST_LIVE_SECONDS}.",
            "Write `--` before the command: gpu-tracker run --live -- command.",
        )
    return Live(True, number, notify)


def _prepare_showing(request: Request, live: Live) -> Showing:
    from .showing import Showing  # seldom asked for

    return Showing(live, request.choices, choose_say(request.settings))


def _find_extras(request: Request) -> list[Extra]:
    extras = [Extra(Output(path), choose_format("Report", None, path)) for path in request.reports]
    if request.summary is not None:
        extras.append(Extra(Output(request.summary), "markdown", is_appended=True))
    return extras


def _find_command(words: list[str]) -> list[str]:
    command = words[1:] if words[:1] == ["--"] else words
    if not command or not command[0]:
        raise UsageError("No command to run.", "Write it after `--`: gpu-tracker run -- command.")
    return command


def read_rules(path: str | None) -> Changes | None:
    """The changes of the rules, before anything starts. Hardly anybody has any."""
    if path is None and RULES_VARIABLE not in os.environ:
        return None
    from ..api.reporting import read_changes

    return read_changes(path)


def _parse_limits(texts: list[str]) -> tuple[Limit, ...]:
    if not texts:
        return ()
    from ..api.comparisons import parse_limits

    return tuple(parse_limits(texts, 0))


def _check(request: Request, name: str, session: Session, recording: RecordingData) -> int:
    """Check the limits of a single run; the exit code if the job has succeeded."""
    if not request.limits:
        return 0
    from ..analysis.compare import compare
    from ..analysis.limits import check_limits
    from ..analysis.measures import measure

    # Only what was written names the processes.
    comparison = compare([(name, [measure(session.read_samples(recording))])])
    return say_gate(check_limits(request.limits, comparison, allow_missing=request.allow_missing))


def _hook_into_python() -> None:
    """Make every Python process of the job load our hook before its own program starts."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    hook = os.path.join(package, "instrument", "hook")
    known = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{hook}{os.pathsep}{known}" if known else hook


class Extra(NamedTuple):
    """One more place for the report."""

    output: Output
    format_name: str
    is_appended: bool = False


def show(
    output: Output | None,
    session: Session,
    recording: RecordingData,
    format_name: str,
    settings: Settings,
    extras: Sequence[Extra] = (),
    choices: Choices = NO_CHOICES,
) -> bool:
    """Write the result where it was asked for (True), or else where it can be seen: it must not be lost.

    Without an output it is not shown: another rank's is.
    """
    if output is None and not extras:
        return True
    formats = {format_name, *(extra.format_name for extra in extras)}
    from ..api.reporting import report_session

    report = report_session(session, recording, choices, is_short_too=not formats <= _WITHOUT_CHARTS)
    n_written = sum(_write_extra(extra, report) for extra in extras)
    if output is None:
        return n_written == len(extras)
    if settings.disable_logs and format_name == "text":
        report = report._replace(notes=())
    view = output.find_view(2)
    text = render(report, format_name, view)
    if isinstance(text, str) and format_name == "text" and session.recording_path is not None:
        text += fit(_say_where(session.recording_path, has_samples=report.columns is not None), view)
    try:
        output.write(text, otherwise=2)
    except TrackerError as error:
        say(f"{error} The result is:", text)
        return False
    return n_written == len(extras)


def _write_extra(extra: Extra, report: Report) -> bool:
    """Whether it could be written; if not, the recording still has it all."""
    try:
        content = render(report, extra.format_name)
        (extra.output.append if extra.is_appended else extra.output.write)(content, otherwise=2)
    except TrackerError as error:
        say(str(error))
        return False
    except WRONG_DATA as error:  # of the job: it must not cost its exit code
        say(f"A report as {extra.format_name} cannot be made of this run: {error}.")
        return False
    return True


def _say_where(path: str, *, has_samples: bool) -> str:
    """The recording, and how to see more of it."""
    page = "html" if "html" in list_formats("Report") else "svg"
    # Without a name, `report` takes the newest of this directory.
    file = "" if os.path.dirname(path) == os.path.abspath(DEFAULT_DIRECTORY) else f"{_quote(path)} "
    charts = f"  charts: gpu-tracker report {neutralize(file)}-o report.{page}\n" if has_samples else ""
    return f"{charts}  recording: {neutralize(path)}\n"


def _quote(path: str) -> str:
    if sys.platform == "win32":
        return f'"{path}"' if " " in path else path
    from shlex import quote

    return quote(path)
