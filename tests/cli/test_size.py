"""`size`, and carbon dioxide, from the command line."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.conftest import COMMAND
from gpu_tracker import load
from gpu_tracker.analysis.prices import COLUMNS
from gpu_tracker.core.model import Identity, ProcessTotals
from recorded import interval, on_gpu, run, write

Ask = Callable[..., "subprocess.CompletedProcess[str]"]
HEAD = ",".join(COLUMNS)


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Run `gpu-tracker` in a directory with two runs and a table of prices."""
    write(tmp_path / "runs/a.jsonl", run(600.0, samples=(interval(300.0, 400), interval(600.0, 500))))
    write(tmp_path / "runs/b.jsonl", run(900.0, samples=(interval(900.0, 300),)))
    write(tmp_path / "gpu.jsonl", on_gpu(1))
    (tmp_path / "prices.csv").write_text(f"{HEAD}\nsmall,2,4,,,0.4\nlarge,64,512,8,80,30\n")

    def ask_command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [COMMAND, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=200, env=os.environ
        )

    return ask_command


def test_several_runs_give_one_request(ask: Ask) -> None:
    """The largest of each counts; a directory is all its recordings."""
    done = ask("size", "runs", "--prices", "prices.csv")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "next time (from 2 runs, margin 20 %, confidence medium):\n  slurm       --mem=600M "
    )
    assert "--time=00:20:00" in done.stdout
    assert "machine: small at 0.4 an hour, 0.10 for a run" in done.stdout


def test_runs_of_different_programs_are_noted(ask: Ask, tmp_path: Path) -> None:
    """The same program with other arguments is the same job."""
    for name, command in (
        ("c", ("python", "train.py", "1")),
        ("d", ("python", "train.py", "2")),
        ("e", ("make",)),
    ):
        write(tmp_path / f"{name}.jsonl", run(header={"command": command}))

    assert "programs" not in ask("size", "c.jsonl", "d.jsonl").stdout
    assert (
        "note: These are runs of 2 programs (train, make): "
        in ask("size", "c.jsonl", "d.jsonl", "e.jsonl").stdout
    )


def test_a_recording_that_was_cut_off_at_once_says_why_nothing_is_advised(ask: Ask, tmp_path: Path) -> None:
    """And nothing empty can be pasted."""
    whole = (tmp_path / "runs/a.jsonl").read_text()
    (tmp_path / "cut.jsonl").write_text(whole.splitlines(keepends=True)[0])
    reason = "No memory is advised: the recording was cut off before the job's memory was read."
    pasted = ask("size", "cut.jsonl", "--for", "slurm")

    shown = ask("size", "cut.jsonl")

    assert f"  note: {reason}\n" in shown.stdout
    assert shown.stdout.startswith("nothing can be advised (from 1 run):\n  nothing was measured\n")
    assert shown.returncode == pasted.returncode
    assert (pasted.stdout, pasted.stderr.count("\n")) == ("", 1)
    assert pasted.returncode != 0
    assert "Nothing can be advised. " in pasted.stderr
    assert reason in pasted.stderr


def test_a_lower_bound_to_paste_is_called_one_beside_it(ask: Ask, tmp_path: Path) -> None:
    """Standard output has the request only; of a run that finished there is nothing to say."""
    write(tmp_path / "killed.jsonl", run(600.0, exit_code=-9, samples=(interval(600.0, 400),)))
    done, fine = (ask("size", name, "--for", "slurm") for name in ("killed.jsonl", "runs/a.jsonl"))

    assert (done.stdout.count("\n"), done.stdout[:6]) == (1, "--mem=")
    assert "This is the least that is needed. Lower bounds only" in done.stderr
    assert fine.stderr == ""


def test_a_report_names_the_cheapest_machine_too(ask: Ask) -> None:
    """In text, JSON and a page; only if prices are given."""
    line = "machine: small at 0.4 an hour, 0.07 for a run"
    shown = json.loads(ask("report", "runs/a.jsonl", "--prices", "prices.csv", "-f", "json").stdout)

    assert line in ask("report", "runs/a.jsonl", "--prices", "prices.csv").stdout
    assert line in ask("report", "runs/a.jsonl", "--prices", "prices.csv", "-f", "html").stdout
    assert shown["machine"]["machine"]["name"] == "small"
    assert "machine: " not in ask("report", "runs/a.jsonl").stdout


def test_one_form_can_be_pasted(ask: Ask) -> None:
    """Into a command line."""
    assert ask("size", "runs/a.jsonl", "--for", "slurm").stdout == (
        "--mem=600M --cpus-per-task=1 --time=00:13:00\n"
    )


