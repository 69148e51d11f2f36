"""Advice in the words of schedulers and of people."""

from __future__ import annotations

import json
from typing import Any

import pytest

from builders import MB, recording, render_str
from gpu_tracker.analysis.energy import CarbonFactor, Energy, estimate_carbon
from gpu_tracker.analysis.prices import Choice, Machine
from gpu_tracker.analysis.sizing import Need, Spike, advise
from gpu_tracker.reports.build import build
from gpu_tracker.reports.choices import Choices
from gpu_tracker.reports.sizing import SizingReport
from gpu_tracker.reports.sizing_lines import format_choice, format_next_time, format_spike

GIB = 2**30
TRAINING = Need(7200.0, memory_bytes=11 * GIB, cores=5.2, gpus=2, gpu_bytes=10 * GIB, gpu_vendor="nvidia")
NOTHING = Energy((), None, None, None, None, "For root only.", None)


def show(*needs: Need, form: str | None = None, **fields: Any) -> str:
    """The text of the advice."""
    report = SizingReport(advise(needs), **fields)
    return render_str(report if form is None else report._replace(forms=(form,)))


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("slurm", "--mem=14G --cpus-per-task=6 --gpus=2 --time=02:45:00\n"),
        ("pbs", "-l select=1:ncpus=6:mem=14gb:ngpus=2 -l walltime=02:45:00\n"),
        (
            "kubernetes",
            "resources:\n"
            '  requests:\n    cpu: "6"\n    memory: 14Gi\n    nvidia.com/gpu: 2\n'
            '  limits:\n    cpu: "6"\n    memory: 14Gi\n    nvidia.com/gpu: 2\n',
        ),
        ("words", "14 GiB of memory, 6 cores, 2 GPUs, 2 h 45 min 00 s\n"),
    ],
)
def test_one_form_is_ready_to_paste(form: str, text: str) -> None:
    """Nothing else is printed."""
    assert show(TRAINING, form=form) == text


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("slurm", "--ntasks-per-node=2 --mem=27G --cpus-per-task=6 --gpus-per-task=2 --time=02:45:00\n"),
        ("pbs", "-l select=1:ncpus=12:mpiprocs=2:mem=27gb:ngpus=4 -l walltime=02:45:00\n"),
        (
            "kubernetes",
            "resources:\n"
            '  requests:\n    cpu: "12"\n    memory: 27Gi\n    nvidia.com/gpu: 4\n'
            '  limits:\n    cpu: "12"\n    memory: 27Gi\n    nvidia.com/gpu: 4\n',
        ),
        (
            "words",
            "27 GiB of memory, 6 cores for each of 2 ranks, 2 GPUs for each of 2 ranks, 2 h 45 min 00 s\n",
        ),
    ],
)
def test_ranks_on_one_machine_share_its_memory(form: str, text: str) -> None:
    """In the words of each scheduler."""
    ranks = [TRAINING._replace(run=("7",), rank=number, is_counted_by_limit=False) for number in range(2)]

    assert show(*ranks, form=form) == text


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("slurm", "\n"),
        ("pbs", "-l select=1\n"),
        ("kubernetes", "resources:\n  requests:\n  limits:\n"),
        ("words", "\n"),
    ],
)
def test_what_is_not_known_is_not_asked_for(form: str, text: str) -> None:
    """Not even with 0."""
    assert show(Need(0.0), form=form) == text


@pytest.mark.parametrize(
    ("vendor", "name"), [("amd", "amd.com/gpu: 2"), ("intel", "gpu.intel.com/i915: 2"), ("apple", "")]
)
def test_a_container_asks_for_devices_by_their_vendors_name(vendor: str, name: str) -> None:
    """Those of a vendor without one cannot be asked for."""
    text = show(TRAINING._replace(gpu_vendor=vendor), form="kubernetes")

    assert name in text
    assert "nvidia" not in text
    assert ("gpu" in text) == bool(name)


def test_unused_gpus_are_named_in_words_only() -> None:
    """Schedulers are not asked for none."""
    need = Need(60.0, memory_bytes=GIB, cores=1.0, gpus=0)

    assert show(need, form="words") == "1.27 GiB of memory, 1 core, no GPU, 80 s\n"
    assert "gpu" not in show(need, form="slurm")


def test_everything_is_shown_compactly() -> None:
    """A line for each form, then what it is made of."""
    spike = Spike(30 * 10**9, 18 * 10**9, 14 * 10**9, 3.0, "eval", ("epoch", "eval"))
    choice = Choice(Machine("a10", 8, 64e9, 2, 24e9, 3.5), 7.0, 2, 5)
    carbon = estimate_carbon(None, CarbonFactor(381.0))
    needs = (TRAINING._replace(spike=spike), TRAINING._replace(memory_bytes=10 * GIB, failure="exit code 1"))
    text = show(*needs, choice=choice, energy=NOTHING, carbon=carbon)

    assert text.splitlines() == [
        "next time (from 2 runs, margin 20 %, confidence low):",
        "  slurm       --mem=14G --cpus-per-task=6 --gpus=2 --time=02:45:00",
        "  pbs         -l select=1:ncpus=6:mem=14gb:ngpus=2 -l walltime=02:45:00",
        '  kubernetes  resources: {requests: {cpu: "6", memory: 14Gi, nvidia.com/gpu: 2}, '
        'limits: {cpu: "6", memory: 14Gi, nvidia.com/gpu: 2}}',
        "  words       14 GiB of memory, 6 cores, 2 GPUs, 2 h 45 min 00 s",
        "  used: memory 11.8 GB (smallest run 10.7 GB); cores 5.2 (smallest run 5.2); GPUs 2 (smallest run 2); "
        "GPU memory 10.7 GB (smallest run 10.7 GB); time 2 h 00 min 00 s (smallest run 2 h 00 min 00 s)",
        "  spike: the peak of 30 GB is a short spike (in epoch/eval, by eval, at 3 s); for 95 % of the time 18 GB is "
        "enough: without it, ask for 14 GB less",
        "  machine: a10 at 3.5 an hour, 7.00 for a run that takes as long as here (cheapest of 2 that fit, of 5)",
        "  energy: GPUs not measured; CPU not measured (For root only)",
        "  CO2: not known: no energy was measured",
        "  note: Lower bounds only, where a run did not finish (exit code 1).",
    ]


