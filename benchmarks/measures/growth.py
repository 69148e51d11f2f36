"""How a report grows with the number of samples, beside other tools that report or draw as many."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.bench import Bench, Rounds
from benchmarks.jobs import RunFailedError, Used, measure_command, run_inside
from benchmarks.reporters import REPORTERS
from benchmarks.rows import Goal, Row
from benchmarks.venvs import NotInstalledError, install_package

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.reporters import Reporter

NAME = "growth"

_SAMPLES = (10_000, 100_000, 1_000_000)
_SUFFIXES = {"text": ".txt", "page": ".html"}
_MOST_MEGABYTES = 150.0
_LINEAR = 10.0
_NEARLY = 1.25


@dataclass(frozen=True)
class _Peer:
    reporter: Reporter
    binaries: str


def measure(bench: Bench) -> list[Row]:
    """CPU seconds and memory of our own, and how many times as much that is as the others need."""
    peers, largest = list(_install(bench)), max(_SAMPLES)
    seconds = {(form, count): _row_of_seconds(form, count) for form in _SUFFIXES for count in _SAMPLES}
    growth = {form: _row_of_growth(form) for form in _SUFFIXES}
    memory = Row(f"`report` as page, {largest} samples, peak memory", "MB", Goal(high=_MOST_MEGABYTES), 0)
    ratios: dict[str, Row] = {}
    with tempfile.TemporaryDirectory() as folder:
        for tools in bench.rounds(NAME, Rounds(2, 0), Rounds(1, 0)):
            for tool in tools:
                ours: dict[tuple[str, int], Used] = {}
                for count in _SAMPLES:
                    ours |= {(form, count): _report(bench, folder, form, count) for form in _SUFFIXES}
                    for peer in peers:
                        if count <= peer.reporter.most_samples:
                            _compare(bench, ratios, folder, peer, count, ours)
                for key, used in ours.items():
                    seconds[key].add(tool.name, used.cpu_seconds)
                for form, row in growth.items():
                    before = ours[form, largest // 10]
                    row.add(tool.name, ours[form, largest].cpu_seconds / before.cpu_seconds)
                memory.add(tool.name, ours["page", largest].peak_bytes / 1e6)
    return [*seconds.values(), *growth.values(), memory, *ratios.values()]


def _install(bench: Bench) -> Iterator[_Peer]:
    for reporter in REPORTERS:
        try:
            yield _Peer(reporter, install_package(reporter, bench.cache))
        except NotInstalledError as error:
            bench.say(f"{reporter.name} is left out: {error}")


def _report(bench: Bench, folder: str, form: str, count: int) -> Used:
    """Of a recording with as many lines, as in full resolution."""
    path = os.path.join(folder, f"{count}.jsonl")
    if not os.path.exists(path):
        run_inside(bench.ours, "load_recording", path, count)
    program = os.path.join(bench.ours.bin, "gpu-tracker")
    return measure_command(bench.ours, [program, "report", path, "-o", f"{path}{_SUFFIXES[form]}"])


def _compare(
    bench: Bench,
    ratios: dict[str, Row],
    folder: str,
    peer: _Peer,
    count: int,
    ours: dict[tuple[str, int], Used],
) -> None:
    name = peer.reporter.name
    path = os.path.join(folder, f"{name.replace(' ', '-')}-{count}")
    if not os.path.exists(f"{path}.made"):
        peer.reporter.write(path, count)
        os.mkdir(f"{path}.made")
    try:
        theirs = measure_command(
            None, peer.reporter.command(peer.binaries, path, os.path.join(f"{path}.made", "it"))
        )
    except RunFailedError as error:
        bench.failures.append(f"{name}: {error}")
        return
    shares = {
        f"`report` as {form}, {count} samples, to `{name}` (CPU)": ours[form, count].cpu_seconds
        / theirs.cpu_seconds
        for form in _SUFFIXES
    }
    shares[f"`report` as page, {count} samples, to `{name}` (memory)"] = (
        ours["page", count].peak_bytes / theirs.peak_bytes
    )
    for label, share in shares.items():
        ratios.setdefault(label, Row(label, "", Goal(high=1.0), 2)).add(bench.ours.name, share)


def _row_of_seconds(form: str, count: int) -> Row:
    return Row(f"`report` as {form}, {count} samples", "CPU s", None, 2)


def _row_of_growth(form: str) -> Row:
    return Row(f"`report` as {form}, ten times the samples", "times the CPU", Goal(high=_LINEAR * _NEARLY), 1)
