"""The directory where processes of the job leave word for the sampler, made by whoever tracks them."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PLACE_VARIABLE = "GPU_TRACKER_REGIONS"
BOARD_SUFFIX = ".board"
METRICS_SUFFIX = ".metrics"
FRAMEWORKS_SUFFIX = ".frameworks"
UNFINISHED_SUFFIX = ".new"
_SUFFIXES = (BOARD_SUFFIX, METRICS_SUFFIX, FRAMEWORKS_SUFFIX, UNFINISHED_SUFFIX)

_PARENTS = ("/dev/shm", "/tmp", "/var/tmp")  # noqa: S108 - a directory of our own is made there, for us alone


def choose_place(environment: Mapping[str, str]) -> str | None:
    """A name that nobody has yet, where there is room; None if there is nowhere."""
    for parent in (*_PARENTS, environment.get("TMPDIR") or ""):
        if os.access(parent, os.W_OK | os.X_OK):
            return f"{parent}/gpu-tracker-{os.getpid()}-{os.urandom(4).hex()}"
    return None


def make_place(path: str | None) -> str | None:
    """The directory, that only its owner may enter. The sampler makes it, because it is sure to throw it away."""
    try:
        if path is not None:
            os.mkdir(path, 0o700)
    except OSError:
        return None
    return path


def remove_place(path: str) -> None:
    """Throw a directory away, with the files that were made here and nothing else."""
    try:
        for name in os.listdir(path):
            if name.endswith(_SUFFIXES):
                os.unlink(f"{path}/{name}")
        os.rmdir(path)
    except OSError:
        pass  # somebody was quicker
