"""Make the pictures of gallery.md and README.md: python docs/make_gallery.py DIRECTORY_OF_THE_BROWSER.

Runs the demo and takes pictures of its pages with the browser that `make test WITH=browser` installs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PICTURES = Path(__file__).parent / "img"
COMMAND = Path(sys.executable).parent / "gpu-tracker"
_OPTIONS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")


def main(browser_directory: str) -> None:
    """Write all pictures."""
    from playwright.sync_api import (  # type: ignore[import-not-found, unused-ignore]
        sync_playwright,
    )

    path = (Path(browser_directory) / "path").read_text(encoding="utf-8").strip()
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as made, sync_playwright() as driver:
        pages = make_pages(Path(made))
        browser = driver.chromium.launch(executable_path=path, args=list(_OPTIONS))
        take(browser, pages["report"], "report-light", 1100, "light", 1000)
        take(browser, pages["report"], "report-dark-phone", 390, "dark", 1400)
        take(browser, pages["compare"], "compare", 1100, "light", 900)
        browser.close()


def make_pages(directory: Path) -> dict[str, Path]:
    """The demo, and its comparison with a run that learns in larger batches."""
    runs = [directory / f"{name}.jsonl" for name in ("baseline", "larger-batches")]
    script = (ROOT / "examples" / "train.py").read_text(encoding="utf-8")
    programs = {"train.py": script, "larger.py": script.replace("25, 20, 0.01", "25, 50, 0.02")}
    environment = {**os.environ, "PATH": f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"}
    for path, (name, text) in zip(runs, programs.items(), strict=True):
        (directory / name).write_text(text, encoding="utf-8")
        words = [COMMAND, "run", "--st", "0.1", "--name", path.stem, "--record", path, "--", "python", name]
        subprocess.run(list(map(str, words)), check=True, capture_output=True, cwd=directory, env=environment)
    pages = {"report": directory / "report.html", "compare": directory / "compare.html"}
    subprocess.run([str(COMMAND), "report", str(runs[0]), "-o", str(pages["report"])], check=True)
    subprocess.run([str(COMMAND), "compare", *map(str, runs), "-o", str(pages["compare"])], check=True)
    return pages


def take(browser: Any, page: Path, name: str, width: int, scheme: str, height: int) -> None:
    """One picture."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    opened = context.new_page()
    opened.goto(page.as_uri())
    opened.wait_for_function("document.documentElement.dataset.ready !== undefined")
    opened.screenshot(path=PICTURES / f"{name}.png")
    context.close()


if __name__ == "__main__":
    main(sys.argv[1])
