"""A memory limit for one command, where the kernel lets us set one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from patience import wait_until

_MOUNT = Path("/sys/fs/cgroup")
_ENTER = 'echo $$ > "$0/cgroup.procs" && exec "$@"'


@contextmanager
def memory_limit(limit_bytes: int, inside: str = "") -> Iterator[tuple[str, ...]]:
    """Words to put before a command, so that it runs in a group of its own with that limit, or in one inside of it."""
    group, file_name = _make_group()
    groups = [group, group / inside] if inside else [group]
    try:
        (group / file_name).write_text(str(limit_bytes), encoding="ascii")
        groups[-1].mkdir(exist_ok=True)
        yield ("sh", "-c", _ENTER, str(groups[-1]))
    finally:
        for made in reversed(groups):
            wait_until(lambda made=made: _is_removed(made), "the group is empty")  # type: ignore[misc]


def _make_group() -> tuple[Path, str]:
    name = f"gpu-tracker-test-{os.getpid()}"
    reasons = []
    for parent, file_name in ((_MOUNT / "memory", "memory.limit_in_bytes"), (_MOUNT, "memory.max")):
        group = parent / name
        try:
            group.mkdir()
        except OSError as error:
            reasons.append(f"{group}: {error.strerror}")
            continue
        if (group / file_name).exists():
            return group, file_name
        group.rmdir()
        reasons.append(f"{group}: no {file_name}")
    pytest.skip(f"a memory limit cannot be set here ({'; '.join(reasons)})")


def _is_removed(group: Path) -> bool:
    try:
        group.rmdir()
    except OSError:
        return False  # its last process may take a moment to go
    return True
