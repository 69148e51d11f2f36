"""`gpu-tracker -e` with the options of the existing tool. What is wrong is said before the job starts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpu_tracker.cli.tracker_config import to_options
from gpu_tracker.core.errors import UsageError
from gpu_tracker.recording.sub_tracking import read_tracking_table

Ask = Callable[..., "subprocess.CompletedProcess[str]"]
JOB = "touch ran"


@pytest.fixture
def ask(command_line: str, tmp_path: Path) -> Ask:
    """Run `gpu-tracker` to its end in a directory of its own."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [command_line, *arguments], capture_output=True, text=True, timeout=100, cwd=tmp_path
        )

    return run


def read_result(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The JSON after the closing sentence."""
    assert done.returncode == 0, done.stderr
    first, _, rest = done.stdout.partition("\n")
    assert first == "Resource tracking complete. Process completed with status code: 0"
    result: dict[str, Any] = json.loads(rest)
    return result


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["-f", "pickle"],
            "loading such a file runs whatever code it holds. Use -f json, or keep a recording",
        ),
        (["--gb=intel"], '"intel" is not a valid GPU brand. Valid values are nvidia and amd.'),
        (["--gb=amd", "--gpu=nvidia"], "gpu and gpu_brand both choose whose devices are read"),
        (["--tf=old.csv"], "old.csv already exists. Set overwrite (--overwrite) to replace it"),
        (["--tf=x.txt", "--overwrite"], 'Invalid file name: "x.txt"'),
        (["--tf=directory.csv", "--overwrite"], "Cannot replace directory.csv: it is not a regular file"),
        (["--tconfig=none.json"], "Cannot read none.json"),
        (["--tconfig=wrong.json"], "wrong.json: unknown 'sleep'"),
    ],
)
def test_what_is_wrong_is_said_before_the_job_starts(
    ask: Ask, tmp_path: Path, arguments: list[str], said: str
) -> None:
    """In one sentence, with exit code 2."""
    (tmp_path / "old.csv").write_text("precious")
    (tmp_path / "directory.csv").mkdir()
    (tmp_path / "wrong.json").write_text('{"sleep": 1}')
    done = ask("-e", JOB, *arguments)

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert said in done.stderr
    assert not (tmp_path / "ran").exists()
    assert (tmp_path / "old.csv").read_text() == "precious"


def test_a_tracking_file_is_replaced_if_asked_for(ask: Ask, tmp_path: Path) -> None:
    """And nothing else is left beside it."""
    (tmp_path / "old.csv").write_text("not needed")
    done = ask("-e", JOB, "--tf=old.csv", "--overwrite", "--disable-logs")

    assert done.returncode == 0, done.stderr
    assert read_tracking_table(str(tmp_path / "old.csv")).static_data["ram_unit"] == "gigabytes"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.csv", "ran"]


def test_a_job_that_does_not_start_costs_no_old_tracking_file(ask: Ask, tmp_path: Path) -> None:
    """A typing error must not delete the figures of the last run."""
    (tmp_path / "old.csv").write_text("precious")
    done = ask("-e", "no-such-command", "--tf=old.csv", "--overwrite")

    assert (done.returncode, 'Command not found: "no-such-command"' in done.stderr) == (127, True)
    assert (tmp_path / "old.csv").read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir()] == ["old.csv"]


def test_a_configuration_file_sets_what_the_command_line_does_not(ask: Ask, tmp_path: Path) -> None:
    """Flags too; options that are given win."""
    config = {
        "sleep_time": 0.25,
        "ram_unit": "megabytes",
        "gpu_ram_unit": None,
        "time_unit": "seconds",
        "n_expected_cores": 3,
        "gpu_brand": "amd",
        "gpu_uuids": ["a", "b"],
        "disable_logs": True,
        "tracking_file": "old.csv",
        "overwrite": True,
        "n_join_attempts": 2,
        "join_timeout": 2.5,
        "resource_usage_file": "usage.pkl",
    }
    (tmp_path / "old.csv").write_text("not needed")
    (tmp_path / "config.json").write_text(json.dumps(config))
    done = ask("-e", "sleep 0.3", "--tconfig=config.json", "--tu", "minutes", "-f", "json")
    result = read_result(done)

    assert (result["max_ram"]["unit"], result["max_gpu_ram"]["unit"]) == ("megabytes", "gigabytes")
    assert result["cpu_utilization"]["n_expected_cores"] == 3
    assert result["compute_time"]["unit"] == "minutes"
    assert result["compute_time"]["time"] >= 0.3 / 60
    assert done.stderr == ""
    assert read_tracking_table(str(tmp_path / "old.csv")).static_data["time_unit"] == "minutes"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "old.csv"]


def test_the_command_line_also_wins_by_its_own_word_for_a_brand(ask: Ask, tmp_path: Path) -> None:
    """`--gpu` and the file's `gpu_brand` are no contradiction."""
    (tmp_path / "config.json").write_text('{"gpu_brand": "amd"}')

    assert ask("-e", JOB, "--tconfig=config.json", "--gpu=none").returncode == 0


def test_both_spellings_are_in_the_json(ask: Ask) -> None:
    """The text keeps the paper's."""
    result = read_result(ask("-e", "true", "-f", "json", "--disable-logs"))
    text = ask("-e", "true", "--disable-logs").stdout

    for part in ("max_ram", "max_gpu_ram", "cpu_utilization"):
        assert result[part]["descendants"] == result[part]["descendents"]
    cpu = result["cpu_utilization"]
    assert cpu["descendants_n_threads"] == cpu["descendents_n_threads"]
    assert text.count("Descendents") == 4
    assert "Descendants" not in text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"sleep_time": "1"}, 'x.json: sleep_time must be a number, not "1".'),
        ({"sleep_time": True}, "x.json: sleep_time must be a number, not true."),
        ({"n_expected_cores": 2.5}, "x.json: n_expected_cores must be a whole number, not 2.5."),
        ({"ram_unit": 5}, "x.json: ram_unit must be text, not 5."),
        ({"gpu_uuids": [5]}, "x.json: gpu_uuids must be a list of texts, not [5]."),
        ({"overwrite": 1}, "x.json: overwrite must be true or false, not 1."),
        ({"process_id": 5}, "x.json: process_id cannot be set here"),
        ({"name": "a", "live": True}, "x.json: unknown 'name', 'live'."),
    ],
)
def test_wrong_values_are_refused_by_name(content: dict[str, Any], said: str) -> None:
    """With what they must be."""
    with pytest.raises(UsageError) as refusal:
        to_options(content, "x.json")

    assert str(refusal.value).startswith(said)


def test_devices_may_be_named_in_one_text() -> None:
    """As on the command line."""
    assert to_options({"gpu_uuids": "a,b"}, "x.json") == {"gpu_uuids": "a,b"}
    assert to_options({"gpu_uuids": ["a", "b"]}, "x.json") == {"gpu_uuids": "a,b"}
