"""Damaged and hostile files: one clear error, or a line that is left out with a note."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from builders import header, render_str
from gpu_tracker.analysis.findings.finding import CERTAIN, SERIOUS, Finding
from gpu_tracker.cli.serve import compare
from gpu_tracker.core.errors import RecordingError
from gpu_tracker.core.model import MetricRow
from gpu_tracker.core.moments import stamp_moment
from gpu_tracker.core.text import paint
from gpu_tracker.live.controls import Controls
from gpu_tracker.live.lookout import Lookout
from gpu_tracker.live.messenger import Messenger
from gpu_tracker.live.panel import build_line, build_panel
from gpu_tracker.live.server.listing import ListSubject
from gpu_tracker.live.server.pages import Wish
from gpu_tracker.live.server.runs import RunDirectory
from gpu_tracker.live.server.watching import RunSubject
from gpu_tracker.live.spectator import Spectator
from gpu_tracker.live.top import Look, build_frame
from gpu_tracker.recording import damage, lazy, lines, reader
from gpu_tracker.recording.follow import follow_path
from gpu_tracker.recording.glance import glance
from gpu_tracker.recording.growing import GrowingRecording
from gpu_tracker.recording.reader import load
from gpu_tracker.recording.sampled import read_columns
from gpu_tracker.recording.schema import encode_header
from gpu_tracker.reports.build import Report, build
from gpu_tracker.reports.charts import find_length, list_charts
from gpu_tracker.reports.choices import NO_CHOICES
from gpu_tracker.reports.contract import list_formats, render
from gpu_tracker.reports.html.page import assemble
from gpu_tracker.reports.plot import _BINS
from gpu_tracker.reports.report import describe_title
from gpu_tracker.sinks.prometheus import exposition
from gpu_tracker.sinks.reader import IntervalReader
from gpu_tracker.sinks.running import RunningRuns
from recorded import Made, make_full, make_plain, part as make_part, plain_sample

# Reports are drawn, too.
pytestmark = pytest.mark.usefixtures("plotting")


_SLOW = ("png", "pdf")
_drawn: set[tuple[str, ...]] = set()


def look_at_everything(path: Path, *, is_drawn: bool = True) -> list[str]:
    """Everything that a user can see of a recording, and the damaged lines; `is_drawn` is also by matplotlib, which takes long."""
    recording = load(str(path))
    for part in (
        recording.samples,
        recording.regions,
        recording.calls,
        recording.metrics,
        recording.processes,
        recording.frameworks,
    ):
        tuple(part)
    report = build(recording, read_columns(recording))
    for name in list_formats("Report"):
        if name not in _SLOW or (is_drawn and _is_new(name, report)):
            assert render(report, name)
    return list(recording.problems)


def _is_new(name: str, report: Report) -> bool:
    """Whether this has not been drawn before: all that a picture shows of a report is here, and most damage is elsewhere."""
    key = name, describe_title(report), repr(list_charts(report, _BINS)), repr(find_length(report))
    is_new = key not in _drawn
    _drawn.add(key)
    return is_new


@pytest.mark.uncovered
def test_cut_at_every_byte_of_its_last_4_kilobytes_it_loads_with_a_note(tmp_path: Path) -> None:
    """Only what came after is missing, and the report says from when on."""
    path = make_full(tmp_path / "x.jsonl")
    content = path.read_bytes()
    header_length = content.index(b"\n") + 1
    seen = None
    for length in reversed(range(max(header_length, len(content) - 4096), len(content) - 1)):
        os.truncate(path, length)
        os.utime(path, (0, 0))  # elsewhere it may go on while its file grows
        recording = load(str(path))
        parts = [tuple(part) if isinstance(part, Sequence) else part for part in recording]
        assert not recording.problems
        if parts == seen:
            continue  # cut elsewhere in the same line: the same values again
        seen = parts
        assert look_at_everything(path) == []
        assert "The recording was cut off at " in build(load(str(path))).notes[-1]


@pytest.mark.parametrize(
    "word", ["NaN", "Infinity", "-Infinity", "1e999", "1" * 5000, "1" * 40, "true", '"5"', "[]", "{}", "null"]
)
@pytest.mark.parametrize("field", ["at", "system_ram", "readings"])
def test_an_invalid_number_is_left_out_with_a_note(tmp_path: Path, field: str, word: str) -> None:
    """Not a number, not finite, too large, or of another type."""
    path = make_plain(tmp_path / "x.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    sample = json.loads(lines[2])
    sample["sample"][field] = "HERE"
    lines[2] = json.dumps(sample).replace('"HERE"', word) + "\n"
    path.write_text("".join(lines))

    assert len(look_at_everything(path)) == 1


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 100_000 + b"}" * 100_000,
        b'{"sample":' + b"[" * 100_000 + b"}\n",
        b"\x00" * 1000,
        bytes(range(10, 256)).replace(b"\n", b""),
        b'{"sample":{}}',
        b'{"sample":{},"event":{}}',
        b"{}",
        b"5",
        b'{"unheard":{}}',
        b'{"header":{}}',
        b'{"event":{"at":1,"kind":"gpu","gpu":{"ordinal":0}}}',
        b'{"event":{"at":1,"kind":["note"]}}',
        b'{"region":{"pid":[],"path":[]}}',
        b'{"region":{"pid":1,"path":[{}]}}',
        b'{"process":{"pid":1}}',
        b'{"end":{"reason":"exited"}}',
        b'{"end":[]}',
        b'{"metrics":5',
    ],
    ids=lambda line: repr(line[:24]),
)
def test_an_invalid_line_is_left_out_with_a_note(tmp_path: Path, line: bytes) -> None:
    """Deeply nested, binary, or of the wrong kind."""
    path = make_plain(tmp_path / "x.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    lines.insert(2, line + b"\n")
    path.write_bytes(b"".join(lines))

    assert look_at_everything(path) == ["Line 3 of the recording is damaged and was left out."]


def test_a_line_of_100_megabytes_costs_no_memory(tmp_path: Path) -> None:
    """In the middle, at the end, and as the only one."""
    path = make_plain(tmp_path / "x.jsonl")
    content = path.read_bytes()
    with path.open("ab") as file:
        for _ in range(100):
            file.write(b"[" * 10**6)
        file.write(b"\n")
        file.write(content[-content[::-1].index(b"\n", 1) :])
    code = (
        "import sys\n"
        "from gpu_tracker.recording.reader import load\n"
        "print(*load(sys.argv[1]).problems)\n"
        "print(*[line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')])"
    )
    said, peak = subprocess.check_output([sys.executable, "-c", code, path], text=True).splitlines()

    assert said.endswith("is damaged and was left out.")
    assert int(peak) * 1024 < 60 * 10**6
    with path.open("r+b") as file:
        file.truncate(len(content) + 50 * 10**6)
    assert look_at_everything(path) == []
    path.write_bytes(b"{" * 9 * 2**20)
    with pytest.raises(RecordingError, match="is not a gpu-tracker recording"):
        load(str(path))


def test_a_line_that_is_too_long_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Later lines keep their numbers and offsets."""
    path = make_plain(tmp_path / "x.jsonl")
    monkeypatch.setattr(lines, "LONGEST_LINE_BYTES", 1000)
    content = path.read_bytes().splitlines(keepends=True)
    content[1:1] = [b"[" * 3500 + b"\n", b"[" * 2000 + b"\n"]
    path.write_bytes(b"".join(content))

    assert [problem.split(" of ")[0] for problem in look_at_everything(path)] == ["Line 2", "Line 3"]
    assert len(tuple(load(str(path)).samples)) == 3


