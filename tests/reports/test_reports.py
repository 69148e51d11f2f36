"""Every format shows the same report."""

from __future__ import annotations

import json
from typing import Any

import pytest

from builders import MB, found, gpu, gpu_totals, header, recording, render_str, totals
from gpu_tracker.analysis.compare import compare
from gpu_tracker.analysis.job import combine
from gpu_tracker.analysis.measures import measure
from gpu_tracker.analysis.runs import ListedRun, Runs, list_run
from gpu_tracker.core.config import Settings
from gpu_tracker.core.errors import UsageError
from gpu_tracker.core.model import (
    UNREAD,
    Allocation,
    End,
    Event,
    Identity,
    Parts,
    RamPeak,
    RecordingData,
    Totals,
    add_parts,
)
from gpu_tracker.core.vendors import NO_GPU
from gpu_tracker.recording.sampled import read_held
from gpu_tracker.reports import paper
from gpu_tracker.reports.build import Reports, build
from gpu_tracker.reports.contract import View, choose_format, list_formats, render
from gpu_tracker.reports.notebook import describe_line

PAPER_TEXT = """\
Max RAM:
   Unit: megabytes
   System capacity: 16000.0
   System: 2000.0
   Main:
      Total RSS: 500.0
      Private RSS: 490.0
      Shared RSS: 10.0
   Descendents:
      Total RSS: 0.0
      Private RSS: 0.0
      Shared RSS: 0.0
   Combined:
      Total RSS: 500.0
      Private RSS: 490.0
      Shared RSS: 10.0
Max GPU RAM:
   Unit: gigabytes
   System capacity: 0.0
   System: 0.0
   Main: 0.0
   Descendents: 0.0
   Combined: 0.0
CPU utilization:
   System core count: 4
   Number of expected cores: 4
   System:
      Max sum percent: 0.0
      Max hardware percent: 0.0
      Mean sum percent: 0.0
      Mean hardware percent: 0.0
   Main:
      Max sum percent: 100.0
      Max hardware percent: 25.0
      Mean sum percent: 100.0
      Mean hardware percent: 25.0
   Descendents:
      Max sum percent: 0.0
      Max hardware percent: 0.0
      Mean sum percent: 0.0
      Mean hardware percent: 0.0
   Combined:
      Max sum percent: 100.0
      Max hardware percent: 25.0
      Mean sum percent: 100.0
      Mean hardware percent: 25.0
   Main number of threads: 3
   Descendents number of threads: 0
   Combined number of threads: 3
GPU utilization:
   System GPU count: 0
   Number of expected GPUs: 0
   GPU percentages:
      Max sum percent: 0.0
      Max hardware percent: 0.0
      Mean sum percent: 0.0
      Mean hardware percent: 0.0
Compute time:
   Unit: seconds
   Time: 10.0"""


def with_gpus(count: int) -> RecordingData:
    """A recording of a job on that many devices; the last one reports no usage."""
    counters, peaks = zip(*(gpu_totals(f"GPU-{index}") for index in range(count)), strict=True)
    silent = peaks[-1]._replace(used_bytes=None, utilization_percent=None)
    known = totals().peaks._replace(
        gpus=(*peaks[:-1], silent), gpu_bytes=Parts(0, 0, count * 2000 * MB), system_gpu_bytes=3000 * MB
    )
    return recording(
        events=tuple(found(gpu(index, None if index else 40_000)) for index in range(count)),
        totals=totals(peaks=known, gpu_counters=counters[:-1]),
    )


def test_the_papers_text_is_unchanged() -> None:
    """Three spaces a level, three decimals, no newline at the end."""
    usage = paper.build_usage(build(recording()), Settings(ram_unit="megabytes", time_unit="seconds"))

    assert paper.to_text(usage) == PAPER_TEXT
    assert paper.to_plain(usage)["cpu_utilization"]["descendents_n_threads"] == 0
    assert json.loads(paper.to_json(usage)) == paper.to_plain(usage)


def test_the_papers_view_of_gpus() -> None:
    """Summed over the devices, divided by those expected."""
    usage = paper.build_usage(build(with_gpus(2)), Settings(gpu_ram_unit="gibibytes"))

    assert usage.max_gpu_ram.combined == pytest.approx(4000 * MB / 2**30)
    assert usage.gpu_utilization.n_expected_gpus == usage.gpu_utilization.system_gpu_count == 2
    assert usage.gpu_utilization.gpu_percentages.mean_hardware_percent == 25.0


def test_a_pickle_is_refused_with_the_reason() -> None:
    """And with what to use instead."""
    with pytest.raises(UsageError, match=r"runs whatever code it holds\. Use -f json, or keep a recording"):
        choose_format("ResourceUsage", "pickle")


