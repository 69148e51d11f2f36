"""The recipe of docs/clusters.md for workflows: a shell that tracks what it runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import gpu_tracker as gput
from cli.conftest import COMMAND

RECIPE = re.search(
    r"Make an executable file `(?P<file>[^`]+)`:\n\n(?:<!--[^\n]*\n)*```sh\n(?P<script>.+?)```.+?```python\n(?P<line>.+?)\n```",
    (Path(__file__).parents[2] / "docs/clusters.md").read_text(),
    re.DOTALL,
)
SNAKEFILE = '''
rule all:
    input: expand("out/{n}.txt", n=[1, 2, 3])
rule make_it:
    output: "out/{n}.txt"
    shell:
        """
        echo first > {output}
        echo {wildcards.n} >> {output}
        """
'''


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The shell of the recipe is in the directory, and the tracker in the path."""
    assert RECIPE is not None
    shell = tmp_path / RECIPE["file"]
    shell.parent.mkdir()
    shell.write_text(RECIPE["script"])
    shell.chmod(0o755)
    return {**os.environ, "PATH": f"{Path(COMMAND).parent}:{os.environ['PATH']}"}


@pytest.mark.parametrize("code", [0, 4])
def test_the_shell_is_a_shell(tmp_path: Path, environment: dict[str, str], code: int) -> None:
    """With its output and its exit code, and a recording."""
    assert RECIPE is not None
    done = subprocess.run(
        [tmp_path / RECIPE["file"], "-c", f"set -euo pipefail; echo 'a b'; exit {code}"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    (file,) = (tmp_path / "runs").iterdir()

    assert (done.returncode, done.stdout, done.stderr) == (code, "a b\n", "")
    assert gput.load(file).report.exit_code == code


def test_every_rule_of_a_workflow_has_a_recording(tmp_path: Path, environment: dict[str, str]) -> None:
    """With the real Snakemake, where it is installed."""
    snakemake = shutil.which("snakemake")
    if snakemake is None:
        pytest.skip("snakemake is not installed")
    assert RECIPE is not None
    (tmp_path / "Snakefile").write_text(f"{RECIPE['line']}\n{SNAKEFILE}")
    done = subprocess.run(
        [snakemake, "--cores", "2"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert [(tmp_path / f"out/{n}.txt").read_text() for n in (1, 2, 3)] == [
        f"first\n{n}\n" for n in (1, 2, 3)
    ]
    assert [one.exit_code for one in gput.combine(tmp_path / "runs").ranks] == [0, 0, 0]
