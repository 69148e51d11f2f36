"""What the callbacks of all training frameworks have in common. It knows none of them."""

from __future__ import annotations

import functools
import sys
from threading import Thread
from weakref import WeakSet, ref

from ..api.loops import BETWEEN_STEPS, CHECKPOINT, EPOCH, Loop
from ..api.regions import log
from ..core.errors import TrackerError
from ..core.notices import warn_once
from ..instrument.mishaps import is_of_called
from ..instrument.running import await_end, end_what_has_ended, find_outermost
from .ipython import call_after_cells

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, ParamSpec, TypeVar

    from typing_extensions import Self

    from ..api.regions import region
    from ..api.tracker import Tracker
    from ..instrument.running import End

    _Parameters = ParamSpec("_Parameters")
    _Result = TypeVar("_Result")

_STEP = "step"  # no value of `log` can be called so
_MOST_SECONDS = 10.0


def harmless(hook: Callable[_Parameters, None]) -> Callable[_Parameters, None]:
    """A hook whose own failures are said once, and do not end the training."""

    @functools.wraps(hook)
    def call(*arguments: _Parameters.args, **options: _Parameters.kwargs) -> None:
        try:
            hook(*arguments, **options)
        except Exception as error:
            if not is_excused(error, hook.__qualname__):
                raise

    return call


def is_excused(error: Exception, hook: str) -> bool:
    """Whether it is a failure of our own, which is said, rather than what a signal handler has raised."""
    is_ours = isinstance(error, TrackerError) or is_of_called(error)
    if is_ours:
        warn_once(f"{hook}: {type(error).__name__}: {error}")
    return is_ours


class _NoLoop(Loop):
    """Of a callback that does nothing, because another one does it."""

    __slots__ = ()

    def begin_epoch(self, epoch: region = EPOCH) -> None:
        """Not here."""

    def go_to(self, part: region | None) -> None:
        """Neither."""


