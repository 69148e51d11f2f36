"""Runs a workload in a process of its own, tracked from the inside or by the command line."""

from __future__ import annotations

import functools
import json
import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from end_to_end.figures import Figures, read_paper_json, read_report_json
from end_to_end.workloads.stage import TRACKED

COMMAND_LINE = str(Path(sysconfig.get_path("scripts")) / "gpu-tracker")
TESTS = Path(__file__).parent.parent

_TIMEOUT_SECONDS = 100


class Outcome(NamedTuple):
    """What happened, from both sides."""

    truth: dict[str, Any]
    figures: Figures


def workload(name: str, *arguments: object) -> list[str]:
    """The command for a workload; its warnings are errors."""
    words = [str(argument) for argument in arguments]
    return [sys.executable, "-W", "error", "-m", f"end_to_end.workloads.{name}", *words]


def run(command: list[str], **environment: str) -> str:
    """What a command prints. It must succeed, and complain of nothing."""
    paths = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def track_inside(
    name: str,
    *arguments: object,
    prefix: tuple[str, ...] = (),
    environment: dict[str, str] | None = None,
    **options: Any,
) -> Outcome:
    """A workload whose block is in a tracker with these options."""
    command = workload(name, TRACKED, json.dumps(options), *arguments)
    truth = json.loads(run([*prefix, *command], **(environment or {})))
    return Outcome(truth, read_paper_json(truth["usage"]))


def track_command(
    front: str,
    command: list[str],
    *options: str,
    prefix: tuple[str, ...] = (),
    environment: dict[str, str] | None = None,
) -> tuple[str, Figures]:
    """What a command prints under `gpu-tracker run` or the paper's `gpu-tracker -e`, and the figures."""
    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory) / "result.json"
        common = ["--disable-logs", "-f", "json", "-o", str(output), *options]
        if front == "run":
            tracked = [COMMAND_LINE, "run", "--no-record", *common, "--", *command]
        else:
            tracked = [
                COMMAND_LINE, "-e", shlex.join(command), *common, "--ru", "bytes", "--tu", "seconds"
            ]  # fmt: skip
        printed = run([*prefix, *tracked], **(environment or {}))
        result = json.loads(output.read_text(encoding="utf-8"))
    return printed, read_report_json(result) if front == "run" else read_paper_json(result)


def track_workload(front: str, name: str, *arguments: object, **keywords: Any) -> Outcome:
    """A workload under the command line."""
    options = keywords.pop("options", ())
    printed, figures = track_command(front, workload(name, *arguments), *options, **keywords)
    return Outcome(json.loads(printed.splitlines()[0]), figures)


@functools.cache
@functools.cache
def warm_memory() -> None:
    """Have the machine find 2.5 GB: on a virtual one the first touch may take seconds, later ones do not."""
    run([sys.executable, "-c", "from end_to_end.workloads.truth import touch; touch(2500 * 10**6)"])
