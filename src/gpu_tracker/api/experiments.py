"""`with experiment("a"):` says what a block used, deletes the variables that it made, and names whoever keeps their values."""

from __future__ import annotations

import sys

from ..analysis.cells import measure_cell
from ..core.errors import UsageError
from ..core.notices import warn_once
from ..instrument.code_flags import OPTIMIZED
from ..instrument.high_water import read_own_memory
from ..instrument.survivors import Snapshot, is_tool, release
from ..reports.experiment import ExperimentReport
from .memory import take_step, without_collection
from .regions import region
from .tracker import Tracker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType, TracebackType
    from typing import Any

    from typing_extensions import Self

    from ..analysis.cells import CellUse
    from ..core.model import Survivor
    from ..reports.build import Report


class BlockTracker(Tracker):
    """Waits for a slow driver: a block may use a GPU at once, and what it leaves there is counted from the first reading."""

    _gpu_patience_seconds = 1.0


class Measurement:
    """A tracker around a block, and what the block left in RAM."""

    def __init__(self, tracker: BlockTracker) -> None:
        tracker.start()
        self.tracker = tracker
        self._ram_bytes = read_own_memory()[0]

    def end(self, number: int, code: str, error: BaseException | None) -> tuple[CellUse, Report] | None:
        """What was used; None if nothing is known."""
        grown_bytes = read_own_memory()[0] - self._ram_bytes
        self.tracker.__exit__(None if error is None else type(error), error, None)
        report = self.tracker.report
        if report is None:
            return None
        return measure_cell(number, code, grown_bytes, report.summary, report.ending), report


class experiment:  # noqa: N801 - a word of the public surface, used like a keyword
    """A `with` block at the top level of a script or in a notebook, whose variables are deleted at its end.

        with gput.experiment("lr=0.1", keep=("accuracy",)):
            model, data = make(), load()
            accuracy = train(model, data)

    At the end it prints what the block used (`report` has it as a value), deletes the variables that the block created, and collects
    garbage. Those named in `keep` stay, and modules, functions, classes and names with a leading underscore. What
    is still alive is listed with the variable that holds it. No cache is emptied: see `reclaim()`. In a function, where variables
    cannot be deleted from outside, it only measures.
    """

    def __init__(self, name: str, *, keep: Iterable[str] = (), quiet: bool = False) -> None:
        self.name = str(name)
        self.keep = _check_keep(keep)
        self.report: ExperimentReport | None = None
        """What came of it, after the end."""
        self._is_quiet = quiet
        self._namespace: dict[str, Any] | None = None
        self._names: frozenset[str] = frozenset()
        self._tensors: Snapshot | None = None
        self._measurement: Measurement | None = None
        self._region = region(self.name)

    def __enter__(self) -> Self:
        self.begin(_find_namespace(sys._getframe(1)))  # noqa: SLF001 - it is there in CPython and PyPy
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        report = self.end(exception)
        if not self._is_quiet:
            _print(str(report))

    def begin(self, namespace: dict[str, Any] | None) -> None:
        """Begin in these variables; None: those of a function."""
        self._namespace, self._names = namespace, frozenset(namespace or ())
        self._tensors = Snapshot()
        self._region.__enter__()  # of the tracker around it: regions inside are those of its own
        self._measurement = Measurement(BlockTracker(disable_logs=True, name=self.name[:100] or None))

    def end(self, error: BaseException | None = None) -> ExperimentReport:
        """Measure, delete, and look for what is left."""
        with without_collection():
            return self._end(error)

    def _end(self, error: BaseException | None) -> ExperimentReport:
        measurement, self._measurement = self._measurement, None
        ended = None if measurement is None else measurement.end(0, self.name, error)
        self._region.__exit__(None, None, None)
        report = ExperimentReport(
            name=self.name,
            use=None if ended is None else ended[0],
            deleted=None,
            kept=tuple(name for name in self.keep if name in (self._namespace or ())),
            given_back=None,
            survivors=(),
            more=0,
            missing=tuple(name for name in self.keep if name not in (self._namespace or self.keep)),
        )
        try:
            report = self._clean(report)
        except Exception as mishap:  # noqa: BLE001 - the block is the user's
            _warn(mishap)
            report = report._replace(deleted=())
        self.report = report
        self._namespace = self._tensors = None
        return report

    def _clean(self, report: ExperimentReport) -> ExperimentReport:
        namespace, before = self._namespace, self._tensors
        if namespace is None or before is None:
            return report
        created = [name for name in namespace if self._is_ours(name, namespace[name])]
        survivors: tuple[Survivor, ...] = ()
        more = 0

        def delete() -> int:
            nonlocal survivors, more
            values = {name: namespace.pop(name) for name in created}
            try:
                survivors, more = release(
                    values, [namespace[name] for name in report.kept], before, namespace
                )
            except Exception as mishap:  # noqa: BLE001 - the objects are the user's
                _warn(mishap)
            return len(created)

        step = take_step("variables", delete)
        return report._replace(deleted=tuple(created), given_back=step, survivors=survivors, more=more)

    def _is_ours(self, name: str, value: object) -> bool:
        """Whether the variable was made in the block, and is to be deleted."""
        is_new = name not in self._names and name not in self.keep
        return is_new and not name.startswith("_") and not is_tool(value) and value is not self


def _find_namespace(frame: FrameType) -> dict[str, Any] | None:
    """The variables of a module, cell or class; None in a function, which has none in a dictionary."""
    return None if frame.f_code.co_flags & OPTIMIZED else frame.f_locals


def _print(text: str) -> None:
    """Whoever cannot be told must not end the program, nor replace its own error."""
    try:
        try:
            print(text)
        except UnicodeEncodeError:
            print(text.encode("ascii", "backslashreplace").decode())
    except Exception as mishap:  # noqa: BLE001 - what stands for the output is the user's
        _warn(mishap)


def _warn(mishap: Exception) -> None:
    warn_once(f"experiment: {type(mishap).__name__}: {mishap}.")


def _check_keep(names: Iterable[Any]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise UsageError(f"keep={names!r} is one text.", f"Give the names of variables: keep=({names!r},).")
    kept = tuple(names)
    wrong = next((name for name in kept if not isinstance(name, str)), None)
    if wrong is not None:
        raise UsageError(
            f"keep takes the names of variables, not {type(wrong).__name__}.", 'For example keep=("model",).'
        )
    return kept