def test_a_device_that_is_described_twice_is_one(tmp_path: Path) -> None:
    """Every line twice: devices have UUIDs, and what is summed over them is not doubled. All readers agree."""
    path = make_full(tmp_path / "once.jsonl")
    twice = tmp_path / "twice.jsonl"
    first, *others = path.read_bytes().splitlines(keepends=True)
    twice.write_bytes(first + b"".join(line for line in others for _ in range(2)))
    once, read = load(path), load(twice)
    growing = GrowingRecording(follow_path(str(twice)))
    growing.look_at_all()
    intervals = IntervalReader(follow_path(str(twice)))
    while intervals.look():
        pass

    assert len(once.gpus) > 0
    assert read.gpus == growing.data.gpus == intervals.gpus == once.gpus
    assert build(read).summary == build(once).summary
    assert build(read).energy == build(once).energy
    assert tuple(read.regions) == tuple(once.regions)
    assert tuple(read.processes) == tuple(once.processes)


def test_a_thousand_damaged_lines_are_a_few_sentences(tmp_path: Path) -> None:
    """And a count of the rest."""
    path = make_plain(tmp_path / "x.jsonl")
    path.write_bytes(path.read_bytes() + b"nonsense\n" * 1000)
    problems = load(str(path)).problems

    assert len(problems) == 11
    assert problems[-1] == "990 more lines are damaged too."


