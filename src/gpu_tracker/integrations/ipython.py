"""Notebooks: a picture that is drawn anew while a run goes on, `%track`, and the name of the cell that runs.

Outputs are changed through one display handle and events of IPython; the text of a cell is never run by us. Nothing is printed
from a thread.
"""

from __future__ import annotations

import os
import shlex
import sys
import threading

from ..analysis.cells import RANKINGS, rank_cells
from ..api.experiments import BlockTracker, Measurement, experiment
from ..core import load_module
from ..core.errors import StateError
from ..core.notices import warn_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ..analysis.cells import CellUse
    from ..api.tracker import Tracker
    from ..reports.build import Report

_NOT_HERE = "live=True draws in the output of a notebook's cell; here it does nothing."
_WAITING = "gpu_tracker: waiting for the first sample"
_EVENTS = ("pre_run_cell", "post_run_cell")
_MAGIC = "track"
_OPTIONS = ("--name", "--record")
_USAGE = (
    "%track [--name NAME] [--record FILE]: this cell; %track auto [off]: every cell from now on; "
    f"%track cells [{'|'.join(RANKINGS)}]: all of them; %track last: the report on the last one; "
    "%track experiment NAME [--keep a,b] and, in a later cell, %track experiment end: what the cells in between "
    "used, and their variables deleted"
)
# Where front ends leave the path of the notebook: VS Code, Jupyter.
_PATHS = ("__vsc_ipynb_file__", "__session__")
_SESSION_VARIABLE = "JPY_SESSION_NAME"


def find_shell() -> Any:
    """The shell of a notebook's kernel; None elsewhere, as in a terminal, where an output cannot be changed."""
    shell = _find_any_shell()
    return shell if getattr(shell, "kernel", None) is not None else None


def _find_any_shell() -> Any:
    ask = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return None if ask is None else ask()


def list_kept_errors() -> list[BaseException]:
    """What IPython keeps of the last cell, besides what the interpreter does."""
    return [
        error for error in (_find_error(getattr(_find_any_shell(), "last_execution_result", None)),) if error
    ]


def name_cell() -> tuple[str, ...] | None:
    """The notebook and the cell that runs, in place of the kernel's own command; None outside."""
    shell = find_shell()
    if shell is None:
        return None
    paths = [*(shell.user_ns.get(name) for name in _PATHS), os.environ.get(_SESSION_VARIABLE)]
    path = next((path for path in paths if isinstance(path, str) and path.endswith(".ipynb")), "notebook")
    return (os.path.basename(path), "cell", str(find_number(shell)))


_is_before_cell = False


def find_number(shell: Any) -> int:
    """Of the cell that runs, as in `In [3]`: versions of IPython differ in when they count, so its history is asked."""
    return len(shell.history_manager.input_hist_raw) - (not _is_before_cell)


# ---- A picture of a run that goes on.


class Execution:
    """One execution of a cell, and what it has started."""

    def __init__(self, shell: Any) -> None:
        parent: Mapping[str, Any] = shell.get_parent() if hasattr(shell, "get_parent") else {}
        self.request = parent.get("header", {}).get("msg_id")
        # Not every front end names its cells; the same text is the same cell then.
        self.cell = parent.get("metadata", {}).get("cellId") or parent.get("content", {}).get("code")


class Panel:
    """The output of a cell that shows one run. From a thread while it goes on; from the caller's in the end."""

    def __init__(self, tracker: Tracker, shell: Any) -> None:
        self.tracker = tracker
        self.execution = Execution(shell)
        self.names: set[str] = set()
        """The user's variables that had the tracker at the end of its cell."""
        self._lock = threading.Lock()
        self._is_final = False
        self._handle = load_module("IPython.display").display(
            {"text/plain": _WAITING, "text/html": f"<p>{_WAITING}</p>"}, raw=True, display_id=True
        )

    def show(self, report: Report) -> None:
        """Draw what is known so far, unless it is over."""
        with self._lock:
            if not self._is_final:
                self._handle.update(_bundle(report), raw=True)

    def finish(self) -> None:
        """Draw it for the last time. No failure here is the job's."""
        if self in _open:
            _open.remove(self)
        try:
            report = self.tracker.report
            with self._lock:
                self._is_final = True
                if report is not None:
                    self._handle.update(_bundle(report), raw=True)
        except Exception as error:  # noqa: BLE001 - IPython's or the front end's
            warn_once(f"live: the last picture is missing: {type(error).__name__}: {error}.")

    def remember_names(self, shell: Any) -> None:
        """Which variables have it, once its cell has ended."""
        self.names = {name for name, value in list(shell.user_ns.items()) if value is self.tracker}

    def is_replaced(self, shell: Any, execution: Execution) -> bool:
        """Whether its cell runs again, or its variables have something else by now: nobody will stop it."""
        if execution.request == self.execution.request:
            return False
        is_cell = execution.cell is not None and execution.cell == self.execution.cell
        is_lost = bool(self.names) and all(shell.user_ns.get(name) is not self.tracker for name in self.names)
        return is_cell or is_lost


