"""Watch GPUs, their processes, and the machine's CPU and RAM."""

from __future__ import annotations

import signal
import time

from ..core import list_signals
from ..core.errors import TrackerError, UsageError
from ..core.moments import write_moment
from ..core.observation import SLOW, list_gpus, list_notes
from ..core.system import posix
from ..core.text import Span, count_cells, paint
from ..core.version import __version__
from ..live.abilities import has_colour, is_screen, read_size
from ..live.choices import HELP, Choices, Extent, Shown, press_all
from ..live.keys import split_keys
from ..live.lines import build_lines, build_object, head_line, render_object
from ..live.screen import Size, build_screen, measure
from ..live.selection import SORTS, Selection, split_names, split_words
from ..live.terminal import Screen, write
from ..sampler.handle.client import SETTLE_SECONDS, ObserverClient
from .observing import add_observing, check_seconds, refuse_unknown, repeat, say_once
from .options import Parser

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from ..core.observation import Observation
    from ..live.terminal import Event
    from ..sampler.handle.client import Question

_DEFAULT_INTERVAL = "1"
# Where the parser keeps gpustat's options.
_GPUSTAT = (
    *("show_cmd", "show_full_cmd", "show_user", "show_pid", "show_fan_speed", "show_codec"),
    *("show_power", "show_all", "gpuname_width", "no_header", "no_processes"),
)
_ENDING_SIGNALS = list_signals("SIGTERM", "SIGHUP", "SIGQUIT", "SIGBREAK")

_EPILOG = """\
On a terminal: tables redrawn in place, GPUs above their processes.
To a pipe or file: one line per GPU and interval (`-` is unknown).
--json writes one object in bytes, percent, watts and degrees Celsius, and exits.
With -i or -n it writes one per interval, each in one line.
Those of gpustat's options that are listed above as such print once and exit, as
gpustat does, unless there is an interval:
  gpu-tracker watch -cpu       once
  gpu-tracker watch -cpu -i    every second, until q

Keys:
""" + "".join(f"  {key:<20} {meaning}\n" for key, meaning in HELP)


def main(arguments: list[str]) -> int:
    """Full screen on a terminal, lines elsewhere."""
    options = make_parser().parse_args(arguments)
    interval = check_seconds("--interval", options.interval or _DEFAULT_INTERVAL, least=0.1)
    choices = Choices(_to_selection(options), _to_shown(options))
    is_coloured = options.force_color or (has_colour() and not options.no_color)
    with ObserverClient(check_seconds("--timeout", options.timeout, least=0.1)) as client:
        if _is_once(options):
            return _show_once(client, choices, as_json=options.json, is_coloured=is_coloured)
        if options.json or not is_screen():
            try:
                return _write_lines(client, choices, interval, as_json=options.json)
            except KeyboardInterrupt:
                return 0  # the normal end
        # A signal ends us when the terminal is restored.
        return -_Viewer(client, choices, interval, is_coloured=is_coloured).run()


# ---- Options.


def make_parser() -> Parser:
    """Its options."""
    parser = Parser(prog="gpu-tracker watch", description=__doc__)
    parser.epilog = _EPILOG
    parser.add_argument("--once", action="store_true", help="print once and exit")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.add_argument(
        *("-n", "-i", "--interval", "--watch"),
        metavar="SECONDS",
        nargs="?",
        const=_DEFAULT_INTERVAL,
        help=f"seconds between readings (default {_DEFAULT_INTERVAL})",
    )
    parser.add_argument(
        "--id",
        metavar="GPUS",
        help="only these GPUs: comma-separated indices, UUIDs or bus ids",
    )
    parser.add_argument(
        "--user", metavar="NAMES", default="", help="only processes of these users, comma-separated"
    )
    parser.add_argument("--pid", metavar="PIDS", default="", help="only these processes, comma-separated")
    parser.add_argument(
        "--sort",
        metavar="COLUMN",
        default=SORTS[0],
        help=f"sort processes by {', '.join(SORTS[:-1])} or {SORTS[-1]} (default {SORTS[0]})",
    )
    parser.add_argument("--reverse", action="store_true", help="reverse that order")
    colour = parser.add_mutually_exclusive_group()
    colour.add_argument("--no-color", action="store_true", help="no colours")
    colour.add_argument("--force-color", "--color", action="store_true", help="colours also in a pipe")
    add_observing(parser)
    _add_gpustat(parser)
    return parser


