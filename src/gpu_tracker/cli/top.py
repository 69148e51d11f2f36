"""Show a run on a full screen while it goes on, at an earlier moment, or again."""

from __future__ import annotations

import signal
import time
from math import isfinite

from ..core import list_signals
from ..core.errors import RecordingError, UsageError
from ..core.moments import Pace
from ..core.text import count_cells, paint
from ..live.abilities import has_colour, has_unicode, is_screen, read_size
from ..live.controls import HELP, Controls, play, press_all
from ..live.keys import split_keys
from ..live.scene import Scene
from ..live.spectator import Spectator
from ..live.terminal import Screen
from ..live.top import FEWEST_COLUMNS, FEWEST_ROWS, Look, build_frame
from ..recording.follow import follow_path
from ..recording.glance import glance
from ..recording.liveness import is_written
from .options import Parser
from .output import write_all
from .target import find_runs
from .track import DEFAULT_DIRECTORY

_FRAME_SECONDS = 1.0
_REPLAY_FRAME_SECONDS = 0.25
_SHARE = 0.01
_EPILOG = (
    "It reads the recording that the job's own tracker writes; nothing is measured again.\n"
    "A recording says how many steps a job will do if the run has the label steps\n"
    "(run --label steps=10000).\n\nKeys:\n" + "".join(f"  {key:<20} {meaning}\n" for key, meaning in HELP)
)


def main(arguments: list[str]) -> int:
    """Full screen until the user quits."""
    options = make_parser().parse_args(arguments)
    speed, n_steps = _to_number("--speed", options.speed), _to_number("--steps", options.steps)
    if not options.once and not is_screen():
        raise UsageError("top needs a terminal.", "`--once` prints a single frame.")
    paths = find_runs(options.target)
    if options.once:
        return _print_once(paths[0], n_steps)
    return -_Theatre(paths, n_steps, speed or 0.0).run()  # a signal ends us when the terminal is restored


def make_parser() -> Parser:
    """Its options."""
    parser = Parser(prog="gpu-tracker top", description=__doc__)
    parser.epilog = _EPILOG
    parser.add_argument(
        "target",
        metavar="PID|FILE|DIR|JOB",
        nargs="?",
        help=f"a tracked process, a recording, a directory, a job's ID or name (default {DEFAULT_DIRECTORY})",
    )
    parser.add_argument(
        "--speed", metavar="N", help="replay the run from its start, N times as fast as it was"
    )
    parser.add_argument("--steps", metavar="N", help="how many steps the job will do: tells when it is done")
    parser.add_argument("--once", action="store_true", help="print one frame, and exit")
    return parser


def _to_number(option: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not (isfinite(number) and number > 0):
        raise UsageError(f"{option}: {text!r} is not a number above 0.")
    return number


def _print_once(path: str, n_steps: float | None) -> int:
    columns, rows = read_size()
    controls = Controls()
    spectator = Spectator(follow_path(path), n_steps)
    scene = spectator.look(None, controls.span_seconds)
    _refuse_headless(spectator, path)
    # What does not fit is there nevertheless: nothing has to be drawn over.
    columns, rows = max(columns, FEWEST_COLUMNS), max(rows, FEWEST_ROWS)
    look = Look(columns, rows + 1, has_unicode=has_unicode())
    lines = build_frame(scene, controls, look)[:-1]
    write_all(1, "".join(paint(line, columns, has_colour=has_colour()).rstrip() + "\n" for line in lines))
    return 0


def _refuse_headless(spectator: Spectator, path: str) -> None:
    """RecordingError, with the reason, if there is no header, and nobody who would write it."""
    if not spectator.has_begun and not is_written(path):
        glance(path)


class _Theatre:
    """The screen, and what the user wants to see on it."""

    def __init__(self, paths: list[str], n_steps: float | None, speed: float) -> None:
        self._paths = paths
        self._n_steps = n_steps
        self._pace = Pace(_SHARE, _REPLAY_FRAME_SECONDS if speed else _FRAME_SECONDS)
        self._spent_seconds, self._played_at = time.thread_time(), time.monotonic()
        self._controls = Controls(moment=0.0 if speed else None, speed=speed)
        self._scene = Scene()
        self._spectators: dict[int, Spectator] = {}
        self._look()  # there must be something to see
        _refuse_headless(self._spectator, paths[0])

    def run(self) -> int:
        """Draw until the user quits; the signal that ended it, or 0."""
        with Screen() as screen:
            while self._draw(screen):
                self._pace.pay(time.monotonic(), time.thread_time() - self._spent_seconds)
                event = screen.wait(-1, self._pace.remaining(time.monotonic()))
                self._spent_seconds = time.thread_time()
                for number in list_signals("SIGTERM", "SIGHUP", "SIGQUIT", "SIGBREAK"):
                    if number in event.signals:
                        return number
                self._take(split_keys(event.keys))
                if self._controls.is_over or event.is_closed or signal.SIGINT in event.signals:
                    return 0
                self._try_look()
        return 0

    def _take(self, keys: list[str]) -> None:
        """What the user has typed, and the time that has passed in a replay."""
        passed_seconds, self._played_at = time.monotonic() - self._played_at, time.monotonic()
        last_seconds = self._spectator.last_seconds
        self._controls = play(self._controls, passed_seconds, last_seconds)
        self._controls = press_all(self._controls, keys, last_seconds, len(self._paths))

    @property
    def _spectator(self) -> Spectator:
        run = self._controls.run
        if run not in self._spectators:
            self._spectators = {run: Spectator(follow_path(self._paths[run]), self._n_steps)}
            self._spectators[run].survey()
        return self._spectators[run]

    def _look(self) -> None:
        self._scene = self._spectator.look(self._controls.moment, self._controls.span_seconds)

    def _try_look(self) -> None:
        """What was seen stays if the file has gone."""
        try:
            self._look()
        except RecordingError as error:
            self._scene = self._scene._replace(problem=str(error))

    def _draw(self, screen: Screen) -> bool:
        columns, rows = read_size()
        look = Look(columns, rows, has_unicode=has_unicode())
        lines = build_frame(self._scene, self._controls, look, len(self._paths))
        painted = [paint(line, columns, has_colour=has_colour()) for line in lines]
        widths = [count_cells(paint(line, columns, has_colour=False)) for line in lines]
        return screen.draw(painted, widths)
