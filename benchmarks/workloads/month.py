"""Record a job of a month with the real sampler on an artificial clock: month.py FILE GPUS REGIONS METRICS [DAYS].

Each device, region and metric has one peak of a single reading; a metric is logged once per second. Prints the truth.
"""

from __future__ import annotations

import json
import os
import sys
import types
from typing import Any

from gpu_tracker.core.calls import choose_calls
from gpu_tracker.core.model import (
    Call,
    Event,
    Gpu,
    GpuProcessReading,
    GpuReading,
    GpuReadings,
    MachineReading,
    MetricRow,
    ProcessActivity,
    ProcessReading,
    RegionGaps,
    RootFigures,
    Stalls,
)
from gpu_tracker.instrument.shared_file import Numbers
from gpu_tracker.sampler.handle.wire import Plan, Start
from gpu_tracker.sampler.instruments import Instruments
from gpu_tracker.sampler.loop import Sampler
from gpu_tracker.sampler.prepare import prepare

DAY = 86400
MONTH_DAYS = 30
READINGS_PER_E_FOLD = 3000
PID = 100
GB = 10**9
PEAK_BYTES = 77 * GB
PEAK_METRIC = 1e6


class Clock:
    """The time of the job, and whether something peaks now."""

    now = 0.0
    number = 0
    peak_seconds = 0
    is_peak = False

    @classmethod
    def noise(cls, place: int) -> int:
        return (cls.number + place) * 7919 % 1000


class Tree:
    """One process."""

    root_pid = PID
    has_missed = has_seen_end = False

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def is_alive(self) -> bool:
        return True

    def find_pause(self) -> float | None:
        return None

    def read(self) -> tuple[ProcessReading, ...]:
        rss = PEAK_BYTES if Clock.is_peak else GB + Clock.noise(0) * 10**6
        return (ProcessReading(PID, 1, "job", False, 9, 0.9 * Clock.now, 0.0, rss, 0),)

    def read_sharing(self, _pid: int) -> None:
        return None


class Machine:
    """Its counters."""

    def read(self) -> MachineReading:
        return MachineReading(1.1 * Clock.now, 100 * GB + Clock.noise(1) * 10**6)


class Activity:
    """A job that reads and writes all the time."""

    def __init__(self, _pid: int) -> None:
        pass

    def read(self, _readings: object) -> tuple[ProcessActivity, ...]:
        done = int(Clock.now)
        return (ProcessActivity(PID, False, 10**8 * done, 10**6 * done, done, 900 * done, 0.01 * Clock.now),)

    def read_stalls(self) -> Stalls:
        return Stalls(*(0.001 * place * Clock.now for place in range(1, 6)))


