"""Watch GPUs, their processes, and the machine's CPU and RAM."""

from __future__ import annotations

import os
import signal
import time

from ..core.errors import TrackerError
from ..core.moments import write_moment
from ..core.observation import list_notes
from ..core.text import Span, count_cells, paint
from ..core.version import __version__
from ..live.abilities import has_colour, is_screen, read_size
from ..live.lines import build_lines, build_object, head_line, render_object
from ..live.screen import build_screen
from ..live.terminal import Screen, write
from ..sampler.handle.client import SETTLE_SECONDS, ObserverClient
from .observing import add_observing, check_seconds, repeat, say_once
from .options import Parser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.observation import Observation
    from ..sampler.handle.client import Question

_LEAVING_KEYS = ("q", "Q")

_EPILOG = """\
On a terminal: a table redrawn in place; q or Ctrl-C quits.
To a pipe or file: one line per GPU and interval (`-` is unknown), or with
--json one object per reading, in bytes, percent, watts and degrees Celsius.
"""


def main(arguments: list[str]) -> int:
    """Full screen on a terminal, lines elsewhere."""
    parser = Parser(prog="gpu-tracker watch", description=__doc__)
    parser.epilog = _EPILOG
    parser.add_argument("--once", action="store_true", help="print once and exit")
    parser.add_argument("--json", action="store_true", help="one JSON object per reading, one per line")
    parser.add_argument(
        "-n", "--interval", metavar="SECONDS", default="1", help="seconds between readings (default 1)"
    )
    add_observing(parser)
    options = parser.parse_args(arguments)
    interval = check_seconds("--interval", options.interval, least=0.1)
    with ObserverClient(check_seconds("--timeout", options.timeout, least=0.1)) as client:
        if options.once:
            return _show_once(client, as_json=options.json)
        if options.json or not is_screen():
            try:
                return _write_lines(client, interval, as_json=options.json)
            except KeyboardInterrupt:
                return 0  # the normal end
        code = _draw(client, interval)
    if code:
        # The terminal is restored; end by the signal, so that the caller sees it.
        signal.signal(code, signal.SIG_DFL)
        os.kill(os.getpid(), code)
    return 0


def _show_once(client: ObserverClient, *, as_json: bool) -> int:
    """Two readings, so that there are rates."""
    before = client.observe()
    time.sleep(SETTLE_SECONDS)
    now = client.observe()
    if as_json:
        write(render_object(build_object(before, now)) + "\n")
        return 0
    columns, _ = read_size()
    lines = build_screen(before, now, _title(now))
    write("".join(paint(line, columns, has_colour=has_colour()).rstrip() + "\n" for line in lines))
    return 0


def _write_lines(client: ObserverClient, interval: float, *, as_json: bool) -> int:
    before: Observation | None = None
    if not as_json:
        write(head_line() + "\n")
    for _ in repeat(interval):
        now = client.observe()
        if as_json:
            lines = [render_object(build_object(before, now))]
        else:
            lines = build_lines(before, now)
            say_once(list_notes(now))
        if not write("".join(f"{line}\n" for line in lines)):
            break
        before = now
    return 0


def _draw(client: ObserverClient, interval: float) -> int:
    """Draw until the user quits; the signal that ended it, or 0."""
    before: Observation | None = None
    now: Observation | None = None
    with Screen() as screen:
        question: Question | None = client.ask()
        due_seconds = 0.0
        is_new = True
        while True:
            if is_new and not _show(screen, before, now, interval):
                return 0
            deadline = due_seconds if question is None else question.deadline_seconds
            replies_fd = -1 if question is None else client.replies_fd
            event = screen.wait(replies_fd, deadline - time.monotonic())
            if event.is_closed or event.keys[:1] in _LEAVING_KEYS or signal.SIGINT in event.signals:
                return 0
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
                if number in event.signals:
                    return number
            is_new = bool(event.signals)  # another size, or back from a pause
            if question is None:
                if time.monotonic() >= due_seconds:
                    question = client.ask()
                continue
            answer = client.take(question)
            if answer is not None:
                # The second reading comes soon: rates need two.
                pause = min(interval, SETTLE_SECONDS) if now is None else interval
                due_seconds = time.monotonic() + pause
                before, now, question, is_new = now, answer, None, True
            elif time.monotonic() > question.deadline_seconds:
                raise TrackerError("The sampler stopped responding.")


def _show(screen: Screen, before: Observation | None, now: Observation | None, interval: float) -> bool:
    columns, rows = read_size()
    if now is None:
        spans: list[tuple[Span, ...]] = [(Span("Asking the drivers... (q quits)"),)]
    else:
        spans = build_screen(before, now, f"{_title(now)}  every {interval:g} s, q quits", rows)
    widths = [count_cells(paint(line, columns, has_colour=False)) for line in spans]
    return screen.draw([paint(line, columns, has_colour=has_colour()) for line in spans], widths)


def _title(now: Observation) -> str:
    at = write_moment(now.epoch_seconds, "%Y-%m-%d %H:%M:%S")
    return f"{os.uname().nodename}  {at}  gpu-tracker {__version__}"
