"""`SubTrackingAnalyzer` and `TrackingComparison`, under the existing tool's names."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

import gpu_tracker as gput
from gpu_tracker import sub_tracker
from gpu_tracker.core.errors import RecordingError, UsageError
from gpu_tracker.core.sub_tracking import BEGIN, END, BlockEvent
from gpu_tracker.recording.sub_tracking import append_events, create_block_file, read_events

TRACKING = """\
ram_unit,time_unit,system_core_count
bytes,hours,4
main_ram,timestamp
10,1
20,2
30,3
"""


def make_blocks(path: Path, *pids: int) -> str:
    """A sub-tracking file with a block of each process."""
    create_block_file(str(path), may_replace=False)
    for pid in pids:
        append_events(str(path), [BlockEvent(pid, "a", BEGIN, 1.5), BlockEvent(pid, "a", END, 2.5)])
    return str(path)


def make_tracking(path: Path) -> str:
    """A tracking file with three samples."""
    path.write_text(TRACKING)
    return str(path)


def test_the_analyzer_tells_all_that_the_files_have(tmp_path: Path) -> None:
    """Its methods have the existing tool's names, its values are plain ones."""
    analyzer = gput.SubTrackingAnalyzer(
        make_tracking(tmp_path / "t.csv"), make_blocks(tmp_path / "s.csv", 7, 8)
    )
    results = analyzer.sub_tracking_results()
    (block,) = results.code_block_results

    assert analyzer.read_static_data() == {"ram_unit": "bytes", "time_unit": "hours", "system_core_count": 4}
    assert analyzer.load_code_block_names() == ["a"]
    assert analyzer.load_timestamp_pairs("a") == [(1.5, 2.5), (1.5, 2.5)]
    assert analyzer.load_timestamp_pairs("none") == []
    assert analyzer.overall_timepoint_results() == results.overall
    assert results.overall["main_ram"]["mean"] == 20.0
    assert results.static_data["ram_unit"] == "bytes"
    assert (block.num_calls, block.resource_usage["main_ram"]["max"]) == (2, 20.0)
    assert results.to_json()["code_block_results"][0]["compute_time"]["total"] == 2.0
    assert "a: 2 calls, 2 of them with samples" in str(results).splitlines()
    assert isinstance(results, sub_tracker.SubTrackingResults)


def test_files_of_several_processes_become_one(tmp_path: Path) -> None:
    """Of the same format, and never in place of another file."""
    parts = [make_blocks(tmp_path / f"{pid}.sqlite", pid) for pid in (7, 8)]
    target = str(tmp_path / "all.sqlite")
    analyzer = gput.SubTrackingAnalyzer(None, target)
    with pytest.raises(UsageError, match=r"7\.sqlite is not in the format of .*all\.csv"):
        gput.SubTrackingAnalyzer(None, tmp_path / "all.csv").combine_sub_tracking_files(parts)
    with pytest.raises(UsageError, match="no file to combine"):
        analyzer.combine_sub_tracking_files([])
    analyzer.combine_sub_tracking_files(parts)
    with pytest.raises(UsageError, match=r"all\.sqlite already exists"):
        analyzer.combine_sub_tracking_files(parts)

    assert [event.process_id for event in read_events(target)] == [7, 7, 8, 8]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["7.sqlite", "8.sqlite", "all.sqlite"]


def test_what_the_analyzer_lacks_is_said(tmp_path: Path) -> None:
    """A tracking file; a name that has a known format."""
    with pytest.raises(UsageError, match="No tracking file was named"):
        gput.SubTrackingAnalyzer(None, make_blocks(tmp_path / "s.csv")).sub_tracking_results()
    with pytest.raises(UsageError, match="Invalid file name"):
        gput.SubTrackingAnalyzer("t.txt", "s.csv")


def test_results_are_compared_from_json(tmp_path: Path) -> None:
    """One statistic at a time."""
    for name in ("a", "b"):
        analyzer = gput.SubTrackingAnalyzer(
            make_tracking(tmp_path / f"t{name}.csv"), make_blocks(tmp_path / f"s{name}.csv", 7)
        )
        (tmp_path / f"{name}.json").write_text(json.dumps(analyzer.sub_tracking_results().to_json()))
    comparison = gput.TrackingComparison({name: tmp_path / f"{name}.json" for name in ("a", "b")})
    results = comparison.compare("max")

    assert results.overall_resource_usage == {"main_ram": {"a": 30.0, "b": 30.0}}
    assert results.code_block_resource_usage == {"main_ram": {"a": {"a": 20.0, "b": 20.0}}}
    assert results.code_block_compute_time == {"a": {"a": 1.0, "b": 1.0}}
    assert list(results.to_json()) == [
        "overall_resource_usage",
        "code_block_resource_usage",
        "code_block_compute_time",
    ]
    assert str(results).startswith("max of all samples\n")
    assert list(comparison.results_map) == ["a", "b"]
    with pytest.raises(
        UsageError, match=r"^Invalid summary statistic 'median'\. Valid values are min max mean std\.$"
    ):
        comparison.compare("median")


class Trap:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path("sprung"),)  # type: ignore[return-value]


def test_a_pickle_is_never_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its name is."""
    monkeypatch.chdir(tmp_path)
    for name in ("r.pkl", "r.json"):
        Path(name).write_bytes(pickle.dumps(Trap()))
    with pytest.raises(UsageError, match=r"r\.pkl is a pickle: loading it runs whatever code it holds\."):
        gput.TrackingComparison({"a": "r.pkl"})
    with pytest.raises(RecordingError, match="does not hold results"):
        gput.TrackingComparison({"a": "r.json"})
    with pytest.raises(UsageError, match="No such file"):
        gput.TrackingComparison({"a": "none.json"})
    with pytest.raises(UsageError, match="Nothing to compare"):
        gput.TrackingComparison({})

    assert not Path("sprung").exists()
