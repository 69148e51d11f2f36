"""Serve running jobs to viewers: serve_viewers.py DIRECTORY JOBS VIEWERS. Prints the share of a core that the server takes.

The jobs are recordings of ten minutes with two GPUs that get another line every second. The server is a process of its own, so
that neither writing them nor reading its answers is counted.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from importlib.util import find_spec
from typing import BinaryIO

from gpu_tracker.recording.lock import hold

N_BEFORE, SECONDS = 600, 40
SETTLE_SECONDS = 15


def make_lines(folder: str) -> list[bytes]:
    """The lines of a real recording with two GPUs, without its end."""
    path = os.path.join(folder, "month.jsonl")
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "month.py")
    subprocess.run([sys.executable, script, path, "2", "0", "0", "1"], check=True, stdout=subprocess.DEVNULL)
    with open(path, "rb") as file:
        return file.read().splitlines(keepends=True)[:-1]


def grow(files: list[BinaryIO], lines: list[bytes], is_over: threading.Event) -> None:
    """One line each second."""
    for line in lines:
        for file in files:
            file.write(line)
        if is_over.wait(1.0):
            return


def view(port: int, path: str) -> None:
    """Take whatever comes, until the server is gone."""
    with socket.create_connection(("127.0.0.1", port)) as raw:
        raw.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        try:
            while raw.recv(2**20):
                pass
        except OSError:
            pass


def read_cpu_seconds(pid: int) -> float:
    """Of all threads of a process."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        user, system = file.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def measure(folder: str, n_jobs: int, n_viewers: int) -> float:
    """Percent of a core, after everything has been read once."""
    lines = make_lines(folder)
    runs = os.path.join(folder, "runs")
    os.makedirs(runs)
    files = [open(os.path.join(runs, f"{number}.jsonl"), "wb", buffering=0) for number in range(n_jobs)]  # noqa: SIM115 - as long as we run
    for file in files:
        hold(file.fileno())  # as a sampler does, or the run would count as over
        file.write(b"".join(lines[:N_BEFORE]))
    program = os.path.join(os.path.dirname(sys.executable), "gpu-tracker")
    server = subprocess.Popen(
        [program, "serve", runs, "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_STATE_HOME": folder},
    )
    is_over = threading.Event()
    try:
        assert server.stdout is not None
        _, _, host, token, _ = server.stdout.readline().split("/")
        port = int(host.rpartition(":")[2])
        threads = [
            threading.Thread(target=view, args=(port, f"/{token}/news?name={number % n_jobs}.jsonl"))
            for number in range(n_viewers)
        ]
        threads.append(threading.Thread(target=grow, args=(files, lines[N_BEFORE:], is_over)))
        for thread in threads:
            thread.start()
        time.sleep(SETTLE_SECONDS)
        before, began = read_cpu_seconds(server.pid), time.monotonic()
        time.sleep(SECONDS)
        percent = 100 * (read_cpu_seconds(server.pid) - before) / (time.monotonic() - began)
        if not all(thread.is_alive() for thread in threads):
            raise SystemExit("a viewer was sent away")
        return percent
    finally:
        is_over.set()
        server.kill()
        server.wait()


if __name__ == "__main__":
    _, parent, jobs, viewers = sys.argv
    percent = None
    if find_spec("tornado") is not None:
        os.makedirs(parent, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=parent) as made:
            percent = measure(made, int(jobs), int(viewers))
    print(json.dumps({"percent": percent}))
