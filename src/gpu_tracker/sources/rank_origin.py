"""Linux: as which process a rank began, and which process of its launcher has started that."""

from __future__ import annotations

from ..core.values import NamedTuple
from .allocation import read_environment
from .files import read_file

_MOST_GENERATIONS = 64


class Origin(NamedTuple):
    """Processes, by their ID and when they began, in ticks since the boot: `4711@123456`. None is not known."""

    rank_process: str | None = None
    launcher_process: str | None = None


def find_origin(pid: int, variable: str | None, *, proc: str = "/proc") -> Origin:
    """Of a process that has its rank from a variable: all up to the launcher have that, the launcher has not.

    A wrapper around the program, as ours, has it too.
    """
    process, parent = _read(pid, proc) if variable else (None, 0)
    for _ in range(_MOST_GENERATIONS):
        above, next_parent = _read(parent, proc)
        if above is None or variable not in read_environment(parent, proc=proc):
            return Origin(process, above)
        process, parent = above, next_parent
    return Origin()


def _read(pid: int, proc: str) -> tuple[str | None, int]:
    """A process and its parent; None if it has ended, or this user may not know."""
    from .procfs import parse_stat

    try:
        _, _, parent, _, _, _, _, start_tick, *_ = parse_stat(read_file(f"{proc}/{pid}/stat"))
    except (OSError, ValueError, IndexError):
        return None, 0
    return f"{pid}@{start_tick}", parent
