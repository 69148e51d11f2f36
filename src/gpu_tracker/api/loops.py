"""Training loops: `for batch in watch(loader)` and `step(loss=0.7)`, and what the callbacks of frameworks are made of.

The parts of a loop are regions: an epoch, and inside it waiting for data, steps, evaluation and checkpoints.
"""

from __future__ import annotations

import os
from _thread import get_ident
from contextvars import ContextVar
from typing import Generic, TypeVar

from ..core import loops as names
from ..core.notices import warn_once
from ..core.system import monotonic_ns
from ..instrument import outbox
from ..instrument.stack import current
from ..instrument.suspension import enter_in_task
from ..instrument.tasks import find_task
from ..sources.identity import find_identity
from .regions import enter, is_mishap_of, leave, log_for, region, to_step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from typing_extensions import Self

    from ..instrument.stack import Frame

_Item = TypeVar("_Item")


class _Part(region):
    """A part of every step."""

    __slots__ = ()
    is_frequent = True


EPOCH = region(names.EPOCH)
STEP = _Part(names.STEP)
DATA_WAIT = _Part(names.DATA_WAIT)
BETWEEN_STEPS = _Part(names.BETWEEN_STEPS)
LOGGING = region(names.LOGGING)
EVALUATION = region(names.EVALUATION)
CHECKPOINT = region(names.CHECKPOINT)

# A step that is younger than this when another loader is asked has not begun: all loaders of a round are waited for in turn. A loader that
# is asked this soon after it was made is that of a `for`, which has waited for it to begin.
_NOT_YET_A_STEP_NS = 1_000_000


class Loop:
    """Which part of a training loop runs now. Nothing here raises into the training."""

    __slots__ = ("_call", "_epoch", "_is_untold", "part")

    def __init__(self) -> None:
        self.part: region | None = None
        self._call: Frame | None = None
        self._epoch: Frame | None = None
        self._is_untold = False
        """Whether other code may run in the middle of it, and nobody tells when."""

    def __reduce__(self) -> tuple[type[Loop], tuple[()]]:
        """A copy has begun nothing."""
        return Loop, ()

    def begin_epoch(self, epoch: region = EPOCH) -> None:
        """A new epoch, whatever was before."""
        self.end()
        self._epoch = enter(epoch, begin=enter_in_task)
        self._is_untold = self._epoch is not None and self._epoch.is_untold

    def end(self) -> None:
        """The end of the epoch, and of what runs in it."""
        self.go_to(None)
        epoch, self._epoch = self._epoch, None
        leave(epoch)

    def go_to(self, part: region | None) -> None:
        """End one part and begin another: a microsecond or two, since it happens twice in every step."""
        self.part, call = part, self._call
        if part is None:
            self._call = None
            leave(call)
            return
        now = monotonic_ns()
        try:
            if now > outbox.search_due_ns:
                outbox.search()
            if call is not None and call.stack is outbox.stack:
                self._call = call.stack.move(call, part, now)
                self._doubt()
                return
        except RecursionError:
            pass
        except BaseException as error:
            if not is_mishap_of(error, call):
                raise
        leave(call)
        self._call = enter(part)
        self._doubt()

    def _doubt(self) -> None:
        if self._is_untold and self._call is not None:
            self._call.stack.doubt(self._call)

    def begin_wait(self) -> None:
        """A batch is fetched. In a step, or in an evaluation, that is a part of it."""
        if self.part is BETWEEN_STEPS:
            self.go_to(DATA_WAIT)

    def end_wait(self) -> None:
        """It has come, or there is none."""
        if self.part is DATA_WAIT:
            self.go_to(BETWEEN_STEPS)

    def interrupt(self, part: region) -> None:
        """Begin a part that may have begun a little earlier, when nobody knew what was done between two steps."""
        self.rename_pause(part)
        if self.part is not part:
            self.go_to(part)

    def rename_pause(self, part: region) -> None:
        """What is done between two steps, if anything is, was this part all the time."""
        if self.part is BETWEEN_STEPS and self._call is not None:
            self.part = part
            self._rename(self._call, part)

    def _rename(self, call: Frame, part: region) -> None:
        try:
            call.stack.move(call, part, monotonic_ns(), is_renamed=True)
        except RecursionError:
            pass
        except BaseException as error:
            if not is_mishap_of(error, call):
                raise


