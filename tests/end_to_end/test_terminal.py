"""At a real terminal, under a real shell: the keys do to a tracked job what they do to any job."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from end_to_end.faults import (
    Scene,
    check_ends_once,
    check_idle,
    tracker,
    wait_for_state,
    workload,
)
from marked import WITNESS_NAME, read_state
from patience import wait_until

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc"),
    pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash"),
]

CTRL_C, CTRL_D, CTRL_Z, CTRL_BACKSLASH = "\x03", "\x04", "\x1a", "\x1c"
PROMPT = "prompt> "
SHELL = ["bash", "--norc", "--noprofile", "--noediting", "-i"]


class Terminal:
    """A terminal of its own session: what one types, and what one sees."""

    def __init__(self, scene: Scene, command: list[str]) -> None:
        self._master, slave = os.openpty()
        set_size(slave, 40, 120)
        self.settings = termios.tcgetattr(slave)
        try:
            self.process = scene.start(
                command,
                stdin=slave,
                stdout=slave,
                stderr=slave,
                start_new_session=True,
                preexec_fn=take_terminal,
                env={"PS1": PROMPT, "TERM": "dumb", "HISTFILE": "", "PS4": ""},
            )
        finally:
            os.close(slave)
        self.seen = ""
        self._expected = 0

    def close(self) -> None:
        """Close the window."""
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    def resize(self, lines: int, columns: int) -> None:
        """Drag the window's corner."""
        set_size(self._master, lines, columns)

    def expect(self, pattern: str, seconds: float = 15.0) -> re.Match[str]:
        """Wait until the pattern appears after what was expected last."""
        deadline = time.monotonic() + seconds
        while (found := re.compile(pattern).search(self.seen, self._expected)) is None:
            left = deadline - time.monotonic()
            assert left > 0, f"waited for {pattern!r}, saw {self.seen[self._expected :]!r}"
            self._look(left)
        self._expected = found.end()
        return found

    def watch(self, seconds: float) -> str:
        """Everything that has appeared so far, and within this time."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self._look(left)
        return self.seen

    def _look(self, seconds: float) -> None:
        if select.select([self._master], [], [], seconds)[0]:
            with contextlib.suppress(OSError):  # EIO: nobody has the terminal open any more
                self.seen += os.read(self._master, 65536).decode(errors="replace").replace("\r", "")


def take_terminal() -> None:
    """Make standard input the controlling terminal of this session."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def set_size(fd: int, lines: int, columns: int) -> None:
    """What a window manager does."""
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


@pytest.fixture
def shell(scene: Scene) -> Iterator[Terminal]:
    """An interactive shell with job control."""
    with contextlib.closing(Terminal(scene, SHELL)) as terminal:
        terminal.expect(PROMPT)
        yield terminal


def command(*job: str) -> str:
    """A tracked job, as one types it."""
    return shlex.join(tracker("run", "--no-record", "--st", "0.1", "--", *job))


def find(scene: Scene, script: str) -> tuple[int, int]:
    """The pids of the wrapper and of the job that runs this workload."""
    found = {}
    for pid, name in scene.processes().items():
        if name == WITNESS_NAME:
            continue
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
        if any(argument.endswith(f"{script}.py") for argument in arguments):
            found["wrapper" if "run" in arguments else "job"] = pid
    return found["wrapper"], found["job"]


def finish(shell: Terminal, code: int) -> str:
    """Leave the shell after asking for the last exit code; everything that was on the screen."""
    shell.type("echo code=$?\n")
    shell.expect(rf"code={code}\n")
    shell.expect(PROMPT)
    shell.type("exit 0\n")
    assert shell.process.wait(timeout=15) == 0
    return shell.watch(0.1)


def count_lines(screen: str, text: str) -> int:
    """How often a line has appeared; the terminal shows a control key before it."""
    return len(re.findall(rf"^(?:\^.)?{text}$", screen, re.MULTILINE))


@pytest.mark.parametrize(("key", "name"), [(CTRL_C, "SIGINT"), (CTRL_BACKSLASH, "SIGQUIT")])
def test_a_key_reaches_the_job_once(shell: Terminal, key: str, name: str) -> None:
    """Ctrl-C and Ctrl-backslash reach the job exactly once, and the wrapper stays to report."""
    shell.type(command(*workload("signals", name)) + "\n")
    shell.expect("\nready\n")
    shell.type(key)
    shell.expect(rf"{name}\n")
    shell.watch(0.3)
    shell.type(CTRL_D)
    shell.expect("bye\n")
    shell.expect("exit code 5\n")
    shell.expect(PROMPT)
    screen = finish(shell, 5)
    assert count_lines(screen, name) == 1
    assert "Traceback" not in screen


def test_ctrl_c_ends_a_job_that_does_not_expect_it(shell: Terminal) -> None:
    """Ctrl-C ends an ordinary job; the summary appears and the code is 130."""
    shell.type(command("sh", "-c", "echo started; exec sleep 30") + "\n")
    shell.expect("\nstarted\n")
    shell.type(CTRL_C)
    shell.expect("killed by SIGINT \\(2\\)\n")
    shell.expect("time ")
    shell.expect(PROMPT)
    finish(shell, 130)


