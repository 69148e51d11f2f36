"""`gput.compare`: recorded runs side by side."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import gpu_tracker as gput
from builders import totals
from gpu_tracker.analysis.measures import Subject
from gpu_tracker.api.comparisons import name_group
from gpu_tracker.core.errors import RecordingError, UsageError
from gpu_tracker.core.figures import TIME
from gpu_tracker.core.model import NO_PROCESS, End, Identity, ProcessTotals, RegionTotals
from recorded import interval, rank, run, write


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Four runs before, four after: slower by a fifth."""
    for number in range(4):
        write(tmp_path / "before" / f"{number}.jsonl", run(10.0 + number / 100))
        write(tmp_path / "after" / f"{number}.jsonl", run(12.0 + number / 100))
    return tmp_path


def test_files_lists_and_directories_are_groups(runs: Path) -> None:
    """Named after themselves unless there are names."""
    report = gput.compare(runs / "before", [runs / "after" / "0.jsonl", str(runs / "after" / "1.jsonl")])
    named = gput.compare(runs / "before", runs / "after" / "0.jsonl", names=["old", "new"])

    assert [group[:2] for group in report.comparison.groups] == [("before", 4), ("group 2", 2)]
    assert [group[:2] for group in named.comparison.groups] == [("old", 4), ("new", 1)]


def test_a_report_is_printed_read_and_checked(runs: Path) -> None:
    """In one breath."""
    report = gput.compare(runs / "before", runs / "after")

    assert isinstance(report, gput.ComparisonReport)
    assert "after against before, beyond noise (*):\n  time +20 %" in str(report)
    assert not str(report).endswith("\n")
    assert repr(report) == str(report)  # at a prompt
    assert report.to_json()["figures"][0]["groups"][1]["verdict"] == "changed"
    assert report.check("time > +10%", "peak_ram > +10%") == [
        "FAILED time > +10%: after took 12 s, 1.200 times the baseline."
    ]


def test_groups_of_the_same_name_are_told_apart(runs: Path) -> None:
    """By their number."""
    report = gput.compare(runs / "before" / "0.jsonl", runs / "after" / "0.jsonl")

    assert [group.name for group in report.comparison.groups] == ["0", "0 (2)"]


def test_a_run_is_called_as_its_user_calls_it(tmp_path: Path) -> None:
    """Else after its file."""
    one = write(tmp_path / "a.jsonl", run(header={"identity": Identity(name="baseline")}))
    other = write(tmp_path / "b.jsonl", run())

    assert [group.name for group in gput.compare(one, other).comparison.groups] == ["baseline", "b"]
    assert name_group(str(write(tmp_path / "c.jsonl", run()).parent)) == tmp_path.name
    (tmp_path / "d.jsonl").write_text("nonsense\n")
    assert name_group(str(tmp_path / "d.jsonl")) == "d"


def test_a_damaged_file_in_a_directory_is_left_out_and_said(runs: Path) -> None:
    """One that was named is an error."""
    damaged = runs / "after" / "damaged.jsonl"
    damaged.write_text("nonsense\n")
    report = gput.compare(runs / "before", runs / "after")

    after = report.comparison.groups[1]
    assert (after.name, after.runs, after.failures, after.unreadable) == ("after", 4, (), 1)
    for allow_failed in (False, True):
        assert report.check("time > 2x", allow_failed=allow_failed) == [
            "Not checked: 1 recording of after cannot be read."
        ]
    assert "is not a gpu-tracker recording" in report.comparison.notes[0]
    with pytest.raises(RecordingError, match="is not a gpu-tracker recording"):
        gput.compare(damaged)


def test_requests_that_make_no_sense_are_refused(runs: Path, tmp_path: Path) -> None:
    """With a sentence each."""
    (tmp_path / "empty").mkdir()
    report = gput.compare(runs / "before")

    with pytest.raises(UsageError, match="Nothing to compare"):
        gput.compare()
    with pytest.raises(UsageError, match="2 names for 1 groups"):
        gput.compare(runs / "before", names=["a", "b"])
    with pytest.raises(UsageError, match="There is no recording to read"):
        gput.compare(tmp_path / "empty")
    with pytest.raises(UsageError, match="an empty group"):
        gput.compare([])
    with pytest.raises(UsageError, match="is not a valid limit"):
        report.check("nonsense")
    with pytest.raises(UsageError, match="needs something to compare with"):
        report.check("time > +10%")


