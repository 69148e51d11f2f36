"""Track a process that already runs, or a whole job on this machine, until it ends or you press Ctrl-C."""

from __future__ import annotations

import os
import select
import signal
import sys
import time

from ..api.session import (
    Session,
    check_runs,
    find_own_identity,
    identify_target,
    other_process,
    whole_job,
)
from ..core import list_signals
from ..core.config import check_process_id
from ..core.errors import TrackerError, UsageError
from ..core.model import NO_PROCESS
from ..reports.choices import Choices
from ..reports.contract import choose_format
from ..sampler.handle.wire import Start
from ..sources.platform import is_ready
from .defects import survive
from .interrupts import interruptible, raise_interrupts
from .options import Parser, add_measuring, add_output, add_recording, add_rules, to_settings, to_wishes
from .output import Output
from .run import read_rules, show
from .track import DEFAULT_DIRECTORY, choose_say, find_gpus, may_print

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..api.session import Target
    from ..sampler.handle.process import SamplerProcess

NAME = "attach"
_LOOK_SECONDS = 0.2


def main(arguments: list[str], sampler: SamplerProcess | None) -> int:
    """The process itself is not touched."""
    options = make_parser().parse_args(arguments)
    format_name = choose_format("Report", options.format, options.output)
    settings = to_settings(options)
    choices = Choices(read_rules(options.rules))
    target = _find_target(options.pid, options.job)
    if target.job is not None:
        # srun starts as many as the job has tasks, and one on each machine is enough.
        if find_own_identity().local_rank or _is_followed(options.record, target):
            return 0
        settings = settings._replace(
            name=settings.name or f"job {target.job}",
            disable_logs=settings.disable_logs or not may_print(None),
        )
    output = Output(options.output)
    output.refuse_binary(format_name, otherwise=2)
    with interruptible():
        settings = find_gpus(settings, sampler)
    session = Session(target, settings, to_wishes(options), choose_say(settings), sampler)
    session.prepare()
    wake_reading, wake_writing = os.pipe()
    received: list[int] = []
    try:
        with interruptible():
            can_begin = session.wait_until_ready()
        if not can_begin:
            raise UsageError("The sampler failed to start.")
        # An interrupt is the normal end: it must not raise in the middle of something.
        for number in list_signals("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK"):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, or a job in the background
                signal.signal(number, lambda *_: received.append(os.write(wake_writing, b"!")))
        raise_interrupts()
    except BaseException:
        session.discard()
        raise
    is_job = target.job is not None
    root = NO_PROCESS if is_job else target.pid
    session.begin(Start(root, time.monotonic_ns(), None, outsiders=(os.getpid(),) if is_job else ()))
    reason = None if _has_ended(session.replies_fd, wake_reading, received) else "interrupted"
    # A scheduler ends what is left of a job by a signal, and never tells how the job ended.
    recording = session.stop(time.monotonic_ns(), None, reason="ended" if is_job else reason)
    is_shown = survive(
        lambda: show(output, session, recording, format_name, settings, choices=choices),
        otherwise=False,
        recording_path=session.recording_path,
    )
    return 0 if is_shown else TrackerError.exit_code


def _has_ended(replies: int, wake: int, received: list[int]) -> bool:
    """Wait for the end of the process, or for a signal; whether it was the end."""
    if sys.platform == "win32":
        while not is_ready(replies, _LOOK_SECONDS):  # a signal ends no wait there
            if received:
                return False
        return True
    woken, _, _ = select.select([replies, wake], [], [])
    return replies in woken


def make_parser() -> Parser:
    """Its options."""
    parser = Parser(prog="gpu-tracker attach", description=__doc__)
    parser.add_argument("pid", metavar="PID", nargs="?", help="the process to track, with its descendants")
    parser.add_argument(
        "--job",
        metavar="ID",
        nargs="?",
        const="",
        help="track all processes of a Slurm job on this machine instead, whoever starts them (default: the job that this "
        "command runs in), until the job ends",
    )
    add_measuring(parser)
    add_recording(parser, DEFAULT_DIRECTORY)
    add_output(parser, "Report")
    add_rules(parser)
    return parser


def _find_target(pid: str | None, job: str | None) -> Target:
    if (pid is None) == (job is None):
        raise UsageError("Name a process by its ID, or a job (--job).")
    if pid is not None:
        return other_process(_find_process(pid))
    job = job or find_own_identity().job
    if job is None:
        raise UsageError(
            "This command does not run in a Slurm job.", "Name one: gpu-tracker attach --job ID."
        )
    return whole_job(job)


def _is_followed(place: str | None, target: Target) -> bool:
    """Whether a tracker of another step records the same into the same directory."""
    if place is None:
        return False
    from ..recording.find import is_followed

    return is_followed(place, identify_target(target))


def _find_process(text: str) -> int:
    try:
        pid = check_process_id(int(text))
    except ValueError:
        raise UsageError(f"{text!r} is not a process ID.") from None
    return check_runs(pid)