_open: list[Panel] = []


def open_panel(tracker: Tracker) -> Panel | None:
    """A place to draw in, below the cell that runs; None where there is none."""
    shell = find_shell()
    if shell is None:
        warn_once(_NOT_HERE)
        return None
    end_replaced(shell)
    panel = Panel(tracker, shell)
    _open.append(panel)
    _call_once(shell, "post_run_cell", lambda: panel.remember_names(shell))
    return panel


def end_replaced(shell: Any) -> None:
    """Stop the trackers that were started by an earlier run of this cell, or whose variables have changed."""
    execution = Execution(shell)
    for panel in list(_open):
        if panel.is_replaced(shell, execution):
            _open.remove(panel)
            try:
                panel.tracker.stop()
            except StateError:
                pass  # it did not start, or another thread has stopped it


def _bundle(report: Report) -> dict[str, str]:
    from ..reports.notebook import describe_line, show_picture, show_report

    show = show_picture if report.ending == "running" else show_report
    return {"text/plain": describe_line(report), "text/html": show(report)}


def _call_once(shell: Any, event: str, act: Any) -> None:
    def call(*_: object) -> None:
        shell.events.unregister(event, call)
        act()

    shell.events.register(event, call)


def call_after_cells(act: Callable[[], bool]) -> None:
    """After this cell and those that follow, until it says that this is no longer needed; nothing outside of IPython."""
    events = getattr(_find_any_shell(), "events", None)
    if events is None:
        return

    def call(*_: object) -> None:
        if not act():
            events.unregister("post_run_cell", call)

    events.register("post_run_cell", call)


# ---- %track


class Running:
    """The cells that run now: one may run others, as `%%capture` and `%run` do."""

    def __init__(self) -> None:
        self._request: object = None
        self._infos: list[Any] = []
        """What IPython knows of each, the outermost first."""

    def begin(self, request: object, info: Any) -> bool:
        """Whether it is the outermost. Another request to the kernel is another cell, whatever has become of the last one."""
        if request != self._request:
            self._request, self._infos = request, []
        self._infos.append(info)
        return len(self._infos) == 1

    def end(self, result: Any) -> bool:
        """Whether it was the outermost. Of one that is empty or refused only the end is told."""
        ended = getattr(result, "info", None)
        place = next((place for place, info in enumerate(self._infos) if info is ended), None)
        if place is not None:
            del self._infos[place:]
        elif self._infos and _find_code(ended) in (None, _find_code(self._infos[-1])):
            self._infos.pop()
        return not self._infos


def _find_code(info: Any) -> str | None:
    code = getattr(info, "raw_cell", None)
    return code if isinstance(code, str) else None


