"""Machines without a GPU are the most common: they must not pay for reading one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_CODE = """
import sys
from gpu_tracker.sources.gpu import connect, nvidia

nvidia.LIBRARY, nvidia._OTHER_FOLDERS = "libnot-here.so.1", ()
found = connect.find_vendors({})
print("nvidia" in found, *(f"gpu_tracker.sources.gpu.{name}" in sys.modules for name in ("nvml", "nvidia_smi")))
"""


@pytest.mark.parametrize("has_smi", [True, False])
def test_no_source_is_loaded_to_find_out_whether_there_is_something_to_ask(
    tmp_path: Path, has_smi: bool
) -> None:
    """Either of NVIDIA's sources is enough to ask; a driver that is slow to load delays nothing."""
    if has_smi:
        (tmp_path / "nvidia-smi").touch(mode=0o700)
    told = subprocess.check_output([sys.executable, "-c", _CODE], text=True, env={"PATH": str(tmp_path)})

    assert told.split() == [str(has_smi), "False", "False"]
