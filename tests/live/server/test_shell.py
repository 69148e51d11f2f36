"""The real server, asked by real connections."""

from __future__ import annotations

import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import gpu_tracker as gput
from builders import header
from gpu_tracker.core.errors import TrackerError, UsageError
from gpu_tracker.core.model import Identity
from gpu_tracker.live.server import answers, shell, watching
from gpu_tracker.live.server.shell import bind, need_tornado
from gpu_tracker.live.server.token import find_token
from gpu_tracker.live.server.watching import RunSubject
from live.server.conftest import TOKEN, Grown, Serving, read_until, serving
from patience import wait_until
from recorded import run, write
from reports.html.test_pages import EVIL, rich


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits a second for the next look."""
    monkeypatch.setattr(watching, "_TICK_SECONDS", 0.05)


def test_pages_are_shown(server: Serving, runs: Path) -> None:
    """The list, a run, a comparison with the oldest; each says that nothing of it may run or be fetched from elsewhere."""
    os.utime(runs / "run-2.jsonl", (1, 1))
    listed = server.ask()
    shown = server.ask("run?name=run-1.jsonl")
    compared = server.ask("compare?name=run-1.jsonl&name=run-2.jsonl")

    assert [reply.status for reply in (listed, shown, compared)] == [200] * 3
    assert 'href="run?name=run-1.jsonl"' in listed.text
    assert ("peak RAM" in compared.text, "run-1 against run-2" in compared.text) == (True, True)
    assert "data-news" in listed.text.partition("<body")[2][:100]
    assert "data-news" not in shown.text.partition("<body")[2][:100]
    for reply in (listed, shown, compared):
        policy = reply.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
        assert "frame-ancestors 'self'" in policy
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert reply.headers["Referrer-Policy"] == "no-referrer"
        assert reply.headers["Cache-Control"] == "no-store"
        assert "Access-Control-Allow-Origin" not in reply.headers


def test_a_comparison_has_the_names_of_the_runs(server: Serving, runs: Path) -> None:
    """As the list has them; a run without a name is called after its file."""
    named = run(5.0)._replace(header=header(identity=Identity(name="base line <b>")))
    write(runs / "20260101-python-1.jsonl", named)
    os.utime(runs / "20260101-python-1.jsonl", (1, 1))
    text = server.ask("compare?name=20260101-python-1.jsonl&name=run-1.jsonl").text
    body = text.partition("<body")[2].partition("<script")[0]

    assert "run-1 against base line &lt;b&gt;" in body
    assert "20260101" not in body


def test_prometheus_gets_the_jobs_that_run(runs: Path) -> None:
    """With what they use now; those that have ended are left out."""
    with (
        gput.Tracker(
            sleep_time=0.02, gpu="none", name="mine", record=runs / "now.jsonl", disable_logs=True
        ) as tracker,
        serving(runs) as server,
    ):
        next(tracker.samples())
        reply = server.ask("metrics")

    assert reply.status == 200
    assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert 'run="now"' in reply.text
    assert 'name="mine"' in reply.text
    assert "run-1" not in reply.text


def test_every_address_is_relative(server: Serving) -> None:
    """So that tunnels and proxies may put anything in front."""
    for page in ("", "run?name=run-1.jsonl", "compare?name=run-1.jsonl&name=run-2.jsonl", "run?name=none"):
        body = server.ask(page).text.partition("<body")[2].partition("<script")[0]
        assert TOKEN not in body
        for attribute in ("href", "src", "action", "data-news"):
            for part in body.split(f'{attribute}="')[1:]:
                assert not part.startswith(("/", "http:", "https:"))


def test_without_the_token_there_is_nothing(server: Serving) -> None:
    """And nothing is given away."""
    for path in ("/", "/run?name=run-1.jsonl", f"/{TOKEN[:-1]}/", f"/{TOKEN}x/", "/metrics", "/favicon.ico"):
        reply = server.ask_raw(path)
        assert (reply.status, "run-" in reply.text, TOKEN in reply.text) == (403, False, False)
    reply = server.ask_raw(f"/{TOKEN}")
    assert (reply.status, reply.headers["Location"]) == (302, f"{TOKEN}/")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.1.2.3", ""]
)
def test_a_name_that_is_not_ours_is_refused(server: Serving, host: str) -> None:
    """A site that lets its name point here still sends its name."""
    assert server.ask(Host=host).status in {400, 403}
    assert server.ask(Host="localhost:1234").status == 200


def test_no_name_at_all_is_refused(server: Serving) -> None:
    """Nor two of them."""
    for hosts in ("", "Host: localhost\r\nHost: evil.example\r\n"):
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as raw:
            raw.sendall(f"GET /{TOKEN}/ HTTP/1.0\r\n{hosts}\r\n".encode())
            assert read_until(raw, b"\r\n").split()[1] in {b"400", b"403"}


def test_a_name_that_the_user_allows(runs: Path) -> None:
    """That of a proxy."""
    with serving(runs, hosts=frozenset({"hub.example.org"})) as server:
        assert server.ask(Host="hub.example.org").status == 200


def test_other_sites_are_refused(server: Serving) -> None:
    """Whatever they know."""
    assert server.ask(Origin="http://evil.example").status == 403
    assert server.ask(Origin="null").status == 403
    assert server.ask(Origin=f"http://127.0.0.1:{server.port}").status == 200
    embedded = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert (server.ask(**embedded).status, server.ask(**followed).status) == (403, 200)


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"]
)
def test_nothing_can_be_changed(server: Serving, runs: Path, method: str) -> None:
    """Other methods are refused, and the files are what they were."""
    before = {path: path.read_bytes() for path in runs.iterdir()}
    reply = server.ask("run?name=run-1.jsonl", method)
    assert (reply.status, reply.headers["Allow"]) == (405, "GET, HEAD")
    assert {path: path.read_bytes() for path in runs.iterdir()} == before


@pytest.mark.parametrize("page", ["", "run?name=run-1.jsonl", "news", "nothing"])
def test_a_head_is_an_answer_without_its_body(server: Serving, page: str) -> None:
    """The same headers, and no viewer."""
    reply = server.ask(page, "HEAD")
    assert (reply.status, reply.text) == (404 if page == "nothing" else 200, "")
    if page != "news":
        assert int(reply.headers["Content-Length"]) == len(server.ask(page).text.encode())


def test_a_request_with_a_body_is_refused(server: Serving) -> None:
    """A large one is not even read."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as raw:
        raw.sendall(
            f"POST /{TOKEN}/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n".encode()
        )
        assert read_until(raw, b"\r\n").split()[1] in {b"400", b"413"}


