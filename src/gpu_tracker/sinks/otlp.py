"""Recordings for OpenTelemetry: each interval with its own time, under the names of its conventions where they exist."""

from __future__ import annotations

import os
from urllib.parse import urljoin

from ..analysis.published import find_base
from ..core import load_module
from ..core.errors import TrackerError
from ..core.figures import COUNTER, GPU_NOW, GPU_SO_FAR, JOB_NOW, JOB_SO_FAR, LOGGED_NOW, Figure
from ..core.moments import parse_moment
from ..core.text import shorten
from ..core.units import (
    BYTES,
    CELSIUS,
    CORES,
    COUNT,
    JOULES,
    MEGAHERTZ,
    NUMBER,
    PERCENT,
    RATE,
    SECONDS,
    WATTS,
)
from ..core.values import NamedTuple
from ..core.version import DISTRIBUTION, __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from ..analysis.published import Published, PublishedGpu
    from ..core.model import Header

PREFIX = "gpu_tracker."
_PATH = "/v1/metrics"
# An interval has some dozen figures, and a collector takes some megabytes at once.
_MOST_INTERVALS = 500
_OK = 200
_REDIRECTS = (301, 302, 303, 307, 308)
_PAGES = ("text/html", "application/xhtml+xml")
_LONGEST_REASON = 300
# Those that OpenTelemetry reads.
_CREDENTIAL_PROVIDERS = (
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER",
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_METRICS_CREDENTIAL_PROVIDER",
)
_UNITS = {
    BYTES: "By",
    CELSIUS: "Cel",
    CORES: "{core}",
    COUNT: "1",
    JOULES: "J",
    MEGAHERTZ: "Hz",
    NUMBER: "1",
    PERCENT: "1",
    RATE: "By/s",
    SECONDS: "s",
    WATTS: "W",
}
# What conventions want besides a name.
_ATTRIBUTES = {"read_bytes": {"disk.io.direction": "read"}, "written_bytes": {"disk.io.direction": "write"}}
# By convention these go up and down, and may be added up.
_SUMS = ("process.memory.usage", "process.thread.count", "hw.gpu.memory.usage", "hw.gpu.memory.limit")
_STEP, _METRIC = LOGGED_NOW


class Series(NamedTuple):
    """The points of one name and one set of attributes."""

    name: str
    unit: str
    figure: Figure
    attributes: Mapping[str, str]
    points: tuple[tuple[float, float], ...]
    """Seconds since the start, and values."""


class Refused(NamedTuple):
    """Points that a collector has received and not taken."""

    n_points: int
    reason: str


def list_series(published: Sequence[Published]) -> list[Series]:
    """All that is known of some intervals."""
    found = [_collect(figure, published) for figure in (*JOB_NOW, *JOB_SO_FAR)]
    for gpu in {gpu.uuid: gpu for one in published for gpu in one.gpus}.values():
        found += [_collect_gpu(figure, published, gpu) for figure in (*GPU_NOW, *GPU_SO_FAR)]
    steps = tuple((one.seconds, one.step) for one in published if one.step is not None)
    found.append(_make(_STEP, name_job_figure(_STEP), {}, steps))
    found += [_collect_metric(name, published) for name in _list_metrics(published)]
    return [series for series in found if series.points]


def _list_metrics(published: Iterable[Published]) -> list[str]:
    return [*dict.fromkeys(name for one in published for name in one.metrics)]


def _collect_metric(name: str, published: Iterable[Published]) -> Series:
    points = [(one.seconds, one.metrics[name]) for one in published if name in one.metrics]
    return _make(_METRIC, name_job_figure(_METRIC), {"gpu_tracker.metric.name": name}, points)


def _collect(figure: Figure, published: Iterable[Published]) -> Series:
    points = [(one.seconds, one.values[figure.name]) for one in published if figure.name in one.values]
    return _make(figure, name_job_figure(figure), _ATTRIBUTES.get(figure.name, {}), points)


def _collect_gpu(figure: Figure, published: Iterable[Published], gpu: PublishedGpu) -> Series:
    points = [
        (one.seconds, device.values[figure.name])
        for one in published
        for device in one.gpus
        if device.uuid == gpu.uuid and figure.name in device.values
    ]
    attributes = {"hw.id": gpu.uuid, "hw.name": gpu.name, "hw.type": "gpu", "gpu_tracker.gpu": gpu.number}
    return _make(figure, name_gpu_figure(figure), attributes, points)


def _make(
    figure: Figure, name: str, attributes: Mapping[str, str], points: Iterable[tuple[float, float]]
) -> Series:
    _, scale = find_base(figure)
    scaled = tuple((seconds, float(value * scale)) for seconds, value in points)
    return Series(name, _UNITS[figure.unit], figure, attributes, scaled)


def name_job_figure(figure: Figure) -> str:
    """As the conventions have it, else a name of ours."""
    return figure.otel or f"{PREFIX}{find_base(figure)[0]}"


def name_gpu_figure(figure: Figure) -> str:
    """The same of a device."""
    return figure.otel or f"{PREFIX}gpu.{find_base(figure)[0]}"


