"""GPUs are read in threads of their own, one per vendor: a driver that takes its time must not delay anything else."""

from __future__ import annotations

import time

from ..core.model import Event
from ..core.vendors import VENDORS
from ..sources.gpu.connect import connect, describe_bug, find_vendors

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

    from ..core.model import Gpu, GpuReadings
    from ..sources import GpuSource

# A look before the job begins is what energy and memory are counted from; a driver that wakes up slowly is not waited for.
_FIRST_LOOK_SECONDS = 0.06
# And one after it has ended, if the driver is in the mood.
_LAST_LOOK_SECONDS = 0.02

# When to ask whether a job uses a device that does not know it: reading what a process has loaded is not free.
_FIRST_DOUBT_SECONDS = 0.5
_DOUBT_SECONDS = 5.0
_NOTABLE_BYTES = 32 * 2**20
_PROCESSES_TO_ASK = 8


class GpuThreads:
    """Reads every GPU there is, and hands over what it has when asked."""

    def __init__(
        self,
        interval_seconds: float,
        max_overhead: float,
        vendors: tuple[str, ...] | None,
        named_uuids: tuple[str, ...] | None,
        environment: Mapping[str, str],
    ) -> None:
        self._interval_seconds = interval_seconds
        self._max_overhead = max_overhead
        self._named_uuids = named_uuids
        self._environment = environment
        self._start_seconds = time.monotonic()
        self.pids: frozenset[int] = frozenset()
        """The processes of the job: whoever tracks them says so here."""
        # Lists are swapped, not locked: appending and swapping are single steps of the interpreter.
        self._looks: list[tuple[str, GpuReadings]] = []
        self._events: list[tuple[float, str, str, Gpu | None]] = []
        self._watchers: list[_Watcher] = []
        found = find_vendors() if vendors is None else vendors
        if vendors is None and not found:
            self.say("No GPU was found; `gpu-tracker doctor` tells where it was looked for.")
        if found:
            import threading

            self._watchers = [_Watcher(self, vendor, threading.Event, threading.Thread) for vendor in found]
            deadline = self._start_seconds + _FIRST_LOOK_SECONDS
            for watcher in self._watchers:
                watcher.wait_for_look(deadline)

    def begin(self, start_seconds: float) -> None:
        """The job begins now; the looks so far tell how things stood before it."""
        self._start_seconds = start_seconds
        self._looks = list(dict(self._looks).items())

    def look_now(self) -> None:
        """Have every device looked at once more, if that can be done at once."""
        deadline = time.monotonic() + _LAST_LOOK_SECONDS
        for watcher in self._watchers:
            watcher.hurry()
        for watcher in self._watchers:
            watcher.wait_for_look(deadline)

    def have_answered(self) -> bool:
        """Whether every driver has told its devices and been read once, or has none."""
        return all(watcher.has_answered() for watcher in self._watchers)

    def take_looks(self) -> list[GpuReadings]:
        """The looks since the last call; those from before the start as of the start."""
        looks, self._looks = self._looks, []
        return [look._replace(at_seconds=self._since_start(look.at_seconds)) for _, look in looks]

    def take_events(self) -> list[Event]:
        """Devices found and things to say since the last call."""
        events, self._events = self._events, []
        return [Event(self._since_start(at), kind, text, gpu) for at, kind, text, gpu in events]

    def say(self, text: str) -> None:
        """A sentence for the user."""
        self._events.append((time.monotonic(), "note", text, None))

    def _since_start(self, at_seconds: float) -> float:
        return max(0.0, at_seconds - self._start_seconds)

    # ---- What the threads do.

    def watch(self, watcher: _Watcher) -> None:
        """The life of one vendor's thread."""
        from ..core.observation import BROKEN

        source, name, missing = connect(VENDORS[watcher.vendor].sources)
        if source is None:
            # Of several ways that are closed, the one that should have been open is worth a word.
            broken = [reason for reason in missing if reason.kind == BROKEN]
            self.say((broken or missing)[0].text)
            return
        try:
            self._introduce(source.gpus)
            self._look_again_and_again(watcher, source)
        except Exception as error:  # noqa: BLE001 - whatever it is, the job's other figures must not suffer
            self.say(describe_bug(name, error))

    def _look_again_and_again(self, watcher: _Watcher, source: GpuSource) -> None:
        doubt = _Doubt(source)
        seen_seconds = float("-inf")
        while source.gpus:
            spent, began = time.thread_time(), time.monotonic()
            watcher.is_hurried.clear()
            look = source.read(self.pids)
            # A source that is dear to ask repeats itself in between; what happens meanwhile is not in that.
            if look.at_seconds > seen_seconds:
                self._looks.append((watcher.vendor, look))
                seen_seconds = look.at_seconds
            for note in source.take_notes():
                self.say(note)
            watcher.note_look(began)
            reason = doubt.judge(look, self.pids)
            if reason:
                self._events.append((time.monotonic(), "unattributed", reason, None))
            spent = time.thread_time() - spent
            watcher.is_hurried.wait(max(self._interval_seconds, spent / self._max_overhead))

    def _introduce(self, gpus: tuple[Gpu, ...]) -> None:
        from ..sources.gpu.visible import choose_visible

        visible = self._named_uuids
        if visible is None:
            visible = tuple(choose_visible(gpus, self._environment))
        at = time.monotonic()
        for gpu in gpus:
            self._events.append((at, "gpu", "", gpu._replace(is_visible=gpu.uuid in visible)))


