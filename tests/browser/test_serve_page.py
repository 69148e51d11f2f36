"""`serve` in a real browser, while jobs run, are killed and are deleted, and the server is restarted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from browser.conftest import Opened
from end_to_end.launch import COMMAND_LINE
from patience import wait_until

pytest.importorskip("tornado")

JOB = Path(__file__).parent / "long_job.py"
SIZES = [(1280, "light"), (390, "dark")]


class Place:
    """A directory of runs, jobs that write to it, and a server of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = folder / "runs"
        self.runs.mkdir()
        self.jobs: dict[str, subprocess.Popen[bytes]] = {}
        self.server: subprocess.Popen[str] | None = None

    def start_job(self, name: str) -> None:
        """One that goes on until it is ended."""
        options = ["--st", "0.2", "--record", str(self.runs / f"{name}.jsonl"), "--name", name]
        command = [COMMAND_LINE, "run", *options, "--", sys.executable, str(JOB)]
        self.jobs[name] = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def start_server(self, *options: str) -> str:
        """Its address."""
        environment = {**os.environ, "XDG_STATE_HOME": str(self.folder / "state")}
        self.server = subprocess.Popen(
            [COMMAND_LINE, "serve", str(self.runs), *options],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self.server.stdout is not None
        return self.server.stdout.readline().strip()

    def stop_server(self) -> None:
        """As Ctrl-C does."""
        if self.server is not None and self.server.stdout is not None:
            self.server.send_signal(signal.SIGINT)
            self.server.wait()
            self.server.stdout.close()

    def end(self, name: str, number: int = signal.SIGTERM) -> None:
        """The command line passes it on, unless it is SIGKILL."""
        self.jobs[name].send_signal(number)
        self.jobs[name].wait()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Everything is ended in the end."""
    made = Place(tmp_path)
    yield made
    for job in made.jobs.values():
        if job.poll() is None:
            job.terminate()
        job.wait()
    made.stop_server()


# Of the first one, over the boxes to tick.
COUNT_HEADING_LINES = """(() => {
    const range = document.createRange();
    range.selectNodeContents(document.querySelector('.runs thead th'));
    return range.getClientRects().length;
})()"""
END = "window.gpuTrackerPage.range()[1]"


def test_three_jobs_are_followed(place: Place, open_page: Callable[..., Opened]) -> None:
    """They go on; one ends, one is killed, one is deleted; the server is restarted. Each page says what it knows."""
    names = ("ends", "killed", "deleted")
    for name in names:
        place.start_job(name)
    wait_until(lambda: len(list(place.runs.iterdir())) == 3, "all jobs are recorded")
    address = place.start_server()
    port = address.split("/")[2].partition(":")[2]
    runs = open_page(address)
    runs.wait("document.querySelectorAll('td.running').length === 3")
    pages = {name: open_page(f"{address}run?name={name}.jsonl") for name in names}
    for page in pages.values():
        page.wait("document.getElementById('live').className === 'on'")
        before = page.run(END)
        page.wait(f"{END} > {before} + 1")
    assert pages["ends"].page.title() == "ends"

    # What the reader has done stays: a range, and what is open.
    page = pages["ends"]
    page.wait(f"{END} > 4 && document.querySelector('.peak') !== null")
    page.run("document.querySelector('.peak').open = true")
    page.run("window.gpuTrackerPage.setRange(1, 2)")
    told = page.run("document.querySelector('.tile .value').textContent")
    page.wait(f"document.querySelector('.tile .value').textContent !== '{told}'")
    assert page.run("window.gpuTrackerPage.range()") == [1, 2]
    assert page.run("document.querySelector('.peak').open")

    place.stop_server()
    page.wait("document.getElementById('live').className === 'lost'")
    assert place.start_server("--port", port) == address
    page.wait("document.getElementById('live').className === 'on'")
    runs.wait("document.getElementById('live').className === 'on'")

    place.end("ends")
    page.wait("document.getElementById('live').className === 'over'")
    assert page.page.inner_text("#live") == "The run is over."
    assert "still running" not in page.page.inner_text("header")
    assert page.run("window.gpuTrackerPage.range()") == [1, 2]
    (place.runs / "deleted.jsonl").unlink()
    pages["deleted"].wait(
        "document.getElementById('live').textContent.includes('This is what was known last')"
    )
    pages["deleted"].wait("!document.querySelector('header').innerText.includes('still running')")
    place.end("killed", signal.SIGKILL)
    pages["killed"].wait("document.getElementById('live').className === 'over'")
    runs.wait("document.querySelectorAll('tbody tr').length === 2 && !document.querySelector('td.running')")
    for window in (runs, *pages.values()):
        assert [told for told in window.complaints if "ERR_" not in told] == []
        assert all(request.startswith(address) for request in window.requests)


def test_runs_are_searched_ticked_and_compared(place: Place, open_page: Callable[..., Opened]) -> None:
    """A tick stays with its run when others come; what is typed is found without a button."""
    for name in ("first", "second"):
        subprocess.run(
            [
                COMMAND_LINE,
                "run",
                "--st",
                "0.1",
                "--record",
                place.runs / f"{name}.jsonl",
                "--",
                "sleep",
                "1",
            ],
            check=True,
            capture_output=True,
        )
    runs = open_page(place.start_server(), viewport={"width": 1200, "height": 900})
    assert runs.run(COUNT_HEADING_LINES) == 1
    runs.page.check("input[value='first.jsonl']")
    place.start_job("third")
    runs.wait("document.querySelectorAll('tbody tr').length === 3")
    assert runs.page.is_checked("input[value='first.jsonl']")
    assert not runs.page.is_checked("input[value='third.jsonl']")

    runs.page.fill("input[type=search]", "file~second")
    runs.wait("document.querySelectorAll('tbody tr').length === 1")
    assert "search=file%7Esecond" in runs.page.url
    assert runs.run("document.activeElement.name") == "search"
    runs.page.fill("input[type=search]", "peak_ram>>")
    runs.wait("document.querySelector('.problem')?.textContent.includes('is not a valid filter')")
    runs.page.fill("input[type=search]", "")
    runs.page.select_option("select[name=state]", "finished")
    runs.wait("document.querySelectorAll('tbody tr').length === 2")

    runs.page.check("input[value='first.jsonl']")
    runs.page.check("input[value='second.jsonl']")
    runs.page.click("text=Compare the ticked runs")
    runs.page.wait_for_url("**/compare?*")
    assert runs.page.inner_text("h1") == "second against first"
    runs.picture("serve-compare")
    runs.page.click("text=All runs")
    runs.wait("document.querySelectorAll('tbody tr').length === 3")
    assert runs.complaints == []


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_anybody_can_use_it(
    place: Place, open_page: Callable[..., Opened], axe: str, width: int, scheme: str
) -> None:
    """The list and a page that changes; nothing is wider than the screen."""
    place.start_job("job")
    address = place.start_server()
    wait_until((place.runs / "job.jsonl").exists, "it is recorded")
    options = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme, "bypass_csp": True}
    for name, page in (("list", ""), ("run", "run?name=job.jsonl")):
        window = open_page(f"{address}{page}", **options)
        window.wait("document.getElementById('live').className === 'on'")
        window.run(axe)
        found = window.run(
            "axe.run().then(found => found.violations.map(one => [one.id, one.nodes[0].html]))"
        )
        assert found == []
        assert window.run("document.documentElement.scrollWidth") <= width
        window.picture(f"serve-{name}-{width}-{scheme}")
