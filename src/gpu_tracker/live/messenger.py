"""Runs a command of the user's for each finding.

A shell waits for findings, outside the job: what it starts is neither counted as the job's nor in its way.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys

from ..core.text import neutralize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..analysis.findings.finding import Finding

# It becomes an orphan at once, and so nobody's child that has to be waited for. What it prints are exit codes.
_WAIT_FOR_FINDINGS = """\
exec 3<&0
while IFS='\t' read -r GPU_TRACKER_RULE GPU_TRACKER_SEVERITY GPU_TRACKER_FINDING; do
    export GPU_TRACKER_RULE GPU_TRACKER_SEVERITY GPU_TRACKER_FINDING
    sh -c "$0" sh "$GPU_TRACKER_FINDING" </dev/null >/dev/null 2>&1 3<&-
    echo $?
done <&3 &
"""
_ARGUMENT = '"$1"'
_FAREWELL_SECONDS = 1.0


class Messenger:
    """Start it before the job: later it would be taken for a part of it."""

    def __init__(self, command: str) -> None:
        self._command = command
        self.told: frozenset[str] = frozenset()
        """The rules whose findings were told."""
        script = command if "$1" in command else f"{command} {_ARGUMENT}"
        self._processes: list[subprocess.Popen[bytes]] = []
        if sys.platform == "win32":
            return  # each finding starts one
        ours_in, theirs_out = os.pipe()
        theirs_in, self._findings = os.pipe()
        self._codes = ours_in
        try:
            subprocess.run(
                ["/bin/sh", "-c", _WAIT_FOR_FINDINGS, script],
                stdin=theirs_in,
                stdout=theirs_out,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                check=False,
            )
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        os.set_blocking(self._findings, False)

    def tell(self, finding: Finding) -> None:
        """Never waits: what there is no room for is left out."""
        if sys.platform == "win32":
            self._start(finding)
            return
        line = f"{finding.rule}\t{finding.severity}\t{neutralize(finding.sentence)}\n"
        try:
            os.write(self._findings, line.encode("utf-8", "replace"))
            self.told |= {finding.rule}
        except OSError:
            pass

    def close(self) -> str:
        """Why a command failed, or nothing. One that still runs is left alone after a moment."""
        if sys.platform == "win32":
            failed = next((code for code in map(_wait_for, self._processes) if code), None)
            return self._describe(failed)
        os.close(self._findings)
        codes = self._read_codes() if self.told else []
        os.close(self._codes)
        failed = next((code for code in codes if code != "0"), None)
        return self._describe(failed)

    def _describe(self, failed: object) -> str:
        return f"--notify: `{self._command}` failed with exit code {failed}." if failed else ""

    def _start(self, finding: Finding) -> None:
        """On Windows, where the job knows its own processes: what we start is none of them."""
        sentence = neutralize(finding.sentence).replace('"', "'")
        told = {
            "GPU_TRACKER_RULE": finding.rule,
            "GPU_TRACKER_SEVERITY": str(finding.severity),
            "GPU_TRACKER_FINDING": sentence,
        }
        try:
            process = subprocess.Popen(  # noqa: S602 - a shell is what the user has asked for
                f'{self._command} "{sentence}"',
                shell=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **told},
            )
        except OSError:
            return
        self._processes.append(process)
        self.told |= {finding.rule}

    def _read_codes(self) -> list[str]:
        content = b""
        while select.select([self._codes], [], [], _FAREWELL_SECONDS)[0]:
            new = os.read(self._codes, 4096)
            content += new
            if not new:
                break
        return content.decode().split()


def _wait_for(process: subprocess.Popen[bytes]) -> int | None:
    """Its exit code; None if it still runs after a moment."""
    try:
        return process.wait(_FAREWELL_SECONDS)
    except subprocess.TimeoutExpired:
        return None
