"""Track a process that already runs, until it ends or you press Ctrl-C."""

from __future__ import annotations

import os
import select
import signal
import time

from ..api.session import Session, check_runs, other_process
from ..core.config import check_process_id
from ..core.errors import TrackerError, UsageError
from ..reports.build import Choices
from ..reports.contract import choose_format
from ..sampler.handle.wire import Start
from .defects import survive
from .interrupts import interruptible, raise_interrupts
from .options import Parser, add_measuring, add_output, add_recording, add_rules, to_settings, to_wishes
from .output import Output
from .run import read_rules, show
from .track import DEFAULT_DIRECTORY, choose_say, find_gpus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..sampler.handle.process import SamplerProcess

NAME = "attach"


def main(arguments: list[str], sampler: SamplerProcess | None) -> int:
    """The process itself is not touched."""
    parser = Parser(prog="gpu-tracker attach", description=__doc__)
    parser.add_argument("pid", metavar="PID", help="the process to track, with its descendants")
    add_measuring(parser)
    add_recording(parser, DEFAULT_DIRECTORY)
    add_output(parser, "Report")
    add_rules(parser)
    options = parser.parse_args(arguments)
    format_name = choose_format("Report", options.format, options.output)
    settings = to_settings(options)
    choices = Choices(read_rules(options.rules))
    pid = _find_process(options.pid)
    output = Output(options.output)
    output.refuse_binary(format_name, otherwise=2)
    with interruptible():
        settings = find_gpus(settings, sampler)
    session = Session(other_process(pid), settings, to_wishes(options), choose_say(settings), sampler)
    session.prepare()
    wake_reading, wake_writing = os.pipe()
    try:
        with interruptible():
            is_ready = session.wait_until_ready()
        if not is_ready:
            raise UsageError("The sampler failed to start.")
        # An interrupt is the normal end: it must not raise in the middle of something.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, or a job in the background
                signal.signal(number, lambda *_: os.write(wake_writing, b"!") and None)
        raise_interrupts()
    except BaseException:
        session.discard()
        raise
    session.begin(Start(pid, time.monotonic_ns(), None))
    woken, _, _ = select.select([session.replies_fd, wake_reading], [], [])
    recording = session.stop(
        time.monotonic_ns(), None, reason=None if session.replies_fd in woken else "interrupted"
    )
    is_shown = survive(
        lambda: show(output, session, recording, format_name, settings, choices=choices),
        otherwise=False,
        recording_path=session.recording_path,
    )
    return 0 if is_shown else TrackerError.exit_code


def _find_process(text: str) -> int:
    try:
        pid = check_process_id(int(text))
    except ValueError:
        raise UsageError(f"{text!r} is not a process ID.") from None
    return check_runs(pid)
