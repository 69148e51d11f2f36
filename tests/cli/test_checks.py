"""What the doctor looks at besides GPUs, where this machine is in order and others are not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpu_tracker.analysis.checks import FAILED, FINE, NOTHING, WARNING
from gpu_tracker.cli import checks
from gpu_tracker.sources.allocation import MemoryLimit, read_allocation


def test_a_container_is_told_from_a_machine(tmp_path: Path) -> None:
    """By its namespace of processes; without one there is nothing to say."""
    assert checks.check_namespace(str(tmp_path)) == []
    (tmp_path / "self/ns").mkdir(parents=True)
    (tmp_path / "self/ns/pid").symlink_to("pid:[4026532000]")
    (nested,) = checks.check_namespace(str(tmp_path))

    assert (nested.state, "--pid=host" in nested.text) == (WARNING, True)


def test_a_kernel_that_tells_less_is_a_warning(tmp_path: Path) -> None:
    """No high-water events, hidden processes, no clocks of others: figures get coarser, not lost."""
    made = [
        checks._check_high_water(str(tmp_path / "status")),
        checks._check_others(str(tmp_path / "stat")),
        checks._check_clock(2**22 + 1),
    ]

    assert [check.state for check in made] == [WARNING] * 3


def test_processes_that_nobody_can_read_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of the sources works."""
    monkeypatch.setattr(checks, "list_process_sources", lambda: ("nowhere",))
    (check,) = checks.check_processes()

    assert check.state == FAILED


@pytest.mark.parametrize(("has_stat", "state"), [(True, FINE), (False, FAILED)])
def test_a_limit_that_cannot_be_read_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, has_stat: bool, state: str
) -> None:
    """What is used under it would be missing."""
    if has_stat:
        (tmp_path / "memory.stat").write_text("anon 5\n")
    allocation, _ = read_allocation(os.getpid(), {})
    limit = MemoryLimit(str(tmp_path), 10**9)
    monkeypatch.setattr(checks, "read_allocation", lambda *_: (allocation, limit))
    made = {check.what: check for check in checks.check_allocation({})}

    assert made["memory limit"].state == state


def test_the_package_of_the_same_module_is_a_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two packages in one directory overwrite each other's files; the cure is one sentence."""
    assert [check.what for check in checks.check_versions() if check.state == FAILED] == []
    metadata = tmp_path / "gpu_tracker-5.0.1.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.4\nName: gpu-tracker\nVersion: 5.0.1\n")
    monkeypatch.syspath_prepend(tmp_path)
    (check,) = (check for check in checks.check_versions() if check.state == FAILED)

    assert check.what == "gpu-tracker"
    assert "5.0.1" in check.text
    assert "pip uninstall gpu-tracker" in check.text


def test_it_is_installed_under_a_name_of_its_own() -> None:
    """With the version of the code, and two names for one command."""
    from importlib.metadata import distribution

    from gpu_tracker.core.version import DISTRIBUTION, __version__

    installed = distribution(DISTRIBUTION)
    scripts = {
        entry.name: entry.value for entry in installed.entry_points if entry.group == "console_scripts"
    }

    assert installed.version == __version__
    assert scripts == dict.fromkeys(("gpu-tracker", "gput"), "gpu_tracker.cli:main")


def test_meters_of_energy_are_named_or_missed(tmp_path: Path) -> None:
    """A machine without them is in order."""
    (missing,) = checks.check_energy(str(tmp_path))
    zone = tmp_path / "class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    (zone / "name").write_text("package-0\n")
    (zone / "energy_uj").write_text("5\n")
    (there,) = checks.check_energy(str(tmp_path))

    assert (missing.state, "RAPL" in missing.text) == (NOTHING, True)
    assert (there.state, there.text) == (FINE, "1 meter (RAPL), for the whole machine")
