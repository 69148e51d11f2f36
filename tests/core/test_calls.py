"""Which calls are kept."""

from __future__ import annotations

from random import Random

from gpu_tracker.core.calls import MOST_LARGEST, MOST_LONGEST, MOST_SAMPLED, NO_PRIORITY, choose_calls
from gpu_tracker.core.model import Call


def call(number: int, pid: int = 1, seconds: float = 1.0, peak: int | None = None, priority: int = 5) -> Call:
    """One call of a region, beginning at its number."""
    return Call(("a",), pid, number, float(number), number + seconds, pid, peak, "sampled", priority)


def test_all_are_kept_while_few() -> None:
    """By their start, each once."""
    calls = [call(number) for number in range(MOST_SAMPLED, 0, -1)]

    assert choose_calls([*calls, calls[5]]) == calls[::-1]


def test_the_longest_and_the_largest_stay() -> None:
    """Whatever their priority."""
    ordinary = [call(number, priority=number) for number in range(1, 2000)]
    long = [call(number, seconds=2.0, priority=NO_PRIORITY) for number in range(3000, 3000 + MOST_LONGEST)]
    large = [call(number, peak=7, priority=NO_PRIORITY) for number in range(4000, 4000 + MOST_LARGEST)]
    kept = choose_calls([*large, *long, *ordinary])

    assert kept == [*ordinary[:MOST_SAMPLED], *long, *large]


def test_what_is_kept_does_not_depend_on_the_order_or_the_parts() -> None:
    """Several processes, taken together bit by bit, give the same as all their calls at once."""
    random = Random(1)
    calls = [
        call(number, pid, random.random(), random.randrange(10**9), random.randrange(NO_PRIORITY))
        for pid in range(1, 6)
        for number in range(1, 500)
    ]
    at_once = choose_calls(calls)
    random.shuffle(calls)
    bit_by_bit: list[Call] = []
    for begin in range(0, len(calls), 100):
        bit_by_bit = choose_calls([*bit_by_bit, *calls[begin : begin + 100]])

    assert bit_by_bit == at_once
    assert MOST_SAMPLED <= len(at_once) <= MOST_SAMPLED + MOST_LONGEST + MOST_LARGEST
