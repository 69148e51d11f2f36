"""Real JupyterLab and Notebook 7 in a real browser: the picture of a run while it goes on, and what is left of it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from browser.conftest import PICTURES
from gpu_tracker.sources import SAMPLER_NAME
from patience import wait_until

for package in ("jupyterlab", "notebook", "ipykernel", "nbconvert"):
    pytest.importorskip(package, reason=f"{package} is not installed (WITH=notebook)")
nbformat = import_module("nbformat")

PATIENCE_MILLISECONDS = 30_000
PATHS = {"lab": "lab/workspaces/{name}/tree/{name}.ipynb?reset", "notebook": "notebooks/{name}.ipynb"}
RUN = "void jupyterapp.commands.execute('notebook:run-all-cells')"
INTERRUPT = "void jupyterapp.commands.execute('notebook:interrupt-kernel')"
RESTART = "void jupyterapp.commands.execute('notebook:restart-kernel')"
IS_IDLE = "jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
SAVE = "jupyterapp.commands.execute('docmanager:save')"
PICTURE = 'img[src^="data:image/svg+xml"]'
# With PyTorch where it is installed; until the test has seen enough.
TRAINING = """
import os
import gpu_tracker as gput
try:
    import torch
except ImportError:
    def step(size=60):
        return sum(sum(range(row)) for row in range(size))
else:
    torch.manual_seed(0)
    model, data = torch.nn.Linear(200, 200), torch.randn(500, 200)
    def step():
        loss = (model(data) ** 2).mean()
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for weights in model.parameters():
                weights.sub_(0.5 * weights.grad)
        return loss.item()
"""
LOOP = """
with gput.Tracker(sleep_time=0.1, live=True):
    while not os.path.exists('{name}.end'):
        gput.log(loss=step())
    {then}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Jupyter's server with both front ends; its address, and where its notebooks are."""
    home = tmp_path_factory.mktemp("jupyter")
    folders = ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = (
        f"--no-browser --allow-root --ip=127.0.0.1 --port={port} --IdentityProvider.token= "
        "--LabApp.expose_app_in_browser=True --JupyterNotebookApp.expose_app_in_browser=True "
        "--ServerApp.terminals_enabled=False"
    )
    environment = {
        **os.environ,
        "JUPYTER_PREFER_ENV_PATH": "1",
        **{name: str(home / name) for name in folders},
    }
    settings = home / "JUPYTER_CONFIG_DIR/lab/user-settings/@jupyterlab/apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text(
        '{"fetchNews": "false", "checkForUpdates": false}'
    )
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options.split(), f"--ServerApp.root_dir={home}"],
            env=environment,
            stdout=log,
            stderr=log,
            cwd=home,
        )
    try:
        information = home / "JUPYTER_RUNTIME_DIR" / f"jpserver-{process.pid}.json"
        wait_until(information.exists, "Jupyter's server", 60)
        yield json.loads(information.read_text())["url"], home
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