@pytest.mark.parametrize(
    ("failure", "lead"), [("", "next time (from 1 run"), ("cut off", "next time, at least (from 1 run")]
)
def test_lower_bounds_are_not_plain_requests(failure: str, lead: str) -> None:
    """The heading says it of the lines of all schedulers."""
    assert show(TRAINING._replace(failure=failure)).startswith(lead)


def test_only_what_is_known_has_a_line() -> None:
    """No spike, no prices, no energy."""
    assert [line.split()[0] for line in show(TRAINING).splitlines()] == [
        "next",
        "slurm",
        "pbs",
        "kubernetes",
        "words",
        "used:",
    ]


def test_nothing_measured_is_said() -> None:
    """And a table in which no machine fits."""
    text = show(Need(0.0), choice=Choice(None, None, 0, 3))

    assert (
        "  nothing was measured\n  machine: none of 3 in the price table is large enough: none has enough"
        in text
    )
    assert format_choice(Choice(None, None, 0, 3, ("memory", "GPUs"))) == (
        "none of 3 in the price table is large enough: not enough memory and GPUs"
    )
    cheap = Machine("free", 1, 1, 0, 0, 0.001)
    assert "less than 0.01 for a run" in show(Need(1.0), choice=Choice(cheap, 0.0001, 1, 1))
    assert "machine: free at 0.001 an hour (cheapest of 1" in show(
        Need(0.0), choice=Choice(cheap, None, 1, 1)
    )


def test_a_spike_of_unknown_place_is_only_named() -> None:
    """There are no empty brackets."""
    text = format_spike(Spike(3 * MB, MB, 2 * MB, None, "", ()))

    assert text.startswith("the peak of 3 MB is a short spike; for 95 %")


def test_the_line_of_a_report_says_what_it_is_from() -> None:
    """At least, if it may be more; none without a figure."""
    certain = advise([TRAINING])
    failed = advise([TRAINING._replace(failure="exit code 1")])

    assert format_next_time(certain) == [
        "next time: --mem=14G --cpus-per-task=6 --gpus=2 --time=02:45:00 (from 1 run, margin 20 %)"
    ]
    assert format_next_time(failed)[0].startswith("next time, at least: --mem=14G")
    assert format_next_time(certain, None, 4) == [
        "next time, this one of 4 ranks: --mem=14G --cpus-per-task=6 --gpus=2 --time=02:45:00 "
        "(from 1 run, margin 20 %; `gpu-tracker size` for the job)"
    ]
    assert format_next_time(advise([])) == []
    assert format_next_time(None) == []


def test_a_long_time_has_days() -> None:
    """As Slurm writes them."""
    assert "--time=2-14:30:00" in show(Need(48 * 3600.0), form="slurm")
    assert "walltime=62:30:00" in show(Need(48 * 3600.0), form="pbs")


def test_json_has_amounts_in_base_units_and_the_requests() -> None:
    """What is unknown is null."""
    shown = json.loads(render_str(SizingReport(advise([TRAINING._replace(gpus=None)])), "json"))

    assert shown["memory_bytes"] == {
        "advised": 14 * GIB,
        "used": 11 * GIB,
        "least_used": 11 * GIB,
        "is_at_least": False,
    }
    assert shown["gpus"] is None
    assert shown["requests"]["slurm"] == "--mem=14G --cpus-per-task=6 --time=02:45:00"
    assert shown["machine"] is shown["energy"] is shown["carbon"] is None


def test_a_report_has_the_advice() -> None:
    """In text and in JSON."""
    report = build(recording())

    assert "  next time: --mem=" in render_str(report)
    assert json.loads(render_str(report, "json"))["sizing"]["time_seconds"]["advised"] == 13


def test_a_report_names_the_cheapest_machine_that_fits() -> None:
    """Of those whose prices were given."""
    small, large = (
        Machine(name, 4, size, 0, 0, price) for name, size, price in (("s", 8e9, 1.0), ("l", 64e9, 9.0))
    )
    report = build(recording(), choices=Choices(machines=(large, small)))

    assert report.machine is not None
    assert report.machine.machine == small


def test_advice_fits_a_terminal() -> None:
    """What is to be pasted does not change; a file has each sentence in one line."""
    report = SizingReport(advise([TRAINING]))
    text = render_str(report, columns=80)

    assert max(map(len, text.splitlines())) <= 80 < max(map(len, render_str(report).splitlines()))
    assert text.split() == render_str(report).split()
    assert render_str(report._replace(forms=("slurm",)), columns=40) == show(TRAINING, form="slurm")


def test_nothing_empty_is_shown_as_a_request() -> None:
    """It is said that there is none."""
    text = show(Need(0.0))

    assert text.startswith("nothing can be advised (from 1 run):\n  nothing was measured\n")
    assert "slurm" not in text
