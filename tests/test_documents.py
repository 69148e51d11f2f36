"""Documents that are made from the code say what the code says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[1]
DOCS = PROJECT / "docs"


def test_the_description_of_the_recording_is_that_of_the_code() -> None:
    """If this fails: python docs/make_recording_format.py."""
    script = DOCS / "make_recording_format.py"

    assert subprocess.run([sys.executable, script, "--check"]).returncode == 0


def test_the_front_page_reads_the_same_anywhere() -> None:
    """It is shown on the page of the package too, where links to other files lead nowhere."""
    text = (PROJECT / "README.md").read_text()
    links = re.findall(r"\]\(([^)]*)\)", text)

    assert not [link for link in links if not link.startswith("https://")]
    assert not [
        file for file in re.findall(r"`((?:docs|examples)/[^`]*)`", text) if not (PROJECT / file).exists()
    ]
