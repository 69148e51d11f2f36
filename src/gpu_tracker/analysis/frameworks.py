"""The parts of a framework's memory on a GPU. Pure."""

from __future__ import annotations

from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.model import FrameworkMemory, Gpu, RecordingData


PARTS = ("tensors", "cached for reuse", "context and libraries", "other processes", "free")
"""Into which the memory of a device is split."""


class FrameworkSummary(NamedTuple):
    """One framework in one process on one device. None is not known."""

    memory: FrameworkMemory
    gpu: Gpu | None
    cached_bytes: int | None
    """Kept by the framework for reuse: free for this process, not for others."""
    context_bytes: int | None
    """The rest of the process: the driver's context, libraries, their workspaces."""


def summarize_frameworks(recording: RecordingData) -> tuple[FrameworkSummary, ...]:
    """One summary per framework, process and device, ordered by device and process."""
    gpus = {gpu.uuid: gpu for gpu in recording.gpus}
    summaries = [_summarize(memory, gpus.get(memory.uuid)) for memory in recording.frameworks]
    return tuple(sorted(summaries, key=_order))


def _summarize(memory: FrameworkMemory, gpu: Gpu | None) -> FrameworkSummary:
    # At the fullest moment; a recording may lack that.
    is_split = memory.split_in_use_bytes is not None
    in_use = memory.split_in_use_bytes if is_split else memory.in_use_bytes
    held = memory.split_held_bytes if is_split else memory.held_bytes
    return FrameworkSummary(
        memory, gpu, find_rest(held, in_use), find_rest(memory.split_process_bytes, memory.split_held_bytes)
    )


def find_rest(whole: int | None, part: int | None) -> int | None:
    """What is left of the whole. The two may be of different moments."""
    return None if whole is None or part is None else max(0, whole - part)


def _order(summary: FrameworkSummary) -> tuple[bool, int, int, str]:
    gpu, memory = summary.gpu, summary.memory
    return gpu is None, 0 if gpu is None else gpu.ordinal, memory.pid, memory.device
