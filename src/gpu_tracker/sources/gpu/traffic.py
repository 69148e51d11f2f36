"""What goes through the links of an NVIDIA device, by its counters of bytes. Where it has GPM, that tells it.

The driver's own call for PCIe takes 20 ms of every reading, so it is left to `dmon`.
"""

from __future__ import annotations

from ...core.model import Activity, Traffic
from ...core.values import NamedTuple
from .gpm import Measured, is_due

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_EVERY_LINK = 0xFFFF_FFFF
_KIB = 1024
# Some devices count bytes with 32 bits, which a fast link fills several times a second: such a counter is believed once it is beyond them.
_SHORT = 1 << 32


class _Field(NamedTuple):
    """A counter of the driver."""

    name: str
    scope: int
    unit_bytes: int
    least: int
    """From here on it is believed."""


# One for each figure of `Traffic`.
_FIELDS = (
    _Field("NVML_FI_DEV_PCIE_COUNT_RX_BYTES", 0, 1, _SHORT),
    _Field("NVML_FI_DEV_PCIE_COUNT_TX_BYTES", 0, 1, _SHORT),
    _Field("NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX", _EVERY_LINK, _KIB, 0),
    _Field("NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", _EVERY_LINK, _KIB, 0),
)


class TrafficMeter:
    """Of one device."""

    figure = "traffic"

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle
        self._read_seconds: float | None = None
        self._counted = self._count()

    @property
    def is_empty(self) -> bool:
        """Whether the device has no such counters."""
        return self._counted == Traffic()

    def is_due(self, now_seconds: float, *, is_last: bool = False) -> bool:
        """Whether the last reading is old enough."""
        return is_due(now_seconds, self._read_seconds, is_last=is_last)

    def read(self, now_seconds: float) -> Measured:
        """What went through since the reading before."""
        before, self._counted = self._counted, self._count()
        since, self._read_seconds = self._read_seconds, now_seconds
        if since is None:
            return Measured()
        moved = map(_subtract, self._counted, before, (field.least for field in _FIELDS))
        return Measured(now_seconds - since, None, Activity(), Traffic(*moved))

    def close(self) -> None:
        """Nothing is held."""

    def _count(self) -> Traffic:
        nvml = self._nvml
        asked = [(getattr(nvml, field.name, 0), field.scope) for field in _FIELDS]
        answers = nvml.nvmlDeviceGetFieldValues(self._handle, asked)
        return Traffic(*(_pick(nvml, answer, field) for answer, field in zip(answers, _FIELDS, strict=True)))


def _pick(nvml: Any, answer: Any, field: _Field) -> int | None:
    """Only what is said to have 64 bits."""
    if answer.nvmlReturn or answer.valueType != nvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG:
        return None
    return field.unit_bytes * int(answer.value.ullVal)


def _subtract(now: int | None, before: int | None, least: int) -> int | None:
    """Of one that went back, from wherever it has begun again, nothing is known of the time in between."""
    if now is None or before is None or not least <= before <= now:
        return None
    return now - before
