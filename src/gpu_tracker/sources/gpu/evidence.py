"""Whether a process evidently uses a GPU, even if the driver does not list it."""

from __future__ import annotations

import os

from ...core.figures import PROCESS_LISTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Mapped by every process that uses a device: the driver's library, its device files, WSL's access to the host's driver.
_TRACES = (b"/libcuda.so", b"/dev/nvidia", b"/dev/kfd", b"/dev/dxg")
# The kernel's first PID namespace always has this number; any other is a container's.
_FIRST_PID_NAMESPACE = "pid:[4026531836]"


def has_driver_loaded(pid: int, proc: str = "/proc", *, if_denied: bool = False) -> bool:
    """Whether it has mapped a file that only GPU programs map; the given answer if this user may not know."""
    try:
        return _has_trace(_read_maps(pid, proc))
    except PermissionError:
        return if_denied
    except OSError:
        return False


def lacks_driver(pid: int, proc: str = "/proc") -> bool:
    """Whether it certainly does not use a GPU. One that is about to end has nothing mapped, but may still be listed."""
    try:
        maps = _read_maps(pid, proc)
    except OSError:
        return False
    return bool(maps) and not _has_trace(maps)


def _read_maps(pid: int, proc: str) -> bytes:
    with open(f"{proc}/{pid}/maps", "rb") as file:
        return file.read()


def _has_trace(maps: bytes) -> bool:
    return any(trace in maps for trace in _TRACES)


def is_in_a_container(proc: str = "/proc") -> bool:
    """Whether our process IDs are not those of the host."""
    try:
        return os.readlink(f"{proc}/self/ns/pid") != _FIRST_PID_NAMESPACE
    except OSError:
        return False


def why_not_listed(reasons: Mapping[tuple[str, str], str], proc: str = "/proc") -> str:
    """The likeliest reason why a driver does not list a process that uses it, with the fix."""
    for (_, figure), reason in reasons.items():
        if figure in (*PROCESS_LISTS, "processes"):
            return reason
    if is_in_a_container(proc):
        return (
            "this is a container, and the driver lists no process in it; "
            "start it with the process IDs of the host (docker run --pid=host)."
        )
    return (
        "the driver does not say what its processes hold "
        "(as with MPS, under WSL, or where this requires administrator rights)."
    )