def test_a_pickle_is_not_opened_as_one(tmp_path: Path) -> None:
    """Whatever it is called: nothing in it is ever run."""
    proof = tmp_path / "proof"
    evil = tmp_path / "evil.jsonl"
    evil.write_bytes(b"cos\nsystem\n(S'touch " + str(proof).encode() + b"'\ntR.")
    with pytest.raises(RecordingError):
        gput.compare(evil)

    assert not proof.exists()


def test_comparing_loads_neither_the_tracker_nor_anything_that_unpickles() -> None:
    """It only reads."""
    code = (
        "import sys, gpu_tracker\n"
        "gpu_tracker.compare\n"
        "print('gpu_tracker.api.tracker' in sys.modules, 'pickle' in sys.modules)"
    )

    assert subprocess.check_output([sys.executable, "-I", "-c", code], text=True).split() == [
        "False",
        "False",
    ]


def test_a_recording_counts_once_in_its_group(runs: Path) -> None:
    """However often it is named: it is no repeat of itself."""
    one = runs / "after" / "0.jsonl"
    report = gput.compare(runs / "before", [one, runs / "after", f"{runs}/after/../after/0.jsonl"])

    assert [group.runs for group in report.comparison.groups] == [4, 4]
    assert sum(note.startswith("Counted once: ") for note in report.comparison.notes) == 2


def test_a_copy_adds_nothing(tmp_path: Path) -> None:
    """Whole, cut off or edited: neither to regions nor to the number of runs."""
    identity = Identity(boot_id="a")
    region = RegionTotals(100, ("epoch",), 3, wall_seconds=2.5, longest_seconds=1.0, cpu_seconds=2.0)
    whole = run(10.0, samples=(interval(5.0, 500),), regions=(region,), header={"identity": identity})
    path = write(tmp_path / "runs" / "whole.jsonl", whole)
    lines = path.read_text().splitlines(keepends=True)
    (tmp_path / "runs" / "copy.jsonl").write_text("".join(lines))
    (tmp_path / "runs" / "cut.jsonl").write_text("".join(lines[:-2]))
    (tmp_path / "runs" / "edited.jsonl").write_text("".join(lines).replace('"calls":3', '"calls":4'))
    alone, together = gput.compare(path).comparison, gput.compare(tmp_path / "runs").comparison

    assert together.groups[0].runs == 1
    assert [row.groups[0].values for row in together.rows] == [row.groups[0].values for row in alone.rows]
    assert sum(note.startswith("Counted once: ") for note in together.notes) == 3
    assert len(gput.combine(tmp_path / "runs").ranks) == 1


def test_metrics_that_are_damaged_are_not_compared(runs: Path) -> None:
    """They are looked at last."""
    from gpu_tracker.core.model import MetricRow

    path = write(runs / "logged.jsonl", run(metrics=(MetricRow(1.0, {"loss": 0.5}),)))
    path.write_text(path.read_text().replace('"loss":[0.5]', '"loss":["low"]'))
    with pytest.raises(RecordingError, match="is damaged"):
        gput.compare(path)


def test_a_limit_about_what_no_run_has_does_not_pass(runs: Path) -> None:
    """Unless that is allowed: a misspelt gate would be open for ever."""
    report = gput.compare(runs / "before")
    limit = "regions.typo.time > 1s"

    assert report.check(limit) == [f"Not checked: {limit}: no run has the region 'typo'."]
    assert report.check(limit, allow_missing=True) == []


def test_ranks_of_a_job_are_one_run(tmp_path: Path) -> None:
    """Not repeats of each other: three jobs of two ranks are three runs."""
    for job in range(3):
        for number in range(2):
            made = run(10.0 + number, samples=(interval(10.0, 500),), header={"pid": number + 1})
            identity = Identity(job=str(job), rank=number, ranks=2)
            write(
                tmp_path / f"{job}-{number}.jsonl",
                made._replace(header=made.header._replace(identity=identity)),
            )
    write(tmp_path / "alone.jsonl", run(11.0))
    (group,) = gput.compare(tmp_path).comparison.groups
    (time,) = (row for row in gput.compare(tmp_path).comparison.rows if row.subject == Subject(TIME))

    assert group.runs == 4
    assert time.groups[0].values == (11.0, 11.0, 11.0, 11.0)