def test_both_spellings_of_descendants_can_be_read() -> None:
    """The paper's is the field, the usual one an alias."""
    usage = paper.build_usage(build(recording(header=header(n_expected_cores=1.5))), Settings())

    assert usage.max_ram.descendants is usage.max_ram.descendents
    assert usage.max_gpu_ram.descendants == usage.max_gpu_ram.descendents
    assert usage.cpu_utilization.descendants is usage.cpu_utilization.descendents
    assert usage.cpu_utilization.descendants_n_threads == 0
    assert usage.cpu_utilization.n_expected_cores == 1.5
    plain = paper.to_plain(usage)
    assert list(plain["max_ram"]) == [
        *("unit", "system_capacity", "system", "main", "descendents", "descendants", "combined")
    ]
    assert plain["max_ram"]["descendants"] == plain["max_ram"]["descendents"]
    assert plain["cpu_utilization"]["descendants_n_threads"] == 0
    assert "Descendants" not in paper.to_text(usage)


@pytest.mark.parametrize("format_name", list_formats("Report"))
@pytest.mark.parametrize(
    "shown",
    [recording(), recording(totals=Totals(), end=None), with_gpus(1), with_gpus(3)],
    ids=["plain", "killed", "gpu", "gpus"],
)
def test_every_format_shows_every_recording(plotting: None, format_name: str, shown: RecordingData) -> None:
    """Finished or not, with GPUs or without; text ends with a newline, and pictures are what they claim to be."""
    content = render(build(shown), format_name)

    if isinstance(content, str):
        assert content.endswith("\n")
    else:
        assert content.startswith({"png": b"\x89PNG\r\n", "pdf": b"%PDF-"}[format_name])


@pytest.mark.parametrize("format_name", ["text", "json", "markdown"])
def test_several_reports_are_one_text(format_name: str) -> None:
    """One after the other, or in a list."""
    report = build(recording())
    one, two = render_str(report, format_name), render_str(Reports((report, report)), format_name)

    assert two == f"{one}\n{one}" if format_name != "json" else json.loads(two) == [json.loads(one)] * 2


def test_several_reports_are_one_page() -> None:
    """With a row for each."""
    report = build(recording())
    page = render_str(Reports((report, report)), "html")

    assert "<h1>2 runs</h1>" in page
    assert page.count('<th scope="row">python train.py</th>') == 2


def test_a_format_is_chosen_by_its_name_or_by_that_of_the_file() -> None:
    """The name counts more; a file without a suffix is text, and an unknown one is refused."""
    for path in (None, "-", "/dev/full", "runs.d/result", ".hidden", "x.txt"):
        assert choose_format("Report", None, path) == "text"
    assert choose_format("Report", "text", "x.log") == "text"
    with pytest.raises(UsageError, match=r"^Unknown format '.csv'. Use .txt or .json or .md or "):
        choose_format("Report", None, "o.csv")
    assert choose_format("Report", None, "X.JSON") == "json"
    assert choose_format("Report", "text", "x.json") == "text"
    with pytest.raises(
        UsageError, match=r'"png" is not a valid format. Valid values are "html" or "json" or "markdown"'
    ):
        choose_format("Runs", "png")


def test_names_and_values_are_an_object_in_json() -> None:
    """Labels, and what throttled a device; also if there are none."""
    labelled = header()._replace(identity=Identity(labels=(("lr", "0.1"), ("site", "north"))))
    shown = json.loads(render_str(build(with_gpus(1)._replace(header=labelled)), "json"))
    listed = json.loads(render_str(Runs((ListedRun("x", labels=(("lr", "0.1"),)), ListedRun("y"))), "json"))

    assert shown["header"]["identity"]["labels"] == {"lr": "0.1", "site": "north"}
    assert isinstance(shown["summary"]["gpus"][0]["throttled"], dict)
    assert [run["labels"] for run in listed] == [{"lr": "0.1"}, {}]


def test_json_has_every_figure_by_name() -> None:
    """In base units."""
    shown = json.loads(render_str(build(with_gpus(1)), "json"))

    assert shown["summary"]["ram"]["combined"]["total_bytes"] == 500 * MB
    assert shown["summary"]["gpus"][0]["gpu"]["name"] == "Simulated A100"
    assert shown["header"]["allocation"]["machine_cores"] == 4
    assert shown["exit_code"] == 0


def text_of(shown: RecordingData) -> str:
    """The report as text."""
    return render_str(build(shown), "text")


