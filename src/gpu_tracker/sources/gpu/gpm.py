"""How much of an NVIDIA device works (GPM), from two samples of its counters. Hopper and later."""

from __future__ import annotations

from ...core.model import Activity, Traffic
from ...core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_METRICS = (
    "NVML_GPM_METRIC_GRAPHICS_UTIL",
    "NVML_GPM_METRIC_SM_UTIL",
    "NVML_GPM_METRIC_SM_OCCUPANCY",
    "NVML_GPM_METRIC_ANY_TENSOR_UTIL",
    "NVML_GPM_METRIC_DRAM_BW_UTIL",
)
_LINKS = (
    "NVML_GPM_METRIC_PCIE_RX_PER_SEC",
    "NVML_GPM_METRIC_PCIE_TX_PER_SEC",
    "NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC",
    "NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC",
)
_MIB = 1 << 20
_MOST_MIB_PER_SECOND = 1e8
PERIOD_SECONDS = 0.9
# No counter is refreshed less often.
_SHORTEST_PERIOD_SECONDS = 0.2
# Counters are not read at one instant: a little more than everything is everything.
_MOST_ROUNDED = 101.0


class Measured(NamedTuple):
    """Means since the sample before: of how many seconds, how long any kernel ran, and how much of the device worked."""

    seconds: float = 0.0
    busy_percent: float | None = None
    activity: Activity = Activity()
    traffic: Traffic = Traffic()
    """The sum of that time."""


class ActivityMeter:
    """Of one device. It holds two samples, which take turns: each is compared with the one before."""

    figure = "sm_percent"

    def __init__(self, nvml: Any, take_sample: Callable[[Any], Any]) -> None:
        self._nvml = nvml
        self._take_sample = take_sample
        self._sampled_seconds: float | None = None
        self._samples: list[Any] = []
        try:
            for _ in range(2):
                self._samples.append(nvml.nvmlGpmSampleAlloc())
        except nvml.NVMLError:
            self.close()
            raise

    def is_due(self, now_seconds: float, *, is_last: bool = False) -> bool:
        """Whether the last sample is old enough: counters are refreshed ten times a second, and a sample is not free."""
        return is_due(now_seconds, self._sampled_seconds, is_last=is_last)

    def read(self, now_seconds: float) -> Measured:
        """Take a sample, and compare it with the one before."""
        before, after = self._samples
        self._take_sample(after)
        since = self._sampled_seconds
        measured = Measured() if since is None else self._compare(before, after, now_seconds - since)
        self._samples, self._sampled_seconds = [after, before], now_seconds
        return measured

    def close(self) -> None:
        """Free the samples."""
        while self._samples:
            try:
                self._nvml.nvmlGpmSampleFree(self._samples.pop())
            except self._nvml.NVMLError:
                continue  # the driver is gone, and they with it

    def _compare(self, before: Any, after: Any, seconds: float) -> Measured:
        nvml, names = self._nvml, _METRICS + _LINKS
        request = nvml.c_nvmlGpmMetricsGet_t()
        request.version = nvml.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics = len(names)
        request.sample1, request.sample2 = before, after
        for place, name in enumerate(names):
            request.metrics[place].metricId = getattr(nvml, name)
        nvml.nvmlGpmMetricsGet(request)
        metrics = request.metrics[: len(names)]
        busy, *active = (_find_percent(nvml, metric) for metric in metrics[: len(_METRICS)])
        moved = (_find_bytes(nvml, metric, seconds) for metric in metrics[len(_METRICS) :])
        return Measured(seconds, busy, Activity(*active), Traffic(*moved))


def is_due(now_seconds: float, read_seconds: float | None, *, is_last: bool) -> bool:
    """Whether a meter is to be read; before the end also if it was read not long ago."""
    pause = _SHORTEST_PERIOD_SECONDS if is_last else PERIOD_SECONDS
    return read_seconds is None or now_seconds - read_seconds >= pause


def can_measure(nvml: Any, handle: Any) -> bool:
    """Whether the device has such counters."""
    try:
        return bool(nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice)
    except nvml.NVMLError:
        return False


def _find_bytes(nvml: Any, metric: Any, seconds: float) -> int | None:
    """None also of what cannot be: it is not worth a note."""
    rate = float(metric.value)
    if metric.nvmlReturn != nvml.NVML_SUCCESS or not 0 <= rate < _MOST_MIB_PER_SECOND:
        return None
    return round(rate * _MIB * seconds)


def _find_percent(nvml: Any, metric: Any) -> float | None:
    if metric.nvmlReturn != nvml.NVML_SUCCESS:
        return None
    value = float(metric.value)
    return min(value, 100.0) if value <= _MOST_ROUNDED else value