class _Rounds(Loop):
    """The loop over a watched loader. Others that are asked in its rounds belong to them: they are waited for, too."""

    __slots__ = ("asked_in", "is_over")

    def __init__(self) -> None:
        super().__init__()
        self.asked_in = 0
        """The thread that waits for a batch now."""
        self.is_over = False

    def begin_earlier(self, since_ns: int, around: Frame | None, own_ns: int) -> None:
        """They have begun before, unless something else was meanwhile in the call around them, whose own time was this."""
        epoch, call = self._epoch, self._call
        if epoch is None or call is None or epoch.stack is not call.stack or epoch.outer is not around:
            return
        if around is None or around.own_ns - epoch.entered_ns == own_ns:
            call.stack.backdate((epoch, call), since_ns)

    def finish(self) -> None:
        """No more rounds, or none of its own."""
        self.is_over = True
        self.end()

    def wait_in_step(self) -> bool:
        """Begin to wait for one more loader in a step. Whether the step had not really begun: then all of it was waiting."""
        call = self._call
        if call is None or monotonic_ns() - call.entered_ns > _NOT_YET_A_STEP_NS:
            return False
        self._rename(call, DATA_WAIT)
        if call.owner is not DATA_WAIT:
            return False
        self.part = DATA_WAIT
        return True


_watched: ContextVar[tuple[int, int, list[_Rounds]] | None] = ContextVar("gpu_tracker_watched", default=None)
"""The loops over what `watch` returns, the innermost last, with their thread and task: what is created inside has its own."""
_n_steps: dict[str | None, float] = {}
"""Of each tracker in this process, and of the process itself."""


def _forget_after_fork() -> None:
    """A process that was forked by a loader does not wait for it."""
    for rounds in _find_loops():
        rounds.asked_in = 0


def _find_loops() -> list[_Rounds]:
    """Those of the code that runs now."""
    thread, task, found = get_ident(), find_task(), _watched.get()
    if found is None or found[0] != thread or found[1] != task:
        found = thread, task, []
        _watched.set(found)
    return found[2]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


class watch(Generic[_Item]):  # noqa: N801 - a word of the public surface, used like a keyword
    """The same batches, with the time that each took to come and to be used.

    Each time through it is an epoch (or another region, by its name). In it, `data_wait` is the time until a batch has come, and `step`
    the time until the next one is wanted, another such loop begins inside, or `gput.step()` is called. A watched loader that is asked for
    batches in the rounds of another one (`zip`, `next`) is waited for in those rounds; one that another one takes its batches from is part
    of that one. Nothing else is changed: length, attributes, errors and order are those of the loader, and no batch is kept.
    """

    __slots__ = ("_loader", "_region")

    def __init__(self, loader: Iterable[_Item], name: str = names.EPOCH) -> None:
        self._loader = loader
        self._region = region(name)

    def __iter__(self) -> Iterator[_Item]:
        return _Batches(self._loader, self._region)

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type] # not every loader has one

    def __bool__(self) -> bool:
        return bool(self._loader)

    def __getattr__(self, name: str) -> Any:
        if name in watch.__slots__ or name.startswith("__"):
            raise AttributeError(name)  # it is being copied
        return getattr(self._loader, name)


