"""Several ranks as people and programs read them."""

from __future__ import annotations

import json

from builders import MB, render_str
from recorded import join, on_gpu, rank


def test_people_read_totals_hosts_balance_and_ranks() -> None:
    """With the devices once."""
    text = render_str(join(on_gpu(1), on_gpu(2), on_gpu(1, "node2")))

    assert text.startswith(
        "3 recordings on 2 hosts\n  time        10 s, from the first start to the last end\n"
    )
    assert "RAM         1.5 GB at most, on all hosts" in text
    assert "GPU RAM     6 GB, each device at its own peak" in text
    assert "GPU energy  5000 J, by everybody" in text
    assert "node1: 2 recordings\n  RAM    between 500 MB and 1 GB; 2 GB in use on the machine" in text
    assert "GPU 0  Simulated A100: 4 GB by the job, 3 GB by everybody, 50 % busy, 2500 J" in text
    assert "node2: 1 recording\n  RAM    500 MB at most" in text
    assert "largest above mean" in text
    assert "note: Trees that were measured apart" in text


def test_many_ranks_are_counted_and_those_in_others_are_marked() -> None:
    """A job without GPUs says nothing about them."""
    text = render_str(join(*(rank(pid=number // 2) for number in range(70))))

    assert "and 6 more (-f json has all)" in text
    assert "exit code 0 (in another)" in text
    assert "GPU" not in text


def test_programs_read_every_figure() -> None:
    """In base units."""
    shown = json.loads(render_str(join(rank(), rank(5, pid=2)), "json"))

    assert shown["hosts"][0]["ram_sum_bytes"] == 1000 * MB
    assert shown["ranks"][1]["begin_seconds"] == 5.0
    assert shown["balance"][0]["figure"]["name"] == "time"