def _add_gpustat(parser: Parser) -> None:
    """What to show, by gpustat's names. Without any of them, a process has all columns."""
    group = parser.add_argument_group("gpustat's options (print once, unless there is an interval)")
    group.add_argument("-c", "--show-cmd", action="store_true", help="command of each process")
    group.add_argument(
        "-f", "--show-full-cmd", action="store_true", help="PID and command, with its directory"
    )
    group.add_argument("-u", "--show-user", action="store_true", help="user of each process")
    group.add_argument("-p", "--show-pid", action="store_true", help="PID of each process")
    group.add_argument("-F", "--show-fan-speed", "--show-fan", action="store_true", help="fan speed")
    group.add_argument(
        *("-e", "--show-codec"),
        metavar="PARTS",
        nargs="?",
        const="enc,dec",
        choices=("enc", "dec", "enc,dec"),
        help="load of the video encoder and decoder",
    )
    group.add_argument(
        *("-P", "--show-power"),
        metavar="PARTS",
        nargs="?",
        const="draw,limit",
        choices=("draw", "limit", "draw,limit", "limit,draw"),
        help="power and its limit, which are always shown",
    )
    group.add_argument("-a", "--show-all", action="store_true", help="all columns")
    group.add_argument("--gpuname-width", metavar="N", help="cut names of GPUs to N characters")
    group.add_argument("--no-header", action="store_true", help="leave out the first line")
    group.add_argument("--no-processes", action="store_true", help="leave out the processes")


def _has_gpustat(options: argparse.Namespace) -> bool:
    return any(getattr(options, name) for name in _GPUSTAT)


def _is_once(options: argparse.Namespace) -> bool:
    # Lines to a pipe have no colours: who speaks of them there means gpustat's table.
    means_table = _has_gpustat(options) or (not is_screen() and (options.no_color or options.force_color))
    return bool(options.once or (options.interval is None and (options.json or means_table)))


def _to_shown(options: argparse.Namespace) -> Shown:
    """The columns that gpustat shows for these options; all of them if none is named."""
    width = options.gpuname_width or str(Shown().name_cells)
    if not width.isdecimal():
        raise UsageError(f"--gpuname-width: {width!r} is not a whole number.")
    asks_command = options.show_cmd or options.show_full_cmd
    is_all = options.show_all or not (asks_command or options.show_user or options.show_pid)
    return Shown(
        has_pid=is_all or options.show_pid or options.show_full_cmd,
        has_user=is_all or options.show_user or not asks_command,
        has_command=is_all or asks_command,
        has_directory=options.show_full_cmd,
        has_fan=options.show_all or options.show_fan_speed,
        has_codec=options.show_all or bool(options.show_codec),
        name_cells=int(width),
        has_title=not options.no_header,
        has_processes=not options.no_processes,
    )


def _to_selection(options: argparse.Namespace) -> Selection:
    by_name = {name.lower(): name for name in SORTS}
    sort = by_name.get(options.sort.lower())
    if sort is None:
        raise UsageError(f"--sort: unknown column {options.sort!r}.", f"Use one of {', '.join(SORTS)}.")
    if options.id is not None and not split_names(options.id):
        raise UsageError("--id names no GPU.", "Leave it out to see all of them.")
    pids = split_words(options.pid)
    for pid in pids:
        if not pid.isdecimal():
            raise UsageError(f"--pid: {pid!r} is not a process ID.")
    return Selection(
        gpus=split_names(options.id or ""),
        users=split_words(options.user),
        pids=tuple(map(int, pids)),
        sort=sort,
        is_reversed=options.reverse,
    )


def _check_gpus(now: Observation, choices: Choices) -> None:
    """UsageError for a name that no GPU has, unless it may be one of a driver that has not answered."""
    is_slow = any(missing.kind == SLOW for vendor in now.vendors for missing in vendor.missing)
    gpus = list_gpus(now)
    if gpus and not is_slow:
        refuse_unknown(gpus, choices.selection.gpus)


# ---- Not on a full screen.


