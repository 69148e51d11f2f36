"""Run a command under a sampler: what `run` and the compatible `-e` share."""

from __future__ import annotations

from ..api.session import Session, new_command, resolve_gpus
from ..core.errors import UsageError
from ..core.values import NamedTuple
from ..sampler.handle.wire import Start
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
    from .job import Ending
    from .showing import Showing

DEFAULT_DIRECTORY = "gpu-tracker-runs"


class Tracked(NamedTuple):
    """A command that has been tracked."""

    ending: Ending
    recording: RecordingData | None
    """None if a defect of ours has cost it, which was said."""
    session: Session


def choose_say(settings: Settings) -> Callable[[str], None]:
    """Where notes about the measurement go: to the user, or nowhere with --disable-logs."""
    return (lambda _text: None) if settings.disable_logs else say


def find_gpus(settings: Settings, sampler: SamplerProcess | None) -> Settings:
    """The settings, with the GPUs that the user named as UUIDs."""
    try:
        return resolve_gpus(settings, sampler)
    except ValueError as error:
        raise UsageError(str(error)) from None


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
        from .job import Job, NoProcessError

        job = Job(command)
        with interruptible():
            session.wait_until_ready()
        try:
            job.start()
        except NoProcessError as error:
            session.discard()
            job.close()
            say(f"The command runs untracked: no process can be started for it ({error}).")
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
