"""`serve` from the command line."""

from __future__ import annotations

import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli.conftest import COMMAND
from recorded import run, write

pytest.importorskip("tornado")


@contextmanager
def serve(folder: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a server, and its process."""
    command = [COMMAND, "serve", *options]
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.kill()


def fetch(address: str) -> str:
    """A page."""
    with urllib.request.urlopen(address, timeout=60) as reply:
        text: str = reply.read().decode()
        return text


def test_the_address_is_printed_and_works(tmp_path: Path) -> None:
    """Only with its token; Ctrl-C is the normal end."""
    write(tmp_path / "gpu-tracker-runs" / "mine.jsonl", run())
    with serve(tmp_path) as (address, process):
        assert "mine.jsonl" in fetch(address)
        host, _, _ = address[:-1].rpartition("/")
        with pytest.raises(urllib.error.HTTPError, match="403"):
            fetch(f"{host}/")
        process.send_signal(signal.SIGINT)
        rest, said = process.communicate(timeout=60)
    assert (process.returncode, rest, said) == (0, "", "")


def test_the_address_is_the_same_after_a_restart(tmp_path: Path) -> None:
    """So that open pages find it again, unless the user wants another one."""
    with serve(tmp_path, ".") as (first, _):
        port = first.split("/")[2].partition(":")[2]
    with serve(tmp_path, ".", "--port", port) as (second, _):
        pass
    with serve(tmp_path, ".", "--port", port, "--new-token") as (third, _):
        pass
    assert first == second != third


def test_a_directory_may_come_later(tmp_path: Path) -> None:
    """The usual one, that is; the first run creates it."""
    with serve(tmp_path) as (address, _):
        assert "No such file or directory" in fetch(address)
        write(tmp_path / "gpu-tracker-runs" / "first.jsonl", run())
        while "first.jsonl" not in fetch(address):
            pass


def test_a_network_is_warned_of(tmp_path: Path) -> None:
    """What is not the loopback can be listened to."""
    with serve(tmp_path, ".", "--host", "0.0.0.0", "--port", "0") as (address, process):
        assert process.stderr is not None
        assert "not encrypted" in process.stderr.readline()
        seen = address.replace("0.0.0.0", "127.0.0.1")
        request = urllib.request.Request(seen, headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(request, timeout=60)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["nothing"], "nothing is not a directory."),
        ([".", "--port", "x"], "--port: 'x' is not a port."),
        ([".", "--port", "70000"], "--port: '70000' is not a port."),
        ([".", "--allow-host", "a b"], "'a b' is not a valid host name."),
    ],
)
def test_wrong_options_are_a_sentence(tmp_path: Path, options: list[str], sentence: str) -> None:
    """And exit code 2."""
    done = subprocess.run(
        [COMMAND, "serve", *options], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, sentence in done.stderr) == (2, True)