def _show_once(client: ObserverClient, choices: Choices, *, as_json: bool, is_coloured: bool) -> int:
    """Two readings, so that there are rates."""
    before = client.observe()
    time.sleep(SETTLE_SECONDS)
    now = client.observe(details=choices.shown.details)
    _check_gpus(now, choices)
    if as_json:
        write(render_object(build_object(before, now, choices.selection)) + "\n")
        return 0
    columns, _ = read_size()
    lines = build_screen(before, now, _title(now), choices, Size(columns))
    write("".join(paint(line, columns, has_colour=is_coloured).rstrip() + "\n" for line in lines))
    return 0


def _write_lines(client: ObserverClient, choices: Choices, interval: float, *, as_json: bool) -> int:
    before: Observation | None = None
    if not as_json:
        write(head_line() + "\n")
    for _ in repeat(interval):
        now = client.observe()
        if before is None:
            _check_gpus(now, choices)
        if as_json:
            lines = [render_object(build_object(before, now, choices.selection))]
        else:
            lines = build_lines(before, now, choices.selection)
            say_once(list_notes(now))
        if not write("".join(f"{line}\n" for line in lines)):
            break
        before = now
    return 0


# ---- On a full screen.


class _Viewer:
    """The screen, what was observed, and what the user wants to see of it."""

    def __init__(
        self, client: ObserverClient, choices: Choices, interval: float, *, is_coloured: bool
    ) -> None:
        self._client = client
        self._choices = choices
        self._interval = interval
        self._is_coloured = is_coloured
        self._before: Observation | None = None
        self._now: Observation | None = None
        self._question: Question | None = None
        self._due_seconds = 0.0

    def run(self) -> int:
        """Draw until the user quits; the signal that ended it, or 0."""
        with Screen() as screen:
            self._ask()
            is_new = True
            while not is_new or self._draw(screen):
                event = self._wait(screen)
                for number in _ENDING_SIGNALS:
                    if number in event.signals:
                        return number
                is_new = self._press(event.keys)
                if self._choices.is_over or event.is_closed or signal.SIGINT in event.signals:
                    return 0
                # A signal may be of another size, or be from before a pause.
                is_new = self._observe() or is_new or bool(event.signals)
        return 0

    def _wait(self, screen: Screen) -> Event:
        question = self._question
        deadline = self._due_seconds if question is None else question.deadline_seconds
        replies_fd = -1 if question is None else self._client.replies_fd
        return screen.wait(replies_fd, deadline - time.monotonic())

    def _press(self, keys: str) -> bool:
        """Whether they have changed anything."""
        extent = Extent() if self._now is None else measure(self._now, self._choices, _read_size())
        before, self._choices = self._choices, press_all(self._choices, split_keys(keys), extent)
        return self._choices != before

    def _ask(self) -> None:
        self._question = self._client.ask(details=self._choices.shown.details)

    def _observe(self) -> bool:
        """Ask when it is time, and take the answer when there is one; whether there is one."""
        if self._question is None:
            if time.monotonic() >= self._due_seconds:
                self._ask()
            return False
        answer = self._client.take(self._question)
        if answer is None:
            if time.monotonic() > self._question.deadline_seconds:
                raise TrackerError("The sampler stopped responding.")
            return False
        if self._now is None:
            _check_gpus(answer, self._choices)
        # The second reading comes soon: rates need two.
        pause = min(self._interval, SETTLE_SECONDS) if self._now is None else self._interval
        self._due_seconds = time.monotonic() + pause
        self._before, self._now, self._question = self._now, answer, None
        return True

    def _draw(self, screen: Screen) -> bool:
        size = _read_size()
        if self._now is None:
            lines: list[tuple[Span, ...]] = [(Span("Asking the drivers... (q quits)"),)]
        else:
            title = f"{_title(self._now)}  every {self._interval:g} s"
            lines = build_screen(self._before, self._now, title, self._choices, size)
        painted = [paint(line, size.columns, has_colour=self._is_coloured) for line in lines]
        widths = [count_cells(paint(line, size.columns, has_colour=False)) for line in lines]
        return screen.draw(painted, widths)


def _read_size() -> Size:
    return Size(*read_size())


def _title(now: Observation) -> str:
    at = write_moment(now.epoch_seconds, "%Y-%m-%d %H:%M:%S")
    return f"{posix.uname().nodename}  {at}  gpu-tracker {__version__}"
