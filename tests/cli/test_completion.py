"""Completion in the real shells: what a person gets who presses the tab key."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from patience import polls

_CONTROLS = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>()][0B]?|\x1b\][^\x07]*\x07|\r")
_ENTRIES = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
_LOADING = {
    "bash": 'eval "$(gpu-tracker completion bash)"; PS1=; bind "set bell-style none" "set completion-query-items 0" "set page-completions off"',
    "zsh": 'PS1=; autoload -U compinit; compinit -D; eval "$(gpu-tracker completion zsh)"',
    "fish": "function fish_prompt; end; gpu-tracker completion fish | source",
}


class Shell:
    """An interactive one, on a terminal."""

    def __init__(self, name: str, command_line: str, directory: Path) -> None:
        self.name = name
        environment = {
            "PATH": f"{Path(command_line).parent}:{os.environ['PATH']}",
            "TERM": "xterm",
            "HOME": str(directory),
            "LC_ALL": "C.UTF-8",
        }
        self._pid, self._terminal = pty.fork()
        if not self._pid:
            os.chdir(directory)
            os.execvpe(_ENTRIES[name][0], _ENTRIES[name], environment)
        self._told = b""
        self.do(_LOADING[name])

    def do(self, line: str) -> None:
        """Let it carry out a command."""
        os.write(self._terminal, f"{line}; echo do''ne\n".encode())
        self._read_until("done")

    def complete(self, typed: str, expected: str) -> str:
        """All that it shows for what was typed when the tab key has been pressed; it must have what is expected."""
        self._told = b""
        os.write(self._terminal, typed.encode() + b"\t")
        time.sleep(0.3)
        os.write(self._terminal, b"\t")
        told = self._read_until(expected)
        os.write(self._terminal, b"\x03")
        self.do("true")
        return told

    def close(self) -> None:
        """End it."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._terminal)

    def _read_until(self, expected: str) -> str:
        for _ in polls(20):
            if expected in self._text():
                return self._text()
            while select.select([self._terminal], [], [], 0.05)[0]:
                self._told += os.read(self._terminal, 65536)
        raise AssertionError(f"{expected!r} is not in {self._text()!r}")

    def _text(self) -> str:
        return _CONTROLS.sub(b"", self._told).decode(errors="replace")


@pytest.fixture(params=["bash", "zsh", "fish"])
def shell(request: pytest.FixtureRequest, command_line: str, tmp_path: Path) -> Iterator[Shell]:
    """Each that is installed."""
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed (make test WITH=shells)")
    started = Shell(request.param, command_line, tmp_path)
    yield started
    started.close()


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("gpu-tracker comb", "combine"),
        ("gput comb", "combine"),
        ("gpu-tracker ls --so", "--sort"),
        ("gpu-tracker ls --sort peak_g", "peak_gpu_ram"),
        ("gpu-tracker report --format mark", "markdown"),
        ("gpu-tracker report -f mark", "markdown"),
        ("gpu-tracker report my", "myrun.jsonl"),
        ("gpu-tracker report -o my", "myrun.jsonl"),
        ("gpu-tracker sub-track an", "analyze"),
        ("gpu-tracker sub-track analyze --t", "--tf"),
        ("gpu-tracker explain gpu-id", "gpu-idle"),
        ("gpu-tracker help exit", "exit-codes"),
        ("gpu-tracker completion fi", "fish"),
        ("gpu-tracker run --fail-i", "--fail-if"),
        ("gpu-tracker run -- mytool_", "mytool_xyz"),
        ("gpu-tracker run --st 1 -- mytool_", "mytool_xyz"),
        ("gpu-tracker --exec", "--execute"),
    ],
)
def test_the_tab_key(shell: Shell, tmp_path: Path, typed: str, expected: str) -> None:
    """Commands, options, their values, files, and the command that is tracked."""
    (tmp_path / "myrun.jsonl").write_text("")
    tool = tmp_path / "mytool_xyz"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    shell.do('PATH="$PATH:$HOME"' if shell.name != "fish" else "set -x PATH $PATH $HOME")

    assert expected in shell.complete(typed, expected)


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_the_script_is_valid(command_line: str, tmp_path: Path, shell_name: str) -> None:
    """The shell itself checks it."""
    if shutil.which(shell_name) is None:
        pytest.skip(f"{shell_name} is not installed (make test WITH=shells)")
    script = tmp_path / "script"
    script.write_text(
        subprocess.run(
            [command_line, "completion", shell_name], capture_output=True, text=True, check=True
        ).stdout
    )

    done = subprocess.run([shell_name, "-n", str(script)], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")


def test_an_unknown_shell_is_refused(command_line: str) -> None:
    """With those that are known."""
    done = subprocess.run([command_line, "completion", "tcsh"], capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "gpu-tracker: Unknown shell 'tcsh'. Use one of: bash, zsh, fish.\n"
