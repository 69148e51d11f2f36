"""What is shown of a run while it goes on: read once for all who look, and only while somebody looks."""

from __future__ import annotations

import asyncio
import json
import time
from functools import partial

from ...analysis.charts import collect_logged
from ...core.errors import WRONG_DATA, RecordingError
from ...core.moments import Pace
from ...core.values import NamedTuple
from ...recording.follow import follow_path
from ...recording.growing import GrowingRecording
from ...reports.build import build
from ...reports.html.drawing import draw_rows
from ...reports.html.page import make_page, to_frame
from .pages import wrap_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable
    from concurrent.futures import Executor
    from typing import Protocol

    from ...core.model import MetricRow
    from ...reports.build import Report
    from ...reports.choices import Choices

    class Subject(Protocol):
        """Something that changes."""

        shown: Shown

        def advance(self, crowd: int) -> None:
            """Look again, as one of so many."""


_TICK_SECONDS = 1.0
_SILENCE_SECONDS = 15.0
_KEPT_SECONDS = 30.0
# Of a core, for all subjects together.
_PAGE_SHARE, _ROWS_SHARE = 0.006, 0.006


class Shown(NamedTuple):
    """What there is to send: a whole page, and rows that have come since."""

    page_number: int = 0
    page: bytes = b""
    rows_number: int = 0
    rows: bytes = b""
    """All since the page, so that nothing is missing for who has missed some."""
    last: bytes = b""
    """The last words, if there will be nothing more."""


def encode_event(name: str, data: str) -> bytes:
    """As browsers expect it; the data are JSON, of one line."""
    return f"event: {name}\ndata: {data}\n\n".encode()


class RunSubject:
    """One run."""

    def __init__(self, name: str, path: str, choices: Choices) -> None:
        self._name = name
        self._growing = GrowingRecording(follow_path(path))
        self._choices = choices
        self._page_pace, self._rows_pace = Pace(_PAGE_SHARE), Pace(_ROWS_SHARE)
        self._report: Report | None = None
        self._metrics: list[MetricRow] = []
        self._has_news = False
        self.shown = Shown()

    def advance(self, crowd: int) -> None:
        """Take in what was written, and make of it what there is time for."""
        if self.shown.last:
            return
        try:
            self._look()
        except RecordingError as error:
            self._give_up(f"{error} This is what was known last.")
            return
        if not self._growing.has_begun:
            return
        is_over = self._growing.is_over
        if self._report is None or is_over or (self._has_news and self._page_pace.is_due(time.monotonic())):
            self._pay(self._page_pace, self._make_page, crowd)
        elif self._has_news and self._rows_pace.is_due(time.monotonic()):
            self._pay(self._rows_pace, self._make_rows, crowd)
        if is_over:
            self._finish("The run is over.")

    def _look(self) -> None:
        news = self._growing.look()
        while True:
            if news.is_another_file:
                self._report, self._metrics = None, []
            self._has_news = self._has_news or bool(news.samples or news.metrics or news.end)
            self._metrics += news.metrics
            if not self._growing.has_more:
                return
            news = self._growing.look()

    def _pay(self, pace: Pace, make: Callable[[], None], crowd: int) -> None:
        before = time.thread_time()
        try:
            make()
        except WRONG_DATA:
            pass  # of a job that logs something odd; what is shown stays
        pace.pay(time.monotonic(), crowd * (time.thread_time() - before))

    def _make_page(self, *, is_cut_off: bool = False) -> None:
        self._has_news = False
        report = build(self._growing.data, self._growing.columns, self._choices)
        self._report = report._replace(ending="killed") if is_cut_off else report
        self._metrics = []
        frame = to_frame(wrap_run(make_page(self._report), self._name))
        number = self.shown.page_number + 1
        self.shown = Shown(number, encode_event("page", frame))

    def _make_rows(self) -> None:
        self._has_news = False
        frame = self._draw_rows()
        self.shown = self.shown._replace(
            rows_number=self.shown.rows_number + 1, rows=encode_event("rows", frame)
        )

    def _draw_rows(self) -> str:
        report, last = self._report, self._growing.last_sample
        if report is None or last is None:
            raise ValueError("no page yet")
        since = report.summary.seconds
        rows = report._replace(
            columns=self._growing.columns_since(since), logged=collect_logged(self._metrics)
        )
        data, packed = draw_rows(rows, since, last.at_seconds)
        return json.dumps({"data": data, "columns": packed}, separators=(",", ":"), allow_nan=False)

    def _give_up(self, words: str) -> None:
        """Nobody can tell any more whether the run goes on."""
        if self._report is not None:
            self._pay(self._page_pace, partial(self._make_page, is_cut_off=True), 1)
        self._finish(words)

    def _finish(self, words: str) -> None:
        self.shown = self.shown._replace(last=encode_event("over", json.dumps(words)))


class Watched:
    """A subject, and who looks at it."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.viewers = 0
        self.left_at = 0.0
        self._news = asyncio.Event()

    def tell(self) -> None:
        """Wake up who waits."""
        self._news.set()
        self._news = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Until there is news, or for so long."""
        try:
            await asyncio.wait_for(self._news.wait(), seconds)
        except asyncio.TimeoutError:
            pass


class Viewer:
    """What to send to one viewer, who may be slow: then he misses what was in between, and nothing is kept for him."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._events = _follow(watched)
        watched.viewers += 1

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._events

    async def aclose(self) -> None:
        """He is gone; to be called once, whether or not anything was sent."""
        self._watched.viewers -= 1
        self._watched.left_at = time.monotonic()
        await self._events.aclose()


class Watches:
    """All that is looked at. One thread does the reading, in turn; it rests while nobody looks."""

    def __init__(self, reader: Executor) -> None:
        self._reader = reader
        self._watched: dict[tuple[str, str], Watched] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def n_viewers(self) -> int:
        """How many look at anything."""
        return sum(one.viewers for one in self._watched.values())

    def close(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()

    def follow(self, key: tuple[str, str], make: Callable[[], Subject]) -> Viewer:
        """One more viewer, who counts from now on."""
        watched = self._watched.get(key) or self._watched.setdefault(key, Watched(make()))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look_on())
        return Viewer(watched)

    async def _look_on(self) -> None:
        """Until nobody has looked for a while."""
        while self._watched:
            began = time.monotonic()
            busy = [one for one in self._watched.values() if one.viewers]
            for one in busy:
                before = one.subject.shown
                await asyncio.get_running_loop().run_in_executor(self._reader, one.subject.advance, len(busy))
                if one.subject.shown is not before:
                    one.tell()
            self._watched = {key: one for key, one in self._watched.items() if _is_wanted(one, began)}
            await asyncio.sleep(max(0.0, _TICK_SECONDS - (time.monotonic() - began)))


def _is_wanted(watched: Watched, now: float) -> bool:
    """Of somebody who comes back soon, as by loading the page again; not of a run that is over."""
    return bool(watched.viewers) or (not watched.subject.shown.last and now - watched.left_at < _KEPT_SECONDS)


async def _follow(watched: Watched) -> AsyncGenerator[bytes, None]:
    sent = Shown()
    while True:
        shown = watched.subject.shown
        if shown.page_number != sent.page_number:
            sent = Shown(shown.page_number)
            yield shown.page
        if shown.rows_number != sent.rows_number:
            yield shown.rows
        sent = shown
        if shown.last:
            yield shown.last
            return
        if watched.subject.shown is shown:
            await watched.wait(_SILENCE_SECONDS)
            if watched.subject.shown is shown:
                yield b":\n\n"  # shows whether anybody is still there