class _Watcher:
    """One vendor's thread, and how to talk to it."""

    def __init__(
        self,
        watch: GpuThreads,
        vendor: str,
        make_event: type[threading.Event],
        make_thread: type[threading.Thread],
    ) -> None:
        self.vendor = vendor
        self.is_hurried = make_event()
        self._has_looked = make_event()
        self._wanted_seconds = self._looked_seconds = 0.0
        self._thread = make_thread(target=watch.watch, args=(self,), daemon=True)
        self._thread.start()

    def hurry(self) -> None:
        """Do not wait for the next turn."""
        self._wanted_seconds = time.monotonic()
        self._has_looked.clear()
        self.is_hurried.set()

    def note_look(self, began_seconds: float) -> None:
        """A look that began then is done."""
        self._looked_seconds = began_seconds
        self._has_looked.set()

    def has_answered(self) -> bool:
        """Whether it has looked, or has nothing to look at."""
        return self._looked_seconds > 0 or not self._thread.is_alive()

    def wait_for_look(self, deadline_seconds: float) -> None:
        """Until it has looked since it was hurried, or has nothing to look at, or the time is over."""
        while self._looked_seconds <= self._wanted_seconds and self._thread.is_alive():
            left = deadline_seconds - time.monotonic()
            if left <= 0:
                return
            self._has_looked.clear()
            self._has_looked.wait(min(left, 0.005))


class _Doubt:
    """Finds out, now and then, whether the job uses a device that does not know it.

    Its processes have the driver loaded, memory there has grown, and yet no list names them.
    """

    def __init__(self, source: GpuSource) -> None:
        self._source = source
        self._first_bytes: dict[str, int] = {}
        self._next_seconds = 0.0
        self._is_doubted = self._is_settled = False

    def judge(self, look: GpuReadings, pids: frozenset[int]) -> str | None:
        """A sentence, once, if that is so."""
        has_grown = False
        for device in look.devices:
            used = device.used_bytes or 0
            has_grown |= used > self._first_bytes.setdefault(device.uuid, used) + _NOTABLE_BYTES
        if self._is_settled or not has_grown or look.at_seconds < self._next_seconds:
            return None
        self._is_settled = any(process.used_bytes is not None for process in look.processes)
        is_first_doubt, self._is_doubted = not self._is_doubted, True
        if self._is_settled or is_first_doubt:
            # A process that has just come is in the list a moment later.
            self._next_seconds = look.at_seconds + _FIRST_DOUBT_SECONDS
            return None
        self._next_seconds = look.at_seconds + _DOUBT_SECONDS
        from ..sources.gpu.evidence import has_driver_loaded, why_not_listed

        if not any(has_driver_loaded(pid) for pid in sorted(pids)[:_PROCESSES_TO_ASK]):
            return None
        self._is_settled = True
        return (
            f"The job uses a GPU, but its memory there is not told apart from that of others: {why_not_listed(self._source.reasons)} "
            "What the device held beyond what it held at the start is an estimate of it."
        )
