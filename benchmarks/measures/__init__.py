"""The measures. Each is a module with a `NAME` and `measure(bench)`, which returns rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.measures import (
    accuracy,
    api,
    command,
    comparing,
    cost,
    drawing,
    gpus,
    growth,
    importing,
    loading,
    loops,
    paging,
    ranks,
    regions,
    reporting,
    rewriting,
    serving,
    showing,
    stretch,
    trainings,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.bench import Bench
    from benchmarks.rows import Row

MEASURES: tuple[tuple[str, Callable[[Bench], list[Row]]], ...] = (
    (importing.NAME, importing.measure),
    (api.NAME, api.measure),
    (command.NAME, command.measure),
    (cost.NAME, cost.measure),
    (stretch.NAME, stretch.measure),
    (rewriting.NAME, rewriting.measure),
    (reporting.NAME, reporting.measure),
    (paging.NAME, paging.measure),
    (drawing.NAME, drawing.measure),
    (showing.NAME, showing.measure),
    (growth.NAME, growth.measure),
    (loading.NAME, loading.measure),
    (serving.NAME, serving.measure),
    (gpus.NAME, gpus.measure),
    (regions.NAME, regions.measure),
    (loops.NAME, loops.measure),
    (trainings.NAME, trainings.measure),
    (ranks.NAME, ranks.measure),
    (comparing.NAME, comparing.measure),
    (accuracy.NAME, accuracy.measure),
)
