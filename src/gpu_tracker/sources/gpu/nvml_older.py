"""Calls that drivers had before those that nvidia-ml-py makes, which then answers "function not found"."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def initialize(pynvml: Any) -> None:
    """Open the driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_FunctionNotFound:
        _check(pynvml, pynvml.nvmlLib.nvmlInit_v2())


def read_bus_id(pynvml: Any, handle: Any) -> bytes | str:
    """The address of a device on the bus."""
    try:
        bus_id: bytes | str = pynvml.nvmlDeviceGetPciInfo(handle).busId
    except pynvml.NVMLError_FunctionNotFound:
        from ctypes import byref

        info = pynvml.nvmlPciInfo_v2_t()
        _check(pynvml, pynvml.nvmlLib.nvmlDeviceGetPciInfo_v2(handle, byref(info)))
        bus_id = info.busId
    return bus_id


def _check(pynvml: Any, code: int) -> None:
    if code != pynvml.NVML_SUCCESS:
        raise pynvml.NVMLError(code)
