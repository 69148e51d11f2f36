"""Whether a process evidently uses a GPU, also where the driver does not say so."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Mapped into whoever talks to a device: the driver's library, its device files, and WSL's door to the host's driver.
_TRACES = (b"/libcuda.so", b"/dev/nvidia", b"/dev/kfd", b"/dev/dxg")
# The kernel always gives its first PID namespace this number; any other is a container's.
_FIRST_PID_NAMESPACE = "pid:[4026531836]"


def has_driver_loaded(pid: int, proc: str = "/proc") -> bool:
    """Whether it has mapped something that only users of a GPU map."""
    try:
        with open(f"{proc}/{pid}/maps", "rb") as file:
            return any(trace in line for line in file for trace in _TRACES)
    except OSError:
        return False


def is_in_a_container(proc: str = "/proc") -> bool:
    """Whether our process IDs are not those of the host."""
    try:
        return os.readlink(f"{proc}/self/ns/pid") != _FIRST_PID_NAMESPACE
    except OSError:
        return False


def why_not_listed(reasons: Mapping[tuple[str, str], str], proc: str = "/proc") -> str:
    """The likeliest reason why a driver does not name the processes that use it, with the cure."""
    for (_, figure), reason in reasons.items():
        if figure in ("lists_processes", "processes"):
            return reason
    if is_in_a_container(proc):
        return (
            "this is a container, and the driver knows processes by their IDs on the host; "
            "start it with the host's process IDs (docker run --pid=host)."
        )
    return "the driver lists no process of it (as on WSL, or where only administrators may see it)."
