"""Faults of GPUs in words: each is told when it first happens, and how often at the end. Pure.

An Xid is a number that the NVIDIA driver gives to an error. Some are of the program, others of the device.
"""

from __future__ import annotations

from ..core.model import CORRECTED, GPU_ERROR, GPU_FAULT, XID
from ..core.text import count_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core.model import GpuFault

_NOTE = "note"
# Of what a program did.
_OF_PROGRAMS = {
    13: "a kernel failed, often by an index out of range",
    31: "a kernel used memory that is not mapped",
    43: "the driver stopped a kernel that failed",
    68: "the video decoder failed",
    69: "a kernel used the device in a way that it does not know",
}
# What is nobody's error: a program that was killed, and memory that was replaced in time.
_HARMLESS = {
    45: "the driver cleaned up after a program that ended early",
    63: "memory that failed will be replaced by spare memory",
}
_OF_DEVICES = {
    48: "uncorrectable memory error",
    61: "the device's own processor stopped",
    62: "the device's own processor stopped",
    64: "memory that failed could not be replaced by spare memory",
    74: "NVLink error",
    79: "the device has fallen off the bus",
    92: "many memory errors that could be corrected",
    94: "uncorrectable memory error, which ended the programs that used it",
    95: "uncorrectable memory error, which may affect every program on the device",
    119: "the device's own processor did not answer",
    120: "the device's own processor failed",
    140: "uncorrectable memory error",
}
_MEANINGS = {**_OF_PROGRAMS, **_HARMLESS, **_OF_DEVICES}
# A device that fails in many ways fails.
_MOST_SAID = 20


class FaultAccount:
    """The faults of a run."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, int], int] = {}
        self._told: dict[tuple[str, str, int], int] = {}
        """How many of them the first sentence was about."""

    def take(self, label: str, fault: GpuFault) -> tuple[str, str] | None:
        """The kind of event and its sentence; None if it was told before."""
        xid, count = (fault.number, 1) if fault.kind == XID else (0, fault.number)
        key = (label, fault.kind, xid)
        is_new = key not in self._counts and len(self._counts) < _MOST_SAID
        self._counts[key] = self._counts.get(key, 0) + count
        if not is_new:
            return None
        self._told[key] = count
        return _find_kind(fault.kind, xid), _describe(label, fault.kind, xid, count)

    def list_totals(self) -> Iterator[tuple[str, str]]:
        """Of what happened more than once: the kind of event, and how often."""
        for key, told in self._told.items():
            (label, kind, xid), count = key, self._counts[key]
            if count > told and kind == XID:
                yield _NOTE, f"GPU {label}: Xid {xid} was reported {count} times in all."
            elif count > told:
                yield _NOTE, f"GPU {label}: {count_of(count, f'{kind} memory error')} in all (ECC)."
        if len(self._counts) > _MOST_SAID:
            more = count_of(len(self._counts) - _MOST_SAID, "more kind")
            yield _NOTE, f"{more} of GPU faults happened, of which nothing is kept."


def _find_kind(kind: str, xid: int) -> str:
    if kind == CORRECTED or xid in _HARMLESS:
        return _NOTE
    # One that is not known may be either.
    return GPU_FAULT if kind != XID or xid in _OF_DEVICES else GPU_ERROR


def _describe(label: str, kind: str, xid: int, count: int) -> str:
    if kind != XID:
        return f"GPU {label}: {count_of(count, f'{kind} memory error')} (ECC)."
    meaning = _MEANINGS.get(xid, "see NVIDIA's list of Xid errors")
    return f"GPU {label}: the driver reports Xid {xid}: {meaning}."
