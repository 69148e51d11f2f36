"""Run a command under a sampler: what `run` and the compatible `-e` share."""

from __future__ import annotations

import os
import sys

from ..api.session import Session, new_command, resolve_gpus
from ..core.config import RECORD_VARIABLE, SAY_VARIABLE
from ..core.errors import UsageError
from ..core.values import NamedTuple
from ..sampler.handle.wire import Start
from ..sources.files import read_text
from ..sources.identity import find_identity, is_in_batch_script
from .defects import survive
from .interrupts import interruptible
from .output import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..api.session import Wishes
    from ..core.config import Settings
    from ..core.model import RecordingData
    from ..sampler.handle.process import SamplerProcess
    from .job import Ending, Job
    from .showing import Showing

DEFAULT_DIRECTORY = os.environ.get(RECORD_VARIABLE) or "gpu-tracker-runs"
_SLURM_JOB, _STARTER = "SLURM_JOB_ID", "slurmstepd"
ALL, FIRST, NONE = "all", "first", "none"
"""Which ranks print."""


class Tracked(NamedTuple):
    """A command that has been tracked."""

    ending: Ending
    recording: RecordingData | None
    """None if a defect of ours has cost it, which was said."""
    session: Session


def may_print(choice: str | None) -> bool:
    """Whether this process prints, or leaves that to the first rank of its job."""
    choice = choice or os.environ.get(SAY_VARIABLE) or FIRST
    if choice not in (ALL, FIRST, NONE):  # a variable, which must not keep the job from running
        say(f"{SAY_VARIABLE}={choice} is ignored: use {ALL}, {FIRST} or {NONE}.")
        choice = FIRST
    return choice == ALL or (choice == FIRST and not find_identity(os.environ).rank)


def hint_at_batch_script(say: Callable[[str], None]) -> None:
    """Of a batch script Slurm tells only the first process that its time is up."""
    if _SLURM_JOB not in os.environ:
        return
    try:
        groups, parent = read_text("/proc/self/cgroup"), read_text(f"/proc/{os.getppid()}/comm").strip()
    except OSError:
        return
    if is_in_batch_script(os.environ, groups) and parent != _STARTER:
        say(
            "When the time of a batch script is up, or it is cancelled, Slurm tells only the script itself; this command is killed "
            "without a warning. To have it told: `srun gpu-tracker run`, `exec gpu-tracker run`, or `#SBATCH --signal=B:TERM@60` "
            "with a trap."
        )


def choose_say(settings: Settings) -> Callable[[str], None]:
    """Where notes about the measurement go: to the user, or nowhere with --disable-logs."""
    return (lambda _text: None) if settings.disable_logs else say


def find_gpus(settings: Settings, sampler: SamplerProcess | None) -> Settings:
    """The settings, with the GPUs that the user named as UUIDs."""
    try:
        return resolve_gpus(settings, sampler)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _load_job() -> type[Job]:
    """How this system starts and signals processes."""
    if sys.platform == "win32":
        from .windows_job import Job as WindowsJob

        return WindowsJob  # type: ignore[return-value]
    from .job import Job

    return Job


def track_command(
    sampler: SamplerProcess | None,
    command: list[str],
    settings: Settings,
    wishes: Wishes,
    showing: Showing | None = None,
) -> Tracked:
    """Start the command, wait for it, and collect the result."""
    with interruptible():
        settings = find_gpus(settings, sampler)
    session = Session(new_command(command), settings, wishes, choose_say(settings), sampler)
    session.prepare()
    try:
        # What is needed from now on is imported while the sampler starts.
        from ..core.model import Known
        from ..live import abilities  # noqa: F401
        from ..reports import build, report, usage_lines  # noqa: F401
        from .job import NoProcessError

        Job = _load_job()  # noqa: N806 - a class

        job = Job(command, session.note_signal)
        with interruptible():
            session.wait_until_ready()
        try:
            job.start()
        except NoProcessError as error:
            session.discard()
            job.close()
            say(f"The command runs untracked and unchecked: no process can be started for it ({error}).")
            job.replace_us()
    except BaseException:
        session.discard()
        raise
    session.begin(
        Start(job.pid, job.started_nanoseconds, job.before[:2], outsiders=job.outsiders),
    )
    ending = job.wait() if showing is None else showing.watch(session, job)
    known = Known(ending.at_nanoseconds, job.before, ending.figures, ending.returncode)
    recording = survive(
        lambda: session.stop(ending.at_nanoseconds, known),
        otherwise=None,
        recording_path=session.recording_path,
    )
    job.close()
    return Tracked(ending, recording, session)
