"""The directory where processes of the job leave word for the sampler, made by whoever tracks them."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PLACE_VARIABLE = "GPU_TRACKER_REGIONS"
BOARD_SUFFIX = ".board"
METRICS_SUFFIX = ".metrics"

_PARENTS = ("/dev/shm", "/tmp", "/var/tmp")  # noqa: S108 - a directory of our own is made there, for us alone


def make_place(environment: Mapping[str, str]) -> str | None:
    """A new directory that only its owner may enter; None where there is no room for one."""
    for parent in (*_PARENTS, environment.get("TMPDIR") or ""):
        path = f"{parent}/gpu-tracker-{os.getpid()}-{os.urandom(4).hex()}"
        try:
            os.mkdir(path, 0o700)
        except OSError:
            continue
        return path
    return None


def remove_place(path: str) -> None:
    """Throw a directory away, with the files that were made here and nothing else."""
    try:
        for name in os.listdir(path):
            if name.endswith((BOARD_SUFFIX, METRICS_SUFFIX)):
                os.unlink(f"{path}/{name}")
        os.rmdir(path)
    except OSError:
        pass  # somebody was quicker
