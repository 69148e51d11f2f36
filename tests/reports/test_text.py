"""A report on a terminal: one screen, never broken inside a word, readable without colours and without Unicode."""

from __future__ import annotations

import re
from array import array
from math import nan
from pathlib import Path
from typing import Any

import pytest

from builders import MB, found, gpu, gpu_totals, header, recording, render_str, sample, totals
from gpu_tracker.core.model import (
    Activity,
    Allocation,
    Busiest,
    End,
    Event,
    FrameworkMemory,
    Identity,
    Parts,
    PeakMoment,
    PeakProcess,
    Peaks,
    ProcessTotals,
    RamPeak,
    Stalls,
    Totals,
    Traffic,
    TreeCounters,
    add_parts,
)
from gpu_tracker.core.text import count_cells
from gpu_tracker.recording.sampled import read_columns
from gpu_tracker.reports.build import Report, build
from recorded import lost_run, part
from rich import FINDINGS, make_rich, report_rich

GOLDEN = Path(__file__).parent / "golden"
VIEWS: dict[str, tuple[int, dict[str, Any]]] = {
    "60-ascii.txt": (8, {"columns": 60, "has_unicode": False}),
    "80.txt": (2, {"columns": 80}),
    "80-one-gpu.txt": (1, {"columns": 80}),
    "pipe.txt": (0, {}),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_whole_report_looks_like_this(name: str) -> None:
    """To see a change before users do; `GOLDEN` has what was looked at."""
    n_gpus, view = VIEWS[name]

    assert render_str(report_rich(n_gpus), **view) == (GOLDEN / name).read_text("utf-8")


@pytest.mark.parametrize("columns", [40, 60, 80, 132, 200])
@pytest.mark.parametrize("n_gpus", [0, 1, 2, 8, 20])
def test_no_line_is_wider_than_the_terminal(columns: int, n_gpus: int) -> None:
    """Every word is still whole: put together again, the text is that of a pipe."""
    report = report_rich(n_gpus)._replace(regions=(), metrics=())
    lines = render_str(report, columns=columns).splitlines()
    words = " ".join(lines).split()
    whole = render_str(report).split()

    assert max(map(count_cells, lines)) <= columns
    assert [word for word in words if not re.search("[▁-█░]", word)] == [
        word for word in whole if not re.search("[▁-█░]", word)
    ]


@pytest.mark.parametrize("columns", [20, 40, 60, 80])
@pytest.mark.parametrize("has_unicode", [True, False])
def test_no_name_and_no_number_is_too_wide(columns: int, has_unicode: bool) -> None:
    """Whatever a recording has: long labels, long words, shares of a million millions."""
    long = "a_very_long_name_that_goes_on_and_on/for_ever_and_ever_and_ever"
    tiny = Allocation(4, 4.0, "machine", 1, 1, "machine")
    made = make_rich(
        1,
        long,
        header=header(allocation=tiny, command=(long,), host=long),
        frameworks=(FrameworkMemory(100, long, long, "GPU-0", 1.0, 1, 10**9, "exact"),),
        regions=tuple(part(100, 1e12, path=(long, f"{n}")) for n in range(20)),
    )
    report = build(made, read_columns(made))
    lines = render_str(report, columns=columns, has_unicode=has_unicode).splitlines()

    assert max(map(count_cells, lines)) <= columns


def test_a_share_that_cannot_be_is_short() -> None:
    """In the bar and in the table."""
    tiny = Allocation(4, 4.0, "machine", 1, 1, "machine")
    made = make_rich(
        0, header=header(allocation=tiny), regions=(part(100, 1e14, path=("fit",)), part(100, 1.0))
    )
    text = render_str(build(made, read_columns(made)))

    assert "peak 30.1 GB of 1 B (3e+12 %)" in text
    assert ">9999 %" in text
    assert " 9e+11 %" in text


def find_line(text: str, label: str) -> str:
    """The line over time of a row."""
    (picture,) = re.findall(rf"^  {label} .*(?:\n {{4,}}.*)*?\n.* % +([▁-█]+)$", text, re.MULTILINE)
    return str(picture)


def test_a_line_reaches_its_top_at_the_peak() -> None:
    """Of cores the peak is of a shorter time than a part of the line; a utilization is of 100 %."""
    peaks = totals().peaks._replace(busiest=Parts(Busiest(4, 1), Busiest(), Busiest(4, 1)))
    steady = recording(samples=[sample(float(at)) for at in range(1, 11)], totals=totals(peaks=peaks))
    half = recording(samples=[sample(at / 4, cpu_seconds=add_parts(at / 4, 0.0)) for at in range(1, 41)])

    assert set(find_line(render_str(build(steady, read_columns(steady))), "CPU")) == {"▃"}
    assert set(find_line(render_str(build(half, read_columns(half))), "CPU")) == {"█"}
    assert "62 % busy  ▁▅▆▅▆" in render_str(report_rich(2), columns=80)


def test_a_run_of_no_time_has_no_shares_of_it() -> None:
    """Nor means: nothing is divided by nothing."""
    counters, device = gpu_totals()
    instant = recording(
        events=(found(gpu(0)),),
        totals=totals(
            at_seconds=0.0,
            gpu_counters=(counters,),
            counters=TreeCounters(2 * 10**8, 0, 0, 0, 0.6),
            stalls=Stalls(0.6, 0.6, 0.6, throttled_seconds=0.7),
            peaks=totals().peaks._replace(gpus=(device,)),
        ),
        regions=(part(1, 1.0, path=("fit",)),),
    )
    report = build(instant)
    text = render_str(report)
    (summary,) = report.summary.gpus

    assert "too short for a rate" in text
    assert "I/O    200 MB read" in text
    assert not re.search("busy|mean|energy|wait|of the time|throttled", text)
    assert (summary.mean_percent, summary.mean_watts, summary.throttled) == (None, None, ())


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "the job ended before the first sample"),
        ({"end": None}, "no sample was recorded"),
        ({"end": End("sampler lost", 0, Totals(60.0), 0.0, 0)}, "no sample was recorded"),
        (
            {"totals": Totals(60.0, readings=5, peaks=Peaks(processes=1))},
            "its processes held none when they were read",
        ),
    ],
)
def test_memory_that_was_not_measured_has_its_reason(fields: dict[str, Any], words: str) -> None:
    """From what was read, not from the lack of a figure."""
    made = recording(**{"totals": Totals(60.0), **fields})

    assert f"  RAM   not measured: {words}\n" in render_str(build(made))


