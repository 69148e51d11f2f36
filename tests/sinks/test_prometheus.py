"""Running jobs as text for Prometheus, which a real one reads."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import inf, nan
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from builders import header
from gpu_tracker.analysis.published import Published, PublishedGpu
from gpu_tracker.core.figures import GPU_NOW, GPU_SO_FAR, JOB_NOW, JOB_SO_FAR
from gpu_tracker.core.model import Identity
from gpu_tracker.recording.follow import follow_path
from gpu_tracker.sinks.prometheus import (
    CONTENT_TYPE,
    FAMILIES,
    MOST_METRICS,
    MOST_RUNS,
    RunNow,
    exposition,
)
from gpu_tracker.sinks.reader import PublishedReader
from gpu_tracker.sinks.running import RunningRuns, find_running
from patience import wait_until
from recorded import write
from rich import make_rich

PROGRAMS = Path(os.environ.get("REAL_PROMETHEUS", "")) / "usr/bin"
needs_prometheus = pytest.mark.skipif(
    not (PROGRAMS / "promtool").exists(), reason="there is no Prometheus (make test WITH=sinks)"
)
HOSTILE = 'a"b\\c\nd{e="f"} 1\x1b[2J\udcff' + "ä" * 500


def run_now(number: int = 0, **fields: Any) -> RunNow:
    """A job that has run for ten seconds."""
    published = Published(10.0, {"ram_bytes": 5e8, "cpu_seconds": 12.5})
    started_at = f"2026-08-01T12:00:{number % 60:02d}.000+00:00"
    return RunNow(f"run{number}", header(host="node1", started_at=started_at), published)._replace(**fields)


def list_series(text: bytes) -> dict[str, str]:
    """Values by name and labels."""
    lines = [line for line in text.decode().splitlines() if not line.startswith("#")]
    return dict(line.rsplit(" ", 1) for line in lines)


def rich_run(directory: Path) -> RunNow:
    """A job with almost every figure, read from its recording."""
    path = write(directory / "rich.jsonl", make_rich(2)._replace(end=None))
    reader = PublishedReader(follow_path(str(path)))
    reader.look(1)
    assert reader.header is not None
    assert reader.last is not None
    return RunNow("rich", reader.header, reader.last, reader.metrics)


def test_every_figure_has_its_labels() -> None:
    """In base units; what is not known is left out, as are labels without a value."""
    identity = Identity(name="baseline", job="4711", rank=0)
    gpu = PublishedGpu("0", "GPU-a", "A100", {"utilization_percent": 50.0, "sm_clock_mhz": 1410.0})
    published = Published(10.0, {"ram_bytes": 5e8, "cpu_seconds": 12.5}, (gpu,), 7.0)
    named = run_now(1, header=header(host="node1", identity=identity), published=published)
    text = exposition([named._replace(metrics={"loss": 0.5, "a": nan, "b": inf, "c": -inf})])
    job = 'run="run1",name="baseline",job="4711",rank="0",host="node1"'

    assert list_series(text) == {
        "gpu_tracker_running_runs{}": "1.0",
        f"gpu_tracker_ram_bytes{{{job}}}": "500000000.0",
        f"gpu_tracker_cpu_seconds_total{{{job}}}": "12.5",
        f"gpu_tracker_step{{{job}}}": "7.0",
        f'gpu_tracker_metric{{{job},metric="loss"}}': "0.5",
        f'gpu_tracker_metric{{{job},metric="a"}}': "NaN",
        f'gpu_tracker_metric{{{job},metric="b"}}': "+Inf",
        f'gpu_tracker_metric{{{job},metric="c"}}': "-Inf",
        f'gpu_tracker_gpu_utilization_ratio{{{job},gpu="0",uuid="GPU-a"}}': "0.5",
        f'gpu_tracker_gpu_sm_clock_hertz{{{job},gpu="0",uuid="GPU-a"}}': "1410000000.0",
    }
    assert 'gpu_tracker_ram_bytes{run="run2",host="node1"}' in list_series(exposition([run_now(2)]))


def test_there_are_only_so_many_series() -> None:
    """The newest runs and the first metrics are shown; the number of runs says that there are more."""
    many = {f"metric{number}": 1.0 for number in range(1000)}
    runs = [run_now(number, metrics=many) for number in range(MOST_RUNS + 50)]
    series = list_series(exposition(runs))

    assert series["gpu_tracker_running_runs{}"] == f"{MOST_RUNS + 50}.0"
    assert sum(name.startswith("gpu_tracker_ram_bytes{") for name in series) == MOST_RUNS
    assert sum(name.startswith("gpu_tracker_metric{") for name in series) == MOST_RUNS * MOST_METRICS
    # Several begin in the same second; the first seconds are the oldest.
    assert 'gpu_tracker_ram_bytes{run="run59",host="node1"}' in series
    assert 'gpu_tracker_ram_bytes{run="run0",host="node1"}' not in series


def test_long_names_stay_apart_or_become_one() -> None:
    """A label that is cut never makes two series of one name, which Prometheus refuses."""
    series = list_series(exposition([run_now(metrics={"m" * 300: 1.0, "m" * 301: 2.0})]))

    assert [value for name, value in series.items() if "metric=" in name] == ["2.0"]


@needs_prometheus
def test_promtool_finds_nothing_to_complain_about(tmp_path: Path) -> None:
    """Also about hostile names."""
    identity = Identity(name=HOSTILE, job=HOSTILE, rank=3)
    hostile = run_now(3, run=HOSTILE, header=header(host=HOSTILE, identity=identity), metrics={HOSTILE: 1.0})
    for runs in ([], [rich_run(tmp_path), hostile]):
        command = [str(PROGRAMS / "promtool"), "check", "metrics"]
        done = subprocess.run(command, input=exposition(runs), capture_output=True)

        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@contextmanager
def serve(make: Callable[[], bytes]) -> Iterator[int]:
    """A port of loopback with these metrics."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = make()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def scrape(port: int, directory: Path) -> Iterator[str]:
    """The address of a Prometheus that scrapes that port."""
    settings = directory / "prometheus.yml"
    target = {
        "job_name": "gpu_tracker",
        "honor_labels": True,
        "static_configs": [{"targets": [f"127.0.0.1:{port}"]}],
    }
    pace = {"scrape_interval": "1s", "scrape_timeout": "1s"}
    settings.write_text(json.dumps({"global": pace, "scrape_configs": [target]}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        str(PROGRAMS / "prometheus"),
        f"--config.file={settings}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address={address}",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as prometheus:
        assert prometheus.stderr is not None
        # Nobody reads the rest, so it must not fill the pipe.
        drain = threading.Thread(target=prometheus.stderr.read)
        drain.start()
        try:
            yield f"http://{address}"
        finally:
            prometheus.terminate()
            drain.join()


def ask(address: str, query: str) -> list[dict[str, Any]]:
    """What Prometheus answers; nothing before it listens."""
    try:
        with urlopen(f"{address}/api/v1/query?query={quote(query)}") as answer:
            return list(json.load(answer)["data"]["result"])
    except OSError:
        return []


@needs_prometheus
def test_a_real_prometheus_has_the_figures_of_running_jobs(tmp_path: Path) -> None:
    """With their labels, while they run; and none of what has ended, or is damaged."""
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "damaged.jsonl").write_text("{}\n")
    write(runs / "finished.jsonl", make_rich(1))
    code = "import gpu_tracker as g; g.log(step=30, loss=0.25); input()"
    job = subprocess.Popen(
        [
            *(sys.executable, "-m", "gpu_tracker", "run", "--record", str(runs / "job.jsonl")),
            *("--name", HOSTILE[:10], "--st", "0.05", "--", sys.executable, "-c", code),
        ],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "SLURM_PROCID": "3"},
    )
    running = RunningRuns()
    with (
        serve(lambda: exposition(running.look(find_running(str(runs))))) as port,
        scrape(port, tmp_path) as address,
    ):
        wait_until(lambda: ask(address, "gpu_tracker_metric"), "Prometheus has the metric")
        (metric,) = ask(address, "gpu_tracker_metric")
        names = {found["metric"]["__name__"] for found in ask(address, '{__name__=~"gpu_tracker_.*"}')}
        (ram,) = ask(address, "gpu_tracker_ram_bytes")
        job.communicate(b"")
        wait_until(
            lambda: [found["value"][1] for found in ask(address, "gpu_tracker_running_runs")] == ["0"],
            "Prometheus has seen the end of the job",
        )
        left = ask(address, "gpu_tracker_ram_bytes")

    labels = metric["metric"]
    assert (labels["run"], labels["name"], labels["metric"]) == ("job", HOSTILE[:10], "loss")
    assert (labels["job"], labels["rank"]) == ("4711", "3")
    assert metric["value"][1] == "0.25"
    assert float(ram["value"][1]) > 1e6
    assert names <= {family.name for family in FAMILIES}
    assert {"gpu_tracker_step", "gpu_tracker_cpu_cores", "gpu_tracker_cpu_seconds_total"} <= names
    assert left == []


