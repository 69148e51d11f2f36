"""CPU and memory of all processes of the tracker while a job runs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks import watch
from benchmarks.bench import Bench, Rounds
from benchmarks.jobs import RunFailedError, Running, finish, script, start, workload, wrap
from benchmarks.rows import Goal, Row

if TYPE_CHECKING:
    from benchmarks.venvs import Installed

NAME = "cost"

_WARM_UP_SECONDS = 1.5
_MEASURED_SECONDS = 8.0
_REST_SECONDS = 1.0
_APPEARANCE_SECONDS = 20.0


@dataclass(frozen=True)
class _Scenario:
    label: str
    workload: str
    least_job_processes: int
    interval: float | None
    goal_percent: float


@dataclass(frozen=True)
class _Cost:
    cpu_percent: float
    sampler_bytes: int
    wrapper_bytes: int


_IDLE = _Scenario("one idle process, defaults", "idle", 1, None, 0.2)
_SCENARIOS = (
    _IDLE,
    _Scenario("one busy process, defaults", "busy", 1, None, 0.2),
    _Scenario("64 idle descendants, every 0.1 s", "sleepers", 65, 0.1, 1.0),
)
_SAMPLER_GOAL_MEGABYTES = 25.0


def measure(bench: Bench) -> list[Row]:
    """Over some seconds in the middle of the run, without start-up and shutdown."""
    rows = {
        scenario: Row(
            f"CPU of the tracker, {scenario.label}", "% of a core", Goal(high=scenario.goal_percent), 2
        )
        for scenario in _SCENARIOS
    }
    sampler = Row("memory of the sampler", "MB RSS", Goal(high=_SAMPLER_GOAL_MEGABYTES))
    wrapper = Row("memory of the wrapper", "MB RSS")
    for tools in bench.rounds(NAME, Rounds(2, 1), Rounds(1, 0)):
        for scenario, row in rows.items():
            for tool in tools:
                cost = bench.attempt(_measure_one, tool, scenario)
                if cost is None:
                    continue
                row.add(tool.name, cost.cpu_percent)
                if scenario is _IDLE:
                    sampler.add(tool.name, cost.sampler_bytes / 1e6)
                    wrapper.add(tool.name, cost.wrapper_bytes / 1e6)
    return [*rows.values(), sampler, wrapper]


def _measure_one(tool: Installed, scenario: _Scenario) -> _Cost:
    options = [] if scenario.interval is None else [tool.tool.interval_option, str(scenario.interval)]
    seconds = _WARM_UP_SECONDS + _MEASURED_SECONDS + _REST_SECONDS
    with start(tool, wrap(tool, workload(scenario.workload, seconds), *options)) as running:
        _wait_for_job(running, scenario)
        time.sleep(_WARM_UP_SECONDS)
        before, began = _tracker_seconds(running, scenario), time.monotonic()
        time.sleep(_MEASURED_SECONDS)
        after, ended = _tracker_seconds(running, scenario), time.monotonic()
        processes = watch.find_processes(running.tag, script(scenario.workload)).tracker
        if len(processes) == 1 and tool.tool.has_sampler:
            raise RunFailedError(f"the sampler of {tool.name} was not found")
        memory = {pid: watch.rss_bytes(pid) for pid in processes}
        finish(running)
    wrapper = memory.pop(running.process.pid, 0)
    sampler = sum(memory.values()) if tool.tool.has_sampler else wrapper
    return _Cost(100 * (after - before) / (ended - began), sampler, wrapper)


def _wait_for_job(running: Running, scenario: _Scenario) -> None:
    deadline = time.monotonic() + _APPEARANCE_SECONDS
    while (
        len(watch.find_processes(running.tag, script(scenario.workload)).job) < scenario.least_job_processes
    ):
        if time.monotonic() > deadline or running.process.poll() is not None:
            raise RunFailedError(f"{scenario.workload} did not start under {running.process.args!r}")
        time.sleep(0.05)


def _tracker_seconds(running: Running, scenario: _Scenario) -> float:
    return watch.cpu_seconds(watch.find_processes(running.tag, script(scenario.workload)).tracker)
