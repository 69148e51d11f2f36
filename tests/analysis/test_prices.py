"""The cheapest machine that fits, from a table that the user gives."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from gpu_tracker.analysis.prices import COLUMNS, Machine, choose_machine, parse_prices
from gpu_tracker.analysis.sizing import Need, advise

GB = 10**9
HEAD = ",".join(COLUMNS)
MACHINES = (
    Machine("large", 64, 256 * GB, 4, 80 * GB, 20.0),
    Machine("fair", 8, 32 * GB, 1, 16 * GB, 1.5),
    Machine("small", 2, 4 * GB, 0, 0, 0.1),
)


def test_a_table_is_read() -> None:
    """Sizes are in GB unless they say otherwise; columns in any order, empty lines, and machines without GPUs."""
    lines = [
        "Name, price per hour, cores, ram, gpus, gpu_ram, region\n",
        "a, 0.5, 2, 8, , , here\n",
        "\n",
        "b, 2, 4.0, 16GiB, 1, 24GB, there\n",
    ]

    assert parse_prices(lines) == (
        Machine("a", 2, 8 * GB, 0, 0, 0.5),
        Machine("b", 4, 16 * 2**30, 1, 24 * GB, 2),
    )


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], "it is empty"),
        (["name,cores"], "column 'ram' is missing"),
        ([HEAD], "it lists no machine"),
        ([HEAD, "a" * 200_000], "field larger than field limit"),
        ([HEAD, "a,1,2"], "line 2 has 3 values instead of 6"),
        ([HEAD, ",1,2,0,0,1"], "line 2: the machine has no name"),
        ([HEAD, "a,many,2,0,0,1"], "line 2: cores 'many' is not a number from 0 up"),
        ([HEAD, "a,1,2,0,0,"], "line 2: price per hour '' is not a number from 0 up"),
        ([HEAD, "a,1,2,0,0,-1"], "line 2: price per hour '-1' is not a number from 0 up"),
        ([HEAD, "a,1,2,0,0,nan"], "line 2: price per hour 'nan' is not a number from 0 up"),
        ([HEAD, "a,1,much,0,0,1"], "line 2: ram 'much' is not a size (try 64GB)"),
        ([HEAD, "a,1,3h,0,0,1"], "line 2: ram '3h' is not a size (try 64GB)"),
    ],
)
def test_a_wrong_table_is_refused_with_the_place(lines: list[str], reason: str) -> None:
    """In one sentence."""
    with pytest.raises(ValueError, match="^" + reason.replace("(", r"\(").replace(")", r"\)")):
        parse_prices(lines)


@given(st.lists(st.text(), max_size=4))
def test_any_table_is_read_or_refused(lines: list[str]) -> None:
    """Nothing else happens, whatever is in it."""
    with suppress(ValueError):
        assert parse_prices([HEAD, *lines])


@pytest.mark.parametrize(
    ("need", "name"),
    [
        (Need(HOUR := 3600.0, memory_bytes=GB, cores=1.0), "small"),
        (Need(HOUR, memory_bytes=4 * GB, cores=1.0), "fair"),
        (Need(HOUR, memory_bytes=GB, cores=7.5), "fair"),
        (Need(HOUR, memory_bytes=GB, cores=1.0, gpus=1, gpu_bytes=10 * GB), "fair"),
        (Need(HOUR, memory_bytes=GB, cores=1.0, gpus=1, gpu_bytes=15 * GB), "large"),
        (Need(HOUR, memory_bytes=GB, cores=1.0, gpus=2), "large"),
    ],
)
def test_the_cheapest_that_fits_is_chosen(need: Need, name: str) -> None:
    """With the margins of the advice, and the cost of an hour."""
    choice = choose_machine(MACHINES, advise([need]))

    assert choice.machine is not None
    assert choice.machine.name == name
    assert choice.cost == pytest.approx(choice.machine.price_per_hour)
    assert choice.machines == 3


def test_each_may_lack_something_else() -> None:
    """Then there is nothing that all of them lack."""
    slow = Machine("slow", 1, 100 * GB, 0, 0, 1.0)
    small = Machine("small", 64, GB, 0, 0, 1.0)

    assert choose_machine([slow, small], advise([Need(1.0, memory_bytes=50 * GB, cores=30.0)])).lacking == ()


def test_none_may_be_large_enough() -> None:
    """And without a time there is no cost."""
    nothing = choose_machine(MACHINES, advise([Need(1.0, memory_bytes=1000 * GB)]))
    timeless = choose_machine(MACHINES, advise([Need(0.0, memory_bytes=GB)]))

    assert nothing == (None, None, 0, 3, ("memory",))
    assert timeless.machine is not None
    assert timeless.cost is None
