"""Track any command: gpu-tracker run -- CMD (compatible form: -e "CMD").

The compatible form runs the command and prints the RAM, GPU RAM, CPU
utilization, GPU utilization and compute time of its process and all its
descendants.
"""

from __future__ import annotations

import shlex

from ..core.config import GPU_BRANDS
from ..core.errors import TrackerError, UsageError
from ..core.version import __version__
from ..reports.build import build
from ..reports.contract import choose_format, render
from ..reports.paper import build_usage
from .defects import survive
from .options import Parser, add_measuring, add_output, add_recording, to_settings, to_wishes
from .output import Output, encode, say, write_all
from .track import track_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from ..core.config import Settings
    from ..core.model import RecordingData
    from ..sampler.handle.process import SamplerProcess

_SIZES = "'bytes', 'kilobytes', 'megabytes', 'gigabytes', or 'terabytes'"


def main(arguments: list[str], sampler: SamplerProcess | None) -> int:
    """The closing sentence goes to standard output, and so does the result unless a file is named."""
    options = _parse(arguments)
    try:
        command = shlex.split(options.execute)
    except ValueError as error:
        raise UsageError(f"Cannot parse the command: {error}.") from None
    if not command or not command[0]:
        raise UsageError("Empty command provided.")
    format_name = choose_format("ResourceUsage", options.format)
    settings = to_settings(options)
    output = Output(options.output)
    tracked = track_command(sampler, command, settings, to_wishes(options))
    code, recording = tracked.ending.returncode, tracked.recording
    if recording is not None:
        survive(
            lambda: _show(recording, code, settings, output, format_name),
            otherwise=None,
            recording_path=tracked.session.recording_path,
        )
    return code


def _parse(arguments: list[str]) -> Namespace:
    """The options; what the command line does not say, a configuration file may."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.execute is None:  # only now: a mistyped option is told first
        parser.error("the following arguments are required: -e/--execute")
    if options.tconfig is None:
        return options
    from .tracker_config import read_config

    configured = read_config(options.tconfig)
    if options.gpu is not None:
        configured.pop("gpu_brand", None)  # the command line has chosen
    parser.set_defaults(**configured)
    return parser.parse_args(arguments)


def _show(recording: RecordingData, code: int, settings: Settings, output: Output, format_name: str) -> None:
    report = build(recording)
    if not settings.disable_logs:
        for note in report.notes:
            say(note)
    usage = build_usage(report, settings)
    content = encode(render(usage, format_name))
    try:
        write_all(1, f"Resource tracking complete. Process completed with status code: {code}\n")
        output.write(content if output.is_file else content + b"\n", otherwise=1)
    except TrackerError as error:
        say(f"{error} The result is:", content + b"\n")


def make_parser() -> Parser:
    """The options of the compatible form."""
    parser = Parser(
        prog="gpu-tracker",
        usage='gpu-tracker -e "command arguments" [options]\n       gpu-tracker COMMAND [options]',
        description=__doc__,
    )
    parser.add_argument("-v", "--version", action="version", version=__version__)
    parser.add_argument(
        "-e",
        "--execute",
        metavar="COMMAND",
        help='the command to run along with its arguments, all within quotes, e.g. "ls -l -a"',
    )
    add_output(parser, "ResourceUsage")
    add_measuring(parser)
    parser.add_argument("--ru", dest="ram_unit", default="gigabytes", help=f"one of {_SIZES}")
    parser.add_argument("--gru", dest="gpu_ram_unit", default="gigabytes", help=f"one of {_SIZES}")
    parser.add_argument(
        "--tu",
        dest="time_unit",
        default="hours",
        help="one of 'seconds', 'minutes', 'hours', or 'days'",
    )
    parser.add_argument(
        "--gb",
        "--gpu-brand",
        dest="gpu_brand",
        metavar="BRAND",
        help=f"one of {' and '.join(GPU_BRANDS)}; --gpu has more",
    )
    add_recording(parser, None)
    parser.add_argument(
        "--tconfig",
        metavar="FILE",
        help='a JSON file with arguments of `Tracker` by name, such as {"sleep_time": 0.5}; '
        "options on the command line override it",
    )
    return parser
