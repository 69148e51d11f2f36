"""Which devices and figures can be read, and why not, judged from one observation. Pure."""

from __future__ import annotations

from ..core.figures import DEVICE, PROCESS_LISTS
from ..core.model import Activity
from ..core.observation import ABSENT, LOST, REQUESTED, TROUBLE, UNSUPPORTED, list_gpus
from ..core.text import count_of
from ..core.units import BYTES, JOULES, PERCENT, WATTS, humanize_bytes
from ..core.values import NamedTuple
from ..core.vendors import VENDORS, name_vendor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..core.model import Gpu
    from ..core.observation import Device, Missing, Observation, Reason, VendorState

# How a check is judged.
FINE = "fine"
FAILED = "failed"  # it exists but cannot be measured
WARNING = "warning"  # nothing is lost, but the user should know
NOTHING = "nothing"  # it does not exist here

_GROUP = "GPUs"
_DEVICE_GROUP = "GPU "
ENERGY_GROUP = "energy"
# Memory reserved by the driver does not matter here.
_FIGURES = [figure for figure in DEVICE if figure.name != "reserved_bytes"]
# What is reported of MIG instances.
_OF_INSTANCES = frozenset({"used_bytes"})
# Without these, there is nothing of a device.
_OF_DEVICES = frozenset({"device"})
_UNITS = {PERCENT: "%", WATTS: "W", JOULES: "J"}


# What is asked for besides the figures of a reading, if a device has it.
_BESIDES = {
    "name": "name",
    "bus": "address on the bus",
    "memory_errors": "memory errors",
    "faults": "errors (Xid)",
    "activity": "activity",
    "traffic": "links",
    "samples": "driver's samples",
    "instances": "MIG instances",
    "accounting": "accounting",
    "power_limit_watts": "power limit",
    "top_sm_clock_mhz": "highest clock",
    "slowdown_celsius": "temperature limit",
}


class Check(NamedTuple):
    """One thing that was checked."""

    group: str
    what: str
    state: str
    text: str
    """What was found; for a failure, why and what to do."""


class Diagnosis(NamedTuple):
    """All checks."""

    checks: tuple[Check, ...]

    @property
    def is_fine(self) -> bool:
        """Whether nothing is broken."""
        return not any(check.state == FAILED for check in self.checks)

    @property
    def is_complete(self) -> bool:
        """Whether every figure of everything that exists can be measured, without reservation."""
        return self.is_fine and not any(map(_is_gap, self.checks))


def _is_gap(check: Check) -> bool:
    """What does not exist is no gap, unless something that exists lacks it."""
    return check.state == WARNING or (
        check.state == NOTHING and check.group.startswith((_DEVICE_GROUP, ENERGY_GROUP))
    )


class Signs(NamedTuple):
    """Evidence of a vendor's hardware when no driver answers."""

    bus_ids: tuple[str, ...] = ()
    """Its devices on the bus; a container sees those of its host."""
    device_files: tuple[str, ...] = ()
    """Files through which a job could use them."""


def check_gpus(observation: Observation, signs: Mapping[str, Signs]) -> tuple[Check, ...]:
    """Every vendor, then every figure of every device."""
    checks = []
    for vendor in observation.vendors:
        checks += _check_vendor(vendor, signs.get(vendor.vendor, Signs()))
    devices = list_gpus(observation)
    if not devices and all(check.state == NOTHING for check in checks):
        text = "No GPU found; everything else is measured."
        checks.append(Check(_GROUP, "devices", NOTHING, text))
    reasons = {
        (reason.uuid, reason.figure): reason for vendor in observation.vendors for reason in vendor.reasons
    }
    read = {
        reading.uuid
        for vendor in observation.vendors
        if vendor.readings
        for reading in vendor.readings.devices
    }
    for observed in devices:
        if observed.gpu.is_split:
            text = "split (MIG): it is measured as its instances"
            checks.append(Check(f"GPU {observed.gpu.label}: {observed.gpu.name}", "device", FINE, text))
            continue
        checks += _check_device(observed, reasons, was_read=observed.gpu.uuid in read)
    return tuple(checks)


def fail_gpus(why: str) -> Check:
    """In place of all of these, if nobody could be asked."""
    return Check(_GROUP, "drivers", FAILED, why)


