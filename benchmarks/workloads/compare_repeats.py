"""Compare seeded groups of repeats, equal ones and ones with a slower region: compare_repeats.py REGIONS COMPARISONS.

Prints how many comparisons of equal groups claim any change, and how many find the slower region. Every figure has
noise of its own, which is harder than real runs, whose figures vary together.
"""

from __future__ import annotations

import json
import random
import sys

from gpu_tracker.analysis.compare import CHANGED, compare
from gpu_tracker.analysis.measures import RunFigures, Subject
from gpu_tracker.core.figures import REGION, RUN, TIME

REPEATS = 5
NOISE = 0.02
SLOWER = 1.10
SLOW_REGION = Subject(TIME, ("region 0",))


def main(regions: int, comparisons: int) -> None:
    dice = random.Random(regions)
    false = sum(bool(_find_changes(dice, regions, 1.0)) for _ in range(comparisons))
    found = sum(SLOW_REGION in _find_changes(dice, regions, SLOWER) for _ in range(comparisons))
    print(json.dumps({"false": false, "found": found, "comparisons": comparisons}))


def _find_changes(dice: random.Random, regions: int, factor: float) -> set[Subject]:
    first, second = ([_draw_run(dice, regions) for _ in range(REPEATS)] for _ in range(2))
    for run in second:
        run.values[SLOW_REGION] = factor * (run.values[SLOW_REGION] or 0.0)
    rows = compare([("first", first), ("second", second)]).rows
    return {row.subject for row in rows if row.changes[0].verdict == CHANGED}


def _draw_run(dice: random.Random, regions: int) -> RunFigures:
    subjects = [Subject(figure) for figure in RUN]
    subjects += [Subject(figure, (f"region {number}",)) for number in range(regions) for figure in REGION]
    # Large beside every resolution.
    return RunFigures({subject: 1e12 * dice.gauss(1.0, NOISE) for subject in subjects})


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
