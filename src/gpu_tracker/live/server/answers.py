"""What is answered: one function per page, in one table. Knows nothing of the web server that asks."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs, urlencode

from ...core.errors import WRONG_DATA, TrackerError
from ...core.values import NamedTuple
from ...recording.find import name_run
from ...recording.reader import load
from ...recording.sampled import read_columns
from ...reports.build import build
from ...reports.html.page import assemble, make_page, make_policy
from ..listing import list_file
from .access import Refusal, admit
from .listing import ListSubject
from .pages import add_back, parse_wish, show_sentence, wrap_run
from .runs import Found, RunDirectory, make_key
from .watching import RunSubject, Watches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from concurrent.futures import Executor
    from typing import TypeAlias

    from ...reports.choices import Choices
    from ...reports.html.page import Page
    from .access import Asked, Door
    from .watching import Viewer

    Fields: TypeAlias = Mapping[str, list[str]]
    Compare: TypeAlias = Callable[[Sequence[tuple[str, str]]], str]
    Scrape: TypeAlias = Callable[[Mapping[str, str]], bytes]

MOST_VIEWERS = 100
_MOST_WAITING = 32
MOST_COMPARED = 8
_KEPT_PAGES = 8
HTML = "text/html; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
EVENTS = "text/event-stream"
METRICS = "text/plain; version=0.0.4; charset=utf-8"


class Answer(NamedTuple):
    """What is sent back: bytes, or events as they come."""

    status: int
    kind: str
    body: bytes = b""
    events: Viewer | None = None
    """To be closed by who sends them."""
    policy: str = "default-src 'none'"
    location: str = ""


class Show(NamedTuple):
    """What to show, and how."""

    directory: str
    choices: Choices
    compare: Compare
    """The page of several runs, by name and path."""
    scrape: Scrape
    """Text for Prometheus about runs that go on, by name and path."""


class Site:
    """Everything that can be asked for. Three threads read: for pages of runs, for the list and figures, and for what changes.

    So nobody waits for the page of a very large run but who asks for such a page. Nothing else blocks.
    """

    def __init__(self, show: Show, door: Door) -> None:
        self._show = show
        self._door = door
        self._runs = RunDirectory(show.directory)
        self._pages: OrderedDict[Found, Answer] = OrderedDict()
        self._clerk = ThreadPoolExecutor(1, "gpu-tracker-pages")
        self._lister = ThreadPoolExecutor(1, "gpu-tracker-list")
        self._n_waiting: dict[Executor, int] = {self._clerk: 0, self._lister: 0}
        self._reader = ThreadPoolExecutor(1, "gpu-tracker-news")
        self._watches = Watches(self._reader)

    def close(self) -> None:
        """End the threads."""
        self._watches.close()
        for thread in (self._clerk, self._lister, self._reader):
            thread.shutdown(cancel_futures=True)

    @property
    def n_viewers(self) -> int:
        """How many follow a run or the list now."""
        return self._watches.n_viewers

    async def answer(self, asked: Asked) -> Answer:
        """The answer to a request, whatever it is."""
        name = admit(self._door, asked)
        if isinstance(name, Refusal):
            return _say(name.status, name.sentence)
        if name == "/":
            return Answer(302, TEXT, location=f"{self._door.token}/")
        if name not in ROUTES:
            return _say(404, "Not found.")
        try:
            fields = parse_qs(
                asked.query, keep_blank_values=True, errors="replace", max_num_fields=2 * MOST_COMPARED
            )
        except ValueError:
            return _say(400, "Too many parameters.")
        return await ROUTES[name](self, fields)

    # ---- Routes.

    async def list_runs(self, fields: Fields) -> Answer:
        """The runs of the directory."""
        wish = parse_wish(fields)
        subject = ListSubject(self._runs, wish)
        return await self._work(
            self._lister, lambda: _to_answer(subject.make_page(), f"news?{urlencode(wish._asdict())}")
        )

    async def show_run(self, fields: Fields) -> Answer:
        """The report of one run."""
        found = self._find(fields)
        return _missing() if found is None else await self._work(self._clerk, lambda: self._render_run(found))

    async def compare_runs(self, fields: Fields) -> Answer:
        """Several runs side by side; the oldest is what the others are compared with."""
        keys = fields.get("name", [])[:MOST_COMPARED]
        found = [run for run in map(self._runs.find, keys) if run is not None]
        if len(found) < 2:
            return _to_answer(show_sentence("Nothing to compare", "Tick two runs of the list, or more."))
        found.sort(key=lambda run: run.modified_at)
        return await self._work(
            self._clerk, lambda: _wrap(add_back(self._show.compare([*map(_name, found)])))
        )

    async def tell_news(self, fields: Fields) -> Answer:
        """What changes of a run, or of the list, as server-sent events."""
        if self.n_viewers >= MOST_VIEWERS:
            return _say(503, "Too many viewers.")
        if "name" not in fields:
            wish = parse_wish(fields)
            key = ("list", urlencode(wish._asdict()))
            return self._follow(key, lambda: ListSubject(self._runs, wish))
        found = self._find(fields)
        if found is None:
            return _missing()
        return self._follow(
            ("run", found.path), lambda: RunSubject(found.name, found.path, self._show.choices)
        )

    async def tell_metrics(self, _fields: Fields) -> Answer:
        """What the running jobs use now, for Prometheus."""
        return await self._work(
            self._lister, lambda: Answer(200, METRICS, self._show.scrape(self._list_running()))
        )

    # ---- Inside.

    def _list_running(self) -> dict[str, str]:
        names = [run.path for run in self._runs.look().runs if run.ending == "running"]
        found = [self._runs.find(make_key(name)) for name in names]
        return {name_run(run.name): run.path for run in found if run is not None}

    def _find(self, fields: Fields) -> Found | None:
        return self._runs.find(fields.get("name", [""])[0])

    def _follow(self, key: tuple[str, str], make: Callable[[], RunSubject | ListSubject]) -> Answer:
        return Answer(200, EVENTS, events=self._watches.follow(key, make))

    async def _work(self, thread: Executor, make: Callable[[], Answer]) -> Answer:
        """One page at a time; whoever would wait for too many is sent away."""
        if self._n_waiting[thread] >= _MOST_WAITING:
            return _say(503, "Too many requests at once.")
        self._n_waiting[thread] += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(thread, make)
        except TrackerError as error:
            return _to_answer(show_sentence("This cannot be shown", str(error)), status=422)
        except WRONG_DATA:
            return _to_answer(
                show_sentence("This cannot be shown", "It contains invalid numbers."), status=422
            )
        finally:
            self._n_waiting[thread] -= 1

    def _render_run(self, found: Found) -> Answer:
        known = self._pages.get(found)
        if known is not None:
            self._pages.move_to_end(found)
            return known
        recording = load(found.path)
        page = make_page(build(recording, read_columns(recording), self._show.choices))
        is_live = recording.is_running
        news = f"news?{urlencode({'name': make_key(found.name)})}" if is_live else ""
        answer = _to_answer(wrap_run(page, found.name, is_live=is_live), news)
        if not is_live:
            self._pages[found] = answer
            while len(self._pages) > _KEPT_PAGES:
                self._pages.popitem(last=False)
        return answer


ROUTES: dict[str, Callable[[Site, Fields], Awaitable[Answer]]] = {
    "": Site.list_runs,
    "run": Site.show_run,
    "compare": Site.compare_runs,
    "news": Site.tell_news,
    "metrics": Site.tell_metrics,
}
"""What comes after the token in an address, and who answers."""


def _say(status: int, sentence: str) -> Answer:
    return Answer(status, TEXT, f"{sentence}\n".encode())


def _name(found: Found) -> tuple[str, str]:
    """By the name of the run, else of its file; and its path."""
    return list_file(found.path).name or name_run(found.name), found.path


def _missing() -> Answer:
    return _to_answer(show_sentence("Not found", "There is no such recording, or not any more."), status=404)


def _to_answer(page: Page, news: str = "", *, status: int = 200) -> Answer:
    return _wrap(assemble(page, news), is_live=bool(news), status=status)


def _wrap(html: str, *, is_live: bool = False, status: int = 200) -> Answer:
    policy = f"{make_policy(is_live=is_live)}; form-action 'self'; frame-ancestors 'self'"
    return Answer(status, HTML, html.encode("utf-8", "replace"), policy=policy)
