"""Where results and sentences go, and what becomes of them there."""

from __future__ import annotations

import json
import resource
import subprocess
from pathlib import Path

import pytest

from gpu_tracker.cli import COMMANDS
from recorded import make_full


def ask(command_line: str, *arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run([command_line, *map(str, arguments)], text=True, timeout=200, **streams)  # type: ignore[call-overload,no-any-return]


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


def test_without_a_word_it_helps(command_line: str) -> None:
    """As with --help."""
    silent, asked = (
        subprocess.run([command_line, *words], capture_output=True, text=True) for words in ([], ["--help"])
    )

    assert (silent.returncode, silent.stderr) == (0, "")
    assert silent.stdout == asked.stdout


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