def test_many_shapes_do_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a few thousand, a line is decoded instead."""
    monkeypatch.setattr(reader, "MOST_SHAPES", 1)
    path = make_full(tmp_path / "x.jsonl")

    assert len(tuple(load(str(path)).samples)) == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"version": "1"},
        {"version": None},
        {"pid": "no"},
        {"allocation": []},
        {"allocation": {"machine_cores": "four"}},
        {"sleep_seconds": 10**400},
        {"host": 5},
        {"command": 5},
    ],
    ids=str,
)
def test_an_invalid_header_is_refused(tmp_path: Path, changes: dict[str, object]) -> None:
    """Whatever is wrong with it."""
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"header": {**encode_header(header()), **changes}}) + "\n")
    with pytest.raises(RecordingError):
        load(str(path))


def test_names_may_contain_anything(tmp_path: Path) -> None:
    """Control characters do not reach the terminal, and a path in a name is not followed."""
    path = tmp_path / "x.jsonl"
    evil = header(host="../../../etc/passwd", command=("\x1b[31mrm\r\n", "-rf", "\ud800"))
    with Made(path, evil) as writer:
        writer.write_sample(plain_sample(1.0))
    recording = load(str(path))

    assert recording.header == evil
    assert "\x1b" not in str(build(recording))


EVIL = "\x1b[31m\r\n\x9b2J\u202e\x07"
KEPT = {"kind", "basis", "version", "started_at", "tracker_version"}
NUMBERS_BY_NAME = {"values", "metric_totals"}


def spoil(value: object, key: str = "") -> object:
    """Control characters at the end of every text but those that make a line what it is; also of names that are keys."""
    if isinstance(value, dict):
        if key in NUMBERS_BY_NAME:
            return {name + EVIL: one for name, one in value.items()}
        evil = EVIL if key == "labels" else ""
        return {name + evil: spoil(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [spoil(one, key) for one in value]
    return value + EVIL if isinstance(value, str) and key not in KEPT else value


def make_spoiled(path: Path) -> Path:
    """A recording whose every text has them."""
    lines = [json.loads(line) for line in make_full(path).read_text().splitlines()]
    lines.insert(1, {"event": {"at": 0.5, "kind": "note", "text": "Said."}})
    lines.insert(-1, {"metrics": {"at": [2.0], "pid": [100], "step": [2], "values": {"loss": [0.5]}}})
    identity = {"name": "run", "job": "7", "node": "node", "rank": 0, "labels": {"seed": "1"}}
    lines[0]["header"]["identity"] = {**identity, **lines[0]["header"].get("identity", {})}
    spoiled = [{kind: spoil(data, kind) for kind, data in line.items()} for line in lines]
    path.write_text("".join(json.dumps(line) + "\n" for line in spoiled))
    return path


def find_controls(text: str) -> set[str]:
    """What a terminal would obey, but for the ends of lines."""
    return {letter for letter in text if not letter.isprintable() and letter != "\n"}


@pytest.mark.parametrize(
    "command",
    [
        ["report", "x"],
        ["report", "x", "y"],
        ["compare", "x", "y"],
        ["combine", "x", "y"],
        ["ls", "x", "y", "z"],
        ["size", "x"],
        ["top --once", "x"],
    ],
)
def test_no_text_of_a_recording_controls_a_terminal(tmp_path: Path, command: list[str]) -> None:
    """Notes, names, commands, reasons, errors: whatever is printed."""
    for name in "xy":
        make_spoiled(tmp_path / f"{name}{EVIL[-1]}.jsonl")
    (tmp_path / f"z{EVIL[-1]}.jsonl").write_text("damaged")
    paths = [f"{tmp_path}/{name}{EVIL[-1]}.jsonl" for name in command[1:]]
    done = subprocess.run(
        [sys.executable, "-m", "gpu_tracker", *command[0].split(), *paths], capture_output=True, timeout=60
    )

    printed = (done.stdout + done.stderr).decode()
    assert ("Said.?[31m" in printed) == (command[0] == "report"), printed
    assert find_controls(printed) == set()
    assert "\n?2J" not in printed


@pytest.fixture
def spoiled(tmp_path: Path) -> Path:
    """A recording in a directory of its own, without its end and begun just now: it is taken for one that runs."""
    path = tmp_path / "runs" / "x.jsonl"
    path.parent.mkdir()
    head, *lines = make_spoiled(path).read_text().splitlines(keepends=True)
    data = json.loads(head)
    data["header"]["started_at"] = stamp_moment(time.time())
    path.write_text("".join([json.dumps(data) + "\n", *lines[:-1]]))
    return path


@pytest.mark.parametrize("has_colour", [False, True])
def test_no_text_of_a_running_job_controls_a_terminal(spoiled: Path, has_colour: bool) -> None:
    """Below its output, as a line of a log, and on a full screen; a colour is all that a terminal is told."""
    glimpse = Lookout(follow_path(str(spoiled)), NO_CHOICES, None).look()
    scene = Spectator(follow_path(str(spoiled))).look(None, 600.0)
    alarm = Finding("ram-grows", SERIOUS, CERTAIN, f"RAM{EVIL} grows.", f"See{EVIL}.")
    lines = [
        *build_panel(glimpse._replace(findings=(alarm,)), 200, has_unicode=True),
        *build_frame(scene._replace(findings=(alarm,), problem=EVIL), Controls(), Look(200, 60)),
        *build_frame(scene._replace(findings=(alarm,), status=f"ended{EVIL}"), Controls(), Look(200, 60)),
    ]
    painted = "\n".join(paint(line, 200, has_colour=has_colour) for line in lines)

    for word in ("epoch", "loss"):
        assert word in build_line(glimpse)
        assert word in painted
    assert glimpse.intervals
    assert find_controls(build_line(glimpse) + re.sub("\x1b\\[[0-9;]*m", "", painted)) == set()
    assert has_colour == ("\x1b" in painted)


def test_no_text_of_a_recording_reaches_a_browser_or_prometheus_uncleaned(spoiled: Path) -> None:
    """The list, the report, several runs side by side, what is sent while it runs, and the metrics; also in JSON."""
    other = make_spoiled(spoiled.with_name("y.jsonl"))
    subject = RunSubject(f"x{EVIL}.jsonl", str(spoiled), NO_CHOICES)
    listed = ListSubject(RunDirectory(str(spoiled.parent)), Wish())
    for shown in (subject, listed):
        shown.advance(1)
    (running,) = RunningRuns().look({f"x{EVIL}": str(spoiled)})
    texts = [
        assemble(listed.make_page()),
        compare([(f"x{EVIL}", str(spoiled)), ("y", str(other))]),
        exposition([running]).decode(),
        *(shown.shown.page.decode() for shown in (subject, listed)),
    ]

    for text in texts:
        assert "?[31m" in text
        assert find_controls(text) == set()
        assert re.findall(r"\\u(?:00[01]|007f|008|009|202e)", text) == []


def test_what_is_told_to_a_command_is_clean(tmp_path: Path) -> None:
    """`--notify` passes one line to a shell."""
    told = tmp_path / "told"
    messenger = Messenger(f'printf %s "$1" > {told}')
    messenger.tell(Finding("ram-grows", SERIOUS, CERTAIN, f"RAM{EVIL} grows.", ""))
    assert messenger.close() == ""

    assert told.read_text() == "RAM" + "?[31m???2J??" + " grows."


def test_anything_but_a_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    """A directory, a pipe without a writer, a device, an impossible name."""
    os.mkfifo(tmp_path / "pipe")
    for place, reason in (
        (tmp_path, "it is a directory"),
        (tmp_path / "pipe", "it is not a regular file"),
        ("/dev/zero", "it is not a regular file"),
        ("a\0b", "null"),
        ("x" * 5000, "name too long"),
    ):
        with pytest.raises(RecordingError, match=f"(?i){reason}"):
            load(str(place))


@pytest.mark.parametrize("start", [b"", b"valid"])
def test_a_file_of_20_gigabytes_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: bytes
) -> None:
    """Sparse or not."""
    path = make_plain(tmp_path / "x.jsonl")
    if not start:
        path.write_bytes(b"")
    os.truncate(path, 20 * 10**9)
    monkeypatch.setattr(lines, "open", pytest.fail, raising=False)

    with pytest.raises(RecordingError, match=r"it is too large for a recording \(19 GiB, at most 4\)\.$"):
        load(str(path))


def test_of_a_first_line_without_an_end_no_more_is_read(tmp_path: Path) -> None:
    """It can be no recording."""
    path = tmp_path / "x.jsonl"
    path.touch()
    os.truncate(path, 3 * 10**9)
    with pytest.raises(RecordingError, match="is not a gpu-tracker recording"):
        load(str(path))
    with path.open("rb") as file:
        every = lines.LineFile("x.jsonl", lambda: file).read_all()
        next(every)
        assert file.tell() == lines.LONGEST_LINE_BYTES


def test_a_read_error_is_refused(tmp_path: Path) -> None:
    """Such as reading the memory of a process."""
    with pytest.raises(RecordingError, match="Cannot read"):
        load("/proc/self/mem")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_bytes_changed_anywhere_raise_nothing_but_our_own_error(tmp_path: Path, data: st.DataObject) -> None:
    """A few bytes replaced, removed or added; in every format but the slow ones."""
    with suppress(RecordingError):
        look_at_everything(change_bytes(tmp_path, data), is_drawn=False)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_bytes_changed_anywhere_are_drawn_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    """The same in every format: a picture takes as long as a hundred reports."""
    with suppress(RecordingError):
        look_at_everything(change_bytes(tmp_path, data))


def change_bytes(folder: Path, data: st.DataObject) -> Path:
    """A recording with everything in it, and a few bytes that are wrong."""
    whole, path = folder / "whole.jsonl", folder / "x.jsonl"
    if not whole.exists():
        make_full(whole)
    content = bytearray(whole.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    path.write_bytes(content)
    return path


def test_a_completely_damaged_file_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept is bounded, what is counted is not; reading a line twice counts once."""
    monkeypatch.setattr(damage, "_MOST_KEPT", 20)
    path = make_plain(tmp_path / "x.jsonl")
    path.write_bytes(path.read_bytes() + b"nonsense\n" * 1000)
    recording = load(str(path))
    noted = recording.problems
    assert isinstance(noted, damage.Damage)
    noted.note(1)  # an early line is read again

    assert recording.problems[-1] == "990 more lines are damaged too."


