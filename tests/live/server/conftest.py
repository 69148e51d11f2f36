"""A real server on the loopback, in a thread of the test."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("tornado")

from gpu_tracker.cli.serve import compare, make_scraper
from gpu_tracker.core.moments import stamp_moment
from gpu_tracker.live.server.access import Door
from gpu_tracker.live.server.answers import Show, Site
from gpu_tracker.live.server.shell import bind, serve
from gpu_tracker.reports.choices import NO_CHOICES
from recorded import interval, run, write

TOKEN = "t" * 43
Compare = Callable[[Sequence[tuple[str, str]]], str]


class Reply(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    text: str


class Serving:
    """A server that runs."""

    def __init__(self, port: int, site: Site) -> None:
        self.port = port
        self.site = site

    def ask(self, page: str = "", method: str = "GET", **headers: str) -> Reply:
        """Ask for a page behind the token."""
        return self.ask_raw(f"/{TOKEN}/{page}", method, **headers)

    def ask_raw(self, path: str, method: str = "GET", **headers: str) -> Reply:
        """Ask for any path; a header of None is left out."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True)
            for name, value in {"Host": f"127.0.0.1:{self.port}", **headers}.items():
                connection.putheader(name, value)
            connection.endheaders()
            got = connection.getresponse()
            return Reply(got.status, dict(got.getheaders()), got.read().decode("utf-8", "replace"))
        finally:
            connection.close()

    @contextmanager
    def listen(self, page: str, receive_bytes: int | None = None) -> Iterator[socket.socket]:
        """A connection on which a page was asked for, and nothing was read yet."""
        with socket.socket() as raw:
            if receive_bytes is not None:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
            raw.settimeout(60)
            raw.connect(("127.0.0.1", self.port))
            raw.sendall(f"GET /{TOKEN}/{page} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            yield raw


def read_until(raw: socket.socket, wanted: bytes) -> bytes:
    """Everything up to those bytes."""
    got = b""
    while wanted not in got:
        part = raw.recv(65536)
        assert part, f"closed before {wanted!r}: {got[-200:]!r}"
        got += part
    return got


@contextmanager
def serving(directory: Path, compare: Compare = compare, **door: Any) -> Iterator[Serving]:
    """A server of that directory, which ends with the block."""
    listening = bind("127.0.0.1", 0, str(directory))
    site = Site(Show(str(directory), NO_CHOICES, compare, make_scraper()), Door(TOKEN, **door))
    loop = asyncio.new_event_loop()
    task = loop.create_task(serve(site, listening))
    thread = threading.Thread(target=run_loop, args=(loop, task))
    thread.start()
    try:
        yield Serving(listening.getsockname()[1], site)
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()


def run_loop(loop: asyncio.AbstractEventLoop, task: asyncio.Task[None]) -> None:
    """Until the task is cancelled."""
    try:
        loop.run_until_complete(task)
    except asyncio.CancelledError:
        pass
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A directory with two runs that have ended."""
    folder = tmp_path / "runs"
    for number in (1, 2):
        samples = tuple(interval(float(at), 100 * number) for at in range(1, 6))
        write(folder / f"run-{number}.jsonl", run(5.0, 100 * number, samples=samples))
    return folder


@pytest.fixture
def server(runs: Path) -> Iterator[Serving]:
    """A server of them."""
    with serving(runs) as started:
        yield started


class Grown:
    """A recording that is written bit by bit."""

    def __init__(self, path: Path, whole: Path) -> None:
        self.path = path
        *self.lines, self.end = whole.read_bytes().splitlines(keepends=True)
        # It runs now: of another host, a young file with old samples is a copy.
        head = json.loads(self.lines[0])
        head["header"]["started_at"] = stamp_moment(time.time())
        self.lines[0] = json.dumps(head, separators=(",", ":")).encode() + b"\n"
        self.n_written = 0

    def grow(self, n_lines: int) -> None:
        """Write that many more lines."""
        self._append(b"".join(self.lines[self.n_written : self.n_written + n_lines]))
        self.n_written += n_lines

    def finish(self) -> None:
        """Write the rest, and the end."""
        self._append(b"".join([*self.lines[self.n_written :], self.end]))

    def _append(self, content: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(content)


@pytest.fixture
def grow(tmp_path: Path, runs: Path) -> Callable[..., Grown]:
    """Makes recordings that grow."""

    def make(name: str = "live.jsonl", n_samples: int = 60) -> Grown:
        samples = tuple(interval(float(at), 10 * at) for at in range(1, n_samples + 1))
        whole = write(tmp_path / f"whole-{name}", run(float(n_samples), 10 * n_samples, samples=samples))
        return Grown(runs / name, whole)

    return make
