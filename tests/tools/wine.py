"""Run the tests of Windows, and those of values, with each Windows Python that can be had here under Wine: `.venv-wine-3.12`.

With words, those tests only: `wine.py tests/platforms -k spike`. The fixtures of the other tests are made for Unix, so none is loaded.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.every_python import PROJECT, find_python, list_promised

TOOLS = Path(__file__).parent
# The drive on which a Windows program finds the project, and a directory of its own.
PROJECT_DRIVE, TEMPORARY = "P:", r"C:\tests"
TESTS = ("tests/platforms/test_windows.py", "tests/core", "tests/accounts", "tests/analysis")
OPTIONS = ("--noconftest", "-m", "not repeats", "-p", "no:cacheprovider", "--basetemp", TEMPORARY, "--quiet")


def main(words: list[str]) -> int:
    """Exit code 0 if the tests passed with every Python that was found, and there was one."""
    pythons = {
        version: find_python(version) for version in list_promised((PROJECT / "pyproject.toml").read_text())
    }
    found = {version: python for version, python in pythons.items() if python}
    # Values are the same with all of them.
    tests = {version: words or TESTS[: None if version == next(iter(found)) else 1] for version in found}
    codes = {version: test(version, python, tests[version]) for version, python in found.items()}
    for version in pythons:
        outcome = {None: "not tested", 0: "passed"}.get(codes.get(version), "FAILED")
        print(f"Windows Python {version}: {outcome}")
    return max(codes.values(), default=1)


def test(version: str, python: str, words: Sequence[str]) -> int:
    """The exit code of the tests with that one, which is installed first."""
    environment = PROJECT / f".venv-wine-{version}"
    windows_python = environment / "python"
    if not windows_python.exists():
        subprocess.run(["sh", TOOLS / "install_wine.sh", environment, python], check=True)
    packages = environment / "Lib" / "site-packages"
    install(packages)
    print(f"Windows Python {version}", flush=True)
    command = [str(windows_python), "-m", "pytest", *OPTIONS, *words]
    # On a terminal of its own, which becomes the console: without one there is no Ctrl-C.
    return subprocess.run(
        ["script", "--quiet", "--return", "--command", shlex.join(command), os.devnull],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": rf"{PROJECT_DRIVE}\tests"},
        stdin=subprocess.DEVNULL,
    ).returncode


def install(packages: Path) -> None:
    """The package as users get it: it has no part that is made for one system."""
    for old in packages.glob("gp*"):
        if old.name.startswith(("gpu_tracker", "gput")):
            shutil.rmtree(old)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target"]
    subprocess.run([*command, str(packages), str(PROJECT)], check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
