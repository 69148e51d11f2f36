"""Where results and sentences go, and what becomes of them there."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import shlex
import struct
import subprocess
import termios
from pathlib import Path

import pytest

from gpu_tracker.cli import COMMANDS
from gpu_tracker.cli.output import Output
from recorded import make_full, write
from rich import make_rich


def ask(command_line: str, *arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run([command_line, *map(str, arguments)], text=True, timeout=200, **streams)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["--versoin"], "Did you mean --version?"),
        (["report", "--fromat=json"], "Did you mean --format?"),
        (["run", "--recrod", "x", "--", "true"], "Did you mean --record?"),
        (["report", "--zzz"], "See `gpu-tracker report --help`."),
        (["--st", "1"], "See `gpu-tracker --help`."),
    ],
)
def test_a_mistyped_option_is_answered_with_the_nearest(
    command_line: str, words: list[str], near: str
) -> None:
    """In one sentence, before anything that is missing."""
    done = ask(command_line, *words)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f" {near}\n")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", ["report", "compare", "ls", "combine"])
@pytest.mark.parametrize("format_name", ["text", "json"])
def test_a_full_standard_output_is_an_error(
    command_line: str, tmp_path: Path, command: str, format_name: str
) -> None:
    """In one sentence: whoever reads the file later must not take it for the result."""
    path = make_full(tmp_path / "x.jsonl")
    with open("/dev/full", "w", encoding="ascii") as full:
        finished = ask(command_line, command, path, "-f", format_name, stdout=full)

    assert finished.returncode == 3
    assert finished.stderr == "gpu-tracker: Cannot write to standard output: No space left on device.\n"


def test_a_terminal_without_abilities_has_a_width_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines are wrapped there, but not coloured."""
    monkeypatch.setenv("TERM", "dumb")
    master, terminal = os.openpty()
    try:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 72, 0, 0))
        view = Output(None).find_view(terminal)
    finally:
        os.close(master)
        os.close(terminal)

    assert (view.columns, view.has_colour) == (72, False)


def test_a_reader_that_has_gone_is_none(command_line: str, tmp_path: Path) -> None:
    """It has read what it wanted."""
    path = make_full(tmp_path / "x.jsonl")
    finished = ask("bash", "-c", f"set -o pipefail; {command_line} report {path} | true")

    assert (finished.returncode, finished.stderr) == (0, "")


@pytest.mark.parametrize(
    "arguments", [["run", "--no-record", "-o", "-", "--", "sh", "-c", "exit 3"], ["-e", "sh -c 'exit 3'"]]
)
def test_the_exit_code_is_the_jobs_whatever_becomes_of_the_result(
    command_line: str, arguments: list[str]
) -> None:
    """The result is shown where it can be seen."""
    with open("/dev/full", "w", encoding="ascii") as full:
        finished = ask(command_line, *arguments, stdout=full)

    assert finished.returncode == 3
    assert "Cannot write to standard output: No space left on device. The result is:\n" in finished.stderr
    assert "RAM" in finished.stderr


def test_several_recordings_are_reported_one_after_the_other(command_line: str, tmp_path: Path) -> None:
    """With an empty line between; as JSON in a list, one alone as it is."""
    paths = [make_full(tmp_path / f"{name}.jsonl") for name in "ab"]
    one = ask(command_line, "report", paths[0]).stdout
    shown = [
        json.loads(ask(command_line, "report", *some, "-f", "json").stdout) for some in (paths, paths[:1])
    ]

    assert ask(command_line, "report", *paths).stdout == f"{one}\n{one}"
    assert shown[0] == [shown[1]] * 2


@pytest.mark.parametrize("command", ["report", "compare", "combine"])
def test_a_name_commands_no_terminal(command_line: str, tmp_path: Path, command: str) -> None:
    """What is said has one line, whatever a file is called."""
    finished = ask(command_line, command, tmp_path / "\x1b[2J\x1b]0;x\x07a\nb.jsonl")

    assert finished.returncode in (1, 2)
    assert "?[2J?]0;x?a?b.jsonl" in finished.stderr
    assert finished.stderr.rstrip("\n").isprintable()