@pytest.mark.parametrize(
    "path",
    [
        *(
            "../runs/run-1.jsonl",
            "%2e%2e/%2e%2e/etc/passwd",
            "..%2f..%2fetc%2fpasswd",
            "run/../../etc/passwd",
            "run-1.jsonl",
        ),
        *("assets/page.js", "run%00", "run/", "%72un", "//etc/passwd", "\\..\\x"),
    ],
)
def test_paths_lead_nowhere(server: Serving, path: str) -> None:
    """Pages are in a table; nothing else is looked for."""
    assert server.ask(path).status == 404


@pytest.mark.parametrize("page", ["run", "news"])
@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            "../secret.jsonl",
            "..%2Fsecret.jsonl",
            "%2e%2e%2fsecret.jsonl",
            "..%252Fsecret.jsonl",
            "/etc/passwd",
            "%2Fetc%2Fpasswd",
        ),
        *("out.jsonl", "run-1.jsonl%00", "run-1.jsonl%2500", "folder.jsonl", "pipe.jsonl", "%ff.jsonl"),
    ],
)
def test_names_lead_nowhere(server: Serving, runs: Path, tmp_path: Path, page: str, name: str) -> None:
    """Neither up, nor through a link, nor to what is no file."""
    shutil.copy(runs / "run-1.jsonl", tmp_path / "secret.jsonl")
    (runs / "out.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (runs / "folder.jsonl").mkdir()
    os.mkfifo(runs / "pipe.jsonl")
    reply = server.ask(f"{page}?name={name}&x=1")
    assert (reply.status, "There is no such recording" in reply.text) == (404, True)


def test_a_hostile_recording_is_only_text(server: Serving, runs: Path) -> None:
    """Its name too, in the list and in its page."""
    name = '"><img src=x onerror=alert(1)>\n.jsonl'
    write(runs / name, rich(EVIL))
    for page in (
        "",
        "run?name=%2522%253E%253Cimg%2520src%253Dx%2520onerror%253Dalert%25281%2529%253E%250A.jsonl",
    ):
        reply = server.ask(page)
        assert reply.status == 200
        assert "<img" not in reply.text
        assert "<script>window" not in reply.text


def test_what_cannot_be_read_is_a_sentence(server: Serving, runs: Path) -> None:
    """Also if it is to be compared."""
    (runs / "text.jsonl").write_text("hello\n")
    (runs / "deep.jsonl").write_bytes(b'{"header":' + b"[" * 100_000 + b"\n")
    for page in ("run?name=text.jsonl", "run?name=deep.jsonl", "compare?name=text.jsonl&name=run-1.jsonl"):
        reply = server.ask(page)
        assert (reply.status, "This cannot be shown" in reply.text) == (422, True)
    assert "2 runs" in server.ask().text


def test_one_run_cannot_be_compared(server: Serving) -> None:
    """Nor one that does not exist."""
    for query in ("", "name=run-1.jsonl", "name=run-1.jsonl&name=none.jsonl"):
        assert "Tick two runs" in server.ask(f"compare?{query}").text
    assert server.ask("compare?" + "&".join(["name=run-1.jsonl"] * 50)).status == 400


def test_the_list_can_be_searched(server: Serving, runs: Path) -> None:
    """By words and filters; a wrong one is a sentence. The news are of the same search."""
    write(runs / "long.jsonl", run(100.0, 900))
    reply = server.ask("?search=time%3E1min&state=finished&sort=peak_ram")
    assert ("long.jsonl" in reply.text, "run-1.jsonl" in reply.text) == (True, False)
    assert 'data-news="news?search=time%3E1min&amp;state=finished&amp;sort=peak_ram"' in reply.text
    for wrong in ("colour~red", "peak_ram%3E%3E", "peak_ram%3E"):
        text = server.ask(f"?search={wrong}").text
        assert ("is not a valid filter" in text, "0 of 3 runs" in text) == (True, True)
    assert "No runs to show" in server.ask("?state=running").text
    assert (
        "3 runs" in server.ask("?state=nonsense&sort=nonsense&search=%ff").text
        or "0 of 3" in server.ask("?search=%ff").text
    )


def test_a_list_of_many_is_bounded(server: Serving, runs: Path) -> None:
    """A search shows the others."""
    for number in range(600):
        os.link(runs / "run-1.jsonl", runs / f"many-{number:03}.jsonl")
    wait_until(lambda: "602 runs" in server.ask().text, "all are read")
    reply = server.ask()
    assert (reply.text.count("<tr data-key"), "and 102 more; search to see them" in reply.text) == (500, True)
    assert "many-003.jsonl" in server.ask("?search=many-003").text


def read_events(content: bytes) -> list[tuple[str, Any]]:
    """The events of a stream, without its chunks."""
    lines = content.decode().splitlines()
    names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    return list(
        zip(names, [json.loads(line[6:]) for line in lines if line.startswith("data: ")], strict=False)
    )


def test_a_run_is_followed_to_its_end(server: Serving, grow: Callable[..., Grown]) -> None:
    """First what there is, then rows, in the end all of it and a last word."""
    grown = grow()
    grown.grow(20)
    assert 'data-news="news?name=live.jsonl"' in server.ask("run?name=live.jsonl").text
    with server.listen("news?name=live.jsonl") as raw:
        got = read_until(raw, b"event: page")
        grown.grow(1)
        got += read_until(raw, b"event: rows")
        grown.finish()
        got += read_until(raw, b"0\r\n\r\n")
    assert b"text/event-stream" in got
    names = [name for name, _ in read_events(got)]
    assert (names[0], names[-2:]) == ("page", ["page", "over"])


def test_a_deleted_run_is_over(server: Serving, runs: Path, grow: Callable[..., Grown]) -> None:
    """Its viewers are told; the others go on."""
    grown = grow()
    grown.grow(20)
    with server.listen("news?name=live.jsonl") as raw:
        read_until(raw, b"event: page")
        grown.path.unlink()
        assert b"This is what was known last." in read_until(raw, b"0\r\n\r\n")
    assert server.ask("run?name=live.jsonl").status == 404
    assert server.ask("run?name=run-1.jsonl").status == 200


def test_the_list_tells_of_new_runs(server: Serving, runs: Path) -> None:
    """Without being asked again."""
    with server.listen("news") as raw:
        assert b"run-2.jsonl" in read_until(raw, b"\n\n\r\n")
        write(runs / "another.jsonl", run(5.0))
        read_until(raw, b"another.jsonl")


def test_a_slow_viewer_misses_what_is_in_between(
    server: Serving, grow: Callable[..., Grown], monkeypatch: pytest.MonkeyPatch
) -> None:
    """He gets what is new when he can take it, and nothing is kept for him meanwhile; the others do not wait."""
    size, sent = 3_000_000, 12
    numbers = iter(range(1000))
    monkeypatch.setattr(
        watching, "encode_event", lambda *_: f"<{next(numbers)}>".encode() + b"x" * size + b"\n\n"
    )
    grown = grow(n_samples=400)
    grown.grow(20)
    page = "news?name=live.jsonl"
    with server.listen(page, receive_bytes=4096) as slow, server.listen(page) as quick:
        seen = read_until(quick, b"<0>")
        for number in range(1, sent):
            grown.grow(1)
            seen = read_until(quick, f"<{number}>".encode())
        assert seen
        got = read_until(slow, f"<{sent - 1}>".encode())
    assert b"<0>" in got
    assert len(got) < 4 * size


def test_who_takes_nothing_is_sent_away(
    server: Serving, grow: Callable[..., Grown], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a while."""
    monkeypatch.setattr(shell, "_PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(watching, "encode_event", lambda _name, _data: b"x" * 30_000_000)
    grow().grow(20)
    with server.listen("news?name=live.jsonl", receive_bytes=4096) as slow:
        wait_until(lambda: server.site.n_viewers == 1, "he is there")
        wait_until(lambda: server.site.n_viewers == 0, "he is sent away")
        assert slow.recv(1)


def test_who_reads_nothing_is_sent_away_however_little_it_is(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel would keep it for him for a long time."""
    monkeypatch.setattr(shell, "_PATIENCE_SECONDS", 0.5)
    with serving(runs) as server, server.listen("news", receive_bytes=2048):
        wait_until(lambda: server.site.n_viewers == 1, "he is there")
        wait_until(lambda: server.site.n_viewers == 0, "he is sent away")


def test_who_takes_little_at_a_time_gets_everything(
    server: Serving, grow: Callable[..., Grown], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow line is no reason to be sent away, however long it takes."""
    monkeypatch.setattr(shell, "_PATIENCE_SECONDS", 2.0)
    monkeypatch.setattr(watching, "encode_event", lambda _name, _data: b"x" * 60_000_000)
    grow().grow(20)
    with server.listen("news?name=live.jsonl", receive_bytes=4096) as slow:
        until = time.monotonic() + 5.0
        while time.monotonic() < until:
            assert slow.recv(2**18)
            time.sleep(0.005)
        assert server.site.n_viewers == 1


def test_nothing_is_read_while_nobody_looks(
    server: Serving, grow: Callable[..., Grown], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one reading serves all who look."""
    made: list[str] = []
    advanced: list[int] = []

    class Counted(RunSubject):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(arguments[0])

        def advance(self, crowd: int) -> None:
            super().advance(crowd)
            advanced.append(crowd)

    monkeypatch.setattr(answers, "RunSubject", Counted)
    grow().grow(20)
    with server.listen("news?name=live.jsonl") as one, server.listen("news?name=live.jsonl") as other:
        read_until(one, b"event: page")
        read_until(other, b"event: page")
        assert server.site.n_viewers == 2
        assert len(made) == 1
    wait_until(lambda: server.site.n_viewers == 0, "both are gone")
    looks = len(advanced)
    server.ask()
    assert len(advanced) == looks


def test_too_many_viewers_are_refused(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rather than that all are slow."""
    monkeypatch.setattr(answers, "MOST_VIEWERS", 1)
    with server.listen("news") as raw:
        read_until(raw, b"event: page")
        assert server.ask("news").status == 503
        assert server.ask().status == 200


def test_viewers_that_come_at_once_are_counted_one_by_one(
    server: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has been admitted counts before he gets anything; who only asks for the headers counts no longer than that."""
    monkeypatch.setattr(answers, "MOST_VIEWERS", 3)
    assert server.ask("news", "HEAD").status == 200
    with ExitStack() as stack:
        raws = [stack.enter_context(server.listen("news")) for _ in range(12)]
        codes = [read_until(raw, b"\r\n").split()[1] for raw in raws]
        assert (codes.count(b"200"), codes.count(b"503")) == (3, 9)
    wait_until(lambda: server.site.n_viewers == 0, "all are gone")
    assert server.ask("news", "HEAD").status == 200


@pytest.mark.parametrize("most_descriptors", [20, 40])
def test_without_descriptors_others_wait(runs: Path, most_descriptors: int) -> None:
    """Half of them stay for files, nothing is printed, and who waits is served once there is room."""
    script = f'ulimit -n {most_descriptors}; exec "$0" -m gpu_tracker serve --port 0 "$1"'
    command = ["sh", "-c", script, sys.executable, str(runs)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = urlsplit(server.stdout.readline().strip())
        here = ("127.0.0.1", address.port or 0)
        n_before = count_sockets(server.pid)
        with ExitStack() as held:
            for _ in range(60):
                held.enter_context(socket.create_connection(here, 60)).sendall(b"GET /x HTT")
            wait_until(lambda: count_sockets(server.pid) - n_before >= most_descriptors // 2, "it is full")
            with socket.create_connection(here, 60) as last:
                last.sendall(f"GET {address.path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                held.close()
                answer = read_until(last, b"</html>")
                n_after = count_sockets(server.pid) - n_before
        server.terminate()
        _, said = server.communicate()

    assert b"HTTP/1.1 200 OK" in answer
    assert n_after <= most_descriptors // 2
    assert said == ""


def count_sockets(pid: int) -> int:
    """How many a process has open."""
    folder = f"/proc/{pid}/fd"
    links = []
    for fd in os.listdir(folder):
        try:
            links.append(os.readlink(f"{folder}/{fd}"))
        except FileNotFoundError:
            pass  # closed in between
    return sum(link.startswith("socket:") for link in links)


@pytest.mark.parametrize(("soft", "most"), [(1, 1), (40, 20), (10**6, 1000), (resource.RLIM_INFINITY, 1000)])
def test_the_descriptors_limit_the_connections(monkeypatch: pytest.MonkeyPatch, soft: int, most: int) -> None:
    """Also where there is no limit."""
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (soft, soft))

    assert shell.count_room() == most


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    """Is an error if it was asked for. Our token may have been told to who listens there, so it is forgotten."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        token = find_token(str(tmp_path), port)
        with pytest.raises(UsageError, match=f"Cannot listen at 127.0.0.1, port {port}: .*--port"):
            bind("127.0.0.1", port, str(tmp_path))
        assert find_token(str(tmp_path), port) != token


def test_without_a_wish_the_first_free_port_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else on the machine may have the usual one."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(shell, "FIRST_PORT", taken.getsockname()[1])
        with bind("127.0.0.1", None, str(tmp_path)) as mine:
            assert mine.getsockname()[1] > taken.getsockname()[1]


def test_without_tornado_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the name of the extra."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(TrackerError, match=r"pip install 'gput\[web\]'"):
        need_tornado()


def test_a_defect_of_ours_hits_only_who_met_it(
    server: Serving, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The connection is closed, the defect is shown where the server was started, without the token."""

    async def fail(*_: object) -> None:
        raise OSError("a defect")

    with monkeypatch.context() as patch:
        patch.setitem(answers.ROUTES, "run", fail)
        with server.listen("run?name=run-1.jsonl") as raw:
            assert raw.recv(1) == b""
    assert server.ask("run?name=run-1.jsonl").status == 200
    shown = capfd.readouterr().err
    assert ("a defect" in shown, TOKEN in shown) == (True, False)


def test_the_list_does_not_wait_for_a_page_that_takes_long(runs: Path) -> None:
    """Such as the report of a very large run: the list and the figures come meanwhile."""
    has_begun, may_end = threading.Event(), threading.Event()

    def take_long(_: object) -> str:
        has_begun.set()
        may_end.wait()
        return "compared"

    with (
        serving(runs, take_long) as server,
        server.listen("compare?name=run-1.jsonl&name=run-2.jsonl") as raw,
    ):
        has_begun.wait()
        try:
            assert server.ask().status == server.ask("metrics").status == 200
        finally:
            may_end.set()
        assert b"compared" in read_until(raw, b"compared")
