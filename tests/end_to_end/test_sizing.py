"""The advice of a first run makes the next one pass with a smaller request, and asks for little more than is needed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from end_to_end.cgroup import request
from end_to_end.launch import COMMAND_LINE, TESTS, run, workload
from end_to_end.workloads.sized import KINDS

GENEROUS_BYTES = 1200 * 10**6
TOO_LITTLE_BYTES = 100 * 10**6
ALL_CORES = 2
BUSY_CORES = {"threads": 2}
MOST_OF_NEED = 1.35
FILE_BYTES = 300 * 10**6
NUMBERS = 250_000


def make_file(directory: Path, kind: str) -> Path:
    """A source file for the compiler, for others a large file of which nothing is in memory."""
    path = directory / ("table.c" if kind == "compiler" else "data")
    if kind == "compiler":
        path.write_text(f"int table[] = {{{','.join(str(n * 7919 % 2**31) for n in range(NUMBERS))}}};")
    else:
        with path.open("wb") as file:
            file.truncate(FILE_BYTES)
    return path


def track(job: list[str], recorded: Path, prefix: tuple[str, ...] = ()) -> int:
    """The exit code of a tracked job."""
    options = ["--disable-logs", "--record", str(recorded), "-o", str(recorded.with_suffix(".txt"))]
    return subprocess.run(
        [*prefix, COMMAND_LINE, "run", *options, "--", *job],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        timeout=100,
    ).returncode


def track_under(job: list[str], recorded: Path, memory_bytes: int, cores: int) -> int:
    """The same with such a request."""
    with request(memory_bytes, cores) as prefix:
        return track(job, recorded, prefix)


def advise(recorded: Path) -> dict[str, Any]:
    """What to ask for."""
    advice: dict[str, Any] = json.loads(run([COMMAND_LINE, "size", str(recorded), "-f", "json"]))
    return advice


def was_stopped(recorded: Path) -> bool:
    """Whether the tracker did not run for a share of the time that counts, because the machine was too busy."""
    summary = json.loads(run([COMMAND_LINE, "report", str(recorded), "-f", "json"]))["summary"]
    return bool(summary["unread_seconds"] > 0.1 * summary["seconds"])


@pytest.mark.uncovered
@pytest.mark.repeats(few=1, soak=10)
@pytest.mark.parametrize("kind", [kind.__name__ for kind in KINDS])
def test_the_next_run_passes_with_what_was_advised(kind: str, tmp_path: Path, repeats: int) -> None:
    """And with 1.35 times less it does not: the advice is that near to the true need."""
    job = workload("sized", kind, make_file(tmp_path, kind))
    n_measured = 0
    for number in range(3 * repeats):
        first, second, third = (tmp_path / f"{number}-{name}.jsonl" for name in ("first", "second", "third"))
        assert track_under(job, first, GENEROUS_BYTES, ALL_CORES) == 0
        advice = advise(first)
        memory, cores = advice["memory_bytes"], advice["cores"]

        assert memory["advised"] < GENEROUS_BYTES / 2
        assert memory["is_at_least"] == was_stopped(first)
        if memory["is_at_least"]:
            continue  # that this is enough is not promised
        assert cores["advised"] == BUSY_CORES.get(kind, 1) or cores["is_at_least"]
        assert track_under(job, second, memory["advised"], cores["advised"]) == 0
        assert track_under(job, third, int(memory["advised"] / MOST_OF_NEED), cores["advised"]) != 0
        n_measured += 1
        if n_measured == repeats:
            break

    assert n_measured == repeats


@pytest.mark.uncovered
@pytest.mark.parametrize("kind", ["small_processes", "compiler", "page_tables"])
def test_a_first_run_without_a_limit_is_enough(kind: str, tmp_path: Path) -> None:
    """What a limit counts besides the processes is added."""
    job = workload("sized", kind, make_file(tmp_path, kind))
    assert track(job, tmp_path / "first.jsonl") == 0
    advice = advise(tmp_path / "first.jsonl")

    assert track_under(job, tmp_path / "second.jsonl", advice["memory_bytes"]["advised"], ALL_CORES) == 0


@pytest.mark.uncovered
def test_the_smallest_job_gets_room_for_its_tracker(tmp_path: Path) -> None:
    """Which runs under the same limit, and needs more than the job."""
    source, program = tmp_path / "small.c", tmp_path / "small"
    source.write_text("#include <unistd.h>\nint main(void) { return usleep(300000); }\n")
    subprocess.run(["gcc", "-static", str(source), "-o", str(program)], check=True)
    job = [str(program)]
    assert track(job, tmp_path / "first.jsonl") == 0
    memory = advise(tmp_path / "first.jsonl")["memory_bytes"]

    assert track_under(job, tmp_path / "second.jsonl", memory["advised"], ALL_CORES) == 0


@pytest.mark.uncovered
def test_a_job_that_ran_out_of_memory_gets_there_in_a_few_steps(tmp_path: Path) -> None:
    """Each advice is a lower bound, above the limit that was not enough."""
    job = workload("sized", "steady", make_file(tmp_path, "steady"))
    limit, steps = TOO_LITTLE_BYTES, 0
    while track_under(job, tmp_path / f"{steps}.jsonl", limit, ALL_CORES) != 0:
        memory = advise(tmp_path / f"{steps}.jsonl")["memory_bytes"]
        assert memory["is_at_least"]
        assert memory["advised"] >= limit + 100 * 10**6
        limit, steps = memory["advised"], steps + 1

    assert steps == 1
