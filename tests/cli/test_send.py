"""`gpu-tracker send`: a collector on loopback gets what was recorded."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import gpu_tracker as gput
from builders import header
from gpu_tracker.core.model import MetricRow
from gpu_tracker.core.moments import parse_moment, stamp_moment
from gpu_tracker.recording.follow import follow_path
from gpu_tracker.sinks.reader import PublishedReader
from patience import wait_until
from recorded import Made, interval, make_plain, write
from rich import make_rich

pytestmark = pytest.mark.skipif(
    find_spec("opentelemetry") is None, reason="OpenTelemetry is not installed (make test WITH=sinks)"
)


class Collector:
    """Takes what is sent, and decodes it with the protocol's own messages."""

    def __init__(self, status: int = 200, answer: bytes = b"", location: str = "", kind: str = "") -> None:
        self.requests: list[Any] = []
        self.headers: list[Any] = []
        messages = import_module("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = messages.ExportMetricsServiceRequest()
                request.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
                collector.headers.append((self.path, dict(self.headers)))
                collector.requests.append(request)
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                if location:
                    self.send_header("Location", location)
                if kind:
                    self.send_header("Content-Type", kind)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def list_points(self) -> Iterator[tuple[str, str, dict[str, Any], float, float]]:
        """Instance, name, attributes, seconds since 1970 and value of each point."""
        for request in self.requests:
            for of_resource in request.resource_metrics:
                owner = _read_attributes(of_resource.resource.attributes)
                for metric in of_resource.scope_metrics[0].metrics:
                    for point in getattr(metric, metric.WhichOneof("data")).data_points:
                        attributes = _read_attributes(point.attributes)
                        at = point.time_unix_nano / 1e9
                        yield owner["service.instance.id"], metric.name, attributes, at, point.as_double


def _read_attributes(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


def _answer_partly(n_refused: int, reason: str) -> bytes:
    """A "200", but some points were not taken: as the protocol has it."""
    if find_spec("opentelemetry") is None:
        return b""
    messages = import_module("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    answer = messages.ExportMetricsServiceResponse()
    answer.partial_success.rejected_data_points = n_refused
    answer.partial_success.error_message = reason
    return bytes(answer.SerializeToString())


@pytest.fixture
def collector() -> Iterator[Collector]:
    """One that takes everything."""
    collector = Collector()
    yield collector
    collector.close()


def send(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Call the command."""
    return subprocess.run(
        [sys.executable, "-m", "gpu_tracker", "send", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )


def test_a_finished_run_is_sent_with_its_own_times(collector: Collector, tmp_path: Path) -> None:
    """Every interval, once, with its figures; credentials are those of the environment."""
    path = write(tmp_path / "rich.jsonl", make_rich(2))
    done = send("--otlp", collector.url, str(path), OTEL_EXPORTER_OTLP_HEADERS="api-key=secret")
    published = PublishedReader(follow_path(str(path))).look()
    began_at = parse_moment(gput.load(path).header.started_at)
    points = [*collector.list_points()]
    assert began_at is not None

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.strip().endswith(f"{len(published)} intervals of 1 run sent to {collector.url}.")
    assert {instance for instance, *_ in points} == {"rich"}
    ram = [(at, value) for _, name, _, at, value in points if name == "process.memory.usage"]
    assert [value for _, value in ram] == [one.values["ram_bytes"] for one in published]
    assert [at for at, _ in ram] == pytest.approx([began_at + one.seconds for one in published], abs=1e-6)
    busy = [
        value
        for _, name, about, _, value in points
        if name == "hw.gpu.utilization" and about["hw.id"] == "GPU-0"
    ]
    assert busy == [one.gpus[0].values["utilization_percent"] * 0.01 for one in published]
    assert {path for path, _ in collector.headers} == {"/v1/metrics"}
    assert {headers["api-key"] for _, headers in collector.headers} == {"secret"}


def test_each_interval_has_the_metrics_that_were_logged_in_it(collector: Collector, tmp_path: Path) -> None:
    """A finished run shows the whole curve, at the times of then; also what came after the last interval."""
    path = tmp_path / "run.jsonl"
    with Made(path, header(started_at=stamp_moment(1_700_000_000.0))) as writer:
        for second in range(1, 1202):
            writer.write_metrics([MetricRow(second - 0.5, {"loss": 1 / second}, second)])
            if second <= 1200:
                writer.write_sample(interval(float(second), 100))
    os.utime(path, (0, 0))  # it has no end, and is not waited for
    done = send("--otlp", collector.url, str(path))

    assert done.returncode == 0
    loss = [(at, value) for _, name, _, at, value in collector.list_points() if name == "gpu_tracker.metric"]
    assert [at for at, _ in loss] == [*range(1_700_000_001, 1_700_001_201), 1_700_001_200.5]
    assert [value for _, value in loss] == [1 / second for second in range(1, 1202)]


def test_counters_are_counters(collector: Collector, tmp_path: Path) -> None:
    """A backend may compute rates of them, from the start of the run on."""
    send("--otlp", collector.url, str(write(tmp_path / "rich.jsonl", make_rich(1))))
    metrics = {
        metric.name: metric
        for request in collector.requests
        for metric in request.resource_metrics[0].scope_metrics[0].metrics
    }

    assert metrics["process.cpu.time"].sum.is_monotonic
    assert metrics["process.cpu.time"].unit == "s"
    assert not metrics["process.memory.usage"].sum.is_monotonic
    assert metrics["hw.power"].WhichOneof("data") == "gauge"
    assert len({point.start_time_unix_nano for point in metrics["process.cpu.time"].sum.data_points}) == 1


def test_a_running_job_is_followed_until_it_ends(collector: Collector, tmp_path: Path) -> None:
    """Each interval is sent once, the metrics of the job too; a damaged file in the directory is said, and not in the way."""
    (tmp_path / "damaged.jsonl").write_text("{}\n")
    make_plain(tmp_path / "plain.jsonl")
    code = "import gpu_tracker as g; g.log(step=30, loss=0.25); input()"
    job = subprocess.Popen(
        [
            *(sys.executable, "-m", "gpu_tracker", "run", "--record", str(tmp_path / "job.jsonl")),
            *("--name", "baseline", "--st", "0.05", "--", sys.executable, "-c", code),
        ],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    wait_until((tmp_path / "job.jsonl").exists, "the job is recorded")
    command = [sys.executable, "-m", "gpu_tracker", "send", "--otlp", collector.url, "--every", "0.05"]
    with subprocess.Popen([*command, str(tmp_path)], stderr=subprocess.PIPE, text=True) as sender:
        wait_until(
            lambda: [value for _, name, *_, value in collector.list_points() if name == "gpu_tracker.metric"],
            "the metric was sent",
        )
        job.communicate(b"")
        _, said = sender.communicate()

    points = [*collector.list_points()]
    times = [
        at
        for instance, name, _, at, _ in points
        if (instance, name) == ("job", "gpu_tracker.elapsed_seconds")
    ]
    assert sender.returncode == 2
    assert "damaged.jsonl is not a gpu-tracker recording" in said
    assert f" of 2 runs sent to {collector.url}, but 1 recording could not be read." in said
    assert times == sorted({*times})
    assert len(times) == len(gput.load(tmp_path / "job.jsonl").samples)
    assert {value for _, name, _, _, value in points if name == "gpu_tracker.metric"} == {0.25}
    assert {value for _, name, _, _, value in points if name == "gpu_tracker.step"} == {30.0}


def test_a_file_that_is_none_of_ours_is_not_sent(collector: Collector, tmp_path: Path) -> None:
    """Nobody is told that it was."""
    path = tmp_path / "text.jsonl"
    path.write_text("hello\n")
    done = send("--otlp", collector.url, str(path))

    assert done.returncode == 2
    assert done.stderr.endswith(
        f"0 intervals of 0 runs sent to {collector.url}, but 1 recording could not be read.\n"
    )
    assert collector.requests == []


def test_a_recording_that_is_emptied_meanwhile_is_not_sent_whole(
    collector: Collector, tmp_path: Path
) -> None:
    """What was read of it is counted, and the exit code says that this was not all."""
    path = tmp_path / "run.jsonl"
    with Made(path, header()) as writer:
        writer.write_sample(interval(1.0, 100))
        command = [sys.executable, "-m", "gpu_tracker", "send", "--otlp", collector.url, "--every", "0.05"]
        with subprocess.Popen([*command, str(path)], stderr=subprocess.PIPE, text=True) as sender:
            wait_until(lambda: collector.requests, "the first interval was sent")
            path.write_text("emptied, and something else in its place\n")
            _, said = sender.communicate()

    assert sender.returncode == 2
    assert said.endswith(f"1 interval of 1 run sent to {collector.url}, but 1 recording could not be read.\n")


def test_a_collector_that_refuses_is_an_error(tmp_path: Path) -> None:
    """One sentence, and the exit code of trouble."""
    collector = Collector(400)
    done = send("--otlp", collector.url, str(make_plain(tmp_path / "plain.jsonl")))
    collector.close()

    assert done.returncode == 3
    assert f"{collector.url}/v1/metrics does not take the figures of plain." in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_collector_that_redirects_has_taken_nothing(
    collector: Collector, tmp_path: Path, status: int
) -> None:
    """One sentence says so, with the address to use; nothing is sent there unasked."""
    redirecting = Collector(status, location=f"{collector.url}/elsewhere")
    done = send("--otlp", redirecting.url, str(make_plain(tmp_path / "plain.jsonl")))
    redirecting.close()

    assert done.returncode == 3
    assert done.stderr == (
        f"gpu-tracker: {redirecting.url}/v1/metrics takes no figures: it redirects (status {status}), "
        f"so use the address it redirects to, {collector.url}/elsewhere.\n"
    )
    assert collector.requests == []


def test_a_web_page_is_no_collector(tmp_path: Path) -> None:
    """A proxy that wants a login answers with one, and with the status of success."""
    login = Collector(answer=b"<html>Log in</html>", kind="Text/HTML; charset=utf-8")
    done = send("--otlp", login.url, str(make_plain(tmp_path / "plain.jsonl")))
    login.close()

    assert done.returncode == 3
    assert done.stderr == (
        f"gpu-tracker: {login.url}/v1/metrics takes no figures: it answers with a web page, "
        "so use the address of the collector itself.\n"
    )


@pytest.mark.parametrize(
    ("answer", "code", "sentences"),
    [
        (
            _answer_partly(5, "too old\x1b[2J"),
            3,
            [
                "refused 5 points of plain: too old?[2J",
                "1 run sent to",
                ", but 5 points refused by the collector.",
            ],
        ),
        (_answer_partly(1, ""), 3, ["refused 1 point of plain: no reason given"]),
        (_answer_partly(0, "use a newer version"), 0, ["1 run sent to"]),
        (b"OK", 0, ["1 run sent to"]),
    ],
    ids=["some", "without a reason", "only advice", "another answer"],
)
def test_points_that_a_collector_refuses_are_counted(
    tmp_path: Path, answer: bytes, code: int, sentences: list[str]
) -> None:
    """A collector may take the request, and not all of its points."""
    collector = Collector(answer=answer)
    done = send("--otlp", collector.url, str(make_plain(tmp_path / "plain.jsonl")))
    collector.close()

    assert done.returncode == code
    assert [sentence for sentence in sentences if sentence not in done.stderr] == []
    assert ("refused" in done.stderr) == bool(code)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--otlp", "localhost:4318"], "is not a URL"),
        (["--otlp", "http://localhost:4318", "--every", "often"], "'often' is not a number"),
        (["--otlp", "http://localhost:4318", "--every", "0"], "every must be"),
        (["--otlp", "http://localhost:4318", "none.jsonl"], "Cannot read none.jsonl"),
        ([], "required: --otlp"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(arguments: list[str], sentence: str) -> None:
    """Before anything is sent."""
    done = send(*arguments)

    assert done.returncode == 2
    assert sentence in done.stderr
