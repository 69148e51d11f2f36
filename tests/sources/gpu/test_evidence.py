"""Whether a process uses a GPU, by the files it has mapped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpu_tracker.sources.gpu.evidence import (
    has_driver_loaded,
    is_in_a_container,
    lacks_driver,
    why_not_listed,
)
from sources.gpu.fake_devices import as_nobody, public_directory


def show(root: Path, maps: bytes, namespace: str = "pid:[4026531836]") -> str:
    """Create a `/proc` with one process and `self`."""
    for directory in ("42", "self/ns"):
        (root / directory).mkdir(parents=True)
    (root / "42" / "maps").write_bytes(maps)
    os.symlink(namespace, root / "self" / "ns" / "pid")
    return str(root)


@pytest.mark.parametrize(
    ("line", "is_user"),
    [
        (b"7f00-7f01 r-xp 00000000 08:01 123 /usr/lib/x86_64-linux-gnu/libcuda.so.550.54\n", True),
        (b"7f00-7f01 rw-s 00000000 00:06 123 /dev/nvidia0\n", True),
        (b"7f00-7f01 rw-s 00000000 00:06 123 /dev/kfd\n", True),
        (b"7f00-7f01 r-xp 00000000 08:01 123 /usr/lib/libcudart-is-not-it.so\n", False),
    ],
)
def test_a_driver_leaves_traces(tmp_path: Path, line: bytes, is_user: bool) -> None:
    """Its library or its device files are mapped."""
    assert has_driver_loaded(42, show(tmp_path, b"0-1 r--p 0 0 0 [heap]\n" + line)) == is_user
    assert lacks_driver(42, str(tmp_path)) != is_user
    assert not has_driver_loaded(43, str(tmp_path))


def test_a_process_that_is_about_to_end_may_still_use_the_driver(tmp_path: Path) -> None:
    """It has nothing mapped any more; nor is anything known of one that has ended."""
    assert not lacks_driver(42, show(tmp_path, b""))
    assert not lacks_driver(43, str(tmp_path))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the user")
def test_what_may_not_be_read_is_as_the_caller_says() -> None:
    """Nobody may read what another user's process has mapped."""
    with public_directory() as directory:
        proc = show(directory, b"")
        (directory / "42" / "maps").chmod(0o600)
        with as_nobody():
            answers = [has_driver_loaded(42, proc, if_denied=answer) for answer in (True, False)]

    assert answers == [True, False]


def test_the_reason_is_the_drivers_own_or_the_likeliest(tmp_path: Path) -> None:
    """A container is known by its namespace."""
    host, container = show(tmp_path / "a", b""), show(tmp_path / "b", b"", "pid:[4026532201]")
    reasons = {("GPU-0", "power_watts"): "No.", ("GPU-0", "lists_processes"): "Because."}

    assert (is_in_a_container(host), is_in_a_container(container)) == (False, True)
    assert not is_in_a_container(str(tmp_path / "nowhere"))
    assert why_not_listed(reasons, host) == "Because."
    assert "--pid=host" in why_not_listed({}, container)
    assert "WSL" in why_not_listed({}, host)
