"""Runs a command of the user's for each finding.

A shell waits for findings, outside the job: what it starts is neither counted as the job's nor in its way.
"""

from __future__ import annotations

import os
import select
import subprocess

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
        line = f"{finding.rule}\t{finding.severity}\t{neutralize(finding.sentence)}\n"
        try:
            os.write(self._findings, line.encode("utf-8", "replace"))
            self.told |= {finding.rule}
        except OSError:
            pass

    def close(self) -> str:
        """Why a command failed, or nothing. One that still runs is left alone after a moment."""
        os.close(self._findings)
        codes = self._read_codes() if self.told else []
        os.close(self._codes)
        failed = next((code for code in codes if code != "0"), None)
        return f"--notify: `{self._command}` failed with exit code {failed}." if failed else ""

    def _read_codes(self) -> list[str]:
        content = b""
        while select.select([self._codes], [], [], _FAREWELL_SECONDS)[0]:
            new = os.read(self._codes, 4096)
            content += new
            if not new:
                break
        return content.decode().split()
