"""MEASURE. One file per interface; adding a vendor is one file and one row in a table.

A process source has a `NAME`, a `ProcessTree`, a `Machine` and `open_activity()`; a GPU source a `NAME`, `why_absent()` and `connect()`.
Sources are imported where they are used: one that is not needed must not cost start-up time.
"""

from __future__ import annotations

from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Protocol

    from ..core.model import (
        EnergyReading,
        Gpu,
        GpuReadings,
        MachineReading,
        ProcessActivity,
        ProcessReading,
        SharingReading,
        Stalls,
    )

    class ProcessTreeSource(Protocol):
        """A process and all its descendants."""

        root_pid: int
        has_missed: bool  # processes came and went between two readings: nobody knows whose they were
        has_seen_end: bool  # the root was read after its end, when its figures were final

        def is_alive(self) -> bool: ...
        def find_pause(self) -> float | None: ...  # when a whole job was last seen, if nothing of it runs
        def read(self) -> tuple[ProcessReading, ...]: ...
        def read_sharing(self, pid: int) -> SharingReading | None: ...
        def close(self) -> None: ...

    class ActivitySource(Protocol):
        """What processes do besides computing, and what keeps them waiting."""

        def read(self, readings: Sequence[ProcessReading]) -> tuple[ProcessActivity, ...]: ...
        def read_stalls(self) -> Stalls: ...

    class EnergySource(Protocol):
        """The energy meters of the whole machine."""

        def read(self) -> tuple[EnergyReading, ...]: ...

    class MachineSource(Protocol):
        """The whole machine."""

        def read(self) -> MachineReading: ...

    class GpuSource(Protocol):
        """One vendor's devices."""

        gpus: tuple[Gpu, ...]
        unopened: tuple[Gpu, ...]
        """Known devices that could not be opened, unless denied; one without a UUID has its label instead, and no name."""
        is_outdated: bool  # there are devices now that were not there when it was opened
        reasons: Mapping[tuple[str, str], str]
        """(uuid, field of a reading) → why it is not measured, and the fix. No uuid: all devices; unopened ones have a label."""
        kinds: Mapping[tuple[str, str], str]
        """The same keys → a kind of `guard`: an unsupported figure is not a fault, a denied one is."""
        poll_seconds: float  # how often to read utilization without samples: often, if that costs little

        def read(self, pids: frozenset[int] | None) -> GpuReadings:
            """Read every device, and what these processes use of it (None: all processes)."""

        def collect(self) -> None:
            """Fetch the samples that the driver may forget before the next reading, for that one."""

        def expect_end(self) -> None:
            """The next reading is the last: what is read rarely is due in it."""

        def read_details(self, names: Collection[str]) -> Mapping[str, Mapping[str, float | str]]:
            """Less common figures by uuid, those of these that it has, by nvidia-smi's names: `pstate`, `fan.speed`..."""

        def take_notes(self) -> tuple[str, ...]:
            """Sentences for the user since the last call; each is given once."""

        def close(self) -> None:
            """Release all resources."""


class Roots(NamedTuple):
    """Where the system's files are; tests use others."""

    proc: str = "/proc"
    sys: str = "/sys"
    share: str = "/usr/share"  # distributions keep lists of devices there


class NotAvailableError(Exception):
    """A source cannot be read here; the message is a sentence with the reason and the fix."""


# The sampler's name in `ps`, which a zombie keeps after its arguments are gone. At most 15 letters.
SAMPLER_NAME = "gpu-tracker-smp"
# The same for the process that shares our group to see its signals.
WITNESS_NAME = "gpu-tracker-sig"
# Arguments of processes that belong to the tracker or to Python itself, not to the job.
IGNORED_ARGUMENTS = ("gpu_tracker.sampler.child", "multiprocessing.resource_tracker")
