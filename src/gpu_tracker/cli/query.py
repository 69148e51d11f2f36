"""Query GPUs of any vendor with nvidia-smi's field names; CSV or JSON lines."""

from __future__ import annotations

import argparse

from ..core.errors import NoGpuError, UsageError
from ..core.figures import PROCESS_LISTS
from ..core.observation import list_gpus, list_notes
from ..core.values import NamedTuple
from ..live.smi_fields import Row, find_fields, list_fields, render_csv, render_heading, render_json
from ..live.smi_names import GPU_FIELDS, PROCESS_FIELDS
from ..live.terminal import write
from ..sampler.handle.client import ObserverClient
from .observing import (
    add_observing,
    check_count,
    check_seconds,
    choose_gpus,
    open_output,
    repeat,
    say_once,
    write_lines,
)
from .options import Parser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.observation import Device, Observation
    from ..live.smi_fields import Field

_DEFAULT_FIELDS = (
    "timestamp,index,name,utilization.gpu,memory.used,memory.free,memory.total,temperature.gpu,power.draw"
)
_DEFAULT_LOOP_SECONDS = "5"
_EPILOG = """\
nvidia-smi's options work too: replace `nvidia-smi` with `gpu-tracker query`.
CSV uses nvidia-smi's units (MiB) and [N/A]; JSON uses bytes, percent, watts,
MHz, degrees Celsius and null.
Ctrl-C stops it. The exit code is 1 if there is no GPU, or if processes are
queried and no GPU lists any.
"""


class _Format(NamedTuple):
    is_json: bool
    has_heading: bool
    has_units: bool


def main(arguments: list[str]) -> int:
    """One row per GPU, or per process on a GPU, at each reading."""
    options = make_parser().parse_args(arguments)
    if options.help_fields or options.help_process_fields:
        write(list_fields(GPU_FIELDS if options.help_fields else PROCESS_FIELDS))
        return 0
    asks_compute = options.compute_fields is not None
    process_fields = options.compute_fields if asks_compute else options.process_fields
    asks_processes = process_fields is not None
    if asks_processes and options.fields is not None:
        raise UsageError("GPUs and processes cannot be queried at the same time.")
    fields = (
        find_fields(process_fields, PROCESS_FIELDS)
        if asks_processes
        else find_fields(options.fields or _DEFAULT_FIELDS, GPU_FIELDS)
    )
    form = _parse_format(options.format)
    interval, count = _find_pace(options)
    timeout = check_seconds("--timeout", options.timeout, least=0.1)
    say_once(f"{field.name} is [N/A]: {field.never}." for field in fields if field.never)
    out = open_output(options.filename)
    wanted = tuple(field.name for field in fields if field.needs_details)
    is_answered = False
    with ObserverClient(timeout) as client:
        try:
            for number, _ in enumerate(repeat(interval, count)):
                observation = client.observe(details=wanted)
                gpus = choose_gpus(observation, options.id, must_exist=number == 0)
                rows = _make_rows(observation, gpus, of_processes=asks_processes)
                if asks_compute:
                    rows = [row for row in rows if row.process and row.process.kind != "graphics"]
                is_answered |= not asks_processes or any(gpu.reading.lists_processes for gpu in gpus)
                lines = [render_heading(fields)] if number == 0 and form.has_heading else []
                lines += [_render(row, fields, form) for row in rows]
                notes = list_notes(observation, None if options.id is None else gpus)
                say_once((*notes, *(() if is_answered else _explain_silence(gpus))))
                if not write_lines(lines, out):
                    break
        except KeyboardInterrupt:
            return 0  # the normal end
    return 0 if is_answered else NoGpuError.exit_code


def make_parser() -> Parser:
    """Its options."""
    parser = Parser(prog="gpu-tracker query", description=__doc__)
    parser.epilog = _EPILOG
    parser.add_argument(
        "--fields",
        "--query-gpu",
        metavar="NAMES",
        dest="fields",
        help="comma-separated fields, one row per GPU (default: the usual ones)",
    )
    parser.add_argument(
        "--process-fields",
        metavar="NAMES",
        help="comma-separated fields, one row per process on a GPU: pid, used_memory...",
    )
    parser.add_argument(
        "--query-compute-apps",
        metavar="NAMES",
        dest="compute_fields",
        help="the same without processes that only draw, as in nvidia-smi",
    )
    parser.add_argument("--help-fields", "--help-query-gpu", action="store_true", help="list the fields")
    parser.add_argument(
        "--help-process-fields",
        "--help-query-compute-apps",
        action="store_true",
        help="list the fields of processes",
    )
    parser.add_argument(
        "--format",
        metavar="FORMAT",
        default="csv",
        help="csv, csv,noheader, csv,nounits, csv,noheader,nounits or json (default csv)",
    )
    parser.add_argument(
        "-l",
        "--loop",
        metavar="SECONDS",
        nargs="?",
        const=_DEFAULT_LOOP_SECONDS,
        help=f"repeat every SECONDS (default {_DEFAULT_LOOP_SECONDS})",
    )
    parser.add_argument("-lms", "--loop-ms", metavar="MILLISECONDS", help="the same in milliseconds")
    parser.add_argument("--count", metavar="N", help="stop after N readings")
    parser.add_argument(
        "-i", "--id", metavar="WHICH", help="comma-separated indices, UUIDs or bus ids (default: all GPUs)"
    )
    parser.add_argument("-f", "--filename", metavar="FILE", help="write to FILE")
    # Found in recipes beside `-l`; older versions of nvidia-smi took it for "with timestamps".
    parser.add_argument("-t", action="store_true", help=argparse.SUPPRESS)
    add_observing(parser)
    return parser


def _parse_format(text: str) -> _Format:
    words = {word.strip() for word in text.split(",")}
    kinds = words - {"noheader", "nounits"}
    if kinds not in ({"csv"}, {"json"}):
        raise UsageError(
            f"Unknown format {text!r}.", "Use csv, optionally with ,noheader and ,nounits, or json."
        )
    is_json = "json" in kinds
    return _Format(is_json, not is_json and "noheader" not in words, "nounits" not in words)


def _find_pace(options: argparse.Namespace) -> tuple[float, int | None]:
    """Seconds between two readings, and how many; one without any such option."""
    if options.loop_ms is not None:
        interval = check_seconds("-lms", options.loop_ms, least=10, unit="milliseconds") / 1000
    else:
        interval = check_seconds("-l", options.loop or _DEFAULT_LOOP_SECONDS, least=0.01)
    if options.count is not None:
        return interval, check_count("--count", options.count)
    is_loop = options.loop is not None or options.loop_ms is not None
    return interval, None if is_loop else 1


def _explain_silence(gpus: tuple[Device, ...]) -> list[str]:
    """Why no device lists its processes."""
    return [gpu.reasons[name] for gpu in gpus for name in PROCESS_LISTS if name in gpu.reasons]


def _make_rows(observation: Observation, gpus: tuple[Device, ...], *, of_processes: bool) -> list[Row]:
    count = len({(gpu.vendor, gpu.index) for gpu in list_gpus(observation)})  # instances are part of one
    if not of_processes:
        return [Row(observation, count, gpu) for gpu in gpus]
    return [Row(observation, count, gpu, process) for gpu in gpus for process in gpu.processes]


def _render(row: Row, fields: tuple[Field, ...], form: _Format) -> str:
    return render_json(row, fields) if form.is_json else render_csv(row, fields, has_units=form.has_units)