def test_text_shows_cores_and_their_share() -> None:
    """The percentage is of the cores the job may use; above one core, that of `top` is shown too."""
    twelve = header(
        allocation=Allocation(12, 12.0, "machine", 1, 16_000 * MB, "machine"), n_expected_cores=12
    )
    text = text_of(recording(header=twelve, totals=totals(cpu_seconds=add_parts(64.2, 0.0))))

    assert "6.4 of 12 cores on average (54 %; 642 % in top)" in text


def test_text_shows_capacity_and_the_trackers_cost() -> None:
    """A limit is in binary units if it is set so."""
    limited = header(allocation=Allocation(4, 4.0, "machine", 16_000 * MB, 4 * 2**30, "Slurm"))
    text = text_of(recording())

    assert "1 of 4 cores on average (25 %), peak 1; 10 s of CPU time" in text
    assert "RAM   peak 500 MB of 16 GB (3 %), exact" in text
    assert "tracker's own cost: 0.02 s CPU, 9 MB (excluded)" in text
    assert "peak 500 MB of 4 GiB (Slurm limit), 12 %, exact" in text_of(recording(header=limited))


def test_text_says_once_that_there_is_no_gpu() -> None:
    """Which is not the same as not measured."""
    text = text_of(recording(events=(Event(0.0, "note", NO_GPU),)))

    assert "GPU   none found (`gpu-tracker doctor` shows where it looked)" in text
    assert "note:" not in text
    assert "GPU   not measured" in text_of(recording())


def test_text_shows_descendants_and_limits() -> None:
    """Where there are any."""
    limited = header(
        allocation=Allocation(8, 2.0, "affinity", 16_000 * MB, 4000 * MB, "cgroup"), n_expected_cores=2
    )
    peaks = totals().peaks._replace(
        ram=Parts(
            totals().peaks.ram.main,
            RamPeak(300 * MB, 300 * MB, 0),
            RamPeak(700 * MB, 700 * MB, 0, "estimate"),
        ),
        ram_ceiling_bytes=800 * MB,
        threads=Parts(3, 2, 3),
        processes=3,
    )
    text = text_of(recording(header=limited, totals=totals(peaks=peaks, cpu_seconds=add_parts(10.0, 5.0))))

    assert "main 1, descendants 0.5 cores; up to 3 processes, 3 threads" in text
    assert "the machine has 8 cores" in text
    assert "peak 700 MB of 4 GB (cgroup limit), 18 %, estimate" in text
    assert "shared memory could not be read in time; upper bound 800 MB" in text
    assert "main 500 MB, descendants 300 MB (peaks at different times; they need not add up)" in text
    assert "the machine has 16 GB, peak use 2 GB" in text


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (End("exited", 0, totals(), 0.1, 1), "exit code 0"),
        (End("exited", -9, totals(), 0.1, 1), "killed by SIGKILL (9)"),
        (End("exited", -15, totals(), 0.1, 1), "killed by SIGTERM (15)"),
        (End("exited", -99, totals(), 0.1, 1), "killed by signal 99"),
        (End("sampler lost", 3, totals(), 0.1, 0), "exit code 3, but its sampler was lost"),
        (End("stopped", None, totals(), 0.1, 1), "finished"),
        (End("ended", None, totals(), 0.1, 1), "ended, exit code not known"),
        (End("ended", 3, totals(), 0.1, 1), "exit code 3"),
        (End("interrupted", None, totals(), 0.1, 1), "interrupted"),
        (
            End("abandoned", None, totals(), 0.1, 1),
            "ended without stopping its tracker; figures up to the last sample",
        ),
        (
            End("tracker killed", None, totals(), 0.1, 1),
            "gpu-tracker was killed; figures up to the last sample",
        ),
        (None, "cut off; figures up to the last sample"),
    ],
)
def test_the_first_line_says_how_it_ended(end: End | None, words: str) -> None:
    """With the usual cause of a SIGKILL."""
    assert text_of(recording(end=end)).splitlines()[0] == f"python train.py: {words}"


def test_a_killed_recording_says_so() -> None:
    """And when it was cut off."""
    assert "The recording was cut off at 10 s: gpu-tracker was killed, or the disk was full." in text_of(
        recording(end=None)
    )


def test_the_time_of_a_cut_can_be_read() -> None:
    """However long the run was."""
    assert "cut off at 11 h 06 min 40 s: " in text_of(recording(end=None, totals=totals(at_seconds=40_000.0)))


def test_notes_are_said_once() -> None:
    """Wherever they come from."""
    note = Event(1.0, "note", "The disk was full.")
    text = text_of(recording(events=(note, note), problems=("Line 3 is damaged.",)))

    assert text.count("The disk was full.") == text.count("Line 3 is damaged.") == 1


