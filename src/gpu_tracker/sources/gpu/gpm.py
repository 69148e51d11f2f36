"""How much of an NVIDIA device works (GPM), from two samples of its counters. Hopper and later."""

from __future__ import annotations

from ...core.model import Activity

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
_PERIOD_SECONDS = 0.9
# Counters are not read at one instant: a little more than everything is everything.
_MOST_ROUNDED = 101.0


class ActivityMeter:
    """Of one device. It holds two samples, which take turns: each is compared with the one before."""

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

    def is_due(self, now_seconds: float) -> bool:
        """Whether the last sample is old enough: counters are refreshed ten times a second, and a sample is not free."""
        return self._sampled_seconds is None or now_seconds - self._sampled_seconds >= _PERIOD_SECONDS

    def read(self, now_seconds: float) -> tuple[float, float | None, Activity]:
        """Means since the sample before: of how many seconds, how long any kernel ran, and how much of the device worked."""
        before, after = self._samples
        self._take_sample(after)
        since = self._sampled_seconds
        busy, *active = (None,) if since is None else self._compare(before, after)
        self._samples, self._sampled_seconds = [after, before], now_seconds
        return 0.0 if since is None else now_seconds - since, busy, Activity(*active)

    def close(self) -> None:
        """Free the samples."""
        while self._samples:
            try:
                self._nvml.nvmlGpmSampleFree(self._samples.pop())
            except self._nvml.NVMLError:
                continue  # the driver is gone, and they with it

    def _compare(self, before: Any, after: Any) -> list[float | None]:
        nvml = self._nvml
        request = nvml.c_nvmlGpmMetricsGet_t()
        request.version = nvml.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics = len(_METRICS)
        request.sample1, request.sample2 = before, after
        for place, name in enumerate(_METRICS):
            request.metrics[place].metricId = getattr(nvml, name)
        nvml.nvmlGpmMetricsGet(request)
        return [_find_percent(nvml, metric) for metric in request.metrics[: len(_METRICS)]]


def can_measure(nvml: Any, handle: Any) -> bool:
    """Whether the device has such counters."""
    try:
        return bool(nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice)
    except nvml.NVMLError:
        return False


def _find_percent(nvml: Any, metric: Any) -> float | None:
    if metric.nvmlReturn != nvml.NVML_SUCCESS:
        return None
    value = float(metric.value)
    return min(value, 100.0) if value <= _MOST_ROUNDED else value