def test_ctrl_c_ends_a_loop_around_the_tracker(shell: Terminal) -> None:
    """A shell goes on after a program that exits, but not after one that dies of SIGINT."""
    job = command("sh", "-c", "echo started; exec sleep 30")
    shell.type(f"for i in 1 2 3; do {job}; echo went on; done\n")
    shell.expect("\nstarted\n")
    shell.type(CTRL_C)
    shell.expect("killed by SIGINT \\(2\\)\n")
    shell.expect(PROMPT)
    screen = finish(shell, 130)
    assert "\nwent on" not in screen


@pytest.mark.repeats(few=3, soak=50)
def test_ctrl_z_stops_both_and_fg_continues_both(shell: Terminal, scene: Scene, repeats: int) -> None:
    """Ctrl-Z stops job and wrapper and gives the prompt back; `fg` continues the job, by one SIGCONT."""
    shell.type(command(*workload("signals", "SIGCONT")) + "\n")
    shell.expect("\nready\n")
    wrapper, job = find(scene, "signals")
    for _ in range(repeats):  # signals that come together can be met in any order
        shell.type(CTRL_Z)
        shell.expect("Stopped")
        shell.expect(PROMPT)
        wait_for_state(job, "T")
        wait_for_state(wrapper, "T")
        shell.type("fg\n")
        shell.expect("\nSIGCONT\n")
        shell.watch(0.1)
    shell.type(CTRL_D)
    shell.expect("bye\n")
    shell.expect("exit code 5\n")
    shell.expect(PROMPT)
    screen = finish(shell, 5)
    assert count_lines(screen, "SIGCONT") == repeats


@pytest.mark.parametrize("name", ["TSTP", "STOP"])
def test_a_job_that_stops_itself_gives_the_prompt_back(shell: Terminal, name: str) -> None:
    """Programs that suspend themselves (less, top, a shell) give the prompt back, and the shell their signal; `fg` continues them."""
    shell.type(command("sh", "-c", f"echo started; kill -{name} $$; echo back; exit 3") + "\n")
    shell.expect("\nstarted\n")
    shell.expect("Stopped")
    shell.expect(PROMPT)
    shell.type("echo code $?.\n")
    shell.expect(f"\ncode {128 + signal.Signals['SIG' + name]}\\.\n")
    shell.expect(PROMPT)
    shell.type("fg\n")
    shell.expect("\nback\n")
    shell.expect("exit code 3\n")
    shell.expect(PROMPT)
    finish(shell, 3)


def test_a_job_that_ignores_ctrl_z_keeps_the_terminal(shell: Terminal, scene: Scene) -> None:
    """A job that does not stop at Ctrl-Z keeps the terminal and gets each key once."""
    shell.type(command(*workload("signals", "SIGTSTP")) + "\n")
    shell.expect("\nready\n")
    wrapper, job = find(scene, "signals")
    for _ in range(3):
        shell.type(CTRL_Z)
        shell.expect("SIGTSTP\n")
    shell.watch(0.2)
    assert read_state(wrapper) == "S"
    assert read_state(job) == "S"
    shell.type(CTRL_D)
    shell.expect("exit code 5\n")
    shell.expect(PROMPT)
    assert count_lines(finish(shell, 5), "SIGTSTP") == 3


def test_a_stopped_job_can_be_killed_from_the_shell(shell: Terminal, scene: Scene) -> None:
    """A job stopped by Ctrl-Z and killed by `kill %1` ends as any job does, and nothing of it stays."""
    shell.type(command("sh", "-c", "echo started; exec sleep 30") + "\n")
    shell.expect("\nstarted\n")
    shell.watch(0.2)  # a shell that is just starting something cannot be stopped
    shell.type(CTRL_Z)
    shell.expect("Stopped")
    shell.expect(PROMPT)
    shell.type("kill %1\n")
    shell.expect(r"killed by SIGTERM \(15\)\n")
    wait_until(lambda: len(scene.processes()) == 1, "only the shell is left", seconds=2)
    # Twice: bash itself may take a job that it has stopped and killed for a stopped one, tracked or not.
    shell.type("exit 0\nexit 0\n")
    assert shell.process.wait(timeout=15) == 0


def test_a_job_in_the_background_runs_on(shell: Terminal, scene: Scene) -> None:
    """Ctrl-Z and `bg` let the job run on in the background; it reports when it ends."""
    shell.type(command("sh", "-c", "echo started; sleep 1; exit 3") + "\n")
    shell.expect("\nstarted\n")
    shell.watch(0.2)  # a shell that is just starting something cannot be stopped
    shell.type(CTRL_Z)
    shell.expect("Stopped")
    shell.expect(PROMPT)
    check_idle(scene.wait_for_sampler(), 0.3)
    shell.type("bg; wait %1; echo code=$?\n")
    shell.expect("exit code 3\n")
    shell.expect("code=3\n")
    shell.type("exit 0\n")
    assert shell.process.wait(timeout=15) == 0
    assert set(scene.processes()) <= {shell.process.pid}


