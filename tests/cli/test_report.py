"""`report`, and the reports that `run` writes."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.conftest import COMMAND
from recorded import make_plain, write
from rich import make_rich

Ask = Callable[..., "subprocess.CompletedProcess[str]"]
DATA = re.compile(r'id="data">(.*?)</script>', re.DOTALL)
# Long enough for samples that show something over time.
JOB = ("python3", "-c", "import time\nend = time.time() + 1.5\nwhile time.time() < end: sum(range(9999))")


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Run `gpu-tracker` in a directory of its own."""

    def ask_command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [COMMAND, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=200,
            env={**os.environ, **environment},
        )

    return ask_command


def test_without_a_file_the_newest_run_is_reported(ask: Ask, tmp_path: Path) -> None:
    """Of the directory that `run` writes to."""
    runs = tmp_path / "gpu-tracker-runs"
    for age, name in ((50, "z"), (10, "a"), (30, "m")):
        path = make_plain(runs / f"{name}.jsonl") if name != "a" else write(runs / "a.jsonl", make_rich())
        os.utime(path, (10**9 - age, 10**9 - age))
    done = ask("report")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("python train.py --epochs 11: exit code 0\n")
    assert "█" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "There are no recordings in gpu-tracker-runs. Name one: gpu-tracker report FILE."),
        (["none.jsonl"], "Cannot read none.jsonl: No such file or directory."),
        (["x.txt"], "x.txt is not a gpu-tracker recording."),
        (["x.txt", "-o", "y.csv"], "Unknown format '.csv'. Use .txt or .json or .md or .html"),
    ],
)
def test_a_wrong_request_gets_one_sentence(
    ask: Ask, tmp_path: Path, arguments: list[str], words: str
) -> None:
    """And exit code 2."""
    (tmp_path / "x.txt").write_text("text\n")
    done = ask("report", *arguments)

    assert done.returncode == 2
    assert done.stderr.startswith(f"gpu-tracker: {words}")
    assert done.stderr.count("\n") == 1


def test_a_directory_is_listed(ask: Ask, tmp_path: Path) -> None:
    """With a hint."""
    make_plain(tmp_path / "runs" / "a.jsonl")
    done = ask("report", "runs")

    assert done.stdout.splitlines()[0].split()[0] == "when"
    assert "runs/a.jsonl" in done.stdout
    assert done.stderr == "gpu-tracker: runs is a directory. To see a run: gpu-tracker report FILE.\n"
    assert json.loads(ask("report", "runs", "-f", "json").stdout)[0]["path"] == "runs/a.jsonl"
    assert ask("report", "runs", "-o", "list.md").returncode == 0
    assert (tmp_path / "list.md").read_text().startswith("| when |")


@pytest.mark.parametrize("command", [("report", "runs"), ("ls", "runs")])
def test_a_directory_is_a_page_of_its_runs(ask: Ask, tmp_path: Path, command: tuple[str, str]) -> None:
    """The list, what is damaged, and the runs over time by the names of their files."""
    for name in ("a", "b"):
        make_plain(tmp_path / "runs" / f"{name}.jsonl")
    (tmp_path / "runs" / "c.jsonl").write_text("no recording\n")
    done = ask(*command, "-o", "list.html")

    assert done.returncode == 0
    page = (tmp_path / "list.html").read_text()
    assert "<h1>2 runs</h1>" in page
    assert "runs/a.jsonl" in page
    assert "runs/c.jsonl is not a gpu-tracker recording." in page
    assert [line["label"] for line in json.loads(DATA.findall(page)[0])["charts"][0]["lines"]] == ["a", "b"]


def test_an_empty_directory_is_an_empty_page(ask: Ask, tmp_path: Path) -> None:
    """Not an error, as in a list."""
    (tmp_path / "runs").mkdir()

    assert ask("report", "runs", "-o", "list.html").returncode == 0
    assert "<h1>0 runs</h1>" in (tmp_path / "list.html").read_text()


@pytest.mark.parametrize(
    ("name", "begin"),
    [("x.svg", b"<svg "), ("x.md", b"### "), ("x.json", b"{"), ("x.txt", b"python train.py")],
)
def test_the_suffix_is_the_format(ask: Ask, tmp_path: Path, name: str, begin: bytes) -> None:
    """A file is in UTF-8, whatever the locale."""
    write(tmp_path / "a.jsonl", make_rich())
    done = ask("report", "a.jsonl", "-o", name, LC_ALL="C")

    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / name).read_bytes().startswith(begin)
    (tmp_path / name).read_bytes().decode("utf-8")


def test_several_recordings_have_fewer_formats(ask: Ask, tmp_path: Path) -> None:
    """There is no picture of two runs."""
    paths = [str(make_plain(tmp_path / f"{name}.jsonl")) for name in "ab"]

    assert ask("report", *paths).stdout.count("exit code 0") == 2
    assert ask("report", *paths, "-f", "svg").returncode == 2


