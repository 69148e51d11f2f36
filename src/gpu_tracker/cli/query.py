"""Query GPUs of any vendor with nvidia-smi's field names; CSV or JSON lines."""

from __future__ import annotations

import argparse
import os

from ..core.errors import NoGpuError, UsageError
from ..core.observation import list_gpus, list_notes
from ..core.values import NamedTuple
from ..live.smi_fields import (
    GPU_FIELDS,
    PROCESS_FIELDS,
    Row,
    find_fields,
    list_fields,
    render_csv,
    render_heading,
    render_json,
    write_bus_id,
)
from ..live.terminal import write
from ..sampler.handle.client import ObserverClient
from .observing import add_observing, check_seconds, repeat, say_once
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
  gpu-tracker query --query-gpu=timestamp,utilization.gpu,memory.used \\
    --format=csv,noheader,nounits -l 1
CSV uses nvidia-smi's units (MiB) and [N/A]; JSON uses bytes, percent, watts,
MHz, degrees Celsius and null.
Ctrl-C stops it. The exit code is 1 if there is no GPU.
"""


class _Format(NamedTuple):
    is_json: bool
    has_heading: bool
    has_units: bool


def main(arguments: list[str]) -> int:
    """One row per GPU, or per process on a GPU, at each reading."""
    options = _make_parser().parse_args(arguments)
    if options.help_fields or options.help_process_fields:
        write(list_fields(GPU_FIELDS if options.help_fields else PROCESS_FIELDS))
        return 0
    asks_processes = options.process_fields is not None
    if asks_processes and options.fields is not None:
        raise UsageError("GPUs and processes cannot be queried at the same time.")
    fields = (
        find_fields(options.process_fields, PROCESS_FIELDS)
        if asks_processes
        else find_fields(options.fields or _DEFAULT_FIELDS, GPU_FIELDS)
    )
    form = _parse_format(options.format)
    interval, count = _find_pace(options)
    timeout = check_seconds("--timeout", options.timeout, least=0.1)
    out = _open(options.filename)
    with ObserverClient(timeout) as client:
        try:
            for number, _ in enumerate(repeat(interval, count)):
                observation = client.observe(wants_details=any(field.needs_details for field in fields))
                gpus = _choose(observation, options.id, must_exist=number == 0)
                rows = _make_rows(observation, gpus, of_processes=asks_processes)
                lines = [render_heading(fields)] if number == 0 and form.has_heading else []
                lines += [_render(row, fields, form) for row in rows]
                say_once(list_notes(observation))
                if not write("".join(f"{line}\n" for line in lines), out):
                    break
        except KeyboardInterrupt:
            return 0  # the normal end
    return 0


def _make_parser() -> Parser:
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
        "--query-compute-apps",
        metavar="NAMES",
        dest="process_fields",
        help="comma-separated fields, one row per process on a GPU: pid, used_memory...",
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
    kind, *rest = (word.strip() for word in text.split(","))
    unknown = [word for word in rest if word not in ("noheader", "nounits")]
    if kind not in ("csv", "json") or unknown:
        raise UsageError(
            f"Unknown format {text!r}.", "Use csv, optionally with ,noheader and ,nounits, or json."
        )
    return _Format(kind == "json", kind == "csv" and "noheader" not in rest, "nounits" not in rest)


def _find_pace(options: argparse.Namespace) -> tuple[float, int | None]:
    """Seconds between two readings, and how many; one without any such option."""
    if options.loop_ms is not None:
        interval = check_seconds("-lms", options.loop_ms, least=10) / 1000
    else:
        interval = check_seconds("-l", options.loop or _DEFAULT_LOOP_SECONDS, least=0.01)
    if options.count is not None:
        if not options.count.isdecimal() or int(options.count) < 1:
            raise UsageError(f"--count of {options.count!r} is not a whole number of at least 1.")
        return interval, int(options.count)
    is_loop = options.loop is not None or options.loop_ms is not None
    return interval, None if is_loop else 1


def _open(path: str | None) -> int:
    if path is None:
        return 1
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise UsageError(f"Cannot write to {path}: {error.strerror}.") from None


def _choose(observation: Observation, which: str | None, *, must_exist: bool) -> tuple[Device, ...]:
    gpus = list_gpus(observation)
    if must_exist and not gpus:
        reasons = [missing.text for vendor in observation.vendors for missing in vendor.missing]
        raise NoGpuError("No GPU found.", " ".join(list_notes(observation) or reasons[:1]))
    if which is None:
        return gpus
    wanted = [word.strip() for word in which.split(",")]
    for word in wanted:
        if must_exist and not any(word in _names_of(observed) for observed in gpus):
            known = ", ".join(f"{observed.gpu.ordinal} ({observed.gpu.uuid})" for observed in gpus)
            raise UsageError(f"There is no GPU {word!r}.", f"GPUs: {known}.")
    return tuple(observed for observed in gpus if not _names_of(observed).isdisjoint(wanted))


def _names_of(observed: Device) -> set[str]:
    gpu = observed.gpu
    bus_id = write_bus_id(gpu.bus_id)
    return {str(gpu.ordinal), gpu.uuid, gpu.bus_id, bus_id, bus_id.lower()} - {""}


def _make_rows(observation: Observation, gpus: tuple[Device, ...], *, of_processes: bool) -> list[Row]:
    count = len(list_gpus(observation))
    if not of_processes:
        return [Row(observation, count, gpu) for gpu in gpus]
    return [Row(observation, count, gpu, process) for gpu in gpus for process in gpu.processes]


def _render(row: Row, fields: tuple[Field, ...], form: _Format) -> str:
    return render_json(row, fields) if form.is_json else render_csv(row, fields, has_units=form.has_units)
