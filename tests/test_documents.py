"""Documents that are made from the code say what the code says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def test_the_description_of_the_recording_is_that_of_the_code() -> None:
    """If this fails: python docs/make_recording_format.py."""
    script = DOCS / "make_recording_format.py"

    assert subprocess.run([sys.executable, script, "--check"]).returncode == 0
