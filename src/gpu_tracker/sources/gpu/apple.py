"""Apple's GPUs on macOS, from the registry that `ioreg` prints: no root, no vendor package.

They share the machine's RAM, so they have no memory size. macOS does not report GPU use per process.
"""

from __future__ import annotations

import sys

from ...core.model import Gpu, GpuReading, GpuReadings
from ...core.values import NamedTuple
from .. import NotAvailableError
from .guard import LOST, TROUBLE, Failure, Guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any

NAME = "apple"

_COMMAND = ("ioreg", "-r", "-d", "1", "-w", "0", "-c", "IOAccelerator", "-a")
_TIMEOUT_SECONDS = 5.0
_NO_PROCESSES = "macOS does not report GPU use per process: only figures of the whole GPU are known."


class Accelerator(NamedTuple):
    """One GPU in the registry."""

    entry_id: int
    """The registry's number, valid until reboot."""
    name: str
    utilization_percent: float | None
    used_bytes: int | None


def parse_accelerators(plist: bytes) -> tuple[Accelerator, ...] | None:
    """The GPUs in a property list, in its order; None if it is not valid."""
    import plistlib

    try:
        entries = plistlib.loads(plist)
    except Exception:  # noqa: BLE001 - what invalid input raises is undocumented, and differs between versions
        return None
    if not isinstance(entries, list):
        return None
    return tuple(
        _describe_accelerator(position, entry)
        for position, entry in enumerate(entries)
        if isinstance(entry, dict)
    )


def why_absent(platform: str = sys.platform) -> str | None:
    """A reason not to try, or None."""
    return None if platform == "darwin" else "No Apple GPU was measured: this is not a Mac."


def connect(
    now: Callable[[], float],
    command: tuple[str, ...] = _COMMAND,
    timeout_seconds: float = _TIMEOUT_SECONDS,
) -> AppleSource:
    """Find the GPUs in the registry, or raise with the reason why there are none."""
    try:
        accelerators = _read_registry(command, timeout_seconds)
    except _RegistryError as error:
        raise NotAvailableError(f"No Apple GPU was measured: {error}.") from None
    if not accelerators:
        raise NotAvailableError("No Apple GPU was measured: this Mac's registry lists none.")
    return AppleSource(now, accelerators, command, timeout_seconds)


class AppleSource:
    """Every GPU that the registry lists."""

    poll_seconds = float("inf")
    unopened: tuple[Gpu, ...] = ()
    is_outdated = False

    def __init__(
        self,
        now: Callable[[], float],
        accelerators: tuple[Accelerator, ...],
        command: tuple[str, ...],
        timeout_seconds: float,
    ) -> None:
        self._now = now
        self._command = command
        self._timeout_seconds = timeout_seconds
        self._entry_ids = tuple(accelerator.entry_id for accelerator in accelerators)
        self.gpus = tuple(
            Gpu(ordinal, f"apple-{ordinal}", accelerator.name, None, vendor="apple", source=NAME)
            for ordinal, accelerator in enumerate(accelerators)
        )
        self._guard = Guard(now, _RegistryError, _explain)
        self.reasons: Mapping[tuple[str, str], str] = self._guard.reasons
        self.kinds: Mapping[tuple[str, str], str] = self._guard.kinds
        self._guard.reasons["", "lists_processes"] = _NO_PROCESSES
        self._guard.say("", "lists_processes", _NO_PROCESSES)

    def read(self, pids: frozenset[int] | None) -> GpuReadings:  # noqa: ARG002 - as all sources
        """Read every GPU; processes are not reported."""
        accelerators = self._guard.ask("", "registry", _read_registry, self._command, self._timeout_seconds)
        devices = []
        if accelerators is not None:
            by_id = {accelerator.entry_id: accelerator for accelerator in accelerators}
            for gpu, entry_id in zip(self.gpus, self._entry_ids, strict=True):
                accelerator = by_id.get(entry_id)
                if accelerator is None:
                    text = f"Apple GPU {gpu.ordinal} was lost; its figures are missing until it returns."
                    self._guard.fail(gpu.uuid, "device", Failure(LOST, text))
                elif gpu.uuid not in self._guard.lost:
                    devices.append(self._describe_reading(gpu.uuid, accelerator))
        return GpuReadings(self._now(), tuple(devices))

    def collect(self) -> None:
        """There are no samples of processes here."""

    def expect_end(self) -> None:
        """Everything is read each time."""

    def read_details(self, _names: Collection[str]) -> Mapping[str, Mapping[str, float | str]]:
        """Nothing: fans, limits and clocks require root."""
        return {gpu.uuid: {} for gpu in self.gpus if gpu.uuid not in self._guard.lost}

    def take_notes(self) -> tuple[str, ...]:
        """Sentences for the user since the last call."""
        return self._guard.take_notes()

    def close(self) -> None:
        """Nothing is kept open."""

    def _describe_reading(self, uuid: str, accelerator: Accelerator) -> GpuReading:
        used, percent = accelerator.used_bytes, accelerator.utilization_percent
        for figure, value, words in (
            ("used_bytes", used, "memory in use"),
            ("utilization_percent", percent, "utilization"),
        ):
            if value is None and (uuid, figure) not in self.reasons:
                text = f"Apple GPU {uuid[6:]} does not report {words}: the registry has no such figure."
                self._guard.reasons[uuid, figure] = text
                self._guard.say(uuid, figure, text)
        return GpuReading(uuid, used, percent, lists_processes=False)