def test_a_locale_without_unicode_gets_ascii(ask: Ask, tmp_path: Path) -> None:
    """Also in a pipe."""
    write(tmp_path / "a.jsonl", make_rich())
    done = ask("report", "a.jsonl", LC_ALL="C")

    assert done.stdout.isascii()
    assert "[########..........]   47 %" in done.stdout


def test_run_shows_its_samples_and_writes_more_reports(ask: Ask, tmp_path: Path) -> None:
    """In the formats of their suffixes; the summary is appended."""
    (tmp_path / "summary.md").write_text("before\n")
    done = ask(
        "run",
        "--st",
        "0.1",
        "--gpu",
        "none",
        "--report",
        "r.svg",
        "--report",
        "r.md",
        "--summary",
        "summary.md",
        "--",
        *JOB,
    )

    assert done.returncode == 0
    assert "░" in done.stderr
    assert "  charts: gpu-tracker report -o report." in done.stderr
    assert (tmp_path / "r.svg").read_text().count("<polyline") >= 2
    report = (tmp_path / "r.md").read_text()
    assert (tmp_path / "summary.md").read_text() == f"before\n{report}"


def test_run_without_a_recording_has_samples_too(ask: Ask, tmp_path: Path) -> None:
    """They are read back from memory."""
    done = ask("run", "--gpu", "none", "--no-record", "-f", "svg", "-o", "x.svg", "--", *JOB)

    assert done.returncode == 0
    assert "<polyline" in (tmp_path / "x.svg").read_text()


def test_a_recording_elsewhere_is_named_in_the_hint(ask: Ask, tmp_path: Path) -> None:
    """So that it can be copied to the shell."""
    done = ask("run", "--st", "0.1", "--gpu", "none", "--record", "my runs/a.jsonl", "--", *JOB)

    assert f"  charts: gpu-tracker report '{tmp_path}/my runs/a.jsonl' -o report." in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--report", "none/x.svg"], 2),
        (["--report", "x.xyz"], 2),
        (["--summary", "none/x.md"], 2),
        (["--report", "/dev/full"], 0),
        (["--summary", "/dev/full"], 0),
        (["--report", "/dev/full", "--fail-if", "time > 1h"], 3),
    ],
)
def test_a_report_that_cannot_be_written_is_said(ask: Ask, arguments: list[str], code: int) -> None:
    """Before the job if possible; if not, the job's own exit code stays."""
    done = ask("run", "--gpu", "none", "--no-record", *arguments, "--", "sh", "-c", "echo ran")

    assert done.returncode == code
    assert (done.stdout == "ran\n") == (code != 2)
    assert "gpu-tracker: " in done.stderr
    assert ("sh -c echo ran: exit code 0" in done.stderr) == (code != 2)


@pytest.mark.parametrize("command", ["report", "compare", "combine"])
def test_a_recording_is_never_replaced_by_what_is_made_of_it(ask: Ask, tmp_path: Path, command: str) -> None:
    """It would be lost."""
    path = make_plain(tmp_path / "x.jsonl")
    before = path.read_bytes()
    done = ask(command, "x.jsonl", "-f", "json", "-o", "./x.jsonl")

    assert (done.returncode, done.stderr) == (2, "gpu-tracker: ./x.jsonl is the recording itself.\n")
    assert path.read_bytes() == before


@pytest.mark.parametrize("command", ["report", "compare", "combine", "size", "ls"])
def test_a_result_is_replaced_by_the_next_one(ask: Ask, tmp_path: Path, command: str) -> None:
    """A report as JSON begins with a header, but is no recording."""
    make_plain(tmp_path / "run.jsonl")
    results = []
    for _ in range(2):
        done = ask(command, "run.jsonl", "-o", "result.json")
        assert (done.returncode, done.stderr) == (0, "")
        results.append((tmp_path / "result.json").read_bytes())

    assert results[0] == results[1]


def test_metrics_of_any_size_cost_no_report(ask: Ask, tmp_path: Path) -> None:
    """Nor the exit code of the job."""
    job = "import gpu_tracker as g\nfor size in (1e308, -1e308, 1.7e308, 1.0): g.log(loss=size)\nraise SystemExit(5)"
    (tmp_path / "job.py").write_text(job)
    names = ("x.html", "x.svg", "x.md", "x.json")
    python = str(Path(COMMAND).with_name("python"))
    done = ask("run", "--no-record", *(f"--report={name}" for name in names), "--", python, "job.py")

    assert done.returncode == 5, done.stderr
    assert "exit code 5" in done.stderr
    assert all((tmp_path / name).stat().st_size > 100 for name in names)
