"""`compare`, `ls` and `combine` from the command line."""

from __future__ import annotations

import fcntl
import json
import os
import re
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.conftest import COMMAND
from gpu_tracker.core.model import Identity, MetricRow
from recorded import interval, on_gpu, part, run, write

Ask = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Run `gpu-tracker` in a directory of its own."""

    def ask_command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [COMMAND, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=200,
            env={**os.environ, "TZ": "UTC"},
        )

    return ask_command


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Five runs before, five after, with a region and a metric."""
    for number in range(5):
        for name, seconds in (("before", 10.0), ("after", 12.0)):
            write(
                tmp_path / name / f"{number}.jsonl",
                run(
                    seconds + number / 100,
                    regions=(part(1, seconds / 2, path=("forward",)),),
                    metrics=(MetricRow(1.0, {"loss": 0.5}),),
                ),
            )
    return tmp_path


def test_groups_are_compared(ask: Ask, runs: Path) -> None:
    """Directories, patterns, lists; with names or without."""
    new = ",".join(f"after/{number}.jsonl" for number in range(5))
    done = ask("compare", "before", f"new={new}", "after/*.jsonl")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].split() == ["before", "new", "*"]
    assert "new against before, beyond noise (*):\n  time +20 %" in done.stdout
    assert "time of forward +20 %" in done.stdout


@pytest.mark.parametrize(
    ("limit", "code", "words"),
    [
        ("time > +10%", 1, "gpu-tracker: FAILED time > +10%: after took 12 s, 1.200 times the baseline"),
        ("regions.forward.time > +5%", 1, "FAILED regions.forward.time > +5%: after took 6 s in forward"),
        ("time > +30%", 0, ""),
        ("peak_ram > 8GB", 0, ""),
        ("time > +10% beyond noise", 1, "1.200 times the baseline (p = 0.0079)."),
        ("regions.gone.time > 1s", 2, "Not checked: regions.gone.time > 1s: no run has the region 'gone'"),
        ("tyme > 1s", 2, "Unknown figure 'tyme' in 'tyme > 1s'"),
    ],
)
def test_limits_decide_the_exit_code(ask: Ask, runs: Path, limit: str, code: int, words: str) -> None:
    """With a sentence on standard error."""
    done = ask("compare", "before", "after", "--fail-if", limit)

    assert done.returncode == code
    assert words in done.stderr
    assert done.stderr.count("\n") == bool(words)
    assert bool(done.stdout) == ("Unknown figure" not in words)


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ([], 2),
        (["--allow-failed"], 2),
        (["--allow-missing"], 2),
        (["--allow-failed", "--allow-missing"], 0),
        (["--fail-if", "time > 1s"], 1),
    ],
)
def test_what_could_not_be_checked_does_not_pass(ask: Ask, runs: Path, more: list[str], code: int) -> None:
    """A run that was killed, and a GPU that nobody measured; a limit that is broken for certain says more."""
    write(runs / "after" / "killed.jsonl", run(12.0, end=None, regions=(part(1, 6.0, path=("forward",)),)))
    done = ask("compare", "before", "after", "--fail-if", "peak_gpu_ram > 1GB", *more)

    assert done.returncode == code
    assert "1 run of after did not succeed (no end: killed, or still running)." in done.stderr
    assert "Not checked: peak_gpu_ram > 1GB: not measured in 6 of 6 runs of after." in done.stderr


@pytest.mark.parametrize(("limit", "code"), [("time > 1h", 3), ("time > 1s", 1), ("energy > 1J", 2)])
def test_a_full_disk_is_told_from_a_broken_limit(ask: Ask, runs: Path, limit: str, code: int) -> None:
    """Whose sentence is printed nevertheless."""
    done = ask("compare", "before", "after", "-o", "/dev/full", "--fail-if", limit)

    assert done.returncode == code
    assert "No space left on device" in done.stderr


@pytest.mark.parametrize(
    ("job", "options", "code", "words"),
    [
        ("true", ["--fail-if", "time > 1h"], 0, ""),
        ("true", ["--fail-if", "time > 0s"], 1, "FAILED time > 0s: sh took"),
        ("true", ["--fail-if", "time > 0s", "--name", "mine"], 1, "FAILED time > 0s: mine took"),
        (
            "true",
            ["--fail-if", "energy > 1J"],
            2,
            "Not checked: energy > 1J: not measured in 1 of 1 runs of sh.",
        ),
        ("true", ["--fail-if", "energy > 1J", "--allow-missing"], 0, "Not checked: energy > 1J"),
        ("true", ["--fail-if", "time > 1h", "-o", "/dev/full"], 3, "No space left on device"),
        ("true", ["-o", "/dev/full"], 0, "No space left on device"),
        ("exit 7", ["--fail-if", "time > 0s"], 7, "FAILED time > 0s: sh took"),
        ("kill -9 $$", ["--fail-if", "time > 1h"], -9, "did not succeed (killed by signal 9)"),
        ("echo started >&2", ["--fail-if", "time > 2x"], 2, "'time > 2x' needs something to compare with."),
        ("echo started >&2", ["--fail-if", "tyme > 2s"], 2, "Unknown figure 'tyme'"),
    ],
)
def test_a_job_can_be_checked_at_once(ask: Ask, job: str, options: list[str], code: int, words: str) -> None:
    """A job that fails keeps its exit code; an invalid limit is refused before it starts."""
    done = ask("run", "--gpu", "none", "--no-record", *options, "--", "sh", "-c", job)

    assert done.returncode == code
    assert words in done.stderr
    assert "started" not in done.stderr


