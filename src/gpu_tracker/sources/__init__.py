"""MEASURE. One file per interface; adding a vendor is one file and one row in a table.

A process source has a `NAME`, a `ProcessTree` and a `Machine`; a GPU source a `NAME`, `why_absent()` and `connect()`.
Modules are imported by whoever uses them: a source that is not needed must not cost start-up time.
"""

from __future__ import annotations

from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    from ..core.model import Gpu, GpuReadings, MachineReading, ProcessReading, SharingReading

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
        """One vendor's devices."""

        gpus: tuple[Gpu, ...]
        reasons: Mapping[tuple[str, str], str]
        """(uuid, figure) → why it is not measured, and the cure. The figures are fields of GpuReading and
        GpuProcessReading; the uuid is empty for what concerns all devices, and no device's for one that
        cannot even be opened."""
        kinds: Mapping[tuple[str, str], str]
        """The same keys → a kind of `guard`: what a device does not have is no fault, what it denies is."""

        def read(self, pids: frozenset[int] | None) -> GpuReadings:
            """Look at every device, and at what these processes do there (None: what anybody does)."""

        def read_details(self) -> Mapping[str, Mapping[str, float | str]]:
            """By uuid, what only a curious person asks for, under nvidia-smi's names: `pstate`, `fan.speed`..."""

        def take_notes(self) -> tuple[str, ...]:
            """Sentences for the user since the last call, each thing once."""

        def close(self) -> None:
            """Give everything back."""


class Roots(NamedTuple):
    """Where the kernel shows its files; a test may show others."""

    proc: str = "/proc"
    sys: str = "/sys"


class NotAvailableError(Exception):
    """A source cannot be read here; the message is a whole sentence that says why, and the cure."""


# What `ps` shows for a sampler, also when it is a zombie whose arguments have gone. At most 15 letters.
SAMPLER_NAME = "gpu-tracker-smp"
# Arguments that betray a process of the measuring, or of Python itself, rather than of the job.
IGNORED_ARGUMENTS = ("gpu_tracker.sampler.child", "multiprocessing.resource_tracker")