def test_json_and_python_say_the_same(ask: Ask, tmp_path: Path) -> None:
    """From the same samples."""
    shown = json.loads(ask("size", "runs/a.jsonl", "-f", "json").stdout)
    recording = load(tmp_path / "runs/a.jsonl")

    assert recording.sizing.memory_bytes is not None
    assert shown["memory_bytes"]["advised"] == recording.sizing.memory_bytes.advised
    assert recording.report.sizing is not None
    assert recording.report.sizing.memory_bytes == recording.sizing.memory_bytes
    reported = json.loads(ask("report", "runs/a.jsonl", "-f", "json").stdout)
    assert reported["sizing"]["cores"] == shown["cores"]


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (b"", "it is empty; its first line must be: name, cores, ram, gpus, gpu_ram, price per hour."),
        (b"\xff\xfe", "'utf-8' codec can't decode"),
        (f"{HEAD}\na,x,1,1,1,1\n".encode(), "line 2: cores 'x' is not a number from 0 up."),
    ],
)
def test_a_bad_table_is_refused_in_one_sentence(ask: Ask, tmp_path: Path, table: bytes, reason: str) -> None:
    """With the place of the mistake."""
    (tmp_path / "bad.csv").write_bytes(table)
    done = ask("size", "runs", "--prices", "bad.csv")

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"bad.csv is not a table of prices: {reason}" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["size"], "Name recordings, directories of them, or a job"),
        (["size", "none*"], "There is no recording in none*."),
        (["size", "runs", "--for", "lsf"], "Unknown form 'lsf'. Use one of: slurm, pbs, kubernetes, words."),
        (["size", "runs", "--prices", "none.csv"], "Cannot read none.csv: No such file or directory."),
        (["size", "runs", "--carbon", "green"], "--carbon: 'green' is not a number."),
        (["size", "runs", "--carbon", "nan"], "--carbon: nan g/kWh is not between 0 and 5000."),
        (["report", "gpu.jsonl", "--carbon", "-5"], "--carbon: -5 g/kWh is not between 0 and 5000."),
        (["combine", "gpu.jsonl", "--carbon", "381", "--pue", "0.5"], "--pue: 0.5 is not between 1 and 10."),
        (["run", "--pue", "1.2", "--", "true"], "--pue needs --carbon."),
    ],
)
def test_nonsense_is_refused_in_one_line(ask: Ask, arguments: list[str], words: str) -> None:
    """Before anything is started."""
    done = ask(*arguments)

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert words in done.stderr


@pytest.mark.parametrize("command", ["report", "combine"])
def test_carbon_dioxide_is_shown_with_its_formula(ask: Ask, command: str) -> None:
    """Only if a factor is stated."""
    text = ask(command, "gpu.jsonl", "--carbon", "381", "--pue", "1.2").stdout

    assert "0.318 g = 0.000694 kWh x 1.2 (PUE) x 381 g/kWh" in text
    assert "CO2" not in ask(command, "gpu.jsonl").stdout
    shown = json.loads(ask(command, "gpu.jsonl", "--carbon", "381", "-f", "json").stdout)
    assert shown["carbon"]["factor"] == {"grams_per_kilowatt_hour": 381.0, "pue": 1.0}


def test_the_request_can_show_what_a_run_emits(ask: Ask) -> None:
    """The run with the most energy."""
    text = ask("size", "gpu.jsonl", "runs", "--carbon", "381").stdout

    assert "  CO2: 0.265 g = 0.000694 kWh x 381 g/kWh\n" in text


def test_what_cannot_be_read_in_a_directory_costs_only_itself(ask: Ask, tmp_path: Path) -> None:
    """Named by itself it is an error."""
    (tmp_path / "runs" / "c.jsonl").write_text("no recording")
    (tmp_path / "runs" / "d.jsonl").touch()
    done = ask("size", "runs")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("next time (from 2 runs, ")
    assert done.stdout.count("note: Skipped: ") == 2
    assert ask("size", "runs/c.jsonl").returncode == 2


def test_a_program_that_tracks_itself_is_one_run(ask: Ask, tmp_path: Path) -> None:
    """What it needs is in the run around it."""
    below = ProcessTotals(100, 1, "python", 0.0, 10.0, 9.0, 5)
    write(tmp_path / "nested/a.jsonl", run(10.0, header={"pid": 1}, processes=(below,)))
    write(tmp_path / "nested/b.jsonl", run(8.0, header={"pid": 100}, exit_code=None))
    shown = ask("size", "nested").stdout

    assert shown.startswith("next time (from 1 run, ")
    assert "note: Counted once: nested/b.jsonl is part of nested/a.jsonl" in shown


def test_ranks_of_mpirun_on_two_nodes_are_one_run(ask: Ask, tmp_path: Path) -> None:
    """Those on the first node are of the batch script, the rest of a step: one that failed leaves open what all need."""
    for number, (step, exit_code) in enumerate((("batch", 0), ("batch", 0), ("0", 5))):
        made = run(10.0, header={"pid": 10 + number, "host": f"n{step}"}, exit_code=exit_code)
        identity = Identity(job="7", step=step, launcher="openmpi", run_id="a", rank=number, ranks=3)
        write(tmp_path / f"mpi/{number}.jsonl", made._replace(header=made.header._replace(identity=identity)))
    shown = ask("size", "mpi").stdout

    assert shown.startswith("next time, at least (from 1 run, ")
    assert "used: memory at least " in shown


def test_a_gpu_of_which_nobody_knows_whether_it_was_used_is_said(ask: Ask, tmp_path: Path) -> None:
    """As where a container hides whose process is whose: the request must not look complete."""
    one = on_gpu(1, job=None)
    (counters,), (peaks,) = one.totals.gpu_counters, one.totals.peaks.gpus
    totals = one.totals._replace(
        gpu_counters=(counters._replace(job_percent_seconds=0.0, job_seconds=0.0),),
        peaks=one.totals.peaks._replace(gpus=(peaks._replace(basis="unknown"),)),
    )
    write(
        tmp_path / "unknown.jsonl",
        one._replace(totals=totals, end=one.end and one.end._replace(totals=totals)),
    )
    shown = ask("size", "unknown.jsonl").stdout

    assert "--gpus" not in shown
    assert "note: How many GPUs it used is not known, so the request has none: add them." in " ".join(
        shown.split()
    )