def test_a_printed_report_is_the_text_format() -> None:
    """For 80 columns, without the last newline; what a shell shows of it is short."""
    report = build(recording())

    assert f"{report}\n" == render(report, "text", View(columns=80))
    assert repr(report) == "<Report 'python train.py': 10 s, exited>"


def test_control_characters_in_a_command_are_replaced() -> None:
    """And a long command is cut."""
    text = text_of(recording(header=header(command=("evil\x1b[2J", "x" * 100))))

    assert text.startswith("evil?[2J xxx")
    assert "..." in text.splitlines()[0]


def test_a_process_without_a_command_has_its_number() -> None:
    """As for a process that is only watched."""
    assert text_of(recording(header=header(command=()))).startswith("process 100:")


def test_a_job_that_ended_before_the_first_sample_has_no_memory_figure() -> None:
    """Not zero."""
    short = recording(totals=Totals(0.001))
    ram = json.loads(render(build(short), "json"))["summary"]["ram"]

    assert "not measured: the job ended before the first sample" in text_of(short)
    nothing = {"total_bytes": None, "private_bytes": None, "shared_bytes": None, "basis": "unknown"}
    assert ram == dict.fromkeys(("main", "descendants", "combined"), nothing)


def on_one_gpu(**changes: Any) -> RecordingData:
    """A job on the first of two devices, with what was found there changed."""
    counters, peaks = gpu_totals()
    changed = peaks._replace(**{name: changes[name] for name in peaks._fields if name in changes})
    counted = counters._replace(**{name: changes[name] for name in counters._fields if name in changes})
    silent = peaks._replace(uuid="GPU-1", has_job=False)
    found_peaks = totals().peaks._replace(gpus=(changed, silent))
    return recording(
        events=(found(gpu(0)), found(gpu(1))), totals=totals(peaks=found_peaks, gpu_counters=(counted,))
    )


def test_text_shows_what_a_device_did() -> None:
    """Memory, utilization, energy and throttling; devices without the job are only named."""
    text = text_of(on_one_gpu())

    assert "job 2 GB, all processes 3 GB, of 40 GB" in text
    assert "50 % busy on average (job 40 %), peak 90 %" in text
    assert "2500 J, mean 250 W (whole device)" in text
    assert "throttled by heat for 10 % of the time" in text
    assert "not counted, because the job did not use them: GPU 1" in text


def test_text_shows_how_much_of_a_device_worked() -> None:
    """What was measured of it; nothing where nothing was."""
    active = on_one_gpu(activity=((310.0, 10.0), (120.0, 10.0), (0.0, 0.0), (400.0, 10.0)))

    assert "SM activity 31 %, SM occupancy 12 %, memory bandwidth 40 % on average" in text_of(active)
    assert "SM activity" not in text_of(on_one_gpu())


def test_text_has_no_total_if_a_driver_never_answered() -> None:
    """Each device that was read has its own figures."""
    two = with_gpus(2)
    silent = two._replace(events=(*two.events, Event(1.0, UNREAD, "amd")))

    assert "all together" in text_of(two)
    assert "all together" not in text_of(silent)


def test_text_shows_how_sure_a_devices_figure_is() -> None:
    """Exact, an estimate, not measured, or without the beginning."""
    polled = on_one_gpu()
    polled = polled._replace(events=(*polled.events, Event(1.0, "polled", "GPU-0")))
    assert "50 % busy on average (estimate, job 40 %), peak 90 %" in text_of(polled)
    alone = on_one_gpu(used_bytes=2000 * MB)
    assert "50 % busy on average (job 40 %, an estimate), peak 90 %" in text_of(alone)
    assert "job 2 GB (exact), all processes 3 GB, of 40 GB" in text_of(on_one_gpu(basis="exact"))
    assert "job not measured, all processes 3 GB, of 40 GB" in text_of(
        on_one_gpu(job_bytes=Parts(None, None, None))
    )
    assert "(without 6 s of the time)" in text_of(on_one_gpu(energy_seconds=4.0))
    partial = on_one_gpu(utilization_seconds=4.0, utilization_percent_seconds=200.0)
    assert "50 % busy on average (job 40 %, without 6 s of the time), peak 90 %" in text_of(partial)
    unnamed = on_one_gpu(job_seconds=4.0, job_percent_seconds=160.0)
    assert "50 % busy on average (job 40 % without 6 s of the time), peak 90 %" in text_of(unnamed)
    page = render(build(partial), "html")
    assert "50 % busy (job 40 %, without 6 s of the time)" in page
    assert "(job 40 %, without 6 s of the time), peak 90 %" in render(build(partial), "markdown")
    assert "peak 300 W (whole device)" in text_of(on_one_gpu(energy_joules=None))
    assert " W " not in text_of(on_one_gpu(energy_joules=None, power_watts=None))
    assert "throttled" not in text_of(on_one_gpu(limited_seconds=(("heat", 0.01),)))


