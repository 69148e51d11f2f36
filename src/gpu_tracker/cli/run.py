"""Run a command and report what it and all its descendants used."""

from __future__ import annotations

import argparse
import os

from ..core.errors import TrackerError, UsageError
from ..core.text import neutralize
from ..reports.build import build
from ..reports.contract import choose_format, render
from .options import Parser, add_limits, add_measuring, add_output, add_recording, to_settings, to_wishes
from .output import Output, say, say_gate
from .track import DEFAULT_DIRECTORY, track_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..analysis.limits import Limit
    from ..core.config import Settings
    from ..core.model import RecordingData
    from ..sampler.handle.process import SamplerProcess

_EPILOG = """\
Exit code: that of the job. With --fail-if, if the job succeeds: 1 if a limit is broken, 2 if something could not be
checked, 3 if the result could not be written, else 0.
"""


def main(arguments: list[str], sampler: SamplerProcess | None) -> int:
    """The summary goes to standard error; standard output belongs to the job."""
    parser = Parser(
        prog="gpu-tracker run",
        usage="gpu-tracker run [options] -- command [arguments...]",
        description=__doc__,
    )
    add_measuring(parser)
    parser.epilog = _EPILOG
    add_recording(parser, DEFAULT_DIRECTORY)
    add_output(parser, "Report")
    add_limits(
        parser, "exit with 1 if the job succeeds but this holds, such as 'peak_ram > 8GB' (repeatable)"
    )
    parser.add_argument(
        "--frameworks",
        action="store_true",
        help="also record what PyTorch, JAX and TensorFlow hold on GPUs, through a hook in the job's Python processes "
        "(not needed if the job uses regions)",
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, help="the command and its arguments")
    options = parser.parse_args(arguments)
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command or not command[0]:
        raise UsageError("No command to run.", "Write it after `--`: gpu-tracker run -- command.")
    format_name = choose_format("Report", options.format, options.output)
    settings = to_settings(options)
    output = Output(options.output)
    if options.frameworks:
        _hook_into_python()
    limits = _parse_limits(options.fail_if)
    tracked = track_command(sampler, command, settings, to_wishes(options))
    is_shown = show(output, tracked.recording, format_name, settings, tracked.recording_path)
    code = tracked.ending.returncode
    if not limits:
        return code  # whatever happens to the result
    failed = _check(
        limits, settings.name or os.path.basename(command[0]), tracked.recording, options.allow_missing
    )
    return code or failed or (0 if is_shown else TrackerError.exit_code)


def _parse_limits(texts: list[str]) -> list[Limit]:
    if not texts:
        return []
    from ..api.comparisons import parse_limits

    return parse_limits(texts, 1)


def _check(limits: list[Limit], name: str, recording: RecordingData, allow_missing: bool) -> int:
    """Check the limits of a single run; the exit code if the job has succeeded."""
    from ..analysis.compare import compare
    from ..analysis.limits import check_limits
    from ..analysis.measures import measure

    comparison = compare([(name, [measure(recording)])])
    return say_gate(check_limits(limits, comparison, allow_missing=allow_missing))


def _hook_into_python() -> None:
    """Make every Python process of the job load our hook before its own program starts."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    hook = os.path.join(package, "instrument", "hook")
    known = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{hook}{os.pathsep}{known}" if known else hook


def show(
    output: Output, recording: RecordingData, format_name: str, settings: Settings, recording_path: str | None
) -> bool:
    """Write the result where it was asked for (True), or else where it can be seen: it must not be lost."""
    report = build(recording)
    if settings.disable_logs and format_name == "text":
        report = report._replace(notes=())
    text = render(report, format_name)
    if isinstance(text, str) and format_name == "text" and recording_path is not None:
        text += f"  recording: {neutralize(recording_path)}\n"
    try:
        output.write(text, otherwise=2)
    except TrackerError as error:
        say(f"{error} The result is:", text)
        return False
    return True