def _check_vendor(vendor: VendorState, signs: Signs) -> list[Check]:
    label = name_vendor(vendor.vendor)
    if vendor.source is None:
        return [_explain_missing(vendor, label, signs)]
    drivers = sorted({gpu.driver for gpu in vendor.gpus if gpu.driver})
    text = f"{_count_read(vendor)} read through {vendor.source}" + (
        f", driver {', '.join(drivers)}" if drivers else ""
    )
    checks = [Check(_GROUP, label, FINE if vendor.gpus else NOTHING, text)]
    checks += [
        Check(_GROUP, one.source, WARNING, f"{_with_cure(vendor, one)} {vendor.source} is used instead.")
        for one in vendor.missing
    ]
    uuids = {gpu.uuid for gpu in vendor.gpus}
    figures = {figure.name for figure in _FIGURES} if uuids else set()
    of_no_device = [
        reason
        for reason in vendor.reasons
        if reason.uuid not in uuids and not (reason.uuid == "" and reason.figure in figures)
    ]
    checks += [Check(_GROUP, reason.uuid or label, _judge(reason), reason.text) for reason in of_no_device]
    checks += _advise(_GROUP, of_no_device, "")
    explained = {reason.text for reason in vendor.reasons}
    checks += [Check(_GROUP, label, WARNING, note) for note in vendor.notes if note not in explained]
    return checks


def _count_read(vendor: VendorState) -> str:
    readings, gpus = vendor.readings, [gpu for gpu in vendor.gpus if not gpu.is_split]
    read = {one.uuid for one in readings.devices}.union(readings.asleep) if readings else set()
    count, n_read = len(gpus), sum(gpu.uuid in read for gpu in gpus)
    return count_of(count, "device") if n_read == count else f"{n_read} of {count_of(count, 'device')}"


def _judge(reason: Reason) -> str:
    """A figure that a driver does not report is no fault; a device that it does not report is."""
    is_lacking = reason.kind == UNSUPPORTED and reason.figure not in _OF_DEVICES
    return NOTHING if is_lacking else FAILED


def _with_cure(vendor: VendorState, missing: Missing) -> str:
    cure = VENDORS[vendor.vendor].cure if missing.kind == ABSENT and vendor.vendor in VENDORS else ""
    return f"{missing.text} {cure}".rstrip()


def _explain_missing(vendor: VendorState, label: str, signs: Signs) -> Check:
    failures = [missing.text for missing in vendor.missing if missing.kind not in (ABSENT, REQUESTED)]
    if failures:
        return Check(_GROUP, label, FAILED, " ".join(failures))
    text = vendor.missing[0].text if vendor.missing else "No source reads these devices."
    if vendor.missing and (signs.device_files or signs.bus_ids):
        text = _with_cure(vendor, vendor.missing[0])
    if signs.device_files:
        return Check(_GROUP, label, FAILED, f"{signs.device_files[0]} exists, but: {text}")
    if signs.bus_ids:
        where = ", ".join(signs.bus_ids)
        return Check(_GROUP, label, WARNING, f"A device is on the bus ({where}), but: {text}")
    is_requested = any(missing.kind == REQUESTED for missing in vendor.missing)
    return Check(_GROUP, label, WARNING if is_requested else NOTHING, text)


def _check_device(
    observed: Device, reasons: Mapping[tuple[str, str], Reason], *, was_read: bool
) -> list[Check]:
    gpu = observed.gpu
    group = f"GPU {gpu.label}: {gpu.name} ({gpu.uuid})" if gpu.name else f"GPU {gpu.label}"
    if not was_read:
        why = observed.reasons
        text = why.get("device") or next(
            iter(why.values()), "It could not be read; the driver gives no reason."
        )
        return [Check(group, "device", FAILED, text), *_advise_on(gpu, group, reasons)]
    checks = []
    if not gpu.is_visible:
        text = "Jobs started from here cannot use it (CUDA_VISIBLE_DEVICES or similar)."
        checks.append(Check(group, "visible", WARNING, text))
    for figure in _FIGURES:
        value = getattr(observed.reading, figure.name)
        if value is None and figure.name in Activity._fields:
            continue  # most devices do not measure it
        if value is None and gpu.parent_uuid is not None and figure.name not in _OF_INSTANCES:
            checks.append(
                Check(group, figure.label, NOTHING, "The driver reports it for whole devices only.")
            )
        elif value is None:
            reason = _find_reason(reasons, gpu.uuid, figure.name)
            checks.append(_explain_gap(group, figure.label, reason, is_essential=figure.is_essential))
        else:
            checks.append(Check(group, figure.label, FINE, _show(value, figure.unit)))
    throttling = reasons.get((gpu.uuid, "limits"))
    if throttling is not None:
        checks.append(_explain_gap(group, "throttling", throttling, is_essential=False))
    for besides, what in _BESIDES.items():
        reason = reasons.get((gpu.uuid, besides))
        if reason is not None:  # most devices do not have all of it
            checks.append(_explain_gap(group, what, reason, is_essential=False))
    checks.append(_check_processes(group, observed, reasons))
    if observed.reading.lists_processes:
        checks.append(_check_shares(group, observed, reasons))
    return [*checks, *_advise_on(gpu, group, reasons)]


