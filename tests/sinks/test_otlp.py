"""Recordings in the words of OpenTelemetry."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from builders import header
from gpu_tracker.analysis.published import Published, PublishedGpu
from gpu_tracker.core.errors import TrackerError
from gpu_tracker.core.figures import GPU_NOW, GPU_SO_FAR, JOB_NOW, JOB_SO_FAR
from gpu_tracker.core.model import Identity
from gpu_tracker.sinks.otlp import (
    OtlpSender,
    complete,
    describe_run,
    list_series,
    name_gpu_figure,
    name_job_figure,
)


def test_intervals_become_series() -> None:
    """Each point has its moment, in base units; what an interval does not know is left out of it."""
    gpu = PublishedGpu("0", "GPU-a", "A100", {"utilization_percent": 50.0})
    published = [
        Published(1.0, {"cpu_cores": 0.5}, metrics={"loss": 0.5}),
        Published(2.0, {"read_bytes": 4096, "written_bytes": 8192}, (gpu,), 7.0, {"lr": 1.0, "loss": 0.25}),
    ]
    found = {
        (series.name, series.unit, *series.attributes.values()): series.points
        for series in list_series(published)
    }

    assert found == {
        ("gpu_tracker.cpu_cores", "{core}"): ((1.0, 0.5),),
        ("process.disk.io", "By", "read"): ((2.0, 4096),),
        ("process.disk.io", "By", "write"): ((2.0, 8192),),
        ("hw.gpu.utilization", "1", "GPU-a", "A100", "gpu", "0"): ((2.0, 0.5),),
        ("gpu_tracker.step", "1"): ((2.0, 7.0),),
        ("gpu_tracker.metric", "1", "loss"): ((1.0, 0.5), (2.0, 0.25)),
        ("gpu_tracker.metric", "1", "lr"): ((2.0, 1.0),),
    }


@pytest.mark.skipif(
    find_spec("opentelemetry") is None, reason="OpenTelemetry is not installed (make test WITH=sinks)"
)
def test_names_are_those_of_the_conventions() -> None:
    """Where they have one; ours cannot be mistaken for theirs."""
    from importlib import import_module

    conventions = {
        value
        for module in ("process_metrics", "hw_metrics")
        for value in vars(import_module(f"opentelemetry.semconv._incubating.metrics.{module}")).values()
        if isinstance(value, str)
    }
    names = [
        *map(name_job_figure, (*JOB_NOW, *JOB_SO_FAR)),
        *map(name_gpu_figure, (*GPU_NOW, *GPU_SO_FAR)),
    ]

    assert {name for name in names if not name.startswith("gpu_tracker.")} <= conventions
    assert len({*names}) == len(names) - 1  # reading and writing differ in an attribute


def test_a_run_is_a_resource() -> None:
    """With all that tells it from others; what does not apply is left out."""
    identity = Identity(name="baseline", labels=(("seed", "7"),), job="4711", rank=0)
    named = describe_run("run1", header(host="node1", pid=5, command=("train", "--lr"), identity=identity))
    plain = describe_run("run1", header())

    assert named == {
        "service.name": "baseline",
        "service.instance.id": "run1",
        "host.name": "node1",
        "process.pid": 5,
        "process.command_args": ["train", "--lr"],
        "gpu_tracker.job": "4711",
        "gpu_tracker.rank": 0,
        "gpu_tracker.label.seed": "7",
    }
    assert plain["service.name"] == "gpu-tracker"
    assert "gpu_tracker.rank" not in plain


@pytest.mark.parametrize(
    ("url", "completed"),
    [
        ("http://localhost:4318", "http://localhost:4318/v1/metrics"),
        ("https://example.org/", "https://example.org/v1/metrics"),
        ("https://example.org/otlp/v1/metrics", "https://example.org/otlp/v1/metrics"),
    ],
)
def test_the_path_may_be_left_out(url: str, completed: str) -> None:
    """It is the same everywhere, but where somebody has chosen another."""
    assert complete(url) == completed


@pytest.mark.skipif(find_spec("opentelemetry") is not None, reason="OpenTelemetry is installed")
def test_without_the_package_one_sentence_says_what_to_install() -> None:
    """Instead of an ImportError."""
    with pytest.raises(TrackerError, match=r"gput\[otlp\]"):
        OtlpSender("http://localhost:4318")