def test_a_run_with_a_name_has_it_in_its_title() -> None:
    """Instead of its command, as on its page."""
    named = header()._replace(identity=Identity(name="baseline"))

    assert render_str(build(recording()._replace(header=named))).startswith("baseline: ")


def test_a_peak_without_a_sampler_is_a_lower_bound() -> None:
    """Only the largest process is known."""
    large = RamPeak(500_000_000)
    lost = Totals(60.0, cpu_seconds=Parts(1.0, 2.0, 3.0), peaks=Peaks(ram=Parts(RamPeak(), large, large)))
    text = render_str(build(recording(totals=lost, end=End("sampler lost", 0, lost, 0.0, 0))))

    assert "RAM   peak at least 500 MB of" in text
    assert "main not measured, descendants 500 MB" in text
    assert "0 processes" not in text


def test_long_texts_of_a_recording_are_shortened() -> None:
    """A host or a note of 10 kB would fill the screen."""
    made = recording(header=header(host="h" * 10_000), events=(Event(0.0, "note", "n" * 10_000),))
    text = render_str(build(made))

    assert max(map(len, text.splitlines())) < 1000
    assert "on hhhh" in text
    assert "note: nnnn" in text


def test_samples_that_no_sampler_writes_have_one_note() -> None:
    """How many were left out, and how many are out of order."""
    odd = recording(samples=[sample(at) for at in (1.0, -5.0, 3.0, 2.0, 4.0)])
    fine = recording(samples=[sample(at) for at in (1.0, 2.0)])

    assert (
        "note: 1 sample with impossible values (left out of charts and findings), 1 sample out of order (sorted): "
        "the file was edited, or the clock changed.\n"
    ) in render_str(build(odd, read_columns(odd)))
    assert "clock" not in render_str(build(fine, read_columns(fine)))