def _advise_on(gpu: Gpu, group: str, reasons: Mapping[tuple[str, str], Reason]) -> list[Check]:
    command = VENDORS[gpu.vendor].reset if gpu.vendor in VENDORS else ""
    how = f" (`{command} {gpu.ordinal}`, as administrator)" if command else ""
    return _advise(group, (reason for (uuid, _), reason in reasons.items() if uuid == gpu.uuid), how)


def _advise(group: str, reasons: Iterable[Reason], how: str) -> list[Check]:
    """What to do about a device that is lost or fails."""
    if {reason.kind for reason in reasons}.isdisjoint((LOST, TROUBLE)):
        return []
    text = f"If this persists, reset the device{how} or reboot; if this is a container, restart it first."
    return [Check(group, "what to do", WARNING, text)]


def _find_reason(reasons: Mapping[tuple[str, str], Reason], uuid: str, figure: str) -> Reason | None:
    """Of this device, else of all."""
    return reasons.get((uuid, figure)) or reasons.get(("", figure))


def _check_processes(group: str, observed: Device, reasons: Mapping[tuple[str, str], Reason]) -> Check:
    processes = observed.processes
    if not observed.reading.lists_processes:
        found = (reasons.get((observed.gpu.uuid, what)) for what in PROCESS_LISTS)
        reason = next(filter(None, found), None)
        return _explain_gap(group, "processes", reason, is_essential=True)
    n_unknown = sum(process.reading.used_bytes is None for process in processes)
    if n_unknown:
        which = f"of {n_unknown} of them " if n_unknown < len(processes) else ""
        text = (
            f"The driver lists {len(processes)}, but {which}not their memory: for MIG instances this requires root, "
            "and under WSL it never does; run the job on Linux itself to have it measured."
        )
        return Check(group, "processes", FAILED, text)
    n_absent = sum(process.holder.user is None for process in processes)
    if n_absent:
        text = (
            f"{n_absent} of {len(processes)} listed cannot be found here: ended, or of another PID namespace."
        )
        return Check(group, "processes", WARNING, text)
    return Check(group, "processes", FINE, f"{len(processes)} running")


def _check_shares(group: str, observed: Device, reasons: Mapping[tuple[str, str], Reason]) -> Check:
    what = "their utilization"
    if observed.reading.measures_processes:
        n_unknown = sum(process.utilization_percent is None for process in observed.processes)
        if n_unknown:
            return Check(group, what, NOTHING, f"Not reported of {n_unknown} of {len(observed.processes)}.")
        return Check(group, what, FINE, "reported by process")
    reason = _find_reason(reasons, observed.gpu.uuid, "utilization_of_processes")
    text = "Not reported by process." if reason is None else reason.text
    return Check(group, what, NOTHING if reason is None or reason.kind == UNSUPPORTED else FAILED, text)


def _explain_gap(group: str, what: str, reason: Reason | None, *, is_essential: bool) -> Check:
    if reason is None:
        text = "Not reported; the driver gives no reason."
        return Check(group, what, FAILED if is_essential else NOTHING, text)
    is_fault = is_essential if reason.kind is None else reason.kind != UNSUPPORTED
    return Check(group, what, FAILED if is_fault else NOTHING, reason.text)


def _show(value: float, unit: str) -> str:
    return humanize_bytes(value) if unit == BYTES else f"{value:g} {_UNITS.get(unit, unit)}"
