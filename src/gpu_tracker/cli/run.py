"""Run a command and report what it and all its descendants used."""

from __future__ import annotations

import argparse
import os

from ..core.errors import TrackerError, UsageError
from ..reports.build import build
from ..reports.contract import choose_format, render
from .options import Parser, add_measuring, add_output, add_recording, to_settings, to_wishes
from .output import Output, say
from .track import DEFAULT_DIRECTORY, track_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.config import Settings
    from ..core.model import RecordingData
    from ..sampler.handle.process import SamplerProcess


def main(arguments: list[str], sampler: SamplerProcess | None) -> int:
    """The summary goes to standard error; standard output belongs to the job."""
    parser = Parser(
        prog="gpu-tracker run",
        usage="gpu-tracker run [options] -- command [arguments...]",
        description=__doc__,
    )
    add_measuring(parser)
    add_recording(parser, DEFAULT_DIRECTORY)
    add_output(parser, "Report")
    parser.add_argument(
        "--frameworks",
        action="store_true",
        help="also record what PyTorch, JAX and TensorFlow hold on GPUs, through a hook in the job's Python processes "
        "(not needed if the job uses regions)",
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, help="the command and its arguments")
    options = parser.parse_args(arguments)
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise UsageError("No command to run.", "Write it after `--`: gpu-tracker run -- command.")
    format_name = choose_format("Report", options.format, options.output)
    settings = to_settings(options)
    output = Output(options.output)
    if options.frameworks:
        _hook_into_python()
    tracked = track_command(sampler, command, settings, to_wishes(options))
    # Whatever happens to the result, the exit code is the job's.
    show(output, tracked.recording, format_name, settings, tracked.recording_path)
    return tracked.ending.exit_code


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
        text += f"  recording: {recording_path}\n"
    try:
        output.write(text, otherwise=2)
    except TrackerError as error:
        say(f"{error} The result is:", text)
        return False
    return True