def test_pods_of_an_indexed_job_are_one_run(tmp_path: Path) -> None:
    """Kubernetes tells each its index, but no name of the job: what they held together is judged."""
    for number in range(3):
        made = run(10.0, samples=(interval(10.0, 400),), header={"host": f"train-{number}", "pid": 1})
        identity = Identity(scheduler="kubernetes", launcher="kubernetes", rank=number)
        write(tmp_path / f"{number}.jsonl", made._replace(header=made.header._replace(identity=identity)))
    report = gput.compare(tmp_path)

    assert [group.runs for group in report.comparison.groups] == [1]
    assert len(report.check("peak_ram > 1GB")) == 1
    assert report.check("peak_ram > 1.6GB") == []


def nest(folder: Path, number: int) -> None:
    """A run of a program that tracks itself and was tracked from outside, too."""
    below = ProcessTotals(100 + number, 1, "python", 0.0, 10.0, 9.0, 5)
    around = {"pid": 1 + number, "started_at": f"2026-01-31T12:0{number}:00.000+00:00"}
    inner = {"pid": 100 + number, "started_at": f"2026-01-31T12:0{number}:01.000+00:00"}
    write(folder / f"{number}.jsonl", run(10.0 + number / 100, header=around, processes=(below,)))
    write(folder / f"{number}-inner.jsonl", run(8.0, exit_code=None, header=inner))


def test_a_program_that_tracks_itself_is_one_run(tmp_path: Path) -> None:
    """It is no repeat of the run around it."""
    for name in ("a", "b"):
        for number in range(2):
            nest(tmp_path / name, number)
    comparison = gput.compare(tmp_path / "a", tmp_path / "b").comparison

    assert [group.runs for group in comparison.groups] == [2, 2]
    assert sum(note.startswith("Counted once: ") for note in comparison.notes) == 4


def test_trackers_of_one_process_that_overlap_are_one_run_with_lower_bounds(tmp_path: Path) -> None:
    """Their sum would count some of it twice."""
    for number, (start, seconds) in enumerate(((0, 10.0), (5, 12.0))):
        began = f"2026-01-31T12:00:{start:02d}.000+00:00"
        made = run(seconds, exit_code=None, header={"started_at": began, "identity": Identity(boot_id="b")})
        write(tmp_path / f"{number}.jsonl", made)
    report = gput.compare(tmp_path)

    assert [group.runs for group in report.comparison.groups] == [1]
    assert "overlap in part" in report.comparison.notes[0]
    assert "at least" in report.check("cpu_time > 1h", allow_failed=True)[0]


def test_a_job_of_which_a_rank_is_missing_passes_no_gate(tmp_path: Path) -> None:
    """Of two ranks, or of one that is left."""
    for name, ranks in (("whole", range(3)), ("part", range(2)), ("one", range(1))):
        for number in ranks:
            one = run(10.0, header={"pid": 10 + number})
            identity = Identity(job="7", rank=number, ranks=3)
            write(
                tmp_path / name / f"{number}.jsonl",
                one._replace(header=one.header._replace(identity=identity)),
            )
    for name, missing in (("part", "2"), ("one", "1, 2")):
        report = gput.compare(tmp_path / "whole", tmp_path / name)
        (sentence,) = report.check("time > +10%")

        assert f"is incomplete (no recording of rank {missing})" in sentence
        assert report.check("time > +10%", allow_missing=True) == []


def test_runs_of_several_programs_are_no_repeats(tmp_path: Path) -> None:
    """That is said: a change between them is none of a program."""
    for number, script in enumerate(("prepare.py", "train.py")):
        write(
            tmp_path / "a" / f"{number}.jsonl",
            run(10.0, header={"command": ("python", script), "pid": number}),
        )
        write(
            tmp_path / "b" / f"{number}.jsonl",
            run(10.0, header={"command": ("python", "train.py"), "pid": number}),
        )
    notes = gput.compare(tmp_path / "a", tmp_path / "b").comparison.notes

    assert [note for note in notes if "programs" in note] == [
        "The runs of a are of 2 programs (prepare, train), not repeats of one."
    ]


