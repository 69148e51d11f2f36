"""What following a real training costs it."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.bench import Bench, Rounds
from benchmarks.jobs import run_inside
from benchmarks.rows import Row
from benchmarks.venvs import Installed, NotInstalledError, install_group, install_package

NAME = "trainings"

_KINDS = {
    "loop": "PyTorch, `watch` and `step`",
    "lightning": "Lightning",
    "transformers": "Transformers",
    "keras": "Keras",
}


@dataclass(frozen=True)
class _Trainers:
    name = "trainers"
    distribution = "gput"
    requirement = None


def measure(bench: Bench) -> list[Row]:
    """Its slowdown, and by how much two untracked ones differ."""
    try:
        binaries = install_package(_Trainers(), bench.cache)
        install_group(binaries, "trainers")
    except NotInstalledError as error:
        bench.say(f"{NAME} are left out: {error}")
        return []
    tool = Installed(bench.ours.tool, binaries, bench.ours.version)
    rows = {
        (kind, figure): Row(f"{name}: {words}", unit, None, 2)
        for kind, name in _KINDS.items()
        for figure, words, unit in (
            ("step", "a step", "ms"),
            ("slowdown", "slowdown if tracked", "%"),
            ("noise", "difference of two untracked", "%"),
        )
    }
    for tools in bench.rounds(NAME, Rounds(3, 0), Rounds(1, 0)):
        for _ in tools:
            for kind in _KINDS:
                measured = run_inside(tool, "time_trainings", kind)
                for figure, value in measured.items():
                    rows[kind, figure].add(bench.ours.name, value)
    return list(rows.values())
