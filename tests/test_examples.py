"""The examples run as they stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
WORDS = {
    "compare_models": "boosting-encoded against mlp",
    "child_process": "   Descendents:",
    "context_manager": "Compute time:\n   Unit: seconds",
    "decorator": "664579 primes up to 10000000",
    "regions": "epoch/load           5 ",
    "start_stop": "at the end:",
    "train": "finished  accuracy 1.00",
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_says_what_it_promises(example: Path, tmp_path: Path) -> None:
    """From anywhere, with nothing installed but the package."""
    result = subprocess.run(
        [sys.executable, str(example)], capture_output=True, text=True, timeout=200, cwd=tmp_path
    )

    assert result.returncode == 0, result.stderr
    assert WORDS[example.stem] in result.stdout
