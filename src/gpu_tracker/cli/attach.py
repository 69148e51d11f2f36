"""Track a process that already runs, until it ends or you press Ctrl-C."""

from __future__ import annotations

import os
import select
import signal
import time

from ..core.config import check_process_id
from ..core.errors import UsageError
from ..recording.schema import decode_answer
from ..reports import FORMATS
from ..sampler.handle.process import READY_SECONDS, SamplerProcess
from ..sampler.handle.wire import FINAL, Start
from .options import Parser, add_measuring, add_output, add_recording, check_format, to_settings
from .output import Output
from .run import show
from .tracking import (
    DEFAULT_DIRECTORY,
    create_recording,
    make_plan,
    make_tracking_file,
    remove_made,
    resolve_gpus,
)

NAME = "attach"
_ANSWER_SECONDS = 10.0


def main(arguments: list[str], sampler: SamplerProcess) -> int:
    """What it used since we looked; the process itself is not touched."""
    parser = Parser(prog="gpu-tracker attach", description=__doc__)
    parser.add_argument("pid", metavar="PID", help="the process to track, with its descendants")
    add_measuring(parser)
    add_recording(parser, DEFAULT_DIRECTORY)
    add_output(parser, FORMATS)
    options = parser.parse_args(arguments)
    format_name = check_format(options.format, FORMATS)
    settings = to_settings(options)
    pid = _find_process(options.pid)
    output = Output(options.output)
    command = _read_command(pid)
    gpu_uuids = resolve_gpus(sampler, settings)
    path = tracking = None
    try:
        tracking = make_tracking_file(options.tracking_file, settings)
        path = create_recording(options.record, command, pid)
        plan = make_plan(settings, pid, command, gpu_uuids, path, tracking)
        sampler.send("prepare", *plan)
        if not sampler.wait_until_ready(READY_SECONDS):
            raise UsageError("The sampler did not come up.")
    except BaseException:
        remove_made(path, tracking)
        raise
    # Interrupting is the normal way to end: it must not be an exception in the middle of something.
    wake_reading, wake_writing = os.pipe()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: os.write(wake_writing, b"!") and None)
    start = Start(pid, time.monotonic_ns(), None)
    sampler.send("begin", *start)
    select.select([sampler.replies_fd, wake_reading], [], [])
    sampler.send("stop", time.monotonic_ns(), None, None)
    answer = sampler.receive("totals", FINAL, _ANSWER_SECONDS)
    if answer is not None:
        recording = decode_answer(*answer)
    else:
        from ..sampler.handle.recovery import recover

        recording = recover(sampler, plan, start)
    sampler.close()
    return 0 if show(output, recording, format_name, path) else 1


def _find_process(text: str) -> int:
    try:
        pid = check_process_id(int(text))
        os.kill(pid, 0)
    except ValueError:
        raise UsageError(f"{text!r} is not a process ID.") from None
    except (ProcessLookupError, OverflowError):
        raise UsageError(f"There is no process with the ID {text}.") from None
    except PermissionError:
        pass  # somebody else's: most of it can be read all the same
    return pid


def _read_command(pid: int) -> tuple[str, ...]:
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
            return tuple(file.read().rstrip("\0").split("\0"))
    except OSError:
        return ()
