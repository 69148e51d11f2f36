"""One virtual environment per tool, kept between benchmarks."""

from __future__ import annotations

import os
import subprocess
import venv
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from benchmarks.tools import Tool

PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LOOK_UP = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"


class NotInstalledError(Exception):
    """A tool cannot be installed here."""


class Package(Protocol):
    """What can be installed."""

    @property
    def name(self) -> str: ...
    @property
    def distribution(self) -> str: ...
    @property
    def requirement(self) -> str | None:
        """For pip; None is the project itself."""


@dataclass(frozen=True)
class Installed:
    """An installed tool."""

    tool: Tool
    bin: str
    version: str

    @property
    def name(self) -> str:
        return self.tool.name

    @property
    def python(self) -> str:
        return os.path.join(self.bin, "python")


def install(tool: Tool, cache: str) -> Installed:
    """Install a tool on first use; the project itself every time."""
    binaries = install_package(tool, cache)
    return Installed(tool, binaries, _version(os.path.join(binaries, "python"), tool.distribution))


def install_package(tool: Package, cache: str) -> str:
    """The same of any package: the directory of its programs."""
    folder = os.path.join(cache, tool.name.replace(" ", "-"))
    binaries = os.path.join(folder, "bin")
    python = os.path.join(binaries, "python")
    is_new = not os.path.exists(python)
    if is_new:
        venv.create(folder, with_pip=True)
        # Old versions of pip write console scripts that take longer to start.
        _pip(python, "install", "--upgrade", "pip")
    if tool.requirement is None:
        _pip(python, "install", "--upgrade", f"{PROJECT}[web]")
    elif is_new or not _version(python, tool.distribution):
        _pip(python, "install", *tool.requirement.split())
    return binaries


def install_group(binaries: str, group: str) -> None:
    """Add a dependency group of the project."""
    _pip(os.path.join(binaries, "python"), "install", "--group", f"{PROJECT}/pyproject.toml:{group}")


def _pip(python: str, *arguments: str) -> None:
    done = subprocess.run(
        [python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        reason = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[-1]
        raise NotInstalledError(f"pip {' '.join(arguments)}: {reason}")


def _version(python: str, distribution: str) -> str:
    done = subprocess.run([python, "-c", _LOOK_UP, distribution], capture_output=True, text=True, check=False)
    return done.stdout.strip()
