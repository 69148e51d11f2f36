"""The first line of a recording: all that is known before the first reading."""

from __future__ import annotations

import os
import time

from ..core.model import Header
from ..core.moments import stamp_moment
from ..core.system import posix
from ..core.version import __version__
from ..recording.schema import VERSION
from ..recording.secrets import mask_text
from ..sources.files import read_file
from ..sources.identity import find_identity, find_rank_variable, leave_out_rank
from ..sources.rank_origin import find_origin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..core.model import Allocation
    from .handle.wire import Plan, Start

_BOOT_ID_PATH = "/proc/sys/kernel/random/boot_id"


def make_header(
    plan: Plan, start: Start, allocation: Allocation, source: str, environment: Mapping[str, str]
) -> Header:
    """The header of a job that has just begun."""
    pid = start.root_pid or plan.example_pid
    host = posix.uname().nodename
    identity = find_identity(environment, _read_text(f"/proc/{pid}/cgroup") or "", host)
    if plan.job is not None:
        identity = leave_out_rank(identity)
    origin = find_origin(pid, find_rank_variable(identity))
    # Anybody can set these variables, to anything.
    said: Any = {name: mask_text(text) for name, text in identity._asdict().items() if isinstance(text, str)}
    identity = identity._replace(**said)
    return Header(
        version=VERSION,
        tracker_version=__version__,
        command=plan.command,
        pid=start.root_pid,
        host=host,
        started_at=stamp_moment(time.time() - (time.monotonic() - start.at_nanoseconds / 1e9)),
        sleep_seconds=plan.sleep_seconds,
        allocation=allocation,
        source=source,
        n_expected_cores=plan.n_expected_cores or allocation.cores,
        gpu_uuids=plan.gpu_uuids,
        identity=identity._replace(
            name=plan.name,
            labels=plan.labels,
            boot_id=_read_text(_BOOT_ID_PATH),
            pid_namespace=_read_namespace(pid),
            launcher_process=origin.launcher_process,
            rank_process=origin.rank_process,
        ),
    )


def _read_text(path: str) -> str | None:
    try:
        return read_file(path).decode("ascii", "replace").strip()
    except OSError:
        return None


def _read_namespace(pid: int) -> str | None:
    """The number of `pid:[4026531836]`."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid").partition("[")[2].removesuffix("]")
    except OSError:
        return None
