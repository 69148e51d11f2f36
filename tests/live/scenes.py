"""A run to show on a full screen."""

from __future__ import annotations

from array import array
from math import nan, sin

from gpu_tracker.analysis.findings.finding import LIKELY, WARNING, Finding
from gpu_tracker.analysis.forecast import Forecast, Point
from gpu_tracker.core.units import BYTES, PERCENT
from gpu_tracker.live.scene import CORES, Metric, OpenRegion, Process, Scene, Series, draw_steps

GIB = 2**30
SECONDS = 725


def make_series(label: str, now: str, unit: str, capacity: float, values: list[float]) -> Series:
    """One value a second."""
    start, column = array("d", range(len(values))), array("d", values)
    return Series(label, now, unit, capacity, start, array("d", (at + 1.0 for at in start)), column, column)


def make_scene(n_gpus: int = 2) -> Scene:
    """A training, 12 minutes after its start."""
    moments = range(SECONDS)
    series = [
        make_series(
            "CPU",
            "5.2 of 8 cores",
            CORES,
            8.0,
            [nan if 600 < at < 620 else 5 + 2 * sin(at / 30) for at in moments],
        ),
        make_series(
            "RAM", "11.2 of 32 GiB", BYTES, 32.0 * GIB, [(4 + 7.2 * at / SECONDS) * GIB for at in moments]
        ),
    ]
    for number in range(n_gpus):
        busy = [90.0 if at % 60 > 10 else 4.0 * number for at in moments]
        series.append(make_series(f"GPU {number}", "90 %", PERCENT, 100.0, busy))
        series.append(
            make_series(f"GPU {number} RAM", "18 of 24 GiB", BYTES, 24.0 * GIB, [18.0 * GIB] * SECONDS)
        )
    points = [Point(float(at), 2.0 * at) for at in range(0, SECONDS, 5)]
    return Scene(
        title="baseline",
        seconds=float(SECONDS),
        host="node7",
        processes=9,
        threads=41,
        series=(*series, *draw_steps(points, 40000.0)),
        regions=(OpenRegion("epoch 3", 0, 125.0, 100), OpenRegion("train", 1, 12.3, 100)),
        metrics=(Metric("loss", (2.0, 1.0, 0.7, 0.5, 0.41)), Metric("accuracy", (0.1, 0.5, 0.6, 0.8, 0.9))),
        largest=(
            Process(100, "python", 1.2, 800.0, 10 * GIB),
            Process(117, "pt_data_worker", 0.5, 300.0, 2 * GIB),
            Process(118, "pt_data_worker", None, 0.25, 2 * GIB),
        ),
        forecasts=(
            Forecast("memory limit in 35 min at this growth", is_bad=True),
            Forecast("done in 5 h 21 min at this step rate"),
        ),
        findings=(
            Finding("gpu-low", WARNING, LIKELY, "GPU 1 was busy for 22 % of the time.", "Look at it."),
        ),
    )