def test_a_comparison_goes_to_a_file(ask: Ask, runs: Path, tmp_path: Path) -> None:
    """As JSON, with what came of the limits."""
    done = ask("compare", "before", "after", "-f", "json", "-o", "out.json", "--fail-if", "time > 1.1x")
    shown = json.loads((tmp_path / "out.json").read_text())

    assert (done.returncode, done.stdout) == (1, "")
    assert shown["limits"][0]["fired"]
    assert {figure["kind"] for figure in shown["figures"]} == {"overall", "region", "metric"}


def test_a_name_with_a_sign_in_it_is_a_file_if_there_is_one(ask: Ask, tmp_path: Path) -> None:
    """So is one with a comma."""
    write(tmp_path / "lr=0.1,b.jsonl", run())
    done = ask("compare", "lr=0.1,b.jsonl", "./lr=0.1,b.jsonl", "x=lr=0.1,b.jsonl")

    assert done.stdout.splitlines()[0].split() == ["lr=0.1,b", "lr=0.1,b", "(2)", "x"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["compare"], 2, "required"),
        (["compare", "none.jsonl"], 2, "Cannot read none.jsonl"),
        (["compare", "none*"], 2, "There is no recording to read in none*."),
        (["compare", "a=,"], 2, "There is no recording to read in an empty group."),
        (["compare", "before", "--fail-if", "time > 2x"], 2, "needs something to compare with"),
        (["compare", "before", "-f", "xml"], 2, "not a valid format"),
        (["ls", "--sort", "colour"], 2, "Unknown --sort 'colour'."),
        (["ls", "--filter", "colour~red"], 2, "is not a valid filter"),
        (["ls", "--since", "yesterday"], 2, "is not a valid duration (try 7d, 12h, 30min)"),
        (["ls", "before", "none"], 2, "Cannot read none: No such file or directory."),
        (["ls", "none*"], 2, "Cannot read none*: No such file or directory."),
        (["combine", "none*"], 2, "There is no recording in none*."),
        (["combine", "none.jsonl"], 2, "Cannot read none.jsonl"),
    ],
)
def test_nonsense_is_refused_in_one_line(
    ask: Ask, runs: Path, arguments: list[str], code: int, words: str
) -> None:
    """With its exit code."""
    done = ask(*arguments)

    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_past_runs_are_listed_newest_first(ask: Ask, tmp_path: Path) -> None:
    """A damaged file is one line of its own."""
    assert ask("ls").stdout == "No recordings.\n"
    place = tmp_path / "gpu-tracker-runs"
    old = {"started_at": "2020-01-01T00:00:00+0000", "command": ("make",)}
    write(place / "a.jsonl", run(5.0, header=old))
    write(place / "b.jsonl", run(7.0, exit_code=3))
    write(place / "c.jsonl", run(9.0, samples=(interval(9.0, 50),), end=None, header={"command": ("cut",)}))
    os.utime(place / "c.jsonl", (0, 0))
    (place / "d.jsonl").write_text("nonsense\n")
    done = ask("ls")

    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        "when",
        "2026-01-31",
        "2026-01-31",
        "2020-01-01",
        "damaged:",
    ]
    assert "7 s  exit code 3    500 MB" in done.stdout
    assert "9 s  cut off" in done.stdout
    assert [row["path"] for row in json.loads(ask("ls", "-f", "json", "--sort", "time").stdout)] == [
        f"gpu-tracker-runs/{name}.jsonl" for name in "cbad"
    ]
    assert "make" in ask("ls", "gpu-tracker-runs", "--filter", "command~MAKE", "--filter", "time<6s").stdout
    assert ask("ls", "--since", "1d").stdout == "No recordings.\n"


def test_lines_of_a_list_are_called_as_users_call_their_runs(ask: Ask, tmp_path: Path) -> None:
    """Of runs with one name, with their files; without a name, by the file alone."""
    for file, name in (("a", "alone"), ("b", "twin"), ("c", "twin"), ("d", None)):
        made = run(header={"identity": Identity(name=name)}, samples=(interval(5.0, 50), interval(10.0, 50)))
        write(tmp_path / "runs" / f"{file}.jsonl", made)
    ask("ls", "runs", "-o", "runs.html")
    (data,) = re.findall(r'id="data">(.*?)</script>', (tmp_path / "runs.html").read_text())
    charts = json.loads(data)["charts"]

    assert sorted(line["label"] for line in charts[0]["lines"]) == ["alone", "d", "twin (b)", "twin (c)"]