@pytest.mark.parametrize(("end", "late"), [(10.0, ""), (11.0, ""), (12.0, "1 sample"), (99.0, "88 samples")])
def test_an_end_before_its_samples_has_a_note(end: float, late: str) -> None:
    """The totals are those of the end, as if the rest had not been; a sample may be taken while the job is stopped."""
    made = recording(samples=[sample(float(at)) for at in range(1, int(end) + 1)])
    text = render_str(build(made, read_columns(made)))

    assert (f"{late} later than its end" in text) if late else "its end" not in text


def test_the_peak_of_several_processes_is_said_to_be_theirs() -> None:
    """The peak of a region is that of one of them."""
    moment = PeakMoment("ram", 5.0, 500 * MB, 1, (PeakProcess(100, "python", 500 * MB),), (("fit",),))

    def show(**changes: Any) -> str:
        return render_str(build(recording(peak_moments=(moment._replace(**changes),))))

    assert "        peak 500 MB at 5 s: main 500 MB; in fit\n" in show()
    assert "        peak of all processes 500 MB at 5 s" in show(n_processes=2)


def test_a_region_that_opened_after_the_peak_is_not_named_with_it() -> None:
    """By its own high-water mark."""
    moment = PeakMoment("ram", 5.0, 900 * MB, 1, (PeakProcess(100, "python", 900 * MB),), (("fit",),))
    small = part(100, 1.0, path=("fit",), peak_ram_bytes=90 * MB, peak_ram_basis="exact")

    assert "; in fit" not in render_str(build(recording(peak_moments=(moment,), regions=(small,))))


def test_colours_add_nothing_that_is_not_said() -> None:
    """Without them, the text is the same."""
    plain, painted = (render_str(report_rich(), columns=80, has_colour=colour) for colour in (False, True))

    assert re.sub("\x1b\\[[0-9]*m", "", painted) == plain
    assert "\x1b[31mserious\x1b[0m: 34 %" in painted
    assert "\x1b[33mwarning\x1b[0m: GPU 1" in painted
    assert painted.startswith("\x1b[1mpython train.py")


def test_a_terminal_without_unicode_gets_ascii() -> None:
    """Names too."""
    text = render_str(report_rich(2, "näme"), columns=80, has_unicode=False)

    assert text.isascii()
    assert "n?metrain.py" in text


def test_a_short_run_has_no_pictures() -> None:
    """Four samples are the fewest that show anything, and a second the shortest time."""
    few = make_rich(samples=make_rich().samples[:3])
    brief = recording(samples=[sample(at / 10) for at in range(1, 10)], totals=totals(at_seconds=0.9))

    for shown in (few, brief):
        assert not re.search("[▁-█]", render_str(build(shown, read_columns(shown))))


def test_a_line_that_is_flat_near_zero_looks_so() -> None:
    """Noise at a thousandth of what there is would fill it otherwise."""
    tiny = recording(
        samples=[sample(float(at), cpu_seconds=add_parts(at * 1e-4, 0.0)) for at in range(1, 11)]
    )
    text = render_str(build(tiny, read_columns(tiny)))

    assert text.count("▁" * 40) == 2


def test_what_is_not_known_is_a_gap() -> None:
    """Not zero."""
    report = report_rich(0)
    assert report.columns is not None
    cores = report.columns.cpu_cores
    hidden = cores.combined[:]
    for index in range(40, 80):
        hidden[index] = nan
    columns = report.columns._replace(cpu_cores=cores._replace(combined=hidden))

    lines = render_str(report._replace(columns=columns, findings=())).splitlines()
    assert " " * 7 in lines[3].strip()


def with_activity(counters: TreeCounters, stalls: Stalls | None = None) -> str:
    """The text of a run of ten seconds that did that."""
    return render_str(build(recording(totals=totals(counters=counters, stalls=stalls or Stalls()))))