class Cells:
    """What `%track` knows: the cell that is tracked now, and all that were."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._measurement: Measurement | None = None
        self._experiment: experiment | None = None
        self._number, self._code = 0, ""
        self._running = Running()
        self._is_auto = False
        self._uses: list[CellUse] = []
        self._last: Report | None = None

    def track(self, line: str, cell: str | None = None) -> object:
        """Track this cell or, with a word, other ones: see `%track?`."""
        if cell is not None:
            raise _explain(f"Write %{_MAGIC}, with one %, in the first line of the cell.")
        words = _split(line)
        word, *others = words or [""]
        if word == "last" and not others:
            return self._last or _NOTHING_TRACKED
        if word == "cells" and others in ([], *([name] for name in RANKINGS)):
            return CellTable(rank_cells(self._uses, *others)) if self._uses else _NOTHING_TRACKED
        if word == "auto" and others in ([], ["on"], ["off"]):
            self._is_auto = others != ["off"]
            return None
        if word == "experiment":
            self._experiment_with(others)
            return None
        self._begin(_parse_options(words), is_live=True)
        return None

    def leave(self) -> None:
        """The magic is gone, or loaded again."""
        if self._is_auto:
            print(f"%{_MAGIC} auto is off now: gpu_tracker was unloaded.")

    def pre_run_cell(self, info: Any = None) -> None:
        """Every cell, if that is wanted; not those that only ask us, and those that another one runs."""
        global _is_before_cell
        if not self._running.begin(Execution(self._shell).request, info):
            return
        self._code = getattr(info, "raw_cell", None) or ""
        if self._is_auto and not self._code.lstrip().startswith(f"%{_MAGIC} "):
            _is_before_cell = True
            try:
                self._begin({}, is_live=False)
            finally:
                _is_before_cell = False

    def post_run_cell(self, result: Any = None) -> None:
        """The end of a cell, whether we know its start or not."""
        if not self._running.end(result):
            return
        measurement, self._measurement = self._measurement, None
        if measurement is None:
            return
        try:
            self._end(measurement, _find_cell_error(result))
        except Exception as error:  # noqa: BLE001 - the cell is the user's
            warn_once(f"%{_MAGIC}: {type(error).__name__}: {error}")

    def _begin(self, options: Mapping[str, str], *, is_live: bool) -> None:
        if self._measurement is not None:
            self._measurement.tracker.stop()
        tracker = BlockTracker(live=is_live, name=options.get("name"), record=options.get("record"))
        self._measurement = Measurement(tracker)
        self._number = find_number(self._shell)

    def _end(self, measurement: Measurement, error: BaseException | None) -> None:
        ended = measurement.end(self._number, _drop_magic(self._code), error)
        if ended is None:
            return
        use, self._last = ended
        self._uses.append(use)
        if self._is_auto:
            from ..reports.notebook import describe_cell

            print(describe_cell(use))

    def _experiment_with(self, words: Sequence[str]) -> None:
        """Begin one, or end the one that goes on, or both. What was deleted is shown wherever in a cell that is."""
        is_end = words == ["end"]
        name, options = words[0] if words[::2] and len(words) % 2 else "", words[len(words) % 2 :]
        if not is_end and (not name or options[::2] not in ([], ["--keep"])):
            raise _explain(_USAGE)
        if is_end and self._experiment is None:
            raise _explain("There is no experiment to end: begin one with %track experiment NAME.")
        going_on, self._experiment = self._experiment, None
        if going_on is not None:
            load_module("IPython.display").display(going_on.end())
        if not is_end:
            keep = [one.strip() for one in options[1].split(",")] if options else ()
            self._experiment = experiment(name, keep=keep)
            self._experiment.begin(self._shell.user_ns)


class CellTable:
    """All cells that were tracked, those that used most first."""

    def __init__(self, cells: Sequence[CellUse]) -> None:
        self.cells = tuple(cells)

    def __repr__(self) -> str:
        from ..reports.notebook import list_cells

        return list_cells(self.cells)

    def _repr_html_(self) -> str:
        from ..reports.notebook import show_cells

        return show_cells(self.cells)


class _Sentence:
    """An output in words."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


_NOTHING_TRACKED = _Sentence(f"No cell was tracked yet: write %{_MAGIC} in the first line of one.")


def _explain(text: str) -> Exception:
    """What IPython prints without a traceback."""
    error: Exception = load_module("IPython.core.error").UsageError(text)
    return error


def _split(line: str) -> list[str]:
    """The words of a line; one in quotes may have spaces."""
    try:
        return shlex.split(line)
    except ValueError as error:  # a quote that is not closed
        raise _explain(f"%{_MAGIC}: {error}") from None


def _drop_magic(code: str) -> str:
    """The code of a cell without our own lines, unless it has no other."""
    lines = [line for line in code.splitlines() if line.split()[:1] != [f"%{_MAGIC}"]]
    rest = "\n".join(lines)
    return rest if rest.strip() else code


def _parse_options(words: Sequence[str]) -> dict[str, str]:
    pairs = list(zip(words[::2], words[1::2], strict=False))
    if len(words) % 2 or any(word not in _OPTIONS for word, _ in pairs):
        raise _explain(_USAGE)
    return {word.lstrip("-"): value for word, value in pairs}


def _find_error(result: Any) -> BaseException | None:
    return getattr(result, "error_in_exec", None) or getattr(result, "error_before_exec", None)


def _find_cell_error(result: Any) -> BaseException | None:
    """In a cell, unlike in a script, an exit is an error whatever its code is: the lines that follow do not run."""
    error = _find_error(result)
    return SystemExit(1) if isinstance(error, SystemExit) and not error.code else error


_cells: dict[int, Cells] = {}


def add_magic(shell: Any) -> None:
    """`%track` and its events; once per shell."""
    if id(shell) in _cells:
        return
    cells = _cells[id(shell)] = Cells(shell)
    for event in _EVENTS:
        shell.events.register(event, getattr(cells, event))
    shell.register_magic_function(cells.track, "line_cell", _MAGIC)


def remove_magic(shell: Any) -> None:
    """As before `add_magic`."""
    cells = _cells.pop(id(shell), None)
    if cells is not None:
        for event in _EVENTS:
            shell.events.unregister(event, getattr(cells, event))
        for kind in ("line", "cell"):
            shell.magics_manager.magics[kind].pop(_MAGIC, None)
        cells.leave()
