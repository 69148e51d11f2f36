"""Whether a driver lists processes by the IDs of the host of our container; the same ID here is another process.

A listed process that does not exist is no proof: drivers have been seen to list the dead. But drivers that translate
IDs leave out processes of other namespaces: so it is one if it has come while we watch; one that was there before makes
us doubt, until a process of ours is listed. And a process of ours uses the driver: one that is listed but has not loaded
it, or was listed before it existed, is listed by mistake, because another process has its ID on the host.
"""

from __future__ import annotations

from ..processes import exists
from .evidence import has_driver_loaded, is_in_a_container, lacks_driver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

HOST_PIDS = (
    "this is a container, and the NVIDIA driver lists processes by their IDs on the host; "
    "start it with the process IDs of the host (docker run --pid=host)."
)
_RECHECK_SECONDS = 0.9
_MOST_KNOWN = 4096


class NamespaceCheck:
    """What the lists so far have shown."""

    def __init__(self) -> None:
        self.is_in_a_container = is_in_a_container()
        self.is_list_trusted = not self.is_in_a_container
        """Whether a list without processes means that there are none."""
        self.shows_foreign_pids = False
        self.has_strangers = False
        """Whether the latest list has processes that may be of another namespace: the next one will tell."""
        self._has_seen_foreign_pids = False
        self._known_pids: set[int] = set()
        self._once_missing_pids: set[int] = set()
        self._missing_pids: set[int] = set()
        self._first_missing_pids: set[int] | None = None
        self._doubt: tuple[frozenset[int], frozenset[int]] | None = None
        self._doubt_seconds = float("-inf")

    def take(
        self,
        listed: set[int],
        pids: frozenset[int] | None,
        at_seconds: float,
        is_ours: Callable[[int], bool | None],
    ) -> None:
        """Take the processes on all devices; `pids` are those of the job, None if all are asked for.

        `is_ours` also knows processes of the job that are too new to be among those.
        """
        if not self.is_in_a_container:
            return
        strangers = listed - self._known_pids
        gone = {pid for pid in strangers if not exists(pid)}
        self._has_seen_foreign_pids |= any(map(self._is_namesake, strangers - gone))
        self._known_pids |= strangers - gone
        self._once_missing_pids |= gone
        for known in (self._known_pids, self._once_missing_pids):
            if len(known) > _MOST_KNOWN:
                known.clear()
        if self._first_missing_pids is None:
            self._first_missing_pids = gone
        # Missing twice, because a process may end after it was listed. Who asks about all processes may ask once only.
        suspects = gone if pids is None else gone & self._missing_pids
        self._missing_pids = gone
        self._has_seen_foreign_pids |= not suspects <= self._first_missing_pids
        self.has_strangers = pids is not None and not gone <= self._first_missing_pids | suspects
        is_doubted = bool(suspects or self.shows_foreign_pids or self._has_seen_foreign_pids)
        if not self._has_seen_foreign_pids:
            # For good: a process of ours that is about to end is no longer listed, but still has the driver.
            self.is_list_trusted = self.is_list_trusted or _lists_ours(listed, gone, pids)
            is_doubted &= not self.is_list_trusted
        self.shows_foreign_pids = is_doubted and (
            self.shows_foreign_pids
            or pids is None  # all processes are asked for, also those that cannot be seen from here
            # One that is listed without the driver has the same ID as another by chance.
            or any(map(is_ours, listed - gone))
            or self._is_one_of_us_missing(gone, pids, at_seconds)
        )

    def _is_namesake(self, pid: int) -> bool:
        """Whether it is not this process that is listed, but one of the host with the same ID."""
        return pid in self._once_missing_pids or lacks_driver(pid)

    def _is_one_of_us_missing(self, gone: set[int], pids: frozenset[int], at_seconds: float) -> bool:
        """Whether a process of ours uses the driver, but is not listed as such. What it has loaded is not read each time."""
        doubt = (frozenset(gone), pids)
        if doubt == self._doubt and at_seconds - self._doubt_seconds < _RECHECK_SECONDS:
            return False
        self._doubt, self._doubt_seconds = doubt, at_seconds
        # What may not be read counts: zero bytes must not be made up.
        return any(has_driver_loaded(pid, if_denied=True) for pid in pids)


def _lists_ours(listed: set[int], gone: set[int], pids: frozenset[int] | None) -> bool:
    ours = listed - gone if pids is None else listed & pids
    return any(map(has_driver_loaded, ours))
