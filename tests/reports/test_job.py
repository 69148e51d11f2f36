"""Several ranks as text and JSON."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest

from builders import MB, render_str, totals
from gpu_tracker.analysis.energy import CarbonFactor
from gpu_tracker.analysis.findings.finding import Finding
from gpu_tracker.analysis.job import Job
from gpu_tracker.analysis.job_findings import JobFinding
from gpu_tracker.core.figures import RUN
from gpu_tracker.core.model import Event, Identity, MachineEnergy, MetricRow, ProcessTotals, RecordingData
from recorded import join, lost_run, on_gpu, part, rank


def test_text_shows_totals_hosts_balance_and_ranks() -> None:
    """Each device once."""
    text = render_str(join(on_gpu(1), on_gpu(2), on_gpu(1, "node2")))

    assert text.startswith(
        "3 recordings on 2 hosts\n  time        10 s, from the first start to the last end\n"
    )
    assert "RAM         upper bound 1.5 GB, all hosts together" in text
    assert "GPU RAM     5 GB (sum of the devices' peaks)" in text
    assert "GPU energy  5000 J (by the drivers' meters, whole devices)" in text
    assert (
        "node1: 2 recordings\n  RAM    peak between 500 MB and 1 GB of 16 GB; 2 GB in use on the machine"
        in text
    )
    assert "GPU 0  Simulated A100: job 3 GB, all processes 3 GB, 50 % busy, 2500 J" in text
    assert "node2: 1 recording\n  RAM    peak 500 MB" in text
    assert "mean ÷ largest" in text
    assert (
        "note: Memory shared between recordings is not known: the sum of their RAM is an upper bound" in text
    )


def test_text_shows_that_utilization_is_an_estimate() -> None:
    """Where the driver keeps no samples."""
    rank_on_gpu = on_gpu(1)
    polled = rank_on_gpu._replace(events=(*rank_on_gpu.events, Event(1.0, "polled", "GPU-0")))

    assert ", 50 % busy (estimate), 2500 J" in render_str(join(polled))


def test_text_shows_that_energy_is_an_estimate() -> None:
    """Where a device has no meter."""
    rank_on_gpu = on_gpu(1)
    unmetered = rank_on_gpu._replace(events=(*rank_on_gpu.events, Event(1.0, "integrated", "GPU-0")))
    text = render_str(join(unmetered))

    assert "GPU energy  2500 J (estimated from power, whole devices)" in text
    assert ", 50 % busy, 2500 J, estimate" in text
    assert "2500 J (estimated from power)" in render_str(join(unmetered), "markdown")


def test_text_and_total_show_that_utilization_is_not_known_all_of_the_time() -> None:
    """A mean over less than half of it is not that of the job."""

    def know(seconds: float) -> tuple[str, str]:
        rank_on_gpu = on_gpu(1)
        (counters,) = rank_on_gpu.totals.gpu_counters
        partial = counters._replace(utilization_seconds=seconds, utilization_percent_seconds=50.0 * seconds)
        summed = rank_on_gpu.totals._replace(gpu_counters=(partial,))
        return render_str(join(rank_on_gpu._replace(totals=summed)), "json"), render_str(
            join(rank_on_gpu._replace(totals=summed))
        )

    document, text = know(3.0)
    assert ", 50 % busy (without 7 s of the time), 2500 J" in text
    assert json.loads(document)["values"]["gpu_utilization"] is None
    assert json.loads(know(6.0)[0])["values"]["gpu_utilization"] == 50.0


def test_energy_of_a_part_of_the_time_says_so() -> None:
    """In the total, at the device, and in the carbon dioxide; with its host if there are several."""
    whole = on_gpu(1)
    (counters,) = whole.totals.gpu_counters
    part = whole._replace(totals=whole.totals._replace(gpu_counters=(counters._replace(energy_seconds=3.0),)))
    text = render_str(join(part, factor=CarbonFactor(400.0)))

    assert "2500 J (by the drivers' meters, whole devices; GPU 0 without 7 s of the time)" in text
    assert "50 % busy, 2500 J, without 7 s of the time" in text
    assert "g/kWh (GPU 0 without 7 s of the time)" in text
    assert "; node1 GPU 0 without 7 s of the time)" in render_str(join(part, on_gpu(2, "node2")))


def test_energy_of_processors_over_a_part_of_the_time_says_so() -> None:
    """In its row, and in the carbon dioxide."""
    metered = rank(totals=totals(energy=MachineEnergy(3600.0, None, 4.0)))
    text = render_str(join(metered, factor=CarbonFactor(400.0)))

    assert "3600 J (by RAPL, whole machines; CPU without 6 s of the time)" in text
    assert "g/kWh (CPU without 6 s of the time)" in text
    assert "; node1 CPU without 6 s" in render_str(join(metered, rank(pid=2, host="node2")))


@pytest.mark.parametrize("format_name", ["html", "markdown"])
def test_tables_have_what_the_text_has_of_the_whole(format_name: str) -> None:
    """The upper bound of memory, where the peak is not known, the energy of processors and the carbon dioxide."""
    metered = rank(totals=totals(energy=MachineEnergy(3600.0, None, 10.0)))
    page = render_str(join(metered, rank(pid=2), factor=CarbonFactor(400.0)), format_name)
    cells = re.sub(r"</t[hd]><td[^>]*>", " | ", page)

    assert "RAM, upper bound | 1 GB" in cells
    assert "CPU energy | 3600 J (by RAPL, whole machines)" in cells
    assert "CO2 | 0.4 g = 0.001 kWh x 400 g/kWh" in cells


def test_many_ranks_are_counted_and_those_in_others_are_marked() -> None:
    """A job without GPUs says nothing about them."""
    workers = tuple(ProcessTotals(pid, 1, "python", 0.0, 10.0, 5.0, 5) for pid in range(2, 71))
    text = render_str(join(rank(pid=1, processes=workers), *(rank(pid=pid) for pid in range(2, 71))))

    assert "and 60 more (-f json has all)" in text
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
    assert shown["values"]["peak_gpu_ram"] == 3000 * MB


def test_energy_of_processors_is_that_of_whole_machines() -> None:
    """Where they have meters."""
    text = render_str(join(rank(totals=totals(energy=MachineEnergy(500.0)))))

    assert "CPU energy  500 J (by RAPL, whole machines)" in text


def test_sentences_fit_a_terminal() -> None:
    """Beside their labels; tables keep their width, and a file has each in one line."""
    job = join(on_gpu(1), on_gpu(2), on_gpu(1, "node2"))
    text = render_str(job, columns=50)
    above, _, below = text.partition("\n\n")

    assert max(map(len, above.splitlines())) <= 50
    assert "all processes\n         3 GB, 50 % busy, 2500 J" in above
    assert "\n    known: the sum of their RAM" in below
    assert text.split() == render_str(job).split()


def test_a_peak_that_was_not_measured_all_the_time_is_marked() -> None:
    """On its host, in all, among the ranks and between them."""
    lost, other = lost_run(header={"host": "node1"}), rank(host="node2", pid=2)
    alone, both = render_str(join(lost)), render_str(join(lost, other))

    assert "RAM  peak at least 500 MB of 16 GB; " in alone
    assert alone.count("≥ 500 MB") == 4
    assert "RAM   at least 500 MB, all hosts together" in both
    markdown = render_str(join(lost), "markdown")
    assert "| RAM | at least 500 MB |" in markdown
    assert "| `peak_ram` | ≥ 500 MB | ≥ 500 MB | ≥ 500 MB |" in markdown


@pytest.mark.parametrize(
    ("format_name", "told"),
    [
        ("text", "CPU   at least 20 s of CPU time"),
        ("markdown", "≥ 20 s"),
        ("html", "≥ 20 s"),
        ("json", '"at_least": [ "cpu_time", "mean_cores" ]'),
    ],
)
def test_cpu_time_that_is_a_lower_bound_is_called_one(format_name: str, told: str) -> None:
    """Also of the whole job, if one rank of it is."""
    lacking = rank(pid=2, events=(Event(5.0, "unreaped", "CPU time is a lower bound."),))
    shown = " ".join(render_str(join(rank(pid=1), lacking), format_name).split())

    assert " ".join(told.split()) in shown


def test_of_many_jobs_a_title_names_some() -> None:
    """And says how many more there are."""
    jobs = [rank(pid=number + 1) for number in range(7)]
    named = [
        made._replace(header=made.header._replace(identity=Identity(scheduler="slurm", job=f"{number}")))
        for number, made in enumerate(jobs)
    ]

    assert render_str(join(*named)).startswith("Slurm jobs 0, 1, 2, 3, 4 and 2 more: 7 runs")
    assert render_str(join(*named[:5])).startswith("Slurm jobs 0, 1, 2, 3, 4: 5 runs")


def test_many_missing_ranks_are_counted() -> None:
    """The first few are named."""
    combined = join(rank())
    job = Job("slurm", ("7",), "train", 2, 64, tuple(range(1, 9)))

    assert render_str(combined._replace(job=job)).splitlines()[0] == (
        "Slurm job 7 (train): 1 recording on 1 host, 56 of 64 ranks (no recording of rank 1, 2, 3, 4, 5 and 3 more)"
    )


def test_of_many_ranks_the_worst_are_shown() -> None:
    """Those that failed, then those that took longest; how all of them ended is counted."""
    ranks = [rank(pid=number + 1, host=f"h{number}") for number in range(30)]
    combined = join(*ranks)
    worse = tuple(
        one._replace(
            exit_code=1 if number == 17 else 0, values={**one.values, "time": 60.0 if number == 5 else 10.0}
        )
        for number, one in enumerate(combined.ranks)
    )
    lines = render_str(combined._replace(ranks=worse)).splitlines()
    shown = [
        line.split()[1]
        for line in lines[lines.index(next(one for one in lines if one.startswith("recording"))) + 1 :]
    ]

    assert shown[:2] == ["h17", "h5"]
    assert any("29 × exit code 0, 1 × exit code 1" in line for line in lines)


def test_a_job_of_any_size_fits_on_a_screen() -> None:
    """The fullest hosts, the ranks that ended worst or took longest, and how many more there are."""
    ranks = [rank(0, 100 + number, pid=number + 1, host=f"n{number // 2}") for number in range(60)]
    text = render_str(join(*ranks))
    lines = text.splitlines()

    assert len(lines) < 50
    assert lines[0] == "60 recordings on 30 hosts"
    assert "and 20 more, less full (-f json has all)" in lines
    assert "and 50 more (-f json has all)" in lines
    (heading,) = (number for number, line in enumerate(lines) if line.startswith("host  recordings"))
    assert lines[heading + 1].startswith("n29")


def test_regions_are_compared_everywhere() -> None:
    """With the rank that spent most time in them."""
    ranks = [
        rank(pid=number, host=f"n{number}", regions=(part(number, 4.0 * number, path=("a|b",)),))
        for number in (1, 2)
    ]
    combined = join(*ranks)

    assert "time in a|b" in render_str(combined)
    assert "time in a\\|b" in render_str(combined, "markdown")
    page = render_str(combined, "html")
    assert "<h2>Balance</h2>" in page
    assert "time in a|b" in page


def test_tasks_of_an_array_are_not_added_up() -> None:
    """Their distribution and the worst of them, in every format."""

    def task(number: int) -> RecordingData:
        made = rank(seconds=10.0 + number, pid=number + 1)
        identity = Identity(scheduler="slurm", job=str(70 + number), array_job="70", array_task=str(number))
        end = made.end and made.end._replace(exit_code=int(number == 3))
        return made._replace(header=made.header._replace(identity=identity), end=end)

    combined = join(*map(task, range(12)))
    lines = render_str(combined).splitlines()

    assert lines[0] == "Slurm array 70: 12 runs, not added up, 12 recordings on 1 host"
    assert lines[1] == "  end  11 × completed, 1 × failed"
    assert lines[3].split() == ["per", "run", "smallest", "median", "p95", "largest", "largest", "is"]
    assert lines[4].split() == ["time", "10", "s", "15.5", "s", "21", "s", "21", "s", "task", "11"]
    (heading,) = (number for number, line in enumerate(lines) if line.startswith("run "))
    assert lines[heading + 1].split()[:2] == ["task", "3"]
    assert lines[heading + 1].split()[-2:] == ["1", "failed"]
    assert "note: failed: task 3." in lines
    assert "and 2 more (-f json has all)" in lines
    assert len(json.loads(render_str(combined, "json"))["tasks"]) == 12
    assert "| per run | smallest | median | p95 | largest | largest is |" in render_str(combined, "markdown")
    assert "Runs, not added up" in render_str(combined, "html")


def test_the_exit_code_of_a_task_may_be_unknown() -> None:
    """One that was killed, say."""
    ranks = [rank(pid=number + 1) for number in range(2)]
    known = [
        one._replace(header=one.header._replace(identity=Identity(job=str(number))), end=None)
        for number, one in enumerate(ranks)
    ]

    assert render_str(join(*known)).count("not known") == 2


def test_findings_say_which_ranks_have_them() -> None:
    """And which one the sentence is about; of a single rank, as in its report."""
    found = Finding(
        "data-wait", "warning", "likely", "60 % of the time went to waiting for data.", "More workers."
    )
    whole = join(rank(pid=1), rank(pid=2))
    several = whole._replace(
        findings=(JobFinding(found, "rank 2 on n1", ("rank 0 on n1", "rank 2 on n1"), 4),)
    )
    one = whole._replace(findings=(JobFinding(found, "rank 2 on n1", ("rank 2 on n1",), 4),))
    alone = whole._replace(findings=(JobFinding(found, "0", ("0",), 1),))

    for format_name in ("text", "markdown", "html"):
        shown = [" ".join(render_str(job, format_name).split()) for job in (several, one, alone)]
        assert "waiting for data. (rank 2 on n1; in 2 of 4 ranks judged)" in shown[0], format_name
        assert "waiting for data. (only rank 2 on n1 of 4 ranks judged)" in shown[1], format_name
        assert "judged" not in shown[2], format_name
    assert json.loads(render_str(several, "json"))["findings"][0]["ranks"] == ["rank 0 on n1", "rank 2 on n1"]


@pytest.mark.parametrize("format_name", ["text", "markdown", "html"])
def test_metrics_are_shown_with_the_ranks_in_which_they_are_not_finite(format_name: str) -> None:
    """Beside the largest, or alone."""
    values = ((0.5, math.nan), (0.25, math.nan), (math.inf, math.nan))
    ranks = [
        rank(pid=pid, metrics=(MetricRow(1.0, {"loss": loss, "norm": norm}),))
        for pid, (loss, norm) in enumerate(values, 1)
    ]
    shown = " ".join(re.sub("<[^>]*>|[|]", " ", render_str(join(*ranks), format_name)).split())

    assert "loss 3 0.25 0.375 0.5 0; nan or infinite: 2" in shown
    assert re.search("norm 3( -){3} nan or infinite: 0 and 2 more", shown)


def test_of_many_metrics_a_screen_has_room_for_some() -> None:
    """And says so."""
    logged = MetricRow(1.0, {f"metric {number:02d}": 1.0 for number in range(20)})
    text = render_str(join(rank(pid=1, metrics=(logged,))))

    assert "metric 07" in text
    assert "metric 08" not in text
    assert "and 12 more (-f json has all)" in text


def test_devices_of_many_machines_are_marked_if_their_mean_is_of_a_part_of_the_time() -> None:
    """In the table of machines, which has room for a sign."""
    known = on_gpu(1)
    (counters,) = known.totals.gpu_counters
    partly = counters._replace(
        utilization_seconds=counters.utilization_seconds / 2,
        utilization_percent_seconds=counters.utilization_percent_seconds / 2,
    )
    of_a_part = known.totals._replace(gpu_counters=(partly,))
    whole = [on_gpu(1, f"node{number}") for number in range(20)]
    text, marked = (
        render_str(join(*ranks)) for ranks in (whole, [one._replace(totals=of_a_part) for one in whole])
    )

    assert " 0 50 %" in text
    assert " 0 ~ 50 %" in marked


def test_sums_without_a_rank_or_an_end_are_marked() -> None:
    """CPU time, cores, and of many machines those that may have been busier."""

    def one(number: int, **fields: Any) -> RecordingData:
        made = rank(pid=number + 1, host=f"n{number}", **fields)
        return made._replace(header=made.header._replace(identity=Identity(job="7", rank=number, ranks=6)))

    lacking, whole, cut = (
        render_str(join(*(one(number, **fields if number == 0 else {}) for number in range(count))))
        for count, fields in ((5, {}), (6, {}), (6, {"end": None}))
    )

    assert "at least 50 s of CPU time, at least 5" in lacking
    assert "RAM   at least 500 MB, all hosts together" in lacking
    assert "at least" not in whole
    assert [line.count("≥") > 0 for line in lacking.splitlines() if line.startswith("n")][:5] == [True] * 5
    assert [line.count("≥") > 0 for line in cut.splitlines() if line.startswith("n")][:6] == [True] + [
        False
    ] * 5


def test_a_machine_on_which_nothing_took_time_has_no_cores() -> None:
    """Rather than a division by zero."""
    text = render_str(join(*(rank(seconds=0.0, samples=(), pid=1, host=f"n{number}") for number in range(5))))

    assert [line.split()[-3] for line in text.splitlines() if re.match(r"n\d ", line)] == ["-"] * 5
