"""The site is built strictly, and has everything that is public; see `make docs`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from check_site import check, main

import gpu_tracker
from gpu_tracker.cli import COMMANDS

PROJECT = Path(__file__).parents[1]


def test_a_site_is_checked(tmp_path: Path) -> None:
    """Dead links, lost anchors, lost pictures and what is loaded from elsewhere are found."""
    (tmp_path / "b.html").write_text("<h1 id='here'></h1>")
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here"></a><a href="b.html#there"></a><a href="c.html"></a><a href="https://example.org"></a>'
        '<img src="d.png"><script src="https://example.org/x.js"></script><a href="."></a><img src="data:,">'
    )
    (tmp_path / "a.css").write_text("@import 'https://example.org/font.css'")

    assert check(tmp_path) == [
        "a.html: misses d.png",
        "a.html: loads https://example.org/x.js",
        "a.html: no such anchor b.html#there",
        "a.html: dead link c.html",
        "a.html: dead link .",
        "a.css: loads https://example.org/font.css",
    ]
    assert main(str(tmp_path)) == 1


@pytest.mark.uncovered
def test_the_site_has_every_public_name(tmp_path: Path) -> None:
    """And no dead link; nothing in it is loaded from elsewhere."""
    pytest.importorskip("mkdocs", reason="WITH=docs installs it")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(tmp_path / "site"),
    ]
    built = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=200)
    assert built.returncode == 0, built.stderr
    page = (tmp_path / "site" / "reference" / "python.html").read_text()

    assert check(tmp_path / "site") == []
    assert [
        name
        for name in gpu_tracker.__all__
        if not name.startswith("_") and f'id="gpu_tracker.{name}"' not in page
    ] == []
    assert all((tmp_path / "site" / "reference" / "commands" / f"{name}.html").exists() for name in COMMANDS)
