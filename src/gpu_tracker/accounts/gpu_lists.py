"""Whether a device has stopped listing processes of the job that still hold memory there. Pure.

A driver may answer with a list without them. Then what they held is no longer in the list, but still in use: what a device has in use beyond
its list has grown by it. A process that gives its memory back, or ends, takes it off both. What is in use beyond the list from the
beginning is the driver's, or that of processes that it does not show.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from ..core.model import GpuReading

# Of what they held, this much must still be in use: meanwhile others may have given some back.
_LEAST_SHARE = 0.5
_NOTABLE_BYTES = 32 * 2**20


class ListCheck:
    """The latest list of one device that was believed."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}
        """Of each process of the job."""
        self._unlisted_bytes = 0

    def is_lost(self, reading: GpuReading, sizes: Mapping[int, int | None], living: Container[int]) -> bool:
        """Whether processes of the job that are still there are missing, given those listed and those that live."""
        if not reading.lists_processes or reading.used_bytes is None or reading.listed_bytes is None:
            return False
        unlisted_bytes = reading.used_bytes - reading.listed_bytes
        gone = [size for pid, size in self._sizes.items() if pid not in sizes and pid in living]
        least = max(_NOTABLE_BYTES, _LEAST_SHARE * sum(gone))
        if gone and unlisted_bytes - self._unlisted_bytes >= least:
            return True
        self._sizes = {pid: size for pid, size in sizes.items() if size is not None}
        self._unlisted_bytes = unlisted_bytes
        return False