@pytest.mark.parametrize("name", ["runs/x.jsonl", "link.json", "twin.json"])
@pytest.mark.parametrize(
    "words",
    [
        *(f"{command} {what} -f json -o" for command in ("report", "size", "ls") for what in ("ONE", "runs")),
        *("compare runs -f json -o", "compare ONE runs -f json -o", "combine runs -f json -o"),
        *("report other.jsonl -f json -o", "export other.jsonl -f json --overwrite -o"),
        *("doctor -f json -o", "dmon -c 1 -f", "pmon -c 1 -f"),
        *(f"run --no-record -f json {option}" for option in ("-o", "--summary")),
        "-e 'touch started' -f json -o",
    ],
)
def test_no_result_replaces_a_recording(command_line: str, tmp_path: Path, words: str, name: str) -> None:
    """Neither one that was read nor any other, under whatever name; nothing is started."""
    (tmp_path / "runs").mkdir()
    path = make_full(tmp_path / "runs" / "x.jsonl")
    make_full(tmp_path / "other.jsonl")
    (tmp_path / "link.json").symlink_to(path)
    (tmp_path / "twin.json").hardlink_to(path)
    before = path.read_bytes()
    arguments = [word.replace("ONE", str(path)) for word in shlex.split(words)]
    job = ["--", "touch", "started"] if "run" in arguments else []
    finished = ask(command_line, *arguments, name, *job, cwd=tmp_path)

    assert finished.returncode == 2
    assert finished.stderr.splitlines()[0] in (
        f"gpu-tracker: {name} is a recording, which is never overwritten. Name another file.",
        f"gpu-tracker: {name} is the recording itself.",
    )
    assert path.read_bytes() == (tmp_path / "twin.json").read_bytes() == before
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("run --record new.jsonl -f json -o new.jsonl --", "recording"),
        ("run --record new.jsonl -f json -o same/new.jsonl --", "recording"),
        ("run --record same/new.jsonl --report new.jsonl --", "recording"),
        ("run --record new.jsonl --summary ./new.jsonl --", "recording"),
        ("run --no-record --tf new.csv -f json -o ./new.csv --", "tracking file"),
        ("attach PID --record new.jsonl -f json -o new.jsonl", "recording"),
        ("--record new.jsonl -f json -o new.jsonl -e", "recording"),
    ],
)
def test_no_result_replaces_the_recording_that_is_made(
    command_line: str, tmp_path: Path, words: str, what: str
) -> None:
    """It is refused before anything is started."""
    (tmp_path / "same").symlink_to(".")
    arguments = words.replace("PID", str(os.getpid())).split()
    job = ["touch", "started"] if arguments[0] == "run" else ["touch started"]
    finished = ask(command_line, *arguments, *([] if "attach" in words else job), cwd=tmp_path)

    assert finished.returncode == 2
    assert finished.stderr.endswith(f" is the {what} itself.\n")
    assert [file.name for file in tmp_path.iterdir()] == ["same"]


def test_nor_a_recording_that_the_job_has_made(command_line: str, tmp_path: Path) -> None:
    """The report is shown instead, and the job's exit code stays."""
    path = make_full(tmp_path / "x.jsonl")
    job = ["sh", "-c", "cp x.jsonl y.txt; cp x.jsonl z.md; exit 5"]
    finished = ask(
        command_line, "run", "--no-record", "-o", "y.txt", "--summary", "z.md", "--", *job, cwd=tmp_path
    )

    assert finished.returncode == 5
    assert finished.stderr.count(" is a recording, which is never overwritten.") == 2
    assert "exit code 5" in finished.stderr
    assert (tmp_path / "y.txt").read_bytes() == (tmp_path / "z.md").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_help_fits_a_terminal(command_line: str, command: list[str]) -> None:
    """Eighty columns are the fewest that anybody has."""
    lines = ask(command_line, *command, "--help").stdout.splitlines()

    assert lines
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("y.csv", ["--layout", "tracking"]), ("y.sqlite", ["--layout", "tracking"]), ("y.json", [])],
)
def test_an_export_without_room_leaves_no_file(
    command_line: str, tmp_path: Path, name: str, arguments: list[str]
) -> None:
    """Not even one that lacks no more than its last letters; it is an error in one sentence."""
    path, output = make_full(tmp_path / "x.jsonl"), tmp_path / name
    ask(command_line, "export", path, "-o", output, *arguments)
    room = output.stat().st_size - 10
    output.unlink()
    finished = ask(
        command_line,
        "export",
        path,
        "-o",
        output,
        *arguments,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
    )

    assert (finished.returncode, finished.stderr.count("\n")) == (3, 1)
    assert [file.name for file in tmp_path.iterdir()] == ["x.jsonl"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--", "./--password=hunter2"],
        ["--", "./https://me:hunter2@host"],
        ["--fail-if", "password=hunter2", "--", "true"],
        ["--hf-token", "hunter2", "--", "true"],
        ["--password=hunter2", "--", "true"],
    ],
)
def test_an_error_repeats_no_secret(command_line: str, tmp_path: Path, arguments: list[str]) -> None:
    """Logs are shared as recordings are."""
    result = ask(command_line, "run", "--no-record", "--gpu", "none", *arguments, cwd=tmp_path)

    assert result.returncode in (2, 127)
    assert "hunter2" not in result.stderr + result.stdout
    assert "***" in result.stderr or "--hf-token" in result.stderr


