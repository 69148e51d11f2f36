"""What the user of `top` has chosen, and what each key changes. Pure."""

from __future__ import annotations

from math import inf

from ..core.values import NamedTuple
from .keys import END, HOME, LEFT, PAGE_DOWN, PAGE_UP, RIGHT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SPANS = (60.0, 300.0, 900.0, 3600.0, 6 * 3600.0, 86400.0, inf)
"""How much of the past the graphs show, in seconds."""
SORTS = ("RAM", "CPU", "time", "PID")
# A key moves by so much of what the graphs show.
_STEP_SHARE, _PAGE_SHARE = 0.1, 1.0

HELP = (
    ("space", "stop the time, and go on"),
    ("left right, h l", "back and forth in time"),
    ("page up, page down", "the same, by a whole width"),
    ("home, end", "the start of the run, and now"),
    ("+ -", "graphs of a shorter or a longer time"),
    ("s", "sort processes by RAM, CPU, time, PID"),
    ("n p", "the next and the previous run"),
    ("?", "this help"),
    ("q, Ctrl-C", "quit"),
)


class Controls(NamedTuple):
    """What is shown."""

    moment: float | None = None
    """Seconds since the start of the run; None is now, whenever that is."""
    speed: float = 0.0
    """Seconds of the run per second of a replay; 0 if it is none."""
    is_paused: bool = False
    span: int = 1
    """Which of the spans."""
    sort: int = 0
    """By which of the sorts."""
    run: int = 0
    """Which of the runs."""
    has_help: bool = False
    is_over: bool = False

    @property
    def span_seconds(self) -> float:
        """How much of the past the graphs show."""
        return SPANS[self.span]


def press_all(controls: Controls, keys: Sequence[str], last_seconds: float, n_runs: int) -> Controls:
    """After these keys; `last_seconds` is how far the run has got."""
    for key in keys:
        controls = press(controls, key, last_seconds, n_runs)
    return controls


def press(controls: Controls, key: str, last_seconds: float, n_runs: int) -> Controls:
    """After one key."""
    if key in ("q", "Q"):
        return controls._replace(is_over=True)
    if key == "?" or controls.has_help:
        return controls._replace(has_help=not controls.has_help)
    if key == "s":
        return controls._replace(sort=(controls.sort + 1) % len(SORTS))
    if key in ("+", "="):
        return controls._replace(span=max(0, controls.span - 1))
    if key == "-":
        return controls._replace(span=min(len(SPANS) - 1, controls.span + 1))
    if key in ("n", "\t", "p"):
        run = (controls.run + (-1 if key == "p" else 1)) % n_runs
        return controls if run == controls.run else _show_run(controls, run)
    return _travel(controls, key, last_seconds)


def _show_run(controls: Controls, run: int) -> Controls:
    """Another run, from its start if runs are replayed."""
    return controls._replace(run=run, moment=0.0 if controls.speed else None, is_paused=False)


def _travel(controls: Controls, key: str, last_seconds: float) -> Controls:
    now = last_seconds if controls.moment is None else controls.moment
    width = min(controls.span_seconds, last_seconds)
    steps = {
        LEFT: -_STEP_SHARE,
        "h": -_STEP_SHARE,
        RIGHT: _STEP_SHARE,
        "l": _STEP_SHARE,
        PAGE_UP: -_PAGE_SHARE,
        PAGE_DOWN: _PAGE_SHARE,
    }
    if key == " ":
        return _stop_or_go(controls, now)
    if key == HOME:
        return controls._replace(moment=0.0, is_paused=True)
    if key == END:
        return controls._replace(moment=None, is_paused=False)
    return controls if key not in steps else _move_to(controls, now + steps[key] * width, last_seconds)


def _stop_or_go(controls: Controls, now: float) -> Controls:
    """The time stands still; then a replay goes on from there, and anything else from now."""
    if not controls.is_paused:
        return controls._replace(moment=now, is_paused=True)
    return controls._replace(moment=now if controls.speed else None, is_paused=False)


def _move_to(controls: Controls, moment: float, last_seconds: float) -> Controls:
    if moment >= last_seconds:
        return controls._replace(moment=None, is_paused=False)
    return controls._replace(moment=max(0.0, moment), is_paused=True)


def play(controls: Controls, passed_seconds: float, last_seconds: float) -> Controls:
    """A replay after that many seconds. At the end of what there is, it is now."""
    if not controls.speed or controls.is_paused or controls.moment is None:
        return controls
    moment = controls.moment + passed_seconds * controls.speed
    return controls._replace(moment=None if moment >= last_seconds else moment)