class _RegistryError(Exception):
    """The registry could not be read; the message is the reason, as part of a sentence."""


def _read_registry(command: tuple[str, ...], timeout_seconds: float) -> tuple[Accelerator, ...]:
    import subprocess  # expensive to import, and needed on Macs only

    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError as error:
        raise _RegistryError(f"`{command[0]}` could not be started: {error.strerror}") from None
    with process:
        try:
            text, _ = process.communicate(timeout=timeout_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            raise _RegistryError(f"`{command[0]}` did not answer within {timeout_seconds:g} s") from None
    if process.returncode != 0:
        raise _RegistryError(f"`{command[0]}` failed with exit code {process.returncode}")
    # Without entries it prints nothing.
    accelerators = parse_accelerators(text) if text.strip() else ()
    if accelerators is None:
        raise _RegistryError(f"the output of `{command[0]}` is not a property list")
    return accelerators


def _explain(error: Exception, _device: str, _what: str) -> Failure:
    return Failure(TROUBLE, f"Apple GPUs could not be read for a while: {error}.")


def _describe_accelerator(position: int, entry: Mapping[Any, Any]) -> Accelerator:
    statistics = entry.get("PerformanceStatistics")
    if not isinstance(statistics, dict):
        statistics = {}
    entry_id = _get_count(entry, "IORegistryEntryID")
    cores = _get_count(entry, "gpu-core-count")
    name = _get_name(entry)
    return Accelerator(
        -position if entry_id is None else entry_id,
        f"{name} ({cores} cores)" if cores else name,
        _get_percent(statistics),
        _get_count(statistics, "In use system memory"),
    )


def _get_name(entry: Mapping[Any, Any]) -> str:
    for key in ("model", "IOClass", "IORegistryEntryName"):
        value = entry.get(key)
        if isinstance(value, bytes):  # PCI properties are zero-terminated
            value = value.rstrip(b"\0").decode("utf-8", "replace")
        if isinstance(value, str) and value.strip():
            return " ".join(value.split())
    return "Apple GPU"


def _get_percent(statistics: Mapping[Any, Any]) -> float | None:
    """Utilization of the whole GPU; if that is missing, of its busiest part."""
    percents = [_get_count(statistics, f"{part} Utilization %") for part in ("Device", "Renderer", "Tiler")]
    sound = [percent for percent in percents if percent is not None and percent <= 100]
    if percents[0] is not None and percents[0] <= 100:
        return float(percents[0])
    return float(max(sound)) if sound else None


def _get_count(values: Mapping[Any, Any], key: str) -> int | None:
    value = values.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
