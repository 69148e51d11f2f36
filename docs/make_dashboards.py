"""Write the names in dashboards.md, and grafana.json, from the table of figures: python docs/make_dashboards.py [--check].

A test runs it with --check, so the documents and the code cannot disagree.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from generated import update

from gpu_tracker.core.figures import (
    COUNTER,
    GPU_NOW,
    GPU_SO_FAR,
    JOB_NOW,
    JOB_SO_FAR,
    LOGGED_NOW,
    RUN,
    Figure,
)
from gpu_tracker.core.units import (
    BYTES,
    CELSIUS,
    CORES,
    COUNT,
    MEGAHERTZ,
    NUMBER,
    PERCENT,
    RATE,
    SECONDS,
    WATTS,
)
from gpu_tracker.sinks.otlp import name_gpu_figure, name_job_figure
from gpu_tracker.sinks.prometheus import FAMILIES, GPU_FAMILIES, JOB_FAMILIES, Family

# ---- The names.


def render() -> str:
    """The names as Markdown."""
    rows = [
        *(_render_row(figure, "", JOB_FAMILIES, name_job_figure) for figure in (*JOB_NOW, *JOB_SO_FAR)),
        *(_render_row(figure, "gpu0/", GPU_FAMILIES, name_gpu_figure) for figure in (*GPU_NOW, *GPU_SO_FAR)),
        *(_render_row(figure, "", FAMILIES, name_job_figure) for figure in LOGGED_NOW),
        *(f"| {family.figure.meaning} | | `{family.name}` | |" for family in FAMILIES if not family.labels),
        *(
            f"| {figure.label} of the whole run, in {figure.unit} | `run/{figure.name}` | | |"
            for figure in RUN
        ),
    ]
    return "\n".join(
        ["| figure | sinks: `gpu_tracker/` | Prometheus | OpenTelemetry |", "|---|---|---|---|", *rows, ""]
    )


def _render_row(figure: Figure, prefix: str, families: tuple[Family, ...], name_otel: Any) -> str:
    (family,) = [family for family in families if family.figure == figure]
    is_sent = figure in (*JOB_NOW, *GPU_NOW) or figure.name == "elapsed_seconds"
    sink = f"`{prefix}{figure.name}`" if is_sent else ""
    return f"| {figure.meaning} | {sink} | `{family.name}` | `{name_otel(figure)}` |"


# ---- The dashboard.

_UNITS = {
    BYTES: "decbytes",
    CELSIUS: "celsius",
    CORES: "short",
    COUNT: "short",
    MEGAHERTZ: "hertz",
    NUMBER: "short",
    PERCENT: "percentunit",
    RATE: "Bps",
    SECONDS: "s",
    WATTS: "watt",
}
_COLUMNS, _WIDTH, _HEIGHT = 2, 12, 8
_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


class Panel(NamedTuple):
    """Figures in one chart."""

    title: str
    unit: str
    names: tuple[str, ...]
    """Of families, without their prefix."""


PANELS = (
    Panel("CPU: cores busy", CORES, ("cpu_cores", "machine_cores")),
    Panel("RAM", BYTES, ("ram_bytes", "highest_ram_bytes", "machine_ram_bytes")),
    Panel("GPU busy", PERCENT, ("gpu_utilization_ratio", "gpu_job_ratio")),
    Panel("GPU RAM", BYTES, ("gpu_used_bytes", "gpu_job_bytes", "gpu_memory_bytes")),
    Panel("Metrics of the job", NUMBER, ("metric",)),
    Panel("Steps per second", NUMBER, ("step",)),
    Panel("Storage", RATE, ("read_bytes_per_second", "written_bytes_per_second")),
    Panel("GPU power", WATTS, ("gpu_power_watts",)),
    Panel("GPU temperature", CELSIUS, ("gpu_temperature_celsius",)),
    Panel("GPU clock", MEGAHERTZ, ("gpu_sm_clock_hertz",)),
    Panel("Processes and threads", COUNT, ("processes", "threads")),
    Panel("Time since the start", SECONDS, ("elapsed_seconds",)),
)


def make_dashboard() -> dict[str, Any]:
    """As Grafana imports it."""
    return {
        "title": "gpu-tracker",
        "uid": "gpu-tracker",
        "schemaVersion": 39,
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "10s",
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus"},
                _make_variable("host", "label_values(gpu_tracker_elapsed_seconds, host)"),
                _make_variable("run", 'label_values(gpu_tracker_elapsed_seconds{host=~"$host"}, run)'),
            ]
        },
        "panels": [_make_panel(number, panel) for number, panel in enumerate(PANELS)],
    }


def _make_variable(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": _DATASOURCE,
        "query": query,
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
    }


def _make_panel(number: int, panel: Panel) -> dict[str, Any]:
    row, column = divmod(number, _COLUMNS)
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": _DATASOURCE,
        "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {
            "defaults": {"unit": _UNITS[panel.unit], "min": 0} if panel.unit != NUMBER else {},
            "overrides": [],
        },
        "targets": [_make_target(name, letter) for name, letter in zip(panel.names, "ABC", strict=False)],
    }


def _make_target(name: str, letter: str) -> dict[str, Any]:
    (family,) = [family for family in FAMILIES if family.name == f"gpu_tracker_{name}"]
    series = f'{family.name}{{host=~"$host", run=~"$run"}}'
    is_counted = family.figure.kind == COUNTER or name == "step"
    extra = [f"{{{{{label}}}}}" for label in ("gpu", "metric") if label in family.labels]
    return {
        "refId": letter,
        "expr": f"rate({series}[$__rate_interval])" if is_counted else series,
        "legendFormat": " ".join(["{{run}}", *extra, *([] if name == "metric" else [family.figure.label])]),
    }


def _update_dashboard(arguments: list[str]) -> int:
    file = Path(__file__).with_name("grafana.json")
    wanted = json.dumps(make_dashboard(), indent=1) + "\n"
    if "--check" in arguments:
        return int(file.read_text(encoding="utf-8") != wanted)
    file.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(update(__file__, "dashboards.md", render(), sys.argv[1:]) or _update_dashboard(sys.argv[1:]))
