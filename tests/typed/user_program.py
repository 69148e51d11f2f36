"""Every public name, as a program with strict types uses it. Read by type checkers only; see tests/test_typing.py.

A line that says `type: ignore` is a mistake which a type checker must find: an ignore without a mistake is an error.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from typing_extensions import assert_type

import gpu_tracker as gput


def train(epochs: int) -> float:
    """Any function of a user."""
    return epochs / 2


def use_a_tracker() -> None:
    """All that the paper has, and all that is ours."""
    with gput.Tracker(
        0.1,
        "megabytes",
        n_expected_cores=4,
        gpu_uuids=["GPU-0"],
        record=Path("runs"),
        name="baseline",
        labels={"seed": 7},
    ) as tracker:
        assert_type(tracker, gput.Tracker)
        if tracker.resource_usage is not None:
            assert_type(tracker.resource_usage, gput.tracker.ResourceUsage)
            assert_type(tracker.resource_usage.max_ram.main.total_rss, float)
            assert_type(tracker.resource_usage.compute_time.time, float)
    if tracker.report is not None:
        assert_type(tracker.report, gput.Report)
        assert_type(tracker.report.summary, gput.Summary)
        assert_type(tracker.report.regions, tuple[gput.Region, ...])
        assert_type(tracker.report.metrics, tuple[gput.Metric, ...])
        assert_type(tracker.report.summary.ram.combined.total_bytes, int)
    assert_type(tracker.notes, tuple[str, ...])
    assert_type(str(tracker), str)
    assert_type(tracker.region("evaluate"), gput.region)
    tracker.start()
    tracker.stop()
    gput.Tracker(sleep_time="often")  # type: ignore[arg-type]
    gput.Tracker(sleep=1.0)  # type: ignore[call-arg]
    gput.Tracker(gpu_uuids=5)  # type: ignore[arg-type]


def use_what_is_live() -> None:
    """What is used while it is used."""
    findings: list[gput.Finding] = []
    with gput.Tracker(on_sample=hear, on_finding=findings.append, every=5, live=True) as tracker:
        for interval in tracker.samples():
            assert_type(interval, gput.Interval)
    for news in gput.follow("run.jsonl", every=0.5):
        assert_type(news, gput.News)
        assert_type(news.samples, tuple[gput.Sample, ...])
    gput.Tracker(on_sample=train)  # type: ignore[arg-type]
    gput.Tracker(on_finding=hear)  # type: ignore[arg-type]
    sinks = [
        gput.sinks.wandb(object()),
        gput.sinks.mlflow("id", step=lambda: 5),
        gput.sinks.tensorboard(object()),
    ]
    assert_type(sinks, list[gput.sinks.Sink])
    gput.Tracker(sinks=[*sinks, gput.sinks.Sink("mine", take, take)])
    gput.Tracker(sinks=[take])  # type: ignore[list-item]


def hear(interval: gput.Interval) -> None:
    """Called with the newest interval."""
    assert_type(interval.cpu_cores, float | None)
    assert_type(interval.gpus, tuple[gput.GpuInterval, ...])


def take(point: gput.sinks.Point) -> None:
    """Called with what a sink gets."""
    assert_type(point.step, int)
    assert_type(point.values["gpu_tracker/ram_bytes"], float)


def use_decorators() -> None:
    """A decorated function keeps its signature."""
    assert_type(gput.track(train)(3), float)
    assert_type(gput.track(sleep_time=0.1, then=show)(train)(3), float)
    assert_type(gput.region("train")(train)(3), float)
    gput.track(train)("three")  # type: ignore[arg-type]
    gput.track(then=5)  # type: ignore[call-overload]
    gput.region("train")(train)()  # type: ignore[call-arg]


def show(tracker: gput.Tracker) -> None:
    """What is called after each tracked call."""
    print(tracker)


async def use_regions() -> None:
    """A block, also around something that waits."""
    with gput.region("request", parallel=True), gput.region("forward", exact_peak=True) as forward:
        assert_type(forward, gput.region)
        await asyncio.sleep(0)
    gput.log(step=1, loss=0.5)
    gput.log(loss="small")  # type: ignore[arg-type]
    gput.region(7)  # type: ignore[arg-type]


def use_loops() -> None:
    """Batches keep their type."""
    for batch in gput.watch([[0.5], [0.25]], name="evaluation"):
        assert_type(batch, list[float])
        gput.step(loss=batch[0])
    assert_type(len(gput.watch("ab")), int)
    gput.step(100)
    gput.step(loss="small")  # type: ignore[arg-type]
    gput.watch(5)  # type: ignore[arg-type]


def use_recordings() -> None:
    """Read back, side by side."""
    recording = gput.load(Path("runs/a.jsonl"))
    assert_type(recording, gput.Recording)
    assert_type(recording.is_complete, bool)
    assert_type(recording.notes, tuple[str, ...])
    assert_type(list(recording.samples), list[gput.Sample])
    assert_type(recording.regions, tuple[gput.Region, ...])
    assert_type(recording.regions == recording.report.regions, bool)
    assert_type(recording.metrics, tuple[gput.Metric, ...])
    assert_type(list(recording.region_totals), list[gput.RegionTotals])
    assert_type(list(recording.calls), list[gput.Call])
    assert_type(list(recording.metric_rows), list[gput.MetricRow])
    assert_type(gput.combine("runs", recording), gput.Combined)
    comparison = gput.compare(
        "runs/a.jsonl", ["runs/b.jsonl", Path("runs/c.jsonl")], names=["before", "after"]
    )
    assert_type(comparison, gput.ComparisonReport)
    assert_type(comparison.check("time > +10%"), list[str])
    try:
        gput.load("missing.jsonl")
    except (gput.RecordingError, gput.UsageError, gput.TrackerError) as error:
        assert_type(error.hint, str)
    gput.load(5)  # type: ignore[arg-type]
    gput.compare(5)  # type: ignore[arg-type]


def use_what_is_of_gpu_tracker_5() -> None:
    """Its names and parameters; a decorated function keeps its signature."""
    gput.Tracker(gpu_brand="amd", tracking_file="t.csv", overwrite=True, resource_usage_file="usage.pkl")
    with gput.SubTracker("block", sub_tracking_file=Path("s.csv"), overwrite=True) as block:
        assert_type(block, gput.SubTracker)
        assert_type(block.code_block_name, str)
    assert_type(gput.sub_track()(train)(3), float)
    gput.sub_track("name", None, "s.csv")(train)("three")  # type: ignore[arg-type]
    gput.sub_track(5)  # type: ignore[arg-type]
    results = gput.SubTrackingAnalyzer("t.csv", "s.csv").sub_tracking_results()
    assert_type(results, gput.sub_tracker.SubTrackingResults)
    assert_type(results.code_block_results, list[gput.sub_tracker.CodeBlockResults])
    assert_type(results.overall["main_ram"]["mean"], float | None)
    comparison = gput.TrackingComparison({"a": "a.json", "b": Path("b.json")}).compare("max")
    assert_type(comparison, gput.sub_tracker.ComparisonResults)
    gput.TrackingComparison(["a.json"])  # type: ignore[arg-type]


def use_devices() -> None:
    """None is not 0: a type checker asks for the difference."""
    devices = gput.gpus(timeout_seconds=2.0)
    assert_type(devices, list[gput.Device])
    for device in devices:
        assert_type(device.memory_free_bytes, int | None)
        assert_type(device.processes, tuple[gput.DeviceProcess, ...])
        device.index = 5  # type: ignore[misc]
        device.power_watts + 1  # type: ignore[operator]


def use_memory() -> None:
    """What it is for, getting it back, and experiments that leave none behind."""
    memory = gput.memory(timeout_seconds=2.0)
    assert_type(memory, gput.Memory)
    assert_type(memory.ram, gput.RamMemory)
    assert_type(memory.ram.tree_bytes, int | None)
    assert_type(memory.gpus, tuple[gput.GpuMemory, ...])
    assert_type(memory.gpus[0].cached_bytes, int | None)
    memory.gpus[0].free_bytes + 1  # type: ignore[operator]
    assert_type(gput.reclaim(empty_cache=True), gput.Reclaimed)
    with gput.experiment("a", keep=["model"], quiet=True) as done:
        assert_type(done, gput.experiment)
    if done.report is not None:
        assert_type(done.report, gput.ExperimentReport)
        assert_type([survivor.holder for survivor in done.report.survivors], list[str | None])
    gput.experiment()  # type: ignore[call-arg]


assert_type(gput.__version__, str)
