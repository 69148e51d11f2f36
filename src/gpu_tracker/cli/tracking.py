"""A command from start to result: what `run` and the paper's `-e` have in common."""

from __future__ import annotations

import os

from ..core.config import Settings, read_process_source
from ..core.errors import UsageError
from ..core.values import NamedTuple
from ..instrument.mailbox import PLACE_VARIABLE, choose_place, put_inside, remove_place
from ..recording import writer
from ..recording.schema import decode_answer
from ..recording.secrets import mask_secrets
from ..sampler.handle.process import READY_SECONDS, SamplerProcess
from ..sampler.handle.wire import FINAL, Plan, Start
from .output import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.model import Recording
    from .job import Ending

DEFAULT_DIRECTORY = "gpu-tracker-runs"
_ANSWER_SECONDS = 10.0


class Tracked(NamedTuple):
    """A command that has been tracked."""

    ending: Ending
    recording: Recording
    recording_path: str | None


def create_recording(place: str | None, command: Sequence[str], pid: int) -> str | None:
    """A file for the recording. One that nobody asked for is not worth refusing a job."""
    if place is None:
        return None
    try:
        return writer.create(place, command, pid)
    except UsageError as error:
        if place is not DEFAULT_DIRECTORY:
            raise
        say(f"{error} The run is not recorded.")
        return None


def make_tracking_file(path: str | None, settings: Settings) -> tuple[str, tuple[str, str, str]] | None:
    """An empty tracking file, if one is wanted, and the units in it."""
    if path is None:
        return None
    from ..recording.tracking_file import check_tracking_path, create_tracking_file

    place = check_tracking_path(path)
    create_tracking_file(place)
    return place, (settings.ram_unit, settings.gpu_ram_unit, settings.time_unit)


def make_plan(
    settings: Settings,
    pid: int,
    command: Sequence[str],
    gpu_uuids: tuple[str, ...] | None,
    recording_path: str | None,
    tracking: tuple[str, tuple[str, str, str]] | None,
    regions_place: str | None = None,
) -> Plan:
    """What the sampler is to do with a process: one of ours that becomes the command, or somebody else's."""
    is_ours = pid == os.getpid()
    return Plan(
        owner_pid=os.getpid(),
        example_pid=pid,
        has_our_environment=is_ours,
        starts_the_job=is_ours,
        command=tuple(command),
        sleep_seconds=settings.sleep_time,
        n_expected_cores=settings.n_expected_cores,
        gpu_uuids=gpu_uuids,
        gpu_vendors=settings.gpu_vendors,
        max_overhead=settings.max_overhead,
        full_resolution=settings.full_resolution,
        source=read_process_source(),
        recording_path=recording_path,
        regions_place=regions_place,
        tracking=tracking,
    )


def remove_made(recording_path: str | None, tracking: tuple[str, tuple[str, str, str]] | None) -> None:
    """Nothing has been tracked: an empty file would only be in the way of the next attempt."""
    for made in (recording_path, tracking and tracking[0]):
        if made is not None and os.path.exists(made):
            os.unlink(made)


def hook_into_python() -> None:
    """Have every Python process of the job find our module before its own program begins."""
    hook = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "instrument", "hook")
    known = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{hook}{os.pathsep}{known}" if known else hook


def resolve_gpus(sampler: SamplerProcess, settings: Settings) -> tuple[str, ...] | None:
    """The GPUs that the user named, by their UUIDs."""
    try:
        return sampler.resolve_gpus(settings.gpu_uuids, settings.gpu_vendors)
    except ValueError as error:
        raise UsageError(str(error)) from None


def track_command(
    sampler: SamplerProcess,
    command: list[str],
    settings: Settings,
    record: str | None,
    tracking_file: str | None = None,
) -> Tracked:
    """Run the command under the sampler, and never let the one suffer from the other."""
    gpu_uuids = resolve_gpus(sampler, settings)
    from .job import Job

    place = choose_place(os.environ)
    if place is not None:
        # The job inherits it.
        os.environ[PLACE_VARIABLE] = put_inside(place, os.environ.get(PLACE_VARIABLE))
    path = tracking = None
    try:
        tracking = make_tracking_file(tracking_file, settings)
        path = create_recording(record, command, os.getpid())
        plan = make_plan(settings, os.getpid(), mask_secrets(command), gpu_uuids, path, tracking, place)
        sampler.send("prepare", *plan)
        sampler.wait_until_ready(READY_SECONDS)
        job = Job(command)
    except BaseException:
        remove_made(path, tracking)
        if place is not None:
            remove_place(place)
        raise
    start = Start(job.pid, job.started_nanoseconds, job.before[:2])
    sampler.send("begin", *start)
    ending = job.wait()
    sampler.send("stop", ending.at_nanoseconds, tuple(ending.figures), ending.returncode)
    answer = sampler.receive("totals", FINAL, _ANSWER_SECONDS)
    if answer is not None:
        recording = decode_answer(*answer)
    else:
        from ..accounts.recovery import Known
        from ..sampler.handle.recovery import recover

        sampler.kill()
        known = Known(ending.at_nanoseconds, job.before, ending.figures, ending.returncode)
        recording = recover(sampler, plan, start, known)
    sampler.close()
    if place is not None:
        remove_place(place)
    return Tracked(ending, recording, path)
