"""`python benchmarks/run.py`: cost and accuracy of gpu_tracker and other tools on this machine.

Goals are shown, not enforced: figures depend on the machine and its load.
Everything is measured in rounds, all tools in turn, so that a busy minute affects all of them alike.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import sys
import time

PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[0] = PROJECT

from benchmarks.bench import Bench  # noqa: E402 - found from the project's root
from benchmarks.jobs import RunFailedError  # noqa: E402
from benchmarks.measures import MEASURES  # noqa: E402
from benchmarks.rows import MISSED, Row, verdict  # noqa: E402
from benchmarks.table import render, to_json  # noqa: E402
from benchmarks.tools import OURS, PEERS  # noqa: E402
from benchmarks.venvs import Installed, NotInstalledError, install  # noqa: E402

_BROKEN = 2


def main() -> int:
    """Exit code 0 whatever the figures; 1 for a missed goal with --strict; 2 if the benchmark failed."""
    options = _parse()
    if sys.platform != "linux":
        print("benchmark: needs /proc, so it runs on Linux only", file=sys.stderr)
        return _BROKEN
    busy, began = _busy_seconds(), time.monotonic()
    try:
        bench = Bench(_install_all(options.cache), options.quick, os.path.abspath(options.cache))
        rows = [row for name, measure in MEASURES if name in options.only for row in measure(bench)]
    except (NotInstalledError, RunFailedError) as error:
        print(f"benchmark: {error}", file=sys.stderr)
        return _BROKEN
    elapsed = time.monotonic() - began
    foreign_percent = 100 * max(0.0, _busy_seconds() - busy - _own_seconds()) / elapsed
    names = [tool.name for tool in bench.tools]
    print(render(rows, names))
    print()
    print("\n".join(_explain(bench, elapsed, foreign_percent)))
    if options.output:
        _write(options.output, bench, rows, elapsed, foreign_percent)
    missed = any(verdict(row, bench.ours.name) == MISSED for row in rows)
    return int(options.strict and missed)


def _parse() -> argparse.Namespace:
    names = [name for name, _ in MEASURES]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rounds; long measures only of our own tool")
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="only these measures")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a goal is missed")
    parser.add_argument("-o", "--output", metavar="FILE", help="write all values to FILE as JSON")
    parser.add_argument(
        "--cache",
        metavar="DIR",
        default=os.path.join(PROJECT, ".venv-bench"),
        help="where the tools are installed (default .venv-bench)",
    )
    return parser.parse_args()


def _install_all(cache: str) -> tuple[Installed, ...]:
    installed = [install(OURS, os.path.abspath(cache))]
    for tool in PEERS:
        try:
            installed.append(install(tool, os.path.abspath(cache)))
        except NotInstalledError as error:
            print(f"{tool.name} is left out: {error}", file=sys.stderr)
    return tuple(installed)


def _explain(bench: Bench, elapsed: float, foreign_percent: float) -> list[str]:
    versions = ", ".join(f"{tool.name} ({tool.version})" for tool in bench.tools)
    return [
        f"Median [quartiles; of fewer than four runs: smallest..largest]. {versions}.",
        f"Python {platform.python_version()}, {platform.platform()}, {os.cpu_count()} cores. "
        f"{elapsed:.0f} s, during which other processes used {foreign_percent:.0f} % of a core.",
        "psrecord runs with one sample per second: by default it never sleeps.",
        *(f"Left out: {failure}" for failure in bench.failures),
    ]


def _write(path: str, bench: Bench, rows: list[Row], elapsed: float, foreign_percent: float) -> None:
    names = [tool.name for tool in bench.tools]
    result = {
        "versions": {tool.name: tool.version for tool in bench.tools},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "is_quick": bench.is_quick,
        "seconds": elapsed,
        "foreign_cpu_percent": foreign_percent,
        "failures": bench.failures,
        "rows": to_json(rows, names),
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)


def _busy_seconds() -> float:
    """CPU seconds of the whole machine, a counter."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


if __name__ == "__main__":
    sys.exit(main())