def test_storage_and_waiting_are_shown_if_they_matter() -> None:
    """More than 100 MB, more than a twentieth of the time."""
    much = with_activity(TreeCounters(2 * 10**8, 0, 0, 0, 0.6), Stalls(0.6, 0.6, 0.6, throttled_seconds=0.7))

    assert "I/O    200 MB read from storage, 0 B written" in much
    assert "waits  the job's threads waited 0.6 s in total for a core" in much
    assert "stopped by its CPU quota for 7 % of the time" in much
    assert (
        "at least one task on this machine waited 6 % of the time for a core, 6 % of the time for memory, 6 % of the time for storage"
        in much
    )
    for little in (with_activity(TreeCounters()), with_activity(TreeCounters(99 * MB, 99 * MB, 0, 0, 0.4))):
        assert "I/O" not in little
        assert "wait" not in little


@pytest.mark.parametrize(
    ("expected", "others", "words"),
    [
        (4.0, 20.0, "others used 2 of 4 cores on average"),
        (2.0, 20.0, "the machine has 4 cores; others used 2 of them on average"),
        (2.0, 3.0, "the machine has 4 cores\n"),
        (4.0, 3.0, ""),
    ],
)
def test_others_on_the_machine_are_named(expected: float, others: float, words: str) -> None:
    """From half a core on, and a tenth of the machine."""
    made = recording(
        header=header(
            allocation=Allocation(4, expected, "affinity", 16_000 * MB, 16_000 * MB, "machine"),
            n_expected_cores=expected,
        ),
        totals=totals(system_cpu_seconds=10.0 + others),
    )

    assert words in render_str(build(made))
    assert words or "others" not in render_str(build(made))


def test_a_peak_is_explained_if_that_says_something() -> None:
    """A single process without regions does not."""
    alone = PeakMoment("ram", 1.0, 500 * MB, 1, (PeakProcess(100, "python", 500 * MB),))

    assert "after 1 s" not in render_str(build(recording(peak_moments=(alone,))))
    inside = alone._replace(regions=(("epoch",),))
    assert "peak 500 MB at 1 s: main 500 MB; in epoch" in render_str(build(recording(peak_moments=(inside,))))


def test_the_largest_sample_is_not_called_the_peak() -> None:
    """Of a higher peak between two samples nobody knows who held it."""
    sampled = PeakMoment("ram", 1.0, 400 * MB, 1, (PeakProcess(100, "python", 400 * MB),), (("epoch",),))
    text = render_str(build(recording(peak_moments=(sampled,))))

    assert "RAM   peak 500 MB of 16 GB (3 %), exact" in text
    assert "largest reading 400 MB at 1 s: main 400 MB; in epoch; the true peak came between readings" in text


