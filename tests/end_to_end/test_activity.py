"""What a job reads, writes and waits for, and who held its peak, against what it says of itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from end_to_end.launch import COMMAND_LINE, run, track_inside, workload
from gpu_tracker.core.model import RecordingData
from gpu_tracker.recording.reader import load

MB = 10**6


def check(recording: RecordingData, truth: dict[str, float]) -> None:
    """Bytes and switches are the kernel's; threads were met after nearly all of their waiting."""
    counters = recording.totals.counters
    assert counters.written_bytes is not None
    assert counters.switches is not None
    assert counters.written_bytes >= truth["written_bytes"] >= 40 * MB
    assert counters.written_bytes <= truth["written_bytes"] + MB
    assert counters.switches >= truth["switches"]
    assert counters.waiting_seconds == pytest.approx(truth["waited_seconds"], rel=0.1, abs=0.2)
    assert recording.totals.stalls.cpu_seconds is not None
    known = [sample.counters.written_bytes or 0 for sample in recording.samples]
    assert known == sorted(known)


def test_a_command_is_counted_as_it_counts_itself(tmp_path: Path) -> None:
    """Its own writing and that of a child, and eight threads on one core."""
    recorded = str(tmp_path / "run.jsonl")
    job = workload("activity", tmp_path / "data", 20 * MB, 8, 0.1)
    options = ["--disable-logs", "--record", recorded, "-o", str(tmp_path / "report.txt")]
    truth = json.loads(run([COMMAND_LINE, "run", *options, "--", *job]))

    check(load(recorded), truth)


def test_a_block_is_counted_as_it_counts_itself(tmp_path: Path) -> None:
    """What the process did before the start is not in it."""
    recorded = str(tmp_path / "run.jsonl")
    truth, _ = track_inside("activity", tmp_path / "data", 20 * MB, 8, 0.1, record=recorded)

    check(load(recorded), truth)


def test_the_peak_is_explained(tmp_path: Path) -> None:
    """Who held it, and in which region. The child has its parent's pages besides its own."""
    code = (
        "import gpu_tracker as gput, mmap, os, time\n"
        "def hold(size): return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)\n"
        "with gput.region('epoch'), gput.region('eval'):\n"
        "    own = hold(300 * 10**6)\n"
        "    if (pid := os.fork()) == 0:\n"
        "        more = hold(100 * 10**6); time.sleep(1); os._exit(0)\n"
        "    os.waitpid(pid, 0)\n"
        "del own; time.sleep(0.6); print(pid)\n"
    )
    script = tmp_path / "job.py"
    script.write_text(code)
    recorded = str(tmp_path / "run.jsonl")
    options = ["--st", "0.1", "--disable-logs", "--record", recorded, "-o", str(tmp_path / "report.txt")]
    child = int(run([COMMAND_LINE, "run", *options, "--", workload("stage")[0], str(script)]))
    recording = load(recorded)
    (moment,) = recording.peak_moments

    assert moment.size_bytes == pytest.approx(recording.totals.peaks.ram.combined.total_bytes, rel=0.011)
    assert [process.pid for process in moment.processes] == [child, recording.header.pid]
    assert [process.size_bytes for process in moment.processes] == pytest.approx(
        [400 * MB, 300 * MB], rel=0.1
    )
    assert moment.regions == (("epoch", "eval"),)
    assert moment.at_seconds < recording.totals.at_seconds - 0.5
    last = recording.samples[-1].ram_bytes.combined.high
    assert last is not None
    assert last < 200 * MB
