"""Documents that are made from the code say what the code says."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import gpu_tracker
from gpu_tracker import __version__

PROJECT = Path(__file__).parents[1]
DOCS = PROJECT / "docs"


@pytest.mark.parametrize("script", ["make_recording_format.py", "make_findings.py"])
def test_a_document_made_from_the_code_is_that_of_the_code(script: str) -> None:
    """If this fails: python docs/make_recording_format.py, or docs/make_findings.py."""
    assert subprocess.run([sys.executable, DOCS / script, "--check"]).returncode == 0


def test_the_front_page_reads_the_same_anywhere() -> None:
    """It is shown on the page of the package too, where links to other files lead nowhere, and words stand for a picture."""
    text = (PROJECT / "README.md").read_text()
    pictures = re.findall(r"!\[[^\]]{20,}\]\(([^)]*)\)", text)
    links = re.findall(r"\]\(([^)]*)\)", text)

    assert not [link for link in links if not link.startswith("https://") and link not in pictures]
    assert all((PROJECT / picture).exists() for picture in pictures)
    assert not [
        file for file in re.findall(r"`((?:docs|examples)/[^`]*)`", text) if not (PROJECT / file).exists()
    ]


def test_one_sentence_says_what_it_is() -> None:
    """The same on the front page, on the page of the package, where it is cited and in `help()`."""
    sentence = (gpu_tracker.__doc__ or "").splitlines()[0]

    assert all(
        sentence in (PROJECT / file).read_text() for file in ("README.md", "pyproject.toml", "CITATION.cff")
    )


def test_the_version_to_cite_is_that_of_the_code() -> None:
    """And the changelog has a section for it."""
    assert f"\nversion: {__version__}\n" in (PROJECT / "CITATION.cff").read_text()
    assert f"\n## {__version__} " in (PROJECT / "CHANGELOG.md").read_text()


def test_every_dependency_has_its_reason() -> None:
    """In CONTRIBUTING.md, by name."""
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")  # pytest brings the latter
    data = toml.loads((PROJECT / "pyproject.toml").read_text())
    project = data["project"]
    groups = {**project["optional-dependencies"], **data["dependency-groups"]}
    lists = [data["build-system"]["requires"], project["dependencies"], *groups.values()]
    names = {re.split(r"[^\w-]", requirement)[0] for requirements in lists for requirement in requirements}
    explained = set(re.findall(r"`([\w-]+)`", (PROJECT / "CONTRIBUTING.md").read_text()))

    assert names - explained == set()