def write_job(
    directory: Path,
    begins: int,
    *,
    hosts: tuple[str, ...] = ("n1", "n2"),
    followed: tuple[str, ...] = ("n1", "n2"),
) -> Path:
    """A job of a rank on each of two nodes, which took 40 s and 200 MB, and who followed it there from then on."""
    for number, host in enumerate(hosts):
        made = rank(0, 200, 40.0, host=host, pid=7)
        known = Identity(job="7", step="0", launcher="slurm", rank=number, ranks=2, node=host)
        write(directory / f"{host}-rank.jsonl", made._replace(header=made.header._replace(identity=known)))
    for host in followed:
        made = rank(begins, 150, 40.0 - begins, host=host, pid=NO_PROCESS, exit_code=None)
        known = Identity(job="7", node=host)
        write(directory / f"{host}.jsonl", made._replace(header=made.header._replace(identity=known)))
    return directory


def test_a_job_that_was_followed_late_used_at_least_what_its_ranks_did(tmp_path: Path) -> None:
    """Neither more, nor less: a limit that these break is broken, and another one cannot be checked."""
    for name, followed in (("all", ("n1", "n2")), ("one", ("n1",))):
        report = gput.compare(write_job(tmp_path / name, 20, followed=followed))
        (group,) = report.comparison.groups
        allowed = {"allow_failed": True}

        assert (group.runs, group.incomplete) == (1, ())
        assert report.check("cpu_time > 79s", **allowed)[0].startswith("FAILED cpu_time > 79s")
        assert "at least" in report.check("cpu_time > 81s", **allowed)[0]
        assert "at least" in report.check("peak_ram > 500MB", **allowed)[0]
        assert "at least" in report.check("time > 41s", **allowed)[0]


def test_a_rank_of_a_followed_job_may_be_missing(tmp_path: Path) -> None:
    """Who follows the job on its node does not make up for it."""
    report = gput.compare(write_job(tmp_path / "runs", 0, hosts=("n1",)))

    assert any(
        "no recording of rank 1" in sentence for sentence in report.check("time > 100s", allow_failed=True)
    )


def test_a_limit_counts_all_calls_of_a_process_with_two_trackers(tmp_path: Path) -> None:
    """`run` around a script that opens one of its own: each has some of the calls."""
    script = tmp_path / "script.py"
    script.write_text(
        "import gpu_tracker as gput\n"
        "def step():\n"
        "    with gput.region('step'):\n"
        "        pass\n"
        "step()\n"
        "with gput.Tracker(record='runs/inner.jsonl'):\n"
        "    step(), step()\n"
        "step()\n"
    )
    tracked = (
        sys.executable,
        "-m",
        "gpu_tracker",
        "run",
        "--record",
        "runs/outer.jsonl",
        "--",
        sys.executable,
        script,
    )
    subprocess.run(tracked, cwd=tmp_path, check=True, capture_output=True)
    report = gput.compare(tmp_path / "runs")
    (step,) = (one for one in gput.combine(tmp_path / "runs").balance if one.region)
    alone = [gput.load(tmp_path / "runs" / f"{name}.jsonl").regions[0].calls for name in ("outer", "inner")]

    assert alone == [2, 2]
    assert report.check("regions.step.calls > 4") == []
    assert report.check("regions.step.calls > 3") == ["FAILED regions.step.calls > 3: runs had 4 in step."]
    assert (step.ranks, step.is_at_least) == (1, False)
    times = {
        row.subject.figure.name: row.groups[0].median or 0.0
        for row in report.comparison.rows
        if row.subject.region
    }
    assert times["time"] == pytest.approx(4 * times["time_per_call"])


@pytest.mark.parametrize(("state", "sentences"), [("CANCELLED by 1001", 1), ("COMPLETED", 0)])
def test_no_gate_passes_what_slurm_has_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, sentences: int
) -> None:
    """Although the program has stopped its tracker by itself, and no recording has its exit code."""
    command = tmp_path / "sacct"
    command.write_text(f"#!/bin/sh\necho '{state}|1769860800|train'\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    for number in range(2):
        made = rank(pid=number + 1, end=End("stopped", None, totals(), 0.0, 0))
        known = Identity(
            job="7", scheduler="slurm", job_name="train", rank=number, ranks=2, step="0", launcher="slurm"
        )
        write(
            tmp_path / "runs" / f"{number}.jsonl", made._replace(header=made.header._replace(identity=known))
        )
    report = gput.compare(tmp_path / "runs")

    assert [
        sentence for sentence in report.check("time > 1h") if "by Slurm: cancelled" in sentence
    ] == report.check("time > 1h")
    assert len(report.check("time > 1h")) == sentences
    assert report.check("time > 1h", allow_failed=True) == []
