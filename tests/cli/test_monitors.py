"""`gpu-tracker dmon` and `pmon`: nvidia-smi's options and columns."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.conftest import MIB, Run
from nvml_simulator import Code, Simulator


def test_devices_scroll_by(run: Run, hardware: Simulator) -> None:
    """The groups that were chosen, as often as was asked for, of all devices or of one."""
    hardware.set_utilization(1, 55, 12)
    done = run("dmon", "-s", "um", "-c", "2", "-d", "0.1", "-i", "1")
    heading, units, *rows = done.stdout.splitlines()

    assert (done.returncode, done.stderr) == (0, "")
    assert heading.split() == ["#", "gpu", "sm", "mem", "enc", "dec", "jpg", "ofa", "fb", "bar1", "ccpm"]
    assert units.split() == ["#", "Idx", *["%"] * 6, *["MB"] * 3]
    assert [row.split()[:3] for row in rows] == [["1", "55", "12"]] * 2
    assert [row.split()[5:8] for row in rows] == [["12", "22", "0"]] * 2


def test_errors_throughput_and_violations_are_those_of_the_driver(run: Run, hardware: Simulator) -> None:
    """The simulated one says that a device throttled by power is so for half of the time."""
    hardware.set_throttle_reasons(0, 0x4)
    done = run("dmon", "-s", "vet", "-c", "2", "-d", "1", "-i", "0", "--format", "csv,noheader")
    first, second = (line.split(", ") for line in done.stdout.splitlines())

    assert first == ["0", "-", "-", "1090", "2090", "6", "14", "7"]
    assert second[1:3] == ["50", "0"]


def test_processes_scroll_by(run: Run, hardware: Simulator, occupant: Callable[..., int]) -> None:
    """By device; one without any is a line of dashes."""
    pid = occupant()
    hardware.set_process(0, pid, 77 * MIB, sm_percent=40)
    done = run("pmon", "-s", "um", "-c", "1")
    _, _, first, second = done.stdout.splitlines()

    assert first.split() == ["0", str(pid), "C", "40", *["-"] * 5, "77", "-", "sleep"]
    assert second.split() == ["1", *["-"] * 11]


def test_lines_may_go_to_a_file(run: Run, hardware: Simulator, tmp_path: Path) -> None:
    """With the time, and without units."""
    path = tmp_path / "dmon.txt"
    done = run("dmon", "-c", "1", "-s", "p", "-o", "T", "--format", "nounit", "-f", str(path))

    assert (done.stdout, done.stderr) == ("", "")
    heading, *rows = path.read_text().splitlines()
    assert heading.startswith("#Time        gpu    pwr")
    assert len(rows) == 2


def test_a_device_that_reports_nothing_more_is_a_line_of_dashes(run: Run, hardware: Simulator) -> None:
    """Without a word: most devices lack some of it."""
    hardware.fail("nvmlDeviceGetPcieThroughput", Code.NOT_SUPPORTED)
    done = run("dmon", "-s", "t", "-c", "1", "-i", "0")

    assert done.stdout.splitlines()[-1].split() == ["0", "-", "-"]
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["dmon", "-s", "px"], "-s 'px': unknown 'x'. Use one or more of pucvmet."),
        (["pmon", "-s", "p"], "-s 'p': unknown 'p'. Use one or more of um."),
        (["dmon", "-o", "X"], "-o 'X': unknown 'X'. Use one or more of DT."),
        (["dmon", "-c", "few"], "-c of 'few' is not a whole number of at least 1."),
        (["dmon", "-d", "0"], "-d of 0 is invalid."),
        (["dmon", "--format", "xml"], "Unknown format 'xml'. Use csv, nounit, noheader."),
        (["pmon", "-i", "7", "-c", "1"], "There is no GPU '7'."),
        (["pmon", "-f", os.sep + "no/such/file", "-c", "1"], "Cannot write to /no/such/file"),
    ],
)
def test_bad_options_are_answered_in_a_sentence(
    run: Run, hardware: Simulator, arguments: list[str], sentence: str
) -> None:
    """With what can be used instead."""
    done = run(*arguments)

    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "command", [["query", "--query-gpu=index"], ["dmon", "-c", "1"], ["pmon", "-c", "1"]]
)
def test_a_full_disk_is_said(run: Run, hardware: Simulator, command: list[str]) -> None:
    """Rows that are lost in silence would be missed much later."""
    done = run(*command, "-f", "/dev/full")

    assert (done.returncode, done.stderr) == (3, "gpu-tracker: Cannot write: No space left on device.\n")


@pytest.mark.parametrize(
    "command",
    [
        ["query", "--query-gpu=index", "-l", "1e308"],
        ["query", "--query-gpu=index", "--timeout", "1e308"],
        ["dmon", "-d", "1e308"],
        ["watch", "-n", "1e308"],
    ],
)
def test_an_endless_interval_is_refused(run: Run, hardware: Simulator, command: list[str]) -> None:
    """The system's timers end somewhere."""
    done = run(*command)

    assert done.returncode == 2
    assert "Must be at most 1e+08 seconds." in done.stderr