def test_an_interactive_job_keeps_its_terminal(shell: Terminal) -> None:
    """An interactive job has its terminal on all streams, in the foreground, and can ask."""
    shell.type(command(*workload("terminal")) + "\n")
    shell.expect(r"terminals \[True, True, True\]\n")
    shell.expect("foreground True\n")
    shell.expect(re.escape("size (120, 40)\n"))
    shell.expect(r"question\? ")
    shell.type("yes\n")
    shell.expect("answer yes\n")
    shell.expect("exit code 3\n")
    shell.expect(PROMPT)
    finish(shell, 3)


def test_a_shell_in_the_job_has_job_control(shell: Terminal) -> None:
    """A whole interactive shell can be tracked: stopping and continuing inside it is its own affair."""
    shell.type(command(*SHELL) + "\n")
    shell.expect(PROMPT)
    shell.type("sleep 30\n")
    shell.expect("sleep 30\n")
    shell.watch(0.3)
    shell.type(CTRL_Z)
    shell.expect("Stopped +sleep 30")
    shell.expect(PROMPT)
    shell.type("kill -KILL %1; sleep 0.2\n")
    shell.expect("Killed +sleep 30")
    shell.expect(PROMPT)
    shell.type("exit 4\n")
    shell.expect("exit code 4\n")
    shell.expect(PROMPT)
    finish(shell, 4)


def test_a_new_size_is_told_once(shell: Terminal) -> None:
    """When the window changes its size the job is told once, as always."""
    shell.type(command(*workload("signals", "SIGWINCH")) + "\n")
    shell.expect("\nready\n")
    shell.resize(30, 100)
    shell.expect("SIGWINCH\n")
    shell.watch(0.3)
    shell.type(CTRL_D)
    shell.expect("bye\n")
    shell.expect(PROMPT)
    assert count_lines(finish(shell, 5), "SIGWINCH") == 1


def test_closing_the_window_ends_the_job_of_a_shell(scene: Scene) -> None:
    """When a shell's window is closed, its tracked job is hung up, ends, and leaves its recording."""
    with contextlib.closing(Terminal(scene, SHELL)) as shell:
        shell.expect(PROMPT)
        shell.type(
            shlex.join(tracker("run", "--record", "run.jsonl", "--", "sh", "-c", "echo started; sleep 30"))
            + "\n"
        )
        shell.expect("\nstarted\n")
        shell.close()
        scene.wait_until_alone()
    check_ends_once(scene.directory / "run.jsonl")
    assert scene.report(scene.directory / "run.jsonl")["summary"]["seconds"] < 20


def test_closing_the_window_ends_a_job_without_a_shell(scene: Scene) -> None:
    """Where the wrapper is the terminal's first process (ssh -t, tmux), the job ends with the window."""
    job = workload("signals", "SIGHUP")
    with contextlib.closing(Terminal(scene, tracker("run", "--record", "run.jsonl", "--", *job))) as terminal:
        terminal.expect("ready\n")
        terminal.close()
        scene.wait_until_alone()
    check_ends_once(scene.directory / "run.jsonl")


def test_a_hangup_kills_a_job_that_does_not_read(scene: Scene) -> None:
    """Closing the window kills a job that only computes, as it would untracked."""
    job = ["sh", "-c", "echo started; exec sleep 30"]
    with contextlib.closing(Terminal(scene, tracker("run", "--record", "run.jsonl", "--", *job))) as terminal:
        terminal.expect("started\n")
        terminal.close()
        scene.wait_until_alone()
    assert scene.report(scene.directory / "run.jsonl")["exit_code"] == -signal.SIGHUP


def test_the_terminal_is_left_as_it_was(scene: Scene) -> None:
    """After a tracked job the terminal's settings are what they were."""
    master, slave = os.openpty()
    try:
        before = termios.tcgetattr(slave)
        process = scene.start(
            tracker("run", "--no-record", "--", "true"), stdin=slave, stdout=slave, stderr=subprocess.PIPE
        )
        assert scene.finish(process).returncode == 0
        assert termios.tcgetattr(slave) == before
    finally:
        os.close(master)
        os.close(slave)


def test_ctrl_c_ends_attach_with_its_figures(shell: Terminal, scene: Scene) -> None:
    """Ctrl-C ends `attach` with a summary, and the process it was attached to is untouched."""
    other = scene.start(["sleep", "30"])
    shell.type(shlex.join(tracker("attach", other.pid, "--no-record", "--st", "0.1")) + "\n")
    scene.wait_for_sampler()
    shell.watch(0.5)
    shell.type(CTRL_C)
    shell.expect("time ")
    shell.expect("RAM ")
    shell.expect(PROMPT)
    assert read_state(other.pid) is not None
    other.kill()
    finish(shell, 0)
