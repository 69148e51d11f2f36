"""The measures. Each is a module with a `NAME` and `measure(bench)`, which returns rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.measures import (
    accuracy,
    api,
    command,
    comparing,
    cost,
    gpus,
    importing,
    loading,
    regions,
    reporting,
    rewriting,
    stretch,
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
    (loading.NAME, loading.measure),
    (gpus.NAME, gpus.measure),
    (regions.NAME, regions.measure),
    (comparing.NAME, comparing.measure),
    (accuracy.NAME, accuracy.measure),
)