class _Taken(Generic[_Item]):
    """Once through a loader, which may be over. Not a generator, which would keep the last batch while the next one is made.

    It has rounds of its own, with an epoch and steps, unless it is asked in those of another one (`zip`, `next` in the body of a loop)
    or by another one.
    """

    __slots__ = ("_around", "_batches", "_epoch", "_is_over", "_loops", "_made", "_rounds")

    def __init__(self, loader: Iterable[_Item], epoch: region) -> None:
        self._epoch, self._loops, self._is_over = epoch, _find_loops(), False
        self._rounds: _Rounds | None = None
        self._around = self._loops[-1] if self._loops else None
        """The rounds in which it was made: it is a loop inside them, rather than one more loader of theirs."""
        call, began_ns = current.get(), monotonic_ns()
        own_ns = 0 if call is None else call.own_ns
        self._batches = iter(loader)
        self._made = began_ns, monotonic_ns(), call, own_ns

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> _Item:
        if self._is_over:
            return next(self._batches)
        loops, rounds = _find_loops(), self._rounds
        if rounds is None or not loops or loops[-1] is not rounds:
            rounds = self._find_rounds(loops)
            if rounds is not self._rounds:
                return self._ask_in(rounds)
        if rounds.part is not DATA_WAIT:
            rounds.go_to(DATA_WAIT)
        rounds.asked_in = get_ident()
        try:
            batch = next(self._batches)
        except BaseException:
            self._end()
            raise
        rounds.asked_in = 0
        rounds.go_to(STEP)
        return batch

    def _begin(self, loops: list[_Rounds]) -> _Rounds:
        _end_step()
        rounds = self._rounds = _Rounds()
        self._loops = loops
        loops.append(rounds)
        began_ns, made_ns, call, own_ns = self._made
        is_at_once = monotonic_ns() - made_ns < _NOT_YET_A_STEP_NS < made_ns - began_ns
        rounds.begin_epoch(self._epoch)
        rounds.go_to(DATA_WAIT)
        if is_at_once:
            rounds.begin_earlier(began_ns, call, own_ns)
        return rounds

    def _find_rounds(self, loops: list[_Rounds]) -> _Rounds:
        """The rounds in which it is asked now. Its own if it has some: then the loops inside have been left, though not dropped."""
        own, inner = self._rounds, loops[-1] if loops else None
        if inner is not None and inner.asked_in == get_ident():
            return inner
        if own is not None and not own.is_over:
            if own not in loops:  # it was made in another thread
                if own in self._loops:
                    self._loops.remove(own)
                self._loops = loops
                loops.append(own)
            while loops[-1] is not own:
                loops.pop().finish()
            return own
        if inner is not None and (own is not None or inner is not self._around):
            return inner
        return self._begin(loops)

    def _ask_in(self, rounds: _Rounds) -> _Item:
        """The next batch, as one more in a round of another loader, or for another loader."""
        if rounds.asked_in == get_ident():
            return self._take()
        part, call = rounds.part, None
        is_in_step = part is STEP and not rounds.wait_in_step()
        if is_in_step:
            call = enter(DATA_WAIT)
        elif part is not STEP:
            rounds.go_to(DATA_WAIT)
        rounds.asked_in, after = get_ident(), None
        try:
            batch = self._take()
            after = part
        finally:
            rounds.asked_in = 0
            leave(call)
            if not is_in_step:
                rounds.go_to(after)
        return batch

    def _take(self) -> _Item:
        try:
            return next(self._batches)
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        if not getattr(self, "_is_over", True):  # a signal handler may have raised before it began
            self._is_over = True
            self.__class__ = _Taken  # what a signal handler raises while Python calls `__del__` would be lost
            rounds = getattr(self, "_rounds", None)
            if rounds is not None:
                rounds.finish()
                if rounds in self._loops:
                    self._loops.remove(rounds)


class _Batches(_Taken[_Item]):
    """While it is not over."""

    __slots__ = ()

    def __del__(self) -> None:
        """A loop that was left in the middle has dropped this."""
        self._end()


def step(number: float | None = None, /, **values: float) -> None:
    """One step of the training is done; its loss and whatever else it has are logged with its number.

    Steps are counted from 1 on in each tracker, or from a number that is given. In a loop over `gput.watch(...)` the step ends here, and what
    follows in the same round (evaluation, saving) is not part of it.
    """
    n_steps = _count_step(number)
    if values:
        if names.STEP in values:
            del values[names.STEP]
            warn_once(
                "gput.step: step=... is ignored: the number comes first, as in gput.step(5, loss=loss)."
            )
        log_for("step", n_steps, values)  # while a framework computes, this waits for it
    _end_step()


def _count_step(number: object) -> float:
    """The number of this step: each tracker in this process counts its own."""
    tracker = outbox.find_own_tracker()
    before = _n_steps.get(tracker)
    if before is None:
        before = 0.0
        for ended in [one for one in _n_steps if one is not None and not outbox.is_own_tracker(one)]:
            _n_steps.pop(ended, None)
    given = None if number is None else to_step(number)
    _n_steps[tracker] = n_steps = before + 1 if given is None else given
    return n_steps


def _end_step() -> None:
    loops = _find_loops()
    if loops and loops[-1].part is STEP:
        loops[-1].go_to(None)


def is_first_rank() -> bool:
    """Whether this process is the first of its job, by what its launcher says, or the only one."""
    return not find_identity(os.environ).rank