def test_a_peak_says_how_much_of_the_time_it_is_without() -> None:
    """Of what the job held, and of all processes; not of what is unknown anyway."""
    text = text_of(on_one_gpu(job_bytes_unknown_seconds=6.0, used_bytes_unknown_seconds=3.0))

    assert "job 2 GB (without 6 s of the time), all processes 3 GB (without 3 s of the time), of" in text
    assert "without" not in text_of(on_one_gpu(job_bytes_unknown_seconds=0.5))


def on_used_gpus(number: int, **changes: Any) -> RecordingData:
    """A job on devices that are alike, but for what was found of the first."""
    made = [gpu_totals(f"GPU-{ordinal}") for ordinal in range(number)]
    (counters, peaks), *rest = made
    changed = peaks._replace(**{name: changes[name] for name in peaks._fields if name in changes})
    counted = counters._replace(**{name: changes[name] for name in counters._fields if name in changes})
    devices = [(counted, changed), *rest]
    whole = totals().peaks._replace(
        gpus=tuple(peak for _, peak in devices), gpu_bytes=Parts(0, 0, number * 2000 * MB)
    )
    return recording(
        events=tuple(found(gpu(ordinal)) for ordinal in range(number)),
        totals=totals(peaks=whole, gpu_counters=tuple(counter for counter, _ in devices)),
    )


def test_everything_that_shows_a_peak_says_what_it_is_without() -> None:
    """A page, a table of devices, a notebook, lists and comparisons, in every format."""
    without = "without 6 s of the time"
    one, two = (on_used_gpus(number, job_bytes_unknown_seconds=6.0) for number in (1, 2))
    page = str(render(build(one), "html"))
    compared = compare([("a", [measure(one)])])
    job = combine([("0", one)], read_held)
    runs = Runs((list_run("a.jsonl", one),))

    assert f"</abbr>, {without}" in page  # the tile
    assert page.count(f"GB, {without}") == 2  # the table of devices, and how sure it is
    assert f"2 GB ({without})" in text_of(two)
    assert f"({without}) of GPU RAM, all together" in text_of(two)
    assert f"GPU memory peak 2 GB ({without})" in describe_line(build(one))
    assert "| `peak_gpu_ram` | ≥ 2 GB |" in str(render(build(one), "markdown"))
    for form in ("text", "markdown", "html"):
        assert "without up to 6 s of the time of a run: it may have been more" in str(render(compared, form))
        assert without in str(render(job, form))
        assert "≥ 2 GB" in str(render(runs, form))
    assert "≥ 2 GB" in str(render(job, "text"))
    assert "≥ 2 GB" in str(render(Reports((build(one),)), "html"))
    assert ">=2 GB" in str(render(runs, "text", View(has_unicode=False)))


def test_everything_that_shows_an_estimate_says_so() -> None:
    """A total without a label is not given as one."""
    shown = on_used_gpus(1, job_bytes=Parts(None, None, None))
    shown = shown._replace(events=(*shown.events, Event(1.0, "unattributed", "?")))
    compared, job = compare([("a", [measure(shown)])]), combine([("0", shown)], read_held)
    run = list_run("a.jsonl", shown)

    assert run.values["peak_gpu_ram"] == 2500 * MB
    assert job.values["peak_gpu_ram"] == 2500 * MB
    assert "| `peak_gpu_ram` | ~ 2.5 GB |" in str(render(build(shown), "markdown"))
    for form in ("text", "markdown", "html"):
        assert "The peak GPU RAM of a is an estimate." in str(render(compared, form))
        assert "~ 2.5 GB" in str(render(Runs((run,)), form))
    assert "GPU RAM     2.5 GB (sum of the devices' peaks; estimate)" in str(render(job, "text"))
    assert "job 2.5 GB (estimate)" in str(render(job, "text"))


def test_unattributed_memory_is_an_estimate() -> None:
    """The growth of the device's memory since the start."""
    shown = on_one_gpu(job_bytes=Parts(None, None, None))
    doubted = shown._replace(events=(*shown.events, Event(1.0, "unattributed", "The owner is not known.")))
    text = text_of(doubted)

    assert "job 2.5 GB (estimate), all processes 3 GB, of 40 GB" in text
    assert "note: The owner is not known." in text