@needs_prometheus
def test_every_panel_of_the_dashboard_has_something_to_show(tmp_path: Path) -> None:
    """Of a job with every figure, in a real Prometheus."""
    gpu = PublishedGpu("0", "GPU-a", "A100", {figure.name: 1.0 for figure in (*GPU_NOW, *GPU_SO_FAR)})
    values = {figure.name: 1.0 for figure in (*JOB_NOW, *JOB_SO_FAR)}
    content = exposition([run_now(published=Published(10.0, values, (gpu,), 7.0), metrics={"loss": 0.5})])
    panels = json.loads((Path(__file__).parents[2] / "docs/grafana.json").read_text())["panels"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    queries = [
        query.replace("$__rate_interval", "1m").replace("$run", ".*").replace("$host", "node1")
        for query in queries
    ]

    with serve(lambda: content) as port, scrape(port, tmp_path) as address:
        for query in queries:
            wait_until(lambda query=query: ask(address, query), f"there is an answer to {query}")  # type: ignore[misc]
        found = ask(address, '{__name__=~"gpu_tracker_.*"}')

    assert {one["metric"]["__name__"] for one in found} == {family.name for family in FAMILIES}


def test_only_what_may_run_is_read(tmp_path: Path) -> None:
    """Neither finished runs nor files that nobody has written to for hours; and what is gone is forgotten."""
    for name in ("running", "silent"):
        write(tmp_path / f"{name}.jsonl", make_rich(1)._replace(end=None))
    write(tmp_path / "finished.jsonl", make_rich(1))
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "nowhere")
    os.utime(tmp_path / "silent.jsonl", (0, 0))
    found = find_running(str(tmp_path))
    running = RunningRuns()

    assert [*found] == ["running"]
    assert [run.run for run in running.look(found)] == ["running"]
    assert [run.run for run in running.look(found)] == ["running"]
    (tmp_path / "running.jsonl").unlink()
    assert running.look(found) == []
    assert running.look({}) == []
