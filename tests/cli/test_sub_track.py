"""`gpu-tracker sub-track`: the existing tool's commands, for its files, for ours, and for recordings."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from api.test_sub_tracking import make_blocks, make_tracking
from gpu_tracker.core.sub_tracking import BEGIN, BlockEvent
from gpu_tracker.recording.sub_tracking import append_events, read_events
from recorded import make_full

Ask = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def ask(command_line: str, tmp_path: Path) -> Ask:
    """Run `gpu-tracker sub-track` to its end, in a directory with a pair of files."""
    make_tracking(tmp_path / "tracking.csv")
    make_blocks(tmp_path / "blocks.csv", 7)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [command_line, "sub-track", *arguments], capture_output=True, text=True, timeout=100, cwd=tmp_path
        )

    return run


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """What it says against a request, in one line."""
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    return done.stderr


def test_analyze_shows_each_code_block(ask: Ask, tmp_path: Path) -> None:
    """As text or JSON, to standard output or a file."""
    files = ("--tf=tracking.csv", "--stf=blocks.csv")
    text, plain, to_file = (
        ask("analyze", *files),
        ask("analyze", *files, "--format=json"),
        ask("analyze", *files, "--output=results.json"),
    )

    assert [done.returncode for done in (text, plain, to_file)] == [0, 0, 0]
    assert "a: 1 call, 1 of them with samples" in text.stdout.splitlines()
    assert json.loads(plain.stdout)["code_block_results"][0]["num_calls"] == 1
    assert (tmp_path / "results.json").read_text() == plain.stdout
    assert text.stderr + to_file.stdout == ""


def test_rows_that_are_left_out_are_said(ask: Ask, tmp_path: Path) -> None:
    """A block in which the program was killed."""
    append_events(str(tmp_path / "blocks.csv"), [BlockEvent(7, "a", BEGIN, 3.0)])
    done = ask("analyze", "--tf=tracking.csv", "--stf=blocks.csv")

    assert done.returncode == 0
    assert done.stderr == (
        "gpu-tracker: 1 row of blocks.csv left out: a begin without its end, or the reverse.\n"
    )


def test_analyze_of_a_recording_is_its_report(ask: Ask, command_line: str, tmp_path: Path) -> None:
    """Which has a table of regions, and needs no second file."""
    make_full(tmp_path / "run.jsonl")
    done = ask("analyze", "--tf=run.jsonl")
    own = subprocess.run([command_line, "report", "run.jsonl"], capture_output=True, text=True, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (0, own.stdout)
    assert "epoch/a/b" in done.stdout
    assert "regions" in json.loads(ask("analyze", "--tf=run.jsonl", "-f", "json").stdout)
    assert "has its own code blocks. Leave out --stf" in refused(
        ask("analyze", "--tf=run.jsonl", "--stf=blocks.csv")
    )


def test_analyze_says_what_it_needs(ask: Ask) -> None:
    """And never writes a pickle."""
    assert "Name it with --stf" in refused(ask("analyze", "--tf=tracking.csv"))
    assert "runs whatever code it holds" in refused(
        ask("analyze", "--tf=tracking.csv", "--stf=blocks.csv", "-f", "pickle")
    )
    assert "No such file" in refused(ask("analyze", "--tf=none.csv", "--stf=blocks.csv"))
    assert "is the recording itself" in refused(
        ask("analyze", "--tf=tracking.csv", "--stf=blocks.csv", "-o", "blocks.csv", "-f", "text")
    )
    assert "invalid choice" in refused(ask("analyse"))
    assert "required" in refused(ask())


@pytest.mark.parametrize("ways", [["-p", "parts"], ["-p", "parts/7.csv", "-p", "parts/8.csv"]])
def test_combine_joins_files_of_processes(ask: Ask, tmp_path: Path, ways: list[str]) -> None:
    """Named one by one, or all of a directory."""
    (tmp_path / "parts").mkdir()
    for pid in (7, 8):
        make_blocks(tmp_path / "parts" / f"{pid}.csv", pid)
    (tmp_path / "parts" / "readme.txt").touch()
    done = ask("combine", "--stf=all.csv", *ways)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [event.process_id for event in read_events(str(tmp_path / "all.csv"))] == [7, 7, 8, 8]
    assert "all.csv already exists" in refused(ask("combine", "--stf=all.csv", *ways))


def test_combine_names_what_recordings_have_instead(ask: Ask) -> None:
    """They need not be combined."""
    said = refused(ask("combine", "--stf=all.csv", "-p", "a.jsonl", "b.jsonl"))

    assert "each has the code blocks of all processes of its job" in said
    assert "gpu-tracker combine FILE..." in said


def test_compare_puts_results_side_by_side(ask: Ask, tmp_path: Path) -> None:
    """From the command line, a configuration file, or both; the command line wins."""
    for name in ("a", "b", "c"):
        ask("analyze", "--tf=tracking.csv", "--stf=blocks.csv", "-o", f"{name}.json")
    (tmp_path / "config.json").write_text(
        json.dumps({"file_path_map": {"A": "none.json", "B": "b.json"}, "statistic": "min"})
    )
    done = ask("compare", "-m", "A=a.json", "B=b.json", "-m", "C=c.json", "-f", "json")
    configured = ask("compare", "--cconfig=config.json", "-m", "A=a.json", "--stat=max")

    assert json.loads(done.stdout)["overall_resource_usage"] == {
        "main_ram": {"A": 20.0, "B": 20.0, "C": 20.0}
    }
    assert configured.stdout.startswith("max of all samples\n  main_ram  A 30  B 30\n")
    assert done.stderr + configured.stderr == ""


def test_compare_of_recordings_is_our_comparison(ask: Ask, tmp_path: Path) -> None:
    """By the names that were given."""
    for name in ("a", "b"):
        make_full(tmp_path / f"{name}.jsonl")
    done = ask("compare", "-m", "before=a.jsonl", "-m", "after=b.jsonl")

    assert done.returncode == 0
    assert done.stdout.split()[:2] == ["before", "after"]
    assert "peak RAM" in done.stdout
    assert "Leave it out: a comparison of recordings has totals, means and peaks" in refused(
        ask("compare", "-m", "before=a.jsonl", "--stat=mean")
    )
    assert "Recordings cannot be compared with results" in refused(
        ask("compare", "-m", "before=a.jsonl", "-m", "after=b.json")
    )


def test_notes_of_a_comparison_do_not_spoil_its_json(ask: Ask, tmp_path: Path) -> None:
    """They go to standard error."""
    for name in ("a", "b"):
        ask("analyze", "--tf=tracking.csv", "--stf=blocks.csv", "-o", f"{name}.json")
    other = (tmp_path / "b.json").read_text().replace('"name": "a"', '"name": "b"')
    (tmp_path / "b.json").write_text(other)
    done = ask("compare", "-m", "A=a.json", "-m", "B=b.json", "-f", "json")

    assert json.loads(done.stdout)["code_block_compute_time"] == {}
    assert done.stderr == "gpu-tracker: Only in A: a.\ngpu-tracker: Only in B: b.\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "does not hold a JSON object"),
        ('{"files": {}}', "unknown 'files'"),
        ('{"file_path_map": ["a.json"]}', "file_path_map must hold names and files"),
        ('{"file_path_map": {"a": 5}}', "file_path_map must hold names and files"),
        ('{"statistic": 5}', "statistic must be one of min, max, mean, std"),
        ('{"statistic": "mean"}', "Nothing to compare"),
    ],
)
def test_a_wrong_configuration_is_refused(ask: Ask, tmp_path: Path, content: str, said: str) -> None:
    """By name."""
    (tmp_path / "config.json").write_text(content)

    assert said in refused(ask("compare", "--cconfig=config.json"))


def test_compare_refuses_what_it_cannot_read(ask: Ask, tmp_path: Path) -> None:
    """A pickle is never loaded."""
    assert "r.pkl is a pickle: loading it runs whatever code it holds" in refused(
        ask("compare", "-m", "A=r.pkl")
    )
    assert "Write it as NAME=FILE" in refused(ask("compare", "-m", "a.json"))
    assert "Nothing to compare" in refused(ask("compare"))
    assert "Cannot read none.json" in refused(ask("compare", "--cconfig=none.json"))
