"""Running jobs as text for Prometheus. Pure."""

from __future__ import annotations

from math import inf, isnan

from ..analysis.published import find_base
from ..core.figures import COUNTER, GPU_NOW, GPU_SO_FAR, JOB_NOW, JOB_SO_FAR, LOGGED_NOW, Figure
from ..core.text import neutralize
from ..core.units import COUNT
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ..analysis.published import Published
    from ..core.model import Header

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LABELS = ("run", "name", "job", "rank", "host")
GPU_LABELS = (*LABELS, "gpu", "uuid")
METRIC_LABELS = (*LABELS, "metric")
# A scrape has at most so many series per run and device, whatever jobs do.
MOST_RUNS = 200
MOST_METRICS = 20
_LONGEST_LABEL = 200

RUNNING = Figure(
    "running_runs", "runs", COUNT, meaning=f"jobs that run now; figures are of the newest {MOST_RUNS}"
)


class RunNow(NamedTuple):
    """One job that runs."""

    run: str
    """What tells it from others: the name of its file."""
    header: Header
    published: Published
    metrics: Mapping[str, float] = {}


class Family(NamedTuple):
    """One name, as Prometheus has it."""

    name: str
    figure: Figure
    labels: tuple[str, ...]
    scale: float = 1.0


def _make_family(figure: Figure, labels: tuple[str, ...], prefix: str = "gpu_tracker_") -> Family:
    name, scale = find_base(figure)
    total = "_total" if figure.kind == COUNTER else ""
    return Family(f"{prefix}{name}{total}", figure, labels, scale)


JOB_FAMILIES = tuple(_make_family(figure, LABELS) for figure in (*JOB_NOW, *JOB_SO_FAR))
GPU_FAMILIES = tuple(
    _make_family(figure, GPU_LABELS, "gpu_tracker_gpu_") for figure in (*GPU_NOW, *GPU_SO_FAR)
)
_RUNNING = _make_family(RUNNING, ())
_STEP, _METRIC = map(_make_family, LOGGED_NOW, (LABELS, METRIC_LABELS))
FAMILIES = (_RUNNING, *JOB_FAMILIES, _STEP, _METRIC, *GPU_FAMILIES)


def exposition(runs: Sequence[RunNow]) -> bytes:
    """What Prometheus reads."""
    shown = sorted(runs, key=lambda run: run.header.started_at, reverse=True)[:MOST_RUNS]
    lines = [*_write_family(_RUNNING, [((), float(len(runs)))])]
    for family in JOB_FAMILIES:
        lines += _write_family(family, _list_job(shown, lambda run: run.published.values, family.figure.name))
    lines += _write_family(_STEP, _list_job(shown, lambda run: {"step": run.published.step}, "step"))
    lines += _write_family(_METRIC, _list_metrics(shown))
    for family in GPU_FAMILIES:
        lines += _write_family(family, _list_gpus(shown, family.figure.name))
    return "".join(lines).encode("utf-8", "replace")


def _list_job(
    runs: Iterable[RunNow], choose: Callable[[RunNow], Mapping[str, float | None]], name: str
) -> Iterator[tuple[tuple[str, ...], float]]:
    for run in runs:
        value = choose(run).get(name)
        if value is not None:
            yield _label(run), value


def _list_metrics(runs: Iterable[RunNow]) -> Iterator[tuple[tuple[str, ...], float]]:
    for run in runs:
        known = {name[:_LONGEST_LABEL]: value for name, value in run.metrics.items()}
        for name, value in list(known.items())[:MOST_METRICS]:
            yield (*_label(run), name), value


def _list_gpus(runs: Iterable[RunNow], name: str) -> Iterator[tuple[tuple[str, ...], float]]:
    for run in runs:
        for gpu in run.published.gpus:
            if name in gpu.values:
                yield (*_label(run), gpu.number, gpu.uuid), gpu.values[name]


def _label(run: RunNow) -> tuple[str, ...]:
    identity = run.header.identity
    rank = "" if identity.rank is None else str(identity.rank)
    texts = (identity.name or "", identity.job or "", rank, run.header.host)
    return (run.run, *(text[:_LONGEST_LABEL] for text in texts))


def _write_family(family: Family, values: Iterable[tuple[tuple[str, ...], float]]) -> Iterator[str]:
    yield f"# HELP {family.name} {family.figure.meaning}\n# TYPE {family.name} {family.figure.kind}\n"
    for labels, value in values:
        pairs = ",".join(
            f'{name}="{_escape(text)}"' for name, text in zip(family.labels, labels, strict=True) if text
        )
        yield f"{family.name}{{{pairs}}} {_spell(value * family.scale)}\n"


def _escape(text: str) -> str:
    """As the format has it; it lets control characters through, which whoever looks at it with `curl` would get."""
    return neutralize(text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n"))


def _spell(value: float) -> str:
    if isnan(value):
        return "NaN"
    return repr(float(value)) if abs(value) < inf else f"{'+' if value > 0 else '-'}Inf"