class Training:
    """One callback's view of a training: its loop, and a tracker if the callback has one of its own."""

    def __init__(self, tracker: Tracker | None, *, show_findings: bool) -> None:
        self.loop = Loop()
        self._tracker = tracker
        self._show_findings = show_findings
        self._is_tracking = False
        """Whether our tracker runs, and was started by us."""
        self._changed: list[tuple[Any, str | None, type]] = []
        """What is marked until the training ends: an object, its method, or None if that is its class, and which class it is of."""
        self.run: object = None
        """What all callbacks of a training share, while it goes on."""
        self.is_on = False
        """Whether it goes on."""
        self._end: ref[End] | None = None
        """That of the framework's function which calls us."""

    def __getstate__(self) -> dict[str, Any]:
        """A copy is of a callback before its training: a tracker that has begun cannot be copied."""
        tracker = self._tracker
        is_new = tracker is not None and tracker.state is tracker.State.NEW
        began: dict[str, Any] = {
            "_tracker": tracker if is_new else None,
            "_is_tracking": False,
            "_changed": [],
            "run": None,
            "is_on": False,
            "_end": None,
        }
        return {**vars(self), **began}

    def begin(self, run: object = None, package: str = "") -> Loop:
        """The training begins; another one may have failed without notice. A tracker that runs already is the user's to stop.

        Of several callbacks in the same run, whatever object that is, only the first one does anything. It ends with the function of
        this package that calls us, if that fails.
        """
        end_what_has_ended()
        self._finish()
        if run is not None and any(other.run is run for other in _begun):
            warn_once("This training has several TrackerCallbacks: only the first one is used.")
            self.loop = _NoLoop()
            return self.loop
        self.loop, self.run = Loop(), run
        _begun.add(self)
        if self._tracker is not None and self._tracker.state is not self._tracker.State.STARTED:
            self._tracker.start()
            self._is_tracking = True
        self.is_on = True
        self._await_end(package)
        return self.loop

    def begin_alone(self, part: region, package: str) -> None:
        """A part begins; if it is outside of any training, it ends with the function of this package that calls us, if that fails."""
        if not self.is_on and not self._is_idle:
            self._await_end(package)
        self.loop.go_to(part)

    def end_alone(self) -> None:
        """It has ended."""
        self.loop.go_to(None)
        if not self.is_on:
            self._cancel_end()

    def end(self, *, is_first_rank: bool) -> None:
        """The training is over, by whatever way; its findings are printed once, by the first rank."""
        tracker = self._finish()
        if tracker is not None and is_first_rank and self._show_findings:
            _print_findings(tracker)

    def log(self, step: float, values: Mapping[str, Any]) -> None:
        """Log those values that are numbers, or become one."""
        if self._is_idle:
            return
        numbers = {
            name: value for name, value in values.items() if name != _STEP and hasattr(value, "__float__")
        }
        if numbers:
            log(step=step, **numbers)

    def mark_saving(self, owner: object, name: str) -> None:
        """Make each call of this method a checkpoint until the training ends: no hook tells when one is written."""
        if self._is_idle:
            return
        self._replace(owner, name, _save_in_region(self.loop, getattr(owner, name)))

    def listen(
        self,
        owner: object,
        name: str,
        *,
        before: Callable[..., None] | None = None,
        after: Callable[..., None] | None = None,
    ) -> None:
        """Call this before or after each call of that method, with the same arguments, until the training ends."""
        if not self._is_idle:
            self._replace(owner, name, _listen(getattr(owner, name), before, after))

    def mark_waiting(self, loader: Any) -> None:
        """Wait for data whenever this loader makes a batch until the training ends. One that cannot be changed is not observed."""
        kind: Any = type(loader)
        if self._is_idle or not hasattr(kind, "__iter__"):
            return
        loop = self.loop

        def observe(self: Any) -> Any:
            return _Fetched(loop, functools.partial(kind.__iter__, self))

        def reduce(self: Any, protocol: Any) -> Any:
            """A copy is a loader like any other."""
            make, arguments, *state = kind.__reduce_ex__(self, protocol)
            return make, tuple(kind if one is type(self) else one for one in arguments), *state

        members = {
            "__iter__": observe,
            "__reduce_ex__": reduce,
            "__module__": kind.__module__,
            "__qualname__": kind.__qualname__,
        }
        try:
            _set_class(loader, type(kind.__name__, (kind,), {**members, "__slots__": ()}))
        except TypeError:
            return  # it has no class of Python
        self._changed.append((loader, None, kind))

    def _replace(self, owner: Any, name: str, method: Callable[..., Any]) -> None:
        vars(owner)[name] = method
        self._changed.append((owner, name, type(owner)))

    @property
    def _is_idle(self) -> bool:
        return isinstance(self.loop, _NoLoop)

    def _await_end(self, package: str) -> None:
        self._cancel_end()
        frame = find_outermost(package, sys._getframe(1))  # noqa: SLF001 - it is there in CPython and PyPy
        if frame is not None:
            self._end = ref(await_end(frame, self._abandon))
            call_after_cells(end_what_has_ended)

    def _cancel_end(self) -> None:
        end = None if self._end is None else self._end()
        self._end = None
        if end is not None:
            end.cancel()

    def _abandon(self, error: BaseException | None) -> None:
        """The function that has called us has failed. In a recording of ours, what was open then stays open."""
        if self._is_tracking:
            # In a thread: whatever runs here may hold something that stopping waits for.
            stopping = Thread(target=self._stop_failed, args=(error,), daemon=True)
            stopping.start()
            stopping.join(_MOST_SECONDS)
        self._is_tracking = False
        self._finish()

    @harmless
    def _stop_failed(self, error: BaseException | None) -> None:
        if self._tracker is not None:
            self._tracker.stop_failed(error)

    def _finish(self) -> Tracker | None:
        """The tracker that was stopped with it, if any."""
        self.run, self.is_on = None, False
        self._cancel_end()
        _begun.discard(self)
        self.loop.end()
        while self._changed:
            owner, name, kind = self._changed.pop()
            if name is None:
                _set_class(owner, kind)
            else:
                vars(owner).pop(name, None)
        if self._tracker is None or not self._is_tracking:
            return None
        self._is_tracking = False
        self._tracker.stop()
        return self._tracker


_begun: WeakSet[Training] = WeakSet()


def _save_in_region(loop: Loop, save: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    @functools.wraps(save)
    def call(*arguments: _Parameters.args, **options: _Parameters.kwargs) -> _Result:
        if loop.part is not BETWEEN_STEPS:
            with CHECKPOINT:
                return save(*arguments, **options)
        loop.go_to(CHECKPOINT)
        try:
            return save(*arguments, **options)
        finally:
            loop.go_to(BETWEEN_STEPS)

    return call


def _listen(
    method: Callable[_Parameters, _Result],
    before: Callable[..., None] | None,
    after: Callable[..., None] | None,
) -> Callable[_Parameters, _Result]:
    @functools.wraps(method)
    def call(*arguments: _Parameters.args, **options: _Parameters.kwargs) -> _Result:
        if before is not None:
            before(*arguments, **options)
        try:
            return method(*arguments, **options)
        finally:
            if after is not None:
                after(*arguments, **options)

    return call


# Not through the object, which may pass for one of another class.
_set_class = vars(object)["__class__"].__set__


class _Fetched:
    """Once through a loader; the time in it is a wait."""

    def __init__(self, loop: Loop, begin: Callable[[], Iterator[Any]]) -> None:
        self._loop = loop
        loop.begin_wait()
        try:
            self._batches = begin()
        finally:
            loop.end_wait()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        self._loop.begin_wait()
        try:
            return next(self._batches)
        finally:
            self._loop.end_wait()

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["_batches"], name)


def _print_findings(tracker: Tracker) -> None:
    from ..reports.finding_lines import format_findings

    report = tracker.report
    for line in format_findings(report.findings) if report is not None else ():
        print(f"gpu_tracker: {line}")
