"""What other programs are told about a running job: figures of one instant by name, as in `core.figures`. Pure."""

from __future__ import annotations

from bisect import bisect_left
from math import inf

from ..core.figures import GPU_NOW, JOB_NOW, RUN
from ..core.units import MEGAHERTZ, PERCENT
from ..core.values import NamedTuple
from .measures import overall_values
from .summary import summarize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..core.figures import Figure
    from ..core.model import Gpu, MetricRow, RecordingData, Sample
    from .intervals import Interval

PREFIX = "gpu_tracker/"
_OF_THE_RUN = f"{PREFIX}run/"
# Some programs want base units. Names end with the unit there, too.
_BASE_UNITS = {PERCENT: ("_percent", "_ratio", 0.01), MEGAHERTZ: ("_mhz", "_hertz", 1e6)}


class PublishedGpu(NamedTuple):
    """One device that the job may use."""

    number: str
    """Its index in the vendor's own tool; devices of several vendors that have the same are told apart."""
    uuid: str
    name: str
    values: Mapping[str, float]


class Published(NamedTuple):
    """The figures at the end of one interval. What is not known is left out."""

    seconds: float
    """Since the start of the recording."""
    values: Mapping[str, float]
    gpus: tuple[PublishedGpu, ...] = ()
    step: float | None = None
    """The last one that the job had logged by then."""
    metrics: Mapping[str, float] = {}
    """What the job has logged since the interval before; the last value of each."""


class Point(NamedTuple):
    """What a sink gets. What is not known is left out."""

    at_seconds: float
    """Since 1970."""
    step: int
    """The last one that the job had logged by then; before the first, whole seconds since the start."""
    values: Mapping[str, float]
    """By name: `gpu_tracker/ram_bytes`, `gpu_tracker/gpu0/job_bytes`."""


def find_base(figure: Figure) -> tuple[str, float]:
    """The figure's name in base units, and what its value is to be multiplied with."""
    suffix, base, scale = _BASE_UNITS.get(figure.unit, ("", "", 1.0))
    return f"{figure.name.removesuffix(suffix)}{base}", scale


def publish(interval: Interval, sample: Sample, gpus: Sequence[Gpu]) -> Published:
    """The figures of an interval and of everything until its end; `gpus` are the devices that were found."""
    so_far = {
        "elapsed_seconds": sample.at_seconds,
        "peak_ram_bytes": sample.peaks.ram.combined.total_bytes or None,
        "cpu_seconds": sample.cpu_seconds.combined,
        "read_bytes": sample.counters.read_bytes,
        "written_bytes": sample.counters.written_bytes,
    }
    return Published(
        interval.end_seconds,
        _choose_known({**_choose(JOB_NOW, interval), **so_far}),
        _publish_gpus(interval, sample, [gpu for gpu in gpus if gpu.is_visible]),
    )


def _publish_gpus(interval: Interval, sample: Sample, gpus: Sequence[Gpu]) -> tuple[PublishedGpu, ...]:
    now = {gpu.uuid: _choose(GPU_NOW, gpu) for gpu in interval.gpus}
    energies = {counters.uuid: counters.energy_joules for counters in sample.gpu_counters}
    published = []
    for gpu, number in zip(gpus, _number(gpus), strict=True):
        values = {
            **now.get(gpu.uuid, {}),
            "memory_bytes": gpu.memory_bytes,
            "energy_joules": energies.get(gpu.uuid),
        }
        published.append(PublishedGpu(number, gpu.uuid, gpu.name, _choose_known(values)))
    return tuple(published)


def _number(gpus: Sequence[Gpu]) -> list[str]:
    """In the order in which they were found, so that a device keeps its number when others come."""
    numbers: list[str] = []
    for gpu in gpus:
        n_before = sum(number.partition("-")[0] == gpu.place for number in numbers)
        numbers.append(f"{gpu.place}-{n_before + 1}" if n_before else gpu.place)
    return numbers


def make_point(published: Published, began_at: float) -> Point:
    """The figures of the interval only, as one flat table."""
    step = published.seconds if published.step is None else published.step
    values = {f"{PREFIX}elapsed_seconds": published.seconds}
    values |= {f"{PREFIX}{name}": value for name, value in _choose_now(JOB_NOW, published.values)}
    for gpu in published.gpus:
        values |= {
            f"{PREFIX}gpu{gpu.number}/{name}": value for name, value in _choose_now(GPU_NOW, gpu.values)
        }
    return Point(began_at + published.seconds, int(step), values)


def share_out_steps(
    steps: Iterable[tuple[float, float]], ends: Sequence[float]
) -> tuple[list[float | None], list[tuple[float, float]]]:
    """Of moments and steps, the last step by each end of an interval; and what still counts after the last of them."""
    known = sorted(steps)
    n_known = [bisect_left(known, (end, inf)) for end in ends]
    n_over = max(0, n_known[-1] - 1) if n_known else 0
    return [known[n - 1][1] if n else None for n in n_known], known[n_over:]


def share_out_logged(
    rows: Iterable[MetricRow], ends: Sequence[float]
) -> tuple[list[dict[str, float]], list[MetricRow]]:
    """For each of the intervals that end then, the last values that were logged by its end; and the rows that came later."""
    values: list[dict[str, float]] = [{} for _ in ends]
    later = []
    for row in sorted(rows, key=lambda row: row.at_seconds):
        index = bisect_left(ends, row.at_seconds)
        if index < len(ends):
            values[index].update(row.values)
        else:
            later.append(row)
    return values, later


def sum_up(recording: RecordingData) -> dict[str, float]:
    """The figures of a whole run, for a sink: `gpu_tracker/run/peak_ram`."""
    values = overall_values(summarize(recording))
    return {f"{_OF_THE_RUN}{name}": value for name, value in _choose_now(RUN, _choose_known(values))}


def _choose(figures: Iterable[Figure], owner: object) -> dict[str, float | None]:
    return {figure.name: getattr(owner, figure.name) for figure in figures}


def _choose_known(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}


def _choose_now(figures: Iterable[Figure], values: Mapping[str, float]) -> list[tuple[str, float]]:
    return [(figure.name, values[figure.name]) for figure in figures if figure.name in values]
