"""MEASURE. One file per interface; adding a vendor is one file and one name in a tuple.

A process source has a `NAME`, a `ProcessTree` and a `Machine`; a GPU source a `NAME` and `connect()`.
Modules are imported by whoever uses them: a source that is not needed must not cost start-up time.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from ..model import Gpu, GpuLook, MachineReading, ProcessReading, SharingReading

    class ProcessTreeSource(Protocol):
        """A process and all its descendants."""

        root_pid: int

        def is_alive(self) -> bool: ...
        def read(self) -> tuple[ProcessReading, ...]: ...
        def read_sharing(self, pid: int) -> SharingReading | None: ...
        def close(self) -> None: ...

    class MachineSource(Protocol):
        """The whole machine."""

        def read(self) -> MachineReading: ...

    class GpuSource(Protocol):
        """One vendor's devices. `take_notes` gives what went wrong since the last call, each thing once."""

        gpus: tuple[Gpu, ...]

        def read(self) -> GpuLook: ...
        def take_notes(self) -> tuple[str, ...]: ...


class NotAvailableError(Exception):
    """A source cannot be read here; the message is a whole sentence that says why, and the cure."""


PROCESS_SOURCES = ("procfs", "portable")
GPU_SOURCES = ("nvml",)

# What `ps` shows for a sampler, also when it is a zombie whose arguments have gone. At most 15 letters.
SAMPLER_NAME = "gpu-tracker-smp"
# Arguments that betray a process of the measuring, or of Python itself, rather than of the job.
IGNORED_ARGUMENTS = ("gpu_tracker.sampler.child", "multiprocessing.resource_tracker")