def test_a_region_without_a_name_is_refused(tmp_path: Path) -> None:
    """It would be taken for the whole run."""
    path = make_plain(tmp_path / "x.jsonl")
    *lines, end = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join((*lines, b'{"region":{"pid":1,"path":[],"calls":1}}\n', end)))
    recording = load(str(path))

    assert (len(recording.regions), len(recording.problems)) == (0, 1)


@pytest.mark.parametrize("kind", ["sample", "region", "calls", "metrics", "process", "peak", "framework"])
@pytest.mark.parametrize("place", ["top", "inside"])
def test_no_name_in_a_line_hides_another(tmp_path: Path, kind: str, place: str) -> None:
    """At the top of a line, or in what it holds; whichever counts, it may be the wrong one."""
    path = make_full(tmp_path / "x.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    at = next(at for at, line in enumerate(lines) if line.startswith(f'{{"{kind}"'))
    line = lines[at].rstrip("\n")
    if place == "top":
        line = f"{line[:-1]},{line[1:]}"
    else:
        name, value = next(iter(json.loads(line)[kind].items()))
        line = f'{line[:-2]},"{name}" :{json.dumps(value)}}}}}'
    lines[at] = f"{line}\n"
    path.write_text("".join(lines))

    assert len(look_at_everything(path, is_drawn=False)) == 1


def test_colons_in_names_are_no_damage(tmp_path: Path) -> None:
    """They are what names that are there twice are found by."""
    with Made(tmp_path / "x.jsonl") as writer:
        writer.write_metrics((MetricRow(0.5, {"train:loss": 1.0, '":"': 2.0}, 1, 100),))
    recording = load(str(tmp_path / "x.jsonl"))

    assert [row.values for row in recording.metrics] == [{"train:loss": 1.0, '":"': 2.0}]
    assert not recording.problems


@pytest.mark.parametrize("at", [-1.0, 1e6])
def test_a_metric_of_another_time_is_damage(tmp_path: Path, at: float) -> None:
    """Before the run, or long after it."""
    path = make_full(tmp_path / "x.jsonl")
    content = path.read_text()
    path.write_text(content.replace('{"metrics":{"at":[0.5', f'{{"metrics":{{"at":[{at}'))

    assert path.read_text() != content
    assert len(look_at_everything(path, is_drawn=False)) == 1


@pytest.mark.parametrize("content", [b'{"header":{"version":1,\n', b'{"header":{"version":1,'])
def test_a_damaged_header_alone_is_an_error(tmp_path: Path, content: bytes) -> None:
    """It is not empty."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match="has no complete header"):
        load(str(path))


@pytest.mark.parametrize(
    "kind", ["regions", "calls", "processes", "frameworks", "framework readings", "events"]
)
def test_of_too_many_lines_the_first_are_kept_and_the_rest_counted(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time and memory are bounded, and one sentence says so."""
    lines = {
        "regions": lambda number: b'{"region":{"pid":%d,"path":["r"],"calls":1}}\n' % number,
        "calls": lambda number: b'{"calls":{"path":["r%d"]}}\n' % number,
        "processes": lambda number: b'{"process":{"pid":%d,"first_seconds":1.0}}\n' % number,
        "frameworks": lambda number: b'{"framework":{"pid":%d,"framework":"f","device":"d"}}\n' % number,
        "framework readings": lambda number: (
            b'{"framework":{"pid":1,"framework":"f","device":"d","at_seconds":%d}}\n' % number
        ),
        "events": lambda number: b'{"event":{"at":%d,"kind":"note","text":""}}\n' % number,
    }
    some = [lines[kind](number) for number in range(100, 200)]
    monkeypatch.setitem(reader._ROOM_BYTES, kind, 30 * len(some[0]))
    path = make_plain(tmp_path / "x.jsonl")
    first, _, _ = path.read_bytes().partition(b"\n")
    path.write_bytes(b"\n".join([first, b"".join(some)]))

    assert load(str(path)).problems[0] == f"70 more lines about {kind} were left out: there are too many."


def test_the_last_line_of_a_region_is_kept_however_often_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A month of a run is no reason to leave anything out."""
    monkeypatch.setitem(reader._ROOM_BYTES, "regions", 2000)
    with Made(tmp_path / "x.jsonl") as writer:
        for number in range(100):
            writer.write_region(make_part(1, *[1.0] * number))
    recording = load(str(tmp_path / "x.jsonl"))

    assert [region.calls for region in recording.regions] == [99]
    assert not recording.problems


def test_names_of_metrics_are_read_up_to_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that puts a changing value into a name must not fill the memory of whoever reads it; others are read on."""
    monkeypatch.setattr(lazy, "MOST_METRICS", 3)
    with Made(tmp_path / "x.jsonl") as writer:
        for number in range(9):
            writer.write_metrics([MetricRow(float(number), {f"m{number}": 1.0, "m0": 2.0})])
    recording = load(str(tmp_path / "x.jsonl"))

    assert [metric.name for metric in build(recording).metrics] == ["m0", "m1", "m2"]
    assert [row.values for row in recording.metrics][-2:] == [{"m0": 2.0}, {"m0": 2.0}]
    assert list(recording.problems) == ["Only the first 3 metrics of the recording were read."]


def test_a_report_shows_some_of_many_notes(tmp_path: Path) -> None:
    """And how many there are besides."""
    path = make_plain(tmp_path / "x.jsonl")
    with path.open("ab") as file:
        file.writelines(b'{"event":{"at":1,"kind":"note","text":"n%d"}}\n' % number for number in range(1000))
    report = build(load(str(path)))
    text = render_str(report)

    assert len(report.notes) >= 1000
    assert text.count("note: ") == 25
    assert f"and {len(report.notes) - 25} more notes (the JSON report has all)" in text


@pytest.mark.parametrize(
    ("words", "twice"),
    [(b'"exit_code":', b'"exit_code":1,"exit_code":'), (b'{"end":', b'{"end":{},"end":')],
)
def test_no_name_in_an_end_hides_another(tmp_path: Path, words: bytes, twice: bytes) -> None:
    """Whoever reads it could be told anything."""
    path = make_full(tmp_path / "x.jsonl")
    content = path.read_bytes()
    before, end = content[: content.rindex(b'{"end":')], content[content.rindex(b'{"end":') :]
    assert words in end
    path.write_bytes(before + end.replace(words, twice, 1))

    assert load(str(path)).end is None
    with pytest.raises(RecordingError, match="damaged"):
        glance(str(path))
