"""Adding a GPU vendor is one module and one row; everything else follows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gpu_tracker

MODULE = """
from ...core.model import Gpu, GpuProcessReading, GpuReading, GpuReadings

MIB = 2**20

def why_absent():
    return None

def connect(now):
    return Source(now)

class Source:
    poll_seconds = 1.0
    unopened = ()
    is_outdated = False

    reasons, kinds = {}, {}

    def __init__(self, now):
        self._now = now
        self.gpus = tuple(
            Gpu(n, f"MOORE-{n}", "Moore S80", 16384 * MIB, "moore", "moore", driver="1.2") for n in (0, 1)
        )

    def read(self, pids):
        devices = [
            GpuReading(gpu.uuid, used_bytes=1000 * MIB, utilization_percent=40.0, power_watts=90.0)
            for gpu in self.gpus
        ]
        held = [GpuProcessReading("MOORE-0", pid, 700 * MIB) for pid in sorted(pids or ())[:1]]
        return GpuReadings(self._now(), tuple(devices), tuple(held))

    def read_details(self, names):
        return {}

    def take_notes(self):
        return ()

    def close(self):
        pass
"""
ROW = """    "moore": Vendor("Moore Threads", ("moore",), pci_id="0x1ed5", variables=("MOORE_VISIBLE_DEVICES",)),
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with one more module and one more row."""
    parent = tmp_path_factory.mktemp("vendor")
    copy = parent / "gpu_tracker"
    shutil.copytree(Path(gpu_tracker.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "sources" / "gpu" / "moore.py").write_text(MODULE)
    table = copy / "core" / "vendors.py"
    before, opening, rest = table.read_text().partition("VENDORS = {\n")
    table.write_text(before + opening + ROW + rest)
    return parent


def ask(package: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the changed program."""
    return subprocess.run(
        [sys.executable, "-m", "gpu_tracker", *arguments],
        env={**os.environ, "PYTHONPATH": str(package), **variables},
        cwd=package,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_its_devices_are_queried_like_any_other(package: Path) -> None:
    """Under nvidia-smi's names."""
    done = ask(package, "query", "--query-gpu=index,name,vendor,memory.used", "--format=csv,noheader")

    assert done.stdout.splitlines() == [
        "0, Moore S80, moore, 1000 MiB",
        "1, Moore S80, moore, 1000 MiB",
    ]


def test_the_doctor_checks_them(package: Path) -> None:
    """Under the vendor's own name, figure by figure."""
    checks = json.loads(ask(package, "doctor", "--json").stdout)["checks"]
    found = {(check["group"], check["what"]): check["text"] for check in checks}

    assert found["GPUs", "Moore Threads"] == "2 devices read through moore, driver 1.2"
    assert found["GPU 0: Moore S80 (MOORE-0)", "power"] == "90 W"


@pytest.mark.parametrize(
    ("variables", "visible"),
    [
        ({}, [True, True]),
        ({"MOORE_VISIBLE_DEVICES": "0,1"}, [True, True]),
        ({"MOORE_VISIBLE_DEVICES": "1"}, [False, True]),
    ],
)
def test_a_job_on_them_is_measured(package: Path, variables: dict[str, str], visible: list[bool]) -> None:
    """Devices that the job uses count, whatever its environment allows."""
    arguments = ("run", "--no-record", "--gpu", "moore", "-f", "json", "-o", "-", "--", "sleep", "0.6")
    gpus: list[dict[str, Any]] = json.loads(ask(package, *arguments, **variables).stdout)["summary"]["gpus"]

    assert [gpu["is_expected"] for gpu in gpus] == [True, False]
    assert gpus[0]["job_bytes"]["combined"] == 700 * 2**20
    assert [gpu["gpu"]["is_visible"] for gpu in gpus] == visible


def test_help_and_errors_name_it(package: Path) -> None:
    """Nowhere is there a second list."""
    assert "nvidia" in ask(package, "run", "--help").stdout
    assert "moore" in ask(package, "run", "--help").stdout
    assert "moore" in ask(package, "run", "--gpu", "nobody", "--", "true").stderr