def test_the_path_of_a_recording_commands_no_terminal(command_line: str, tmp_path: Path) -> None:
    """It is the user's to choose, but perhaps not the reader's."""
    result = ask(command_line, "run", "--gpu", "none", "--record", "d\x1b[31m", "--", "true", cwd=tmp_path)

    assert f"  recording: {tmp_path}/d?[31m/" in result.stderr
    assert "\x1b" not in result.stderr


PLAIN = {"LC_ALL": "C", "PYTHONUTF8": "0", "COLUMNS": "80"}
COMMAND_LINES = [
    ["report", "RUN"],
    ["report", "RUN", "-f", "markdown"],
    ["report", "RUN", "RUN", "-f", "markdown"],
    ["compare", "RUN", "OTHER"],
    ["compare", "RUN", "OTHER", "-f", "markdown"],
    ["combine", "RUN"],
    ["combine", "RUN", "-f", "markdown"],
    ["ls", "RUN"],
    ["ls", "RUN", "-f", "markdown"],
    ["size", "RUN"],
    ["explain"],
    ["explain", "clocks-held-down"],
    ["doctor"],
]


@pytest.mark.parametrize("words", COMMAND_LINES, ids=" ".join)
def test_everything_is_ascii_where_nothing_else_can_be_shown(
    command_line: str, tmp_path: Path, words: list[str]
) -> None:
    """Names too; in a file it is not."""
    write(tmp_path / "näme.jsonl", make_rich(2, "näme"))
    slow = make_rich(2, "näme")
    write(tmp_path / "other.jsonl", slow._replace(totals=slow.totals._replace(at_seconds=99.0)))
    names = {"RUN": tmp_path / "näme.jsonl", "OTHER": tmp_path / "other.jsonl"}
    arguments = [str(names.get(word, word)) for word in words]
    done = subprocess.run(
        [command_line, *arguments], capture_output=True, env={**os.environ, **PLAIN}, timeout=200
    )

    assert done.stdout
    assert done.stdout.isascii()


def test_a_file_has_every_letter(command_line: str, tmp_path: Path) -> None:
    """It is read elsewhere."""
    write(tmp_path / "a.jsonl", make_rich(2, "näme"))
    ask(command_line, "report", tmp_path / "a.jsonl", "-o", tmp_path / "a.md", env={**os.environ, **PLAIN})

    assert "nämeloss" in (tmp_path / "a.md").read_text("utf-8")


@pytest.mark.parametrize("arguments", [["report", "RUN"], ["run"]], ids=" ".join)
def test_a_picture_is_not_written_to_a_terminal(
    command_line: str, tmp_path: Path, arguments: list[str]
) -> None:
    """One sentence says where else; nothing is started."""
    pytest.importorskip("matplotlib")
    write(tmp_path / "a.jsonl", make_rich())
    words = [str(tmp_path / "a.jsonl") if word == "RUN" else word for word in arguments]
    words += ["-f", "png", *(["--", "touch", str(tmp_path / "started")] if "run" in words else [])]
    ours, theirs = os.openpty()
    try:
        done = subprocess.run([command_line, *words], stdout=theirs, stderr=theirs, cwd=tmp_path, timeout=200)
        shown = os.read(ours, 10_000).decode()
    finally:
        os.close(ours)
        os.close(theirs)

    assert done.returncode == 2
    assert shown == "gpu-tracker: A terminal cannot show PNG: name a file with -o report.png.\r\n"
    assert not (tmp_path / "started").exists()
