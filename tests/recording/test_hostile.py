"""Damaged and hostile files: one clear error, or a line that is left out with a note."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from builders import header, render_str
from gpu_tracker.core.errors import RecordingError
from gpu_tracker.core.model import MetricRow
from gpu_tracker.recording import damage, lazy, lines, reader
from gpu_tracker.recording.reader import load
from gpu_tracker.recording.schema import encode_header
from gpu_tracker.reports.build import build
from gpu_tracker.reports.contract import list_formats, render
from recorded import Made, make_full, make_plain, part as make_part, plain_sample

# Reports are drawn, too.
pytestmark = pytest.mark.usefixtures("plotting")


def look_at_everything(path: Path) -> list[str]:
    """Everything that a user can see of a recording, and the damaged lines."""
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
    for name in list_formats("Report"):
        assert render(build(recording), name)
    return list(recording.problems)


@pytest.mark.uncovered
def test_cut_at_every_byte_of_its_last_4_kilobytes_it_loads_with_a_note(tmp_path: Path) -> None:
    """Only what came after is missing, and the report says from when on."""
    path = make_full(tmp_path / "x.jsonl")
    content = path.read_bytes()
    header_length = content.index(b"\n") + 1
    seen = None
    for length in reversed(range(max(header_length, len(content) - 4096), len(content) - 1)):
        os.truncate(path, length)
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


def test_a_thousand_damaged_lines_are_a_few_sentences(tmp_path: Path) -> None:
    """And a count of the rest."""
    path = make_plain(tmp_path / "x.jsonl")
    path.write_bytes(path.read_bytes() + b"nonsense\n" * 1000)
    problems = load(str(path)).problems

    assert len(problems) == 11
    assert problems[-1] == "990 more lines are damaged too."


def test_many_shapes_do_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a few thousand, a line is decoded instead."""
    monkeypatch.setattr(reader, "_MOST_SHAPES", 1)
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


def spoil(value: object, key: str = "") -> object:
    """Control characters at the end of every text but those that make a line what it is."""
    if isinstance(value, dict):
        return {name: spoil(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [spoil(one, key) for one in value]
    return value + EVIL if isinstance(value, str) and key not in KEPT else value


@pytest.mark.parametrize(
    "command",
    [
        ["report", "x"],
        ["report", "x", "y"],
        ["compare", "x", "y"],
        ["combine", "x", "y"],
        ["ls", "x", "y", "z"],
    ],
)
def test_no_text_of_a_recording_controls_a_terminal(tmp_path: Path, command: list[str]) -> None:
    """Notes, names, commands, reasons, errors: whatever is printed."""
    lines = [json.loads(line) for line in make_full(tmp_path / "x.jsonl").read_text().splitlines()]
    lines.insert(1, {"event": {"at": 0.5, "kind": "note", "text": "Said."}})
    for name in "xy":
        spoiled = [{kind: spoil(data, kind) for kind, data in line.items()} for line in lines]
        (tmp_path / f"{name}{EVIL[-1]}.jsonl").write_text(
            "".join(json.dumps(line) + "\n" for line in spoiled)
        )
    (tmp_path / f"z{EVIL[-1]}.jsonl").write_text("damaged")
    paths = [f"{tmp_path}/{name}{EVIL[-1]}.jsonl" for name in command[1:]]
    done = subprocess.run(
        [sys.executable, "-m", "gpu_tracker", command[0], *paths], capture_output=True, timeout=60
    )

    printed = (done.stdout + done.stderr).decode()
    assert ("Said.?[31m" in printed) == (command[0] == "report"), printed
    assert [letter for letter in printed if not letter.isprintable() and letter != "\n"] == []
    assert "\n?2J" not in printed


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
    """A few bytes replaced, removed or added."""
    path = tmp_path / "x.jsonl"
    if not (tmp_path / "whole.jsonl").exists():
        make_full(tmp_path / "whole.jsonl")
    content = bytearray((tmp_path / "whole.jsonl").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    path.write_bytes(content)
    try:
        look_at_everything(path)
    except RecordingError:
        pass


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
    path.write_bytes(path.read_bytes() + b'{"region":{"pid":1,"path":[],"calls":1}}\n')
    recording = load(str(path))

    assert (len(recording.regions), len(recording.problems)) == (0, 1)


def test_a_damaged_header_alone_is_an_error(tmp_path: Path) -> None:
    """It is not empty."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"header":{"version":1,\n')
    with pytest.raises(RecordingError, match="has no complete header"):
        load(str(path))


@pytest.mark.parametrize("kind", ["regions", "calls", "processes", "frameworks", "events"])
def test_of_too_many_lines_the_first_are_kept_and_the_rest_counted(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time and memory are bounded, and one sentence says so."""
    lines = {
        "regions": lambda number: b'{"region":{"pid":%d,"path":["r"],"calls":1}}\n' % number,
        "calls": lambda number: b'{"calls":{"path":["r%d"]}}\n' % number,
        "processes": lambda number: b'{"process":{"pid":%d,"first_seconds":1.0}}\n' % number,
        "frameworks": lambda number: b'{"framework":{"pid":%d,"framework":"f","device":"d"}}\n' % number,
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
    monkeypatch.setattr(lazy, "_MOST_METRICS", 3)
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
