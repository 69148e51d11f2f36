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
        with open(f"{proc}/{pid}/maps", "rb") as file:
            return any(trace in line for line in file for trace in _TRACES)
    except PermissionError:
        return if_denied
    except OSError:
        return False


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
        "the driver lists none of its processes "
        "(as with MPS, under WSL, or where this requires administrator rights)."
    )