def describe_run(run: str, header: Header) -> dict[str, str | int | list[str]]:
    """What tells a run from others, as attributes of a resource."""
    identity = header.identity
    known: dict[str, str | int | list[str] | None] = {
        "service.name": identity.name or "gpu-tracker",
        "service.instance.id": run,
        "host.name": header.host,
        "process.pid": header.pid,
        "process.command_args": list(header.command),
        "gpu_tracker.job": identity.job,
        "gpu_tracker.rank": identity.rank,
        **{f"gpu_tracker.label.{name}": value for name, value in identity.labels},
    }
    return {name: value for name, value in known.items() if value is not None}


# ---- Through OpenTelemetry's own code.


class OtlpSender:
    """Sends to one collector. OpenTelemetry's own environment variables set headers, certificates and timeouts."""

    def __init__(self, url: str) -> None:
        try:
            module = load_module("opentelemetry.exporter.otlp.proto.http.metric_exporter")
        except ImportError:
            raise TrackerError(
                "This needs the OpenTelemetry SDK, which is not installed.",
                f"Install it with: pip install '{DISTRIBUTION}[otlp]'",
            ) from None
        self._url = complete(url)
        self._refused: list[Refused] = []
        self._obstacle = ""
        """Why nothing that was sent has arrived, as far as the answer tells."""
        self._exporter = module.OTLPMetricExporter(endpoint=self._url, session=self._make_session())

    def send(self, run: str, header: Header, published: Sequence[Published]) -> list[Refused]:
        """Some intervals of one run, in their order; what the collector refused of them.

        TrackerError if it took nothing.
        """
        self._refused.clear()
        began_at = parse_moment(header.started_at) or 0.0
        resource = describe_run(run, header)
        for first in range(0, len(published), _MOST_INTERVALS):
            part = published[first : first + _MOST_INTERVALS]
            message = _make_message(resource, list_series(part), began_at)
            self._obstacle = ""
            has_taken = self._exporter.export(message).name == "SUCCESS"
            if self._obstacle:
                raise TrackerError(f"{self._url} takes no figures: {self._obstacle}.")
            if not has_taken:
                raise TrackerError(f"{self._url} does not take the figures of {run}.")
        return [*self._refused]

    def close(self) -> None:
        """No more."""
        self._exporter.shutdown()

    def _make_session(self) -> Any:
        """One that reads the answers: the exporter takes each "200" for a success, and each redirect.

        None where a provider of credentials makes the session.
        """
        if any(os.environ.get(name) for name in _CREDENTIAL_PROVIDERS):
            return None
        session = load_module("requests").Session()
        session.hooks["response"].append(self._read_answer)
        return session

    def _read_answer(self, response: Any, *_: object, **__: object) -> None:
        if response.status_code == _OK and is_page(response.headers.get("Content-Type", "")):
            self._obstacle = "it answers with a web page, so use the address of the collector itself"
        elif response.status_code == _OK:
            self._refused += read_refused(response.content)
        elif response.status_code in _REDIRECTS:
            # Some versions would follow, with a request that carries no figures.
            where = shorten(urljoin(self._url, response.headers.pop("Location", "")), _LONGEST_REASON)
            self._obstacle = (
                f"it redirects (status {response.status_code}), so use the address it redirects to, {where}"
            )


def is_page(content_type: str) -> bool:
    """Whether an answer of this kind is for people: of a proxy that wants a login, or of another program."""
    return content_type.partition(";")[0].strip().lower() in _PAGES


def read_refused(content: bytes) -> list[Refused]:
    """What a collector's answer says about points that it has not taken."""
    protobuf = load_module("google.protobuf.message")
    messages = load_module("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    answer = messages.ExportMetricsServiceResponse()
    try:
        answer.ParseFromString(content)
    except protobuf.DecodeError:  # some answer with "OK", or with JSON
        return []
    partial = answer.partial_success
    if partial.rejected_data_points <= 0:
        return []
    return [Refused(partial.rejected_data_points, shorten(partial.error_message, _LONGEST_REASON))]


def complete(url: str) -> str:
    """The address of a collector with the path that the protocol has, unless there is one."""
    scheme, separator, rest = url.rstrip("/").partition("://")
    return f"{scheme}{separator}{rest}" if "/" in rest else f"{scheme}{separator}{rest}{_PATH}"


def _make_message(resource: Mapping[str, Any], series: Iterable[Series], began_at: float) -> Any:
    export = load_module("opentelemetry.sdk.metrics.export")
    metrics = [
        export.Metric(one.name, one.figure.meaning, one.unit, _make_data(one, round(began_at * 1e9)))
        for one in series
    ]
    scope = load_module("opentelemetry.sdk.util.instrumentation").InstrumentationScope(
        "gpu_tracker", __version__
    )
    owner = load_module("opentelemetry.sdk.resources").Resource(dict(resource))
    of_scope = export.ScopeMetrics(scope, metrics, "")
    return export.MetricsData([export.ResourceMetrics(owner, [of_scope], "")])


def _make_data(series: Series, began_ns: int) -> Any:
    export = load_module("opentelemetry.sdk.metrics.export")
    points = [
        export.NumberDataPoint(dict(series.attributes), began_ns, began_ns + round(seconds * 1e9), value)
        for seconds, value in series.points
    ]
    is_counter = series.figure.kind == COUNTER
    if is_counter or series.name in _SUMS:
        return export.Sum(points, export.AggregationTemporality.CUMULATIVE, is_monotonic=is_counter)
    return export.Gauge(points)