class _Counted(int):
    """A number that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        _Counted.compared += 1
        return int(self) == other

    __hash__ = int.__hash__


def test_very_many_devices_take_time_in_proportion() -> None:
    """None is compared with all others."""
    n_devices = 1000
    events = [found(gpu(number)._replace(ordinal=_Counted(number))) for number in range(n_devices)]
    report = build(recording(events=tuple(events)))

    assert "more devices (-f json has all)" in render_str(report)
    assert _Counted.compared < 100 * n_devices


def test_many_devices_are_counted() -> None:
    """Sixteen have a line; a device that reports nothing has dashes."""
    assert "and 4 more devices (-f json has all)" in render_str(report_rich(20))
    report = report_rich(3)
    gpus = [gpu._replace(mean_percent=None, mean_watts=None, throttled=()) for gpu in report.summary.gpus]
    gpus[0] = gpus[0]._replace(job_bytes=gpus[0].job_bytes._replace(combined=None), used_bytes=None)
    gpus[1] = gpus[1]._replace(gpu=gpus[1].gpu._replace(memory_bytes=None))
    text = render_str(report._replace(summary=report.summary._replace(gpus=tuple(gpus)), columns=None))

    assert [line.split() for line in text.splitlines() if line.startswith("  GPU ")][:2] == [
        ["GPU", "0", "-", "-", "-"],
        ["GPU", "1", "-", "17.9", "GB", "-"],
    ]


def test_each_model_is_counted() -> None:
    """With its own memory."""
    report = report_rich(3)
    first, *others = report.summary.gpus
    gpus = (first._replace(gpu=first.gpu._replace(name="H100", memory_bytes=80 * 10**9)), *others)
    text = render_str(report._replace(summary=report.summary._replace(gpus=gpus)), columns=120)
    (line,) = [line for line in text.splitlines() if "H100" in line]

    assert line.split()[:6] == ["GPUs", "1", "×", "H100", "(80", "GB),"]
    assert f"2 × {others[0].gpu.name}" in line


def test_activity_of_many_devices_is_beside_their_utilization() -> None:
    """Of those that measure it."""
    report = report_rich(3)
    first, *others = report.summary.gpus
    gpus = (first._replace(mean_percent=98.0, activity=Activity(31.0)), *others)
    text = render_str(report._replace(summary=report.summary._replace(gpus=gpus)))

    assert text.count("98 % busy, SM 31 %") == 1
    assert text.count("SM ") == 1


def test_what_went_through_the_links_is_told_where_it_is_known() -> None:
    """Of each link apart."""
    report = report_rich(1)
    (gpu,) = report.summary.gpus

    def show(traffic: Traffic) -> str:
        gpus = (gpu._replace(traffic=traffic),)
        return render_str(report._replace(summary=report.summary._replace(gpus=gpus)))

    several = show(Traffic(340 * 10**9, 12 * 10**9, None, 0))
    assert "PCIe 340 GB received, 12 GB sent; NVLink 0 B sent (whole device)" in several
    assert "PCIe 1 B received (whole device)" in show(Traffic(1))
    assert "PCIe" not in show(Traffic())


def test_processes_that_shared_the_gpus_are_told() -> None:
    """Those that used most of them; one alone needs no line."""
    uses = tuple(
        ProcessTotals(100 + number, 1, f"worker{number}", 0.0, 1.0, 1.0, 1, 60.0 / 2**number, 2000.0)
        for number in range(6)
    )
    report = report_rich(1)
    several = report._replace(summary=report.summary._replace(gpu_uses=uses))
    alone = report._replace(summary=report.summary._replace(gpu_uses=uses[:1]))
    text = render_str(several)

    assert "process 100 worker0: ~ 60 s of GPU time (51 %), ~ 2000 J" in text
    assert "process 104" not in text
    assert "and 2 more processes (-f json has all)" in text
    assert "of GPU time" not in render_str(alone)


def test_five_findings_are_shown() -> None:
    """The rest is counted."""
    report: Report = report_rich()._replace(findings=FINDINGS * 2)
    text = render_str(report, columns=80)

    assert text.count("[waiting-for-data]") == text.count("[gpu-imbalance]") == 2
    assert "and 1 more" in text


def with_one_unknown() -> Report:
    """A run on two devices; what the job held is known of the second only."""
    report = report_rich(2)
    assert report.columns is not None
    unknown = report.columns.gpus["GPU-0"]
    unknown = unknown._replace(job_bytes=array("d", [nan] * len(unknown.job_bytes)))
    return report._replace(columns=report.columns._replace(gpus={**report.columns.gpus, "GPU-0": unknown}))


def test_a_device_of_which_nothing_is_known_costs_no_report() -> None:
    """Neither in words nor in a notebook."""
    report = with_one_unknown()

    assert "  GPU 0" in str(report)
    assert "A defect" not in str(report)
    assert "A defect" not in report._repr_html_()


def test_a_defect_of_ours_does_not_end_the_program_that_prints_a_report(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It says what is wrong instead."""

    def fail(*_: object) -> str:
        raise ValueError("an <empty> sequence")

    monkeypatch.setattr("gpu_tracker.reports.report.to_text", fail)
    monkeypatch.setattr("gpu_tracker.reports.notebook.show_picture", fail)
    report = report_rich(1)

    assert str(report).startswith(repr(report))
    assert "ValueError: an <empty> sequence" in str(report)
    assert "ValueError: an &lt;empty&gt; sequence" in report._repr_html_()


def test_waiting_after_a_lost_sampler_was_not_counted() -> None:
    """What was counted before it is the least."""
    lost = lost_run()
    waited = lost.totals._replace(stalls=Stalls(cpu_seconds=2.0))

    text = render_str(build(lost._replace(totals=waited)))

    assert "at least one task on this machine waited at least 20 % of the time for a core" in text
