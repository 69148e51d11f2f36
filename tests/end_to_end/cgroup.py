"""Limits of memory and cores for one command, where the kernel lets us set them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from patience import wait_until

_MOUNT = Path("/sys/fs/cgroup")
_ENTER = 'for group in $0; do echo $$ > "$group/cgroup.procs" || exit; done; exec "$@"'
_PERIOD_MICROSECONDS = 100_000


@contextmanager
def memory_limit(limit_bytes: int, inside: str = "") -> Iterator[tuple[str, ...]]:
    """Words to put before a command, so that it runs in a group of its own with that limit, or in one inside of it."""
    with _group("memory", "memory.limit_in_bytes", "memory.max", inside) as (group, file, own):
        (group / file).write_text(str(limit_bytes), encoding="ascii")
        yield _enter(own)


@contextmanager
def request(memory_bytes: int, cores: float) -> Iterator[tuple[str, ...]]:
    """The same with that much memory and so many cores: what a scheduler would grant."""
    with ExitStack() as stack:
        memory, file, _ = stack.enter_context(_group("memory", "memory.limit_in_bytes", "memory.max"))
        (memory / file).write_text(str(memory_bytes), encoding="ascii")
        groups = [memory]
        quota = round(cores * _PERIOD_MICROSECONDS)
        if file == "memory.max":
            (memory / "cpu.max").write_text(f"{quota} {_PERIOD_MICROSECONDS}", encoding="ascii")
        else:
            cpu, _, _ = stack.enter_context(_group("cpu", "cpu.cfs_quota_us", "cpu.max"))
            (cpu / "cpu.cfs_period_us").write_text(str(_PERIOD_MICROSECONDS), encoding="ascii")
            (cpu / "cpu.cfs_quota_us").write_text(str(quota), encoding="ascii")
            groups.append(cpu)
        yield _enter(*groups)


def _enter(*groups: Path) -> tuple[str, ...]:
    return ("sh", "-c", _ENTER, " ".join(map(str, groups)))


@contextmanager
def _group(
    controller: str, old_file: str, new_file: str, inside: str = ""
) -> Iterator[tuple[Path, str, Path]]:
    """A new group, the name of its file for the limit, and the group inside it where the command runs."""
    group, file_name = _make_group(controller, old_file, new_file)
    groups = [group, group / inside] if inside else [group]
    try:
        groups[-1].mkdir(exist_ok=True)
        yield group, file_name, groups[-1]
    finally:
        for made in reversed(groups):
            wait_until(lambda made=made: _is_removed(made), "the group is empty")  # type: ignore[misc]


def _make_group(controller: str, old_file: str, new_file: str) -> tuple[Path, str]:
    name = f"gpu-tracker-test-{os.getpid()}"
    reasons = []
    for parent, file_name in ((_MOUNT / controller, old_file), (_MOUNT, new_file)):
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
    pytest.skip(f"a limit of {controller} cannot be set here ({'; '.join(reasons)})")


def _is_removed(group: Path) -> bool:
    try:
        group.rmdir()
    except OSError:
        return False  # its last process may take a moment to go
    return True
