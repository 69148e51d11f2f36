"""Several ranks as text and JSON."""

from __future__ import annotations

import json

from builders import MB, render_str, totals
from gpu_tracker.core.figures import RUN
from gpu_tracker.core.model import Event, MachineEnergy
from recorded import join, on_gpu, rank


def test_text_shows_totals_hosts_balance_and_ranks() -> None:
    """Each device once."""
    text = render_str(join(on_gpu(1), on_gpu(2), on_gpu(1, "node2")))

    assert text.startswith(
        "3 recordings on 2 hosts\n  time        10 s, from the first start to the last end\n"
    )
    assert "RAM         upper bound 1.5 GB, all hosts together" in text
    assert "GPU RAM     6 GB (sum of the devices' peaks)" in text
    assert "GPU energy  5000 J (by the drivers' meters, whole devices)" in text
    assert "node1: 2 recordings\n  RAM    peak between 500 MB and 1 GB; 2 GB in use on the machine" in text
    assert "GPU 0  Simulated A100: job 4 GB, all processes 3 GB, 50 % busy, 2500 J" in text
    assert "node2: 1 recording\n  RAM    peak 500 MB" in text
    assert "largest above mean" in text
    assert (
        "note: Memory shared between recordings is not known: the sum of their RAM is an upper bound" in text
    )


def test_text_shows_that_utilization_is_an_estimate() -> None:
    """Where the driver keeps no samples."""
    rank_on_gpu = on_gpu(1)
    polled = rank_on_gpu._replace(events=(*rank_on_gpu.events, Event(1.0, "polled", "GPU-0")))

    assert ", 50 % busy (estimate), 2500 J" in render_str(join(polled))


def test_many_ranks_are_counted_and_those_in_others_are_marked() -> None:
    """A job without GPUs says nothing about them."""
    text = render_str(join(*(rank(pid=number // 2) for number in range(70))))

    assert "and 6 more (-f json has all)" in text
    assert "exit code 0 (part of another)" in text
    assert "GPU" not in text


def test_json_has_every_figure() -> None:
    """In base units."""
    shown = json.loads(render_str(join(rank(), rank(5, pid=2)), "json"))

    assert shown["hosts"][0]["ram_sum_bytes"] == 1000 * MB
    assert shown["ranks"][1]["begin_seconds"] == 5.0
    assert shown["balance"][0]["figure"] == "time"


def test_json_has_the_names_of_figures() -> None:
    """The same for the whole, for each rank and for the balance."""
    shown = json.loads(render_str(join(on_gpu(1), on_gpu(2)), "json"))
    names = [figure.name for figure in RUN]

    assert list(shown["values"]) == list(shown["ranks"][0]["values"]) == names
    assert {balance["figure"] for balance in shown["balance"]} <= set(names)
    assert shown["values"]["peak_gpu_ram"] == 4000 * MB


def test_energy_of_processors_is_that_of_whole_machines() -> None:
    """Where they have meters."""
    text = render_str(join(rank(totals=totals(energy=MachineEnergy(500.0)))))

    assert "CPU energy  500 J (by RAPL, whole machines)" in text