class Gpus:
    """Devices that the job uses."""

    pids: frozenset[int] = frozenset()

    def __init__(self, count: int) -> None:
        self._uuids = [f"GPU-{number:08d}-0000-0000-0000-000000000000" for number in range(count)]
        self._events = [
            Event(0.0, "device", "", Gpu(number, uuid, "NVIDIA A100-SXM4-80GB", 80 * GB))
            for number, uuid in enumerate(self._uuids)
        ]

    def begin(self, start_seconds: float) -> None:
        pass

    def read_now(self) -> list[Any]:
        return []

    def have_answered(self) -> bool:
        return True

    def list_unattributed(self) -> list[str]:
        """All are known."""
        return []

    def take_last_silences(self) -> list[str]:
        return []

    def take_events(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    def take_readings(self) -> list[GpuReadings]:
        devices, processes = [], []
        for number, uuid in enumerate(self._uuids):
            noise = Clock.noise(10 * number)
            used = PEAK_BYTES if Clock.is_peak else 40 * GB + noise * 10**6
            devices.append(
                GpuReading(
                    uuid,
                    used,
                    50 + noise / 30,
                    60 + noise / 30,
                    power_watts=300 + noise / 10,
                    energy_joules=300 * Clock.now + noise / 10,
                    temperature_celsius=50 + noise / 100,
                    sm_clock_mhz=1000 + noise,
                    limits=("power",) if noise > 500 else (),
                    measures_processes=True,
                )
            )
            processes.append(GpuProcessReading(uuid, PID, used, 40 + noise / 30))
        return [GpuReadings(Clock.now, tuple(devices), tuple(processes))] if devices else []


class Mailbox:
    """What the job reports."""

    def __init__(self, regions: int, metrics: int) -> None:
        self._calls: dict[tuple[str, ...], list[Call]] = {
            ("epoch", f"step {number}"): [] for number in range(regions)
        }
        self._metrics, self._logged = metrics, 0

    def find_new(self) -> None:
        pass

    def take_ended(self) -> list[Any]:
        return []

    def list_left(self, _since_ns: int) -> list[Any]:
        return []

    def take_framework_notes(self) -> list[Any]:
        return []

    def take_calls_of_ended(self) -> list[Call]:
        return []

    def find_start(self, _key: object) -> float:
        return Clock.now - 0.3

    def take_calls(self) -> list[Call]:
        """What a process keeps: of three calls per second a uniform sample."""
        number = int(Clock.now * 3)
        for path, kept in self._calls.items():
            priority = number * 2654435761 % 2**32
            kept.append(Call(path, PID, number, Clock.now - 0.3, Clock.now, PID, GB, "sampled", priority))
        self._calls = {path: choose_calls(kept) for path, kept in self._calls.items()}
        return [call for kept in self._calls.values() for call in kept]

    def read_open(self) -> list[Call]:
        return [Call(path, PID, 0, Clock.now - 0.3, None) for path in self._calls]

    def read_gaps(self) -> RegionGaps:
        return RegionGaps()

    def read_high_waters(self) -> dict[int, int]:
        return {}

    def read_active(self) -> dict[tuple[int, tuple[str, ...]], int]:
        return {(PID, path): 1 for path in self._calls}

    def read_all(self) -> list[tuple[tuple[int, tuple[str, ...]], Numbers]]:
        nanoseconds = int(Clock.now * 1e9) + Clock.noise(2)
        counted = Numbers(
            calls=int(Clock.now * 3),
            wall_ns=nanoseconds,
            shortest_ns=100_000_000,
            longest_ns=900_000_000 + Clock.number,
            squared_seconds=Clock.now * 0.123456789,
            own_wall_ns=nanoseconds // 2,
            cpu_ns=nanoseconds // 3,
            own_cpu_ns=nanoseconds // 4,
            entry_ram_bytes=GB + Clock.noise(3) * 10**6,
            exit_ram_bytes=GB + Clock.noise(4) * 10**6,
            peak_ram_bytes=0,
            first_ns=1,
            last_ns=nanoseconds,
        )
        return [(key, counted) for key in self.read_active()]

    def read_present(self, _since_ns: int, _now_ns: int) -> list[tuple[tuple[int, tuple[str, ...]], Numbers]]:
        """They are all open."""
        return self.read_all()

    def since_start(self, nanoseconds: int) -> float:
        return nanoseconds / 1e9

    def take_metrics(self, _about_bytes: int) -> list[MetricRow]:
        rows = []
        while self._logged < int(Clock.now):
            self._logged += 1
            noise = self._logged * 7919 % 10007 / 10007
            value = PEAK_METRIC if self._logged == Clock.peak_seconds else noise
            values = {f"metric {number}": value for number in range(self._metrics)}
            rows.append(MetricRow(self._logged, values, self._logged, PID))
        return rows if self._metrics else []


def main(path: str, gpus: int, regions: int, metrics: int, days: int = MONTH_DAYS) -> None:
    Clock.peak_seconds = days * DAY * 2 // 3
    fd = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_APPEND, 0o600)
    plan = Plan(
        owner_pid=os.getpid(),
        example_pid=os.getpid(),
        starts_the_job=True,
        command=("job",),
        sleep_seconds=1.0,
        n_expected_cores=None,
        gpu_uuids=None,
        gpu_vendors=(),
        mailbox=None,
        has_our_environment=True,
        max_overhead=1.0,
        full_resolution=False,
        sources=("procfs",),
        recording_path=path,
    )
    source = types.ModuleType("artificial")
    artificial = {"NAME": "artificial", "ProcessTree": Tree, "open_activity": Activity}
    for name, value in artificial.items():
        setattr(source, name, value)
    made_up: Any = {"source": source, "machine": Machine(), "gpus": Gpus(gpus)}
    sampler = Sampler(prepare(plan, fd)._replace(**made_up), Start(PID, 0, (0.0, 0.0)))
    mailbox: Any = Mailbox(regions, metrics)
    sampler.instruments = Instruments("", 0.0)
    sampler.instruments._mailbox = mailbox  # noqa: SLF001 - of our own
    has_peaked = False
    while Clock.now < days * DAY:
        Clock.now += max(1.0, Clock.now / READINGS_PER_E_FOLD)
        Clock.number += 1
        Clock.is_peak = not has_peaked and Clock.now > Clock.peak_seconds
        has_peaked |= Clock.is_peak
        sampler.tick(Clock.now)
    sampler.finish(Clock.now, RootFigures(0.9 * Clock.now, 0.0), "exited", 0)
    os.close(fd)
    truth = {"bytes": os.path.getsize(path), "readings": Clock.number, "logged": int(Clock.now)}
    peaks = {"peak_bytes": PEAK_BYTES, "peak_metric": PEAK_METRIC, "peak_seconds": Clock.peak_seconds}
    print(json.dumps({**truth, **peaks, "seconds": Clock.now}))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