class Notebook:
    """A notebook that is open in a front end."""

    def __init__(self, browser: Any, server: tuple[str, Path], front_end: str, name: str) -> None:
        url, self.folder = server
        self.name = f"{name}-{front_end}"
        self.path = self.folder / f"{self.name}.ipynb"
        self._url = url + PATHS[front_end].format(name=self.name)
        self._context = browser.new_context(viewport={"width": 1100, "height": 900})
        self.page = self._context.new_page()

    def write(self, *sources: str) -> None:
        """Its cells."""
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), self.path)

    def open(self) -> None:
        """Until its cells are shown."""
        self.page.goto(self._url, timeout=PATIENCE_MILLISECONDS)
        self.page.wait_for_function("window.jupyterapp !== undefined", timeout=PATIENCE_MILLISECONDS)
        self.page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=PATIENCE_MILLISECONDS)

    def run(self) -> None:
        """All cells, from the first, once the kernel listens."""
        self.page.wait_for_function(IS_IDLE, timeout=PATIENCE_MILLISECONDS)
        self.page.evaluate(RUN)

    def wait_for(self, words: str) -> None:
        """Until the picture says so."""
        script = "([picture, words]) => [...document.querySelectorAll(picture)].some(one => one.alt.includes(words))"
        self.page.wait_for_function(script, arg=[PICTURE, words], timeout=PATIENCE_MILLISECONDS)

    def count_changes(self, count: int) -> None:
        """Until there were so many different pictures."""
        script = """([picture, count]) => {
            window.seen = window.seen || new Set();
            const one = document.querySelector(picture);
            if (one) window.seen.add(one.src);
            return window.seen.size >= count;
        }"""
        self.page.wait_for_function(script, arg=[PICTURE, count], timeout=PATIENCE_MILLISECONDS)

    def end_training(self) -> None:
        """The loop ends."""
        (self.folder / f"{self.name}.end").touch()

    def save(self) -> Any:
        """What is in the file then."""
        self.page.evaluate(SAVE)
        return nbformat.read(self.path, 4)

    def measure(self) -> list[list[float]]:
        """Width and height of each picture, as the browser draws it."""
        found: list[list[float]] = self.page.evaluate(
            "picture => [...document.querySelectorAll(picture)].map(one => [one.naturalWidth, one.clientHeight])",
            PICTURE,
        )
        return found

    def picture(self, what: str) -> None:
        """Keep a screenshot."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=PICTURES / f"notebook-{self.name}-{what}.png")

    def close(self) -> None:
        """End the page, with a last look at it; the kernel ends with the server."""
        self.picture("closed")
        self.end_training()
        self._context.close()


Open = Callable[[str, str], Notebook]


@pytest.fixture
def notebook(chromium: Any, server: tuple[str, Path]) -> Iterator[Open]:
    """Opens notebooks; all are closed in the end."""
    opened: list[Notebook] = []

    def make(front_end: str, name: str) -> Notebook:
        opened.append(Notebook(chromium, server, front_end, name))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def begin(one: Notebook, then: str = "pass") -> None:
    """A training that runs until it is told to end."""
    one.write(TRAINING, LOOP.format(name=one.name, then=then))
    one.open()
    one.run()


@pytest.mark.parametrize("front_end", PATHS)
def test_the_picture_advances_and_is_kept(notebook: Open, front_end: str, chromium: Any) -> None:
    """While a training runs; in the end it is final, in the file, in an untrusted copy, and in HTML."""
    one = notebook(front_end, "train")
    begin(one)
    one.wait_for("still running")
    one.count_changes(4)
    one.picture("running")
    one.end_training()
    one.wait_for(f"{one.name}.ipynb cell 2: finished")
    one.picture("finished")
    stored = one.save()
    shown = [output for output in stored.cells[1].outputs if output.output_type == "display_data"]

    assert [width for width, height in one.measure() if height > 50] == [640]
    assert [": finished" in output.data["text/plain"] for output in shown] == [True]

    copy = notebook(front_end, "copy")
    stored.cells[0].source = "'changed by somebody else'"
    nbformat.write(stored, copy.path)
    copy.open()
    copy.wait_for("finished")
    copy.picture("untrusted")

    assert [width for width, height in copy.measure() if height > 50] == [640]
    assert copy.page.locator("details summary", has_text="report").count() == 1

    page = export(one, chromium)
    assert page.evaluate("picture => document.querySelector(picture).naturalWidth", PICTURE) == 640
    page.context.close()


def export(one: Notebook, chromium: Any) -> Any:
    """The page that nbconvert makes of it, without any network."""
    html, _ = import_module("nbconvert").HTMLExporter().from_filename(str(one.path))
    path = one.folder / f"{one.name}.html"
    path.write_text(html)
    page = chromium.new_context(offline=True).new_page()
    page.goto(path.as_uri())
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"notebook-{one.name}-exported.png", full_page=True)
    return page


@pytest.mark.parametrize("front_end", PATHS)
def test_the_stop_button_is_an_interruption(notebook: Open, front_end: str) -> None:
    """And the picture says so."""
    one = notebook(front_end, "interrupt")
    begin(one)
    one.wait_for("still running")
    one.page.evaluate(INTERRUPT)
    one.wait_for("interrupted")
    one.page.wait_for_selector("text=KeyboardInterrupt")
    one.picture("interrupted")


@pytest.mark.parametrize("front_end", PATHS)
def test_an_exception_is_an_exception(notebook: Open, front_end: str) -> None:
    """Below the final picture."""
    one = notebook(front_end, "raise")
    begin(one, then="1 / 0")
    one.wait_for("still running")
    one.end_training()
    one.wait_for("ended by an exception")
    one.page.wait_for_selector("text=ZeroDivisionError")
    one.picture("raised")


@pytest.mark.parametrize("front_end", PATHS)
def test_a_restarted_kernel_begins_anew(notebook: Open, front_end: str) -> None:
    """Nothing of the old run is left running; the same cell makes a new picture that ends."""
    one = notebook(front_end, "restart")
    begin(one)
    one.wait_for("still running")
    samplers = list_samplers()
    one.page.evaluate(RESTART)
    one.page.click(".jp-Dialog .jp-mod-accept")
    wait_until(lambda: len(list_samplers()) < len(samplers), "the end of the sampler")
    one.picture("restarted")
    one.end_training()
    one.run()
    one.wait_for("finished")
    one.picture("again")

    assert [width for width, height in one.measure() if height > 50] == [640]


def list_samplers() -> list[str]:
    """Of all trackers on this machine that watch a kernel of ours."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            is_ours = b"JUPYTER_PREFER_ENV_PATH=1" in path.read_bytes()
            name = path.with_name("comm").read_text()
        except OSError:
            continue
        if is_ours and name.strip() == SAMPLER_NAME:
            found.append(path.parent.name)
    return found