def test_a_file_with_wrong_things_in_it_is_damaged(ask: Ask, tmp_path: Path) -> None:
    """Alone it is an error in one line, in a directory it is left out."""
    content = write(tmp_path / "runs" / "a.jsonl", run()).read_text()
    (tmp_path / "runs" / "b.jsonl").write_text(content.replace('"cpu_seconds":[10.0', '"cpu_seconds":["x"'))
    compared = ask("compare", "runs")

    assert "damaged: runs/b.jsonl is damaged: The line at byte " in ask("ls", "runs").stdout
    assert "note: Skipped: runs/b.jsonl is damaged: Line " in compared.stdout
    assert "note: Skipped: runs/b.jsonl is damaged: Line " in ask("combine", "runs").stdout
    for command in ("compare", "combine"):
        assert ask(command, "runs/b.jsonl").stderr.count("\n") == 1


def test_a_directory_of_nothing_but_damage_is_an_error(ask: Ask, tmp_path: Path) -> None:
    """In one line."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a.jsonl").write_text("nonsense\n")
    done = ask("combine", "runs")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "gpu-tracker: runs/a.jsonl is not a gpu-tracker recording.\n"


def test_a_link_to_nowhere_is_damaged_too(ask: Ask, tmp_path: Path) -> None:
    """And costs only its own line."""
    (tmp_path / "a.jsonl").symlink_to("nowhere")

    assert ask("ls", ".").stdout == "damaged: Cannot read ./a.jsonl: No such file or directory.\n"


def test_figures_that_are_none_cost_a_line_of_their_own(ask: Ask, tmp_path: Path) -> None:
    """Also deep inside."""
    path = write(tmp_path / "a.jsonl", on_gpu(1))
    *lines, last = path.read_text().splitlines(keepends=True)
    end = json.loads(last)
    end["end"]["totals"]["gpu_counters"][0][-1] = [["heat", "much"]]
    path.write_text("".join((*lines, json.dumps(end), "\n")))

    assert ask("ls", ".").stdout.startswith("damaged: ./a.jsonl is damaged: The line at byte ")


def test_hostile_files_cost_a_line_each(ask: Ask, tmp_path: Path) -> None:
    """Nested or long without end, a pipe; the others are listed. A directory without recordings is none."""
    write(tmp_path / "good.jsonl", run(5.0))
    first, end = (tmp_path / "good.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "deep.jsonl").write_bytes(first + end.replace(b'"exited"', b"[" * 100_000))
    (tmp_path / "holes.jsonl").write_bytes(first)
    os.truncate(tmp_path / "holes.jsonl", 50 * 10**9)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").mkdir()
    done = ask("ls", ".", "pipe")

    assert (done.returncode, done.stderr) == (0, "")
    assert "exit code 0" in done.stdout
    assert [line.split(": ")[1] for line in done.stdout.splitlines()[2:]] == [
        "./deep.jsonl is damaged",
        "Cannot read ./holes.jsonl",
        "Cannot read pipe",
    ]
    for place in ("empty", "emp*"):
        assert (ask("ls", place).returncode, ask("ls", place).stdout) == (0, "No recordings.\n")


def test_a_list_fits_the_terminal_and_is_whole_elsewhere(ask: Ask, tmp_path: Path) -> None:
    """The command makes room."""
    write(tmp_path / "a.jsonl", run(header={"command": ("python", "train.py", "--learning-rate", "0.001")}))
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    subprocess.run(
        [COMMAND, "ls", "a.jsonl"],
        cwd=tmp_path,
        stdout=theirs,
        timeout=200,
        env={**os.environ, "TERM": "xterm"},
    )
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    os.close(theirs)

    assert max(map(len, shown.splitlines())) == 100
    assert "python train.py" in shown
    assert "python train.py --learning-rate 0.001" in ask("ls", "a.jsonl").stdout


def test_a_thousand_runs_are_listed_quickly(ask: Ask, tmp_path: Path) -> None:
    """Only the beginning and the end of each are read; the bound is generous."""
    samples = tuple(interval(float(number), 5) for number in range(500))
    content = write(tmp_path / "runs" / "0.jsonl", run(499.0, samples=samples)).read_bytes()
    for number in range(1, 1000):
        (tmp_path / "runs" / f"{number}.jsonl").write_bytes(content)
    start = time.monotonic()
    done = ask("ls", "runs")

    assert done.stdout.count("\n") == 1001
    assert time.monotonic() - start < 20


def test_ranks_are_combined(ask: Ask, tmp_path: Path) -> None:
    """Of a directory or of files, also if they are called the same."""
    for number in range(2):
        write(
            tmp_path / f"node{number}" / "rank.jsonl",
            run(samples=(interval(10.0, 500),), header={"pid": number, "host": "../../etc"}),
        )
    text = ask("combine", "node0", "node1/rank.jsonl")
    shown = json.loads(ask("combine", "node*", "-f", "json").stdout)

    assert (text.returncode, text.stderr) == (0, "")
    assert "../../etc: 2 recordings\n  RAM  peak between 500 MB and 1 GB" in text.stdout
    assert [rank["name"] for rank in shown["ranks"]] == ["node0/rank.jsonl", "node1/rank.jsonl"]
