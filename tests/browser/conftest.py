"""A real browser, and pages in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpu_tracker.core.model import RecordingData
from gpu_tracker.recording.sampled import read_columns
from gpu_tracker.reports.build import build
from patience import wait_until

# Without sandbox, as tests run as root too; and without a word to anybody.
_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_TOOLS = Path(os.environ.get("REAL_BROWSER", "/nonexistent"))
# Pictures for whoever wants to look, kept after the tests.
PICTURES = Path(os.environ.get("PICTURES", "build/pictures"))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Chromium, driven by playwright."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed (WITH=browser)"
    )
    path = _TOOLS / "path"
    if not path.exists():
        pytest.skip("REAL_BROWSER names no directory filled by tests/tools/install_browser.sh")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path.read_text().strip(), args=list(_OPTIONS))
        yield browser
        browser.close()


class Opened:
    """A page that is open, and what it has done."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog {dialog.message}"))
        self.page.goto(address)
        self.page.wait_for_function("document.documentElement.dataset.ready !== undefined")

    def wait(self, condition: str) -> None:
        """Until a script says that it is so."""
        wait_until(lambda: self.run(condition), condition, seconds=60)

    def run(self, script: str) -> Any:
        """What a script gives, as if typed into the console."""
        return self.page.evaluate(script)

    def picture(self, name: str) -> None:
        """Keep a picture of the whole page."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=PICTURES / f"{name}.png", full_page=True)


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Callable[..., Opened]]:
    """Opens files and addresses; all are closed in the end."""
    opened: list[Opened] = []

    def open_one(place: Path | str, **options: Any) -> Opened:
        opened.append(Opened(chromium, place if isinstance(place, str) else place.as_uri(), **options))
        return opened[-1]

    yield open_one
    for one in opened:
        one.context.close()


@pytest.fixture
def show(open_page: Callable[..., Opened], tmp_path: Path) -> Callable[..., Opened]:
    """Shows a recording."""

    def show_recording(shown: RecordingData, **options: Any) -> Opened:
        path = tmp_path / "report.html"
        build(shown, read_columns(shown)).save(path)
        return open_page(path, **options)

    return show_recording


@pytest.fixture(scope="session")
def axe() -> str:
    """The examiner of accessibility."""
    path = _TOOLS / "axe.min.js"
    if not path.exists():
        pytest.skip("axe-core was not fetched by tests/tools/install_browser.sh (npm is missing)")
    return path.read_text(encoding="utf-8")
