"""A real cluster, and a tracker that its users can run."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters import slurm

PROJECT = Path(__file__).parents[2]
_PYTHON = "/usr/bin/python3"  # which everybody can run, unlike one below somebody's home


@pytest.fixture(scope="session")
def cluster() -> Iterator[slurm.Cluster]:
    """Two nodes."""
    needed = [name for name in ("slurmctld", "slurmd", "munged", "unshare") if not _find(name)]
    if os.environ.get("REAL_CLUSTER") is None:
        pytest.skip("REAL_CLUSTER is not set: `make clusters` installs Slurm and runs these")
    if needed or os.geteuid():
        pytest.fail(f"`make clusters` needs root and {', '.join(needed) or 'nothing else'}")
    with tempfile.TemporaryDirectory(prefix="cluster-", dir="/tmp") as folder:
        root = Path(folder)
        root.chmod(0o755)
        with slurm.start(root) as started:
            yield started


@pytest.fixture(scope="session")
def tracker(cluster: slurm.Cluster) -> Iterator[str]:
    """`gpu-tracker`, installed where every user may run it."""
    with tempfile.TemporaryDirectory(prefix="tracker-", dir="/tmp") as folder:
        root = Path(folder)
        root.chmod(0o755)
        # Debian's mpi4py is built for Debian's MPI.
        make: list[str | Path] = [_PYTHON, "-m", "venv", "--system-site-packages", root / "venv"]
        subprocess.run(make, check=True, capture_output=True)
        subprocess.run(
            [root / "venv/bin/pip", "install", "--quiet", PROJECT], check=True, capture_output=True
        )
        yield str(root / "venv/bin/gpu-tracker")


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that all nodes share, and every user may write to."""
    with tempfile.TemporaryDirectory(prefix="shared-", dir="/tmp") as folder:
        path = Path(folder)
        path.chmod(0o777)
        yield path


def _find(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
