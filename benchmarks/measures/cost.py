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
_FIRST_SECONDS = 5.0
_REST_SECONDS = 1.0
_APPEARANCE_SECONDS = 20.0


@dataclass(frozen=True)
class _Scenario:
    label: str
    workload: str
    least_job_processes: int
    interval: float | None
    goal_percent: float
    warm_up_seconds: float = _WARM_UP_SECONDS
    measured_seconds: float = _MEASURED_SECONDS


@dataclass(frozen=True)
class _Cost:
    cpu_percent: float
    sampler_bytes: int
    wrapper_bytes: int
    both_pss_bytes: int
    """Of these two. Memory that several processes share is divided among them."""
    all_pss_bytes: int
    """Of every process of the tracker."""


_IDLE = _Scenario("one idle process, defaults", "idle", 1, None, 0.2)
_SCENARIOS = (
    _IDLE,
    _Scenario("one busy process, defaults", "busy", 1, None, 0.2),
    _Scenario("one idle process, every 0.1 s", "idle", 1, 0.1, 0.35),
    _Scenario("64 idle descendants, every 0.1 s", "sleepers", 65, 0.1, 1.0),
    _Scenario("64 idle descendants, defaults, first 5 s", "sleepers", 65, None, 0.5, 0.0, _FIRST_SECONDS),
)
_SAMPLER_GOAL_MEGABYTES = 25.0
_BOTH_GOAL_MEGABYTES = 10.0
# It is a copy of the wrapper that only waits, neither the wrapper nor the sampler.
_WITNESS_NAME = "gpu-tracker-sig"


def measure(bench: Bench) -> list[Row]:
    """Over some seconds in the middle of the run, without start-up and shutdown; in one case from its begin."""
    rows = {
        scenario: Row(
            f"CPU of the tracker, {scenario.label}", "% of a core", Goal(high=scenario.goal_percent), 2
        )
        for scenario in _SCENARIOS
    }
    sampler = Row("memory of the sampler", "MB RSS", Goal(high=_SAMPLER_GOAL_MEGABYTES))
    wrapper = Row("memory of the wrapper", "MB RSS")
    both = Row("memory of wrapper and sampler together", "MB PSS", Goal(high=_BOTH_GOAL_MEGABYTES))
    every = Row("memory of all processes of the tracker", "MB PSS")
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
                    both.add(tool.name, cost.both_pss_bytes / 1e6)
                    every.add(tool.name, cost.all_pss_bytes / 1e6)
    return [*rows.values(), sampler, wrapper, both, every]


def _measure_one(tool: Installed, scenario: _Scenario) -> _Cost:
    options = [] if scenario.interval is None else [tool.tool.interval_option, str(scenario.interval)]
    seconds = scenario.warm_up_seconds + scenario.measured_seconds + _REST_SECONDS
    with start(tool, wrap(tool, workload(scenario.workload, seconds), *options)) as running:
        _wait_for_job(running, scenario)
        time.sleep(scenario.warm_up_seconds)
        before, began = _tracker_seconds(running, scenario), time.monotonic()
        time.sleep(scenario.measured_seconds)
        after, ended = _tracker_seconds(running, scenario), time.monotonic()
        processes = watch.find_processes(running.tag, script(scenario.workload)).tracker
        if len(processes) == 1 and tool.tool.has_sampler:
            raise RunFailedError(f"the sampler of {tool.name} was not found")
        both = {pid for pid in processes if watch.name(pid) != _WITNESS_NAME}
        memory = {pid: watch.rss_bytes(pid) for pid in both}
        shares = {pid: watch.pss_bytes(pid) for pid in processes}
        finish(running)
    wrapper = memory.pop(running.process.pid, 0)
    sampler = sum(memory.values()) if tool.tool.has_sampler else wrapper
    return _Cost(
        100 * (after - before) / (ended - began),
        sampler,
        wrapper,
        sum(shares[pid] for pid in both),
        sum(shares.values()),
    )


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
