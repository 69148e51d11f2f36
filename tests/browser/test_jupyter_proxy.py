"""`serve` behind the proxy of a real Jupyter server: another prefix and another port, and everything still leads somewhere."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from browser.conftest import Opened
from browser.test_serve_page import END, Place, place
from patience import wait_until

__all__ = ["place"]

pytest.importorskip("jupyter_server_proxy", reason="jupyter-server-proxy is not installed (WITH=notebook)")

BASE = "/user/somebody/"


@pytest.fixture
def jupyter(tmp_path: Path) -> Iterator[str]:
    """The address of a Jupyter server, with a prefix as in JupyterHub."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = (
        f"--no-browser --allow-root --ip=127.0.0.1 --port={port} --IdentityProvider.token= "
        f"--ServerApp.base_url={BASE} --ServerApp.terminals_enabled=False"
    )
    folders = ("JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR")
    environment = {**os.environ, **{name: str(tmp_path / name) for name in folders}}
    with (tmp_path / "jupyter.log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyter_server", *options.split()],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    address = f"http://127.0.0.1:{port}{BASE}"
    try:
        wait_until(lambda: answers(f"{address}api"), "Jupyter answers", seconds=60)
        yield address
    finally:
        server.terminate()
        server.wait()


def answers(address: str) -> bool:
    """Whether somebody is there."""
    try:
        with urlopen(address, timeout=5) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def test_a_run_is_followed_through_the_proxy(
    place: Place, jupyter: str, open_page: Callable[..., Opened]
) -> None:
    """The list, the page of a run that goes on, and the way back, under the address of the proxy only."""
    place.start_job("live")
    wait_until(lambda: any(place.runs.iterdir()), "the job is recorded")
    _, _, where, token, _ = place.start_server().split("/")
    through = f"{jupyter}proxy/{where.partition(':')[2]}/{token}"

    runs = open_page(through)  # without the slash, it leads to the page
    runs.wait("document.querySelectorAll('td.running').length === 1")
    runs.page.click("a[href^='run?']")
    runs.page.wait_for_url("**/run?name=live.jsonl")
    runs.wait("document.getElementById('live').className === 'on'")
    before = runs.run(END)
    runs.wait(f"{END} > {before} + 2")
    place.end("live")
    runs.wait("document.getElementById('live').className === 'over'")
    runs.page.click("text=All runs")
    runs.wait("document.querySelectorAll('tbody tr').length === 1 && !document.querySelector('td.running')")

    assert runs.complaints == []
    assert [one for one in runs.requests if not one.startswith(through)] == []
