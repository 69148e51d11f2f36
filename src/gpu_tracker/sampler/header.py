"""The first line of a recording: all that is known before the first reading."""

from __future__ import annotations

import os
import time

from ..core.model import Header
from ..core.moments import stamp_moment
from ..core.version import __version__
from ..recording.schema import VERSION
from ..recording.secrets import mask_text
from ..sources.files import read_file
from ..sources.identity import find_identity

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
    identity = find_identity(environment)
    # Anybody can set these variables, to anything.
    said: Any = {name: mask_text(text) for name, text in identity._asdict().items() if isinstance(text, str)}
    identity = identity._replace(**said)
    return Header(
        version=VERSION,
        tracker_version=__version__,
        command=plan.command,
        pid=start.root_pid,
        host=os.uname().nodename,
        started_at=stamp_moment(time.time() - (time.monotonic() - start.at_nanoseconds / 1e9)),
        sleep_seconds=plan.sleep_seconds,
        allocation=allocation,
        source=source,
        n_expected_cores=plan.n_expected_cores or allocation.cores,
        gpu_uuids=plan.gpu_uuids,
        identity=identity._replace(name=plan.name, labels=plan.labels, boot_id=_read_boot_id()),
    )


def _read_boot_id() -> str | None:
    try:
        return read_file(_BOOT_ID_PATH).decode("ascii", "replace").strip()
    except OSError:
        return None
