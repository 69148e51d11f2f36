"""The sampler on a fake clock and a fake tree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from builders import MB, ROOT, process
from gpu_tracker.core.model import (
    MachineReading,
    PeakProcess,
    ProcessActivity,
    ProcessReading,
    RootFigures,
    SharingReading,
    Stalls,
    TreeCounters,
)
from gpu_tracker.instrument.shared_file import OPEN, TIMES, SharedFileWriter, count_open, find_numbers_offset
from gpu_tracker.recording.create import create
from gpu_tracker.recording.reader import load
from gpu_tracker.reports.build import build
from gpu_tracker.reports.contract import render
from gpu_tracker.sampler.handle.wire import Plan, Start
from gpu_tracker.sampler.instruments import Instruments
from gpu_tracker.sampler.loop import Sampler
from gpu_tracker.sampler.prepare import prepare
from recorded import part

DAY = 86400.0


class MadeUp:
    """A process source that returns given readings."""

    NAME = "made up"
    readings: tuple[ProcessReading, ...] = (process(),)
    cpu_seconds = 0.0
    is_there = True
    paused_seconds: float | None = None
    sharing_reads = 0
    after_reading: ClassVar[Callable[[], object]] = object

    class ProcessTree:
        """The tree."""

        def __init__(self, root_pid: int, **options: object) -> None:
            self.root_pid = root_pid
            self.has_missed = self.has_seen_end = False

        def is_alive(self) -> bool:
            """As given."""
            return MadeUp.is_there

        def find_pause(self) -> float | None:
            """As given."""
            return MadeUp.paused_seconds

        def read(self) -> tuple[ProcessReading, ...]:
            """As given; then happens what happens after a reading."""
            MadeUp.after_reading()
            return MadeUp.readings

        def read_sharing(self, pid: int) -> SharingReading | None:
            """Nothing is shared; counts its calls."""
            MadeUp.sharing_reads += 1
            rss = next(reading.rss_bytes for reading in MadeUp.readings if reading.pid == pid)
            return SharingReading(rss, rss, rss)

        def close(self) -> None:
            """Nothing to close."""

    class Machine:
        """The machine."""

        def __init__(self, read_limit_used: object = None) -> None:
            pass

        def read(self) -> MachineReading:
            """As given."""
            return MachineReading(MadeUp.cpu_seconds, 2000 * MB)

    class Activity:
        """What processes do besides computing."""

        def read(self, readings: Sequence[ProcessReading]) -> tuple[ProcessActivity, ...]:
            """A megabyte is read per page fault."""
            return tuple(
                ProcessActivity(reading.pid, read_bytes=reading.page_faults * MB) for reading in readings
            )

        def read_stalls(self) -> Stalls:
            """As long as the machine computes."""
            return Stalls(cpu_seconds=MadeUp.cpu_seconds)

    @staticmethod
    def open_activity(_pid: int) -> Activity:
        """Of any process."""
        return MadeUp.Activity()


@pytest.fixture(autouse=True)
def _made_up_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register it under a name, like any other source."""
    module = types.ModuleType("gpu_tracker.sources.made_up")
    for name in ("NAME", "ProcessTree", "Machine", "open_activity"):
        setattr(module, name, getattr(MadeUp, name))
    monkeypatch.setitem(sys.modules, "gpu_tracker.sources.made_up", module)
    monkeypatch.setattr(MadeUp, "readings", (process(),))
    monkeypatch.setattr(MadeUp, "cpu_seconds", 0.0)
    monkeypatch.setattr(MadeUp, "paused_seconds", None)
    monkeypatch.setattr(MadeUp, "sharing_reads", 0)
    monkeypatch.setattr(MadeUp, "after_reading", object)


class Run:
    """A sampler that writes to a file."""

    def __init__(self, directory: Path, **options: object) -> None:
        self.path = create(str(directory), ("job",), ROOT)
        self.fd = os.open(self.path, os.O_APPEND | os.O_WRONLY)
        defaults: dict[str, object] = {
            "owner_pid": os.getpid(),
            "example_pid": os.getpid(),
            "starts_the_job": True,
            "command": ("job",),
            "sleep_seconds": 1.0,
            "n_expected_cores": None,
            "gpu_uuids": None,
            "gpu_vendors": (),
            "mailbox": None,
            "has_our_environment": True,
            "max_overhead": 1.0,
            "full_resolution": False,
            "sources": ("made_up",),
            "recording_path": self.path,
        }
        plan = Plan(**{**defaults, **options})  # type: ignore[arg-type]
        self.sampler = Sampler(prepare(plan, self.fd), Start(ROOT, 0, (0.0, 0.0)))


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """With the defaults."""
    made = Run(tmp_path)
    yield made
    os.close(made.fd)


@pytest.mark.uncovered
@pytest.mark.timeout(600)
def test_a_month_fits_into_twenty_megabytes_and_keeps_its_peak(run: Run) -> None:
    """Lines become rarer in a long run; a peak of a single reading is still in them."""
    now, readings = 0.0, 0
    while now < 30 * DAY:
        now += max(1.0, now / 10_000)
        readings += 1
        is_the_spike = readings == 40_000
        noise = readings * 7919 % 1000
        rss = 9000 if is_the_spike else 1000 + noise
        MadeUp.readings = (process(rss=rss, cpu_seconds=now * 0.9, n_threads=1 + noise % 3),)
        MadeUp.cpu_seconds = now * 1.1
        run.sampler.tick(now)
    run.sampler.finish(now, RootFigures(now * 0.9, 0.0), "exited", 0)
    recording = load(run.path)

    assert os.path.getsize(run.path) < 20 * MB
    assert readings > 60_000
    assert recording.totals.peaks.ram.main.total_bytes == 9000 * MB
    assert max(sample.ram_bytes.main.high or 0 for sample in recording.samples) == 9000 * MB
    assert recording.totals.cpu_seconds.main == pytest.approx(now * 0.9)
    assert sum(sample.readings for sample in recording.samples) == recording.totals.readings


def test_a_line_is_written_per_interval_not_per_reading(run: Run) -> None:
    """Five readings, one line; with full resolution, a line each."""
    for reading in range(1, 16):
        run.sampler.tick(reading / 5)
    run.sampler.finish(3.0, None, "stopped", None)
    samples = load(run.path).samples

    assert [sample.at_seconds for sample in samples] == pytest.approx([0, 1, 2, 3, 3], abs=0.06)
    assert sum(sample.readings for sample in samples) == 17


def test_a_job_that_ended_before_the_last_reading_leaves_its_samples_in_order(run: Run) -> None:
    """The program says when it ended; a reading may have come in between."""
    run.sampler.tick(1.0)
    run.sampler.tick(2.0)
    end = run.sampler.finish(1.99, None, "stopped", None)
    times = [sample.at_seconds for sample in load(run.path).samples]

    assert times == sorted(times)
    assert end.totals.at_seconds == 1.99


def test_a_process_that_may_not_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs, but is another user's; of one that we start a first reading may come too early."""
    for starts_the_job in (False, True):
        given = iter([(process(),), ()])  # the first is of ourselves, to try the source

        def hide(given: Iterator[tuple[ProcessReading, ...]] = given) -> None:
            MadeUp.readings = next(given)

        monkeypatch.setattr(MadeUp, "after_reading", hide)
        run = Run(tmp_path, starts_the_job=starts_the_job)
        told = [event.text for event in run.sampler.events if "may not read the process" in event.text]
        assert len(told) == (not starts_the_job)
        os.close(run.fd)


def tick(run: Run, since: int, until: int) -> None:
    """Five readings a second; others use the machine meanwhile."""
    for number in range(5 * since + 1, 5 * until + 1):
        run.sampler.tick(number / 5)
        MadeUp.cpu_seconds += 0.2


def pause(run: Run, since: int, until: int) -> None:
    """The same while nothing of the job runs."""
    MadeUp.readings, MadeUp.paused_seconds = (), float(since)
    tick(run, since, until)


def test_what_comes_after_the_last_process_of_a_job_is_not_its_own(run: Run) -> None:
    """Another step might have followed, so it was waited for."""
    tick(run, 0, 3)
    pause(run, 3, 13)
    end = run.sampler.finish(run.sampler.find_pause() or 0.0, None, "ended", None)
    recording = load(run.path)

    assert (end.totals.at_seconds, recording.samples[-1].at_seconds) == (3.0, 3.0)
    assert end.totals.system_cpu_seconds == pytest.approx(3.0)
    assert end.totals.unread_seconds == 0.0


def test_a_job_that_goes_on_after_a_pause_is_measured_on(run: Run) -> None:
    """Nothing was missed meanwhile."""
    tick(run, 0, 3)
    pause(run, 3, 9)
    MadeUp.readings, MadeUp.paused_seconds = (process(102, rss=700, cpu_seconds=0.5),), None
    tick(run, 9, 11)
    end = run.sampler.finish(11.0, None, "ended", None)

    assert end.totals.at_seconds == 11.0
    assert end.totals.peaks.ram.combined.total_bytes == 700 * MB
    assert end.totals.system_cpu_seconds == pytest.approx(11.0)
    assert end.totals.unread_seconds == 0.0
    assert not any("Nothing was measured" in event.text for event in run.sampler.events)


def test_full_resolution_keeps_every_reading(tmp_path: Path) -> None:
    """If it is requested."""
    run = Run(tmp_path, full_resolution=True)
    for reading in range(1, 31):
        run.sampler.tick(reading / 10)
    os.close(run.fd)

    assert len(load(run.path).samples) == 31


def test_a_run_and_its_report_print_the_same(run: Run) -> None:
    """Both are made of the end line."""
    MadeUp.readings = (process(rss=500, peak=900), process(101, ROOT, rss=200))
    run.sampler.tick(1.0)
    end = run.sampler.finish(1.5, RootFigures(1.0, 0.5), "exited", 0)
    loaded = load(run.path)
    live = loaded._replace(samples=(), events=tuple(run.sampler.events), end=end, totals=end.totals)

    assert render(build(loaded), "text") == render(build(live), "text")


def test_time_in_which_readings_are_missing_is_counted(run: Run) -> None:
    """An ordinary delay is not; many short gaps are told together, and a long one at once."""
    at = 0.0
    for pause in (0.25, 0.45, 0.75, 0.25, 0.75):
        run.sampler.read(at := at + pause)
    early = [event.text for event in run.sampler.events if "Nothing was measured" in event.text]
    run.sampler.read(at := at + 3.0)
    end = run.sampler.finish(at + 0.25, None, "exited", 0)
    notes = [event.text for event in run.sampler.events if "Nothing was measured" in event.text]

    assert end.totals.unread_seconds == pytest.approx(0.75 + 0.75 + 3.0)
    assert early == []
    assert notes == [
        "Nothing was measured from 2.45 s to 5.45 s: the sampler did not run.",
        "Nothing was measured for 1.5 s in all: now and then the sampler did not run.",
    ]


def test_a_short_gap_in_a_long_run_is_not_worth_a_word(run: Run) -> None:
    """But it counts."""
    at = 0.0
    for pause in (*[0.25] * 400, 0.75, 0.25):
        run.sampler.read(at := at + pause)
    end = run.sampler.finish(at, None, "exited", 0)

    assert end.totals.unread_seconds == pytest.approx(0.75)
    assert not any("Nothing was measured" in event.text for event in run.sampler.events)


def test_intermediate_totals_end_nothing(run: Run) -> None:
    """They can be read as often as wanted."""
    run.sampler.tick(1.0)
    MadeUp.readings = (process(rss=700, cpu_seconds=1.5),)
    now = run.sampler.totals_now(1.5)
    run.sampler.tick(2.0)

    assert (now.reason, now.totals.at_seconds, now.totals.cpu_seconds.main) == ("running", 1.5, 1.5)
    assert now.totals.peaks.ram.main.total_bytes == 700 * MB
    assert run.sampler.is_root_alive()


def test_sharing_is_read_only_when_it_matters(run: Run) -> None:
    """Copies of a large process may hold more than is certain; once it is known, it is not read again."""
    for reading in range(1, 200):
        MadeUp.readings = (process(rss=500), process(101, ROOT, rss=500, is_forked_copy=True))
        run.sampler.tick(reading / 10)
    end = run.sampler.finish(20.0, None, "stopped", None)

    assert end.totals.peaks.ram.combined.total_bytes == 1000 * MB
    assert 2 <= MadeUp.sharing_reads <= 8


def test_sharing_is_read_when_memory_has_settled(tmp_path: Path) -> None:
    """Copies that write to their memory share less every moment: a budget for one reading is spent afterwards."""
    run = Run(tmp_path, max_overhead=1e-6)
    tree = (process(rss=700), *(process(101 + n, ROOT, rss=700, is_forked_copy=True) for n in range(4)))
    for reading in range(1, 20):
        MadeUp.readings = tuple(one._replace(page_faults=10_000 * reading) for one in tree)
        run.sampler.tick(reading / 10)
    assert MadeUp.sharing_reads == 0
    run.sampler.tick(2.0)
    end = run.sampler.finish(3.0, None, "stopped", None)
    os.close(run.fd)

    assert MadeUp.sharing_reads == 5
    assert end.totals.peaks.ram.combined.total_bytes == 3500 * MB


def test_examples_are_read_of_more_processes_than_can_be_paid(tmp_path: Path) -> None:
    """Half of what is earned is left for reading them all."""
    run = Run(tmp_path, max_overhead=1e-6)
    copies = (process(101 + n, ROOT, rss=100, is_forked_copy=True) for n in range(200))
    tree = (process(rss=100), *copies)
    for reading in range(1, 20):
        MadeUp.readings = tuple(one._replace(page_faults=100 * reading) for one in tree)
        run.sampler.tick(reading / 10)
    run.sampler.finish(3.0, None, "stopped", None)
    os.close(run.fd)

    assert MadeUp.sharing_reads == 5


def test_a_sampler_that_costs_too_much_samples_less_often_and_says_so(tmp_path: Path) -> None:
    """With a budget that is never met."""
    run = Run(tmp_path, max_overhead=1e-6, sleep_seconds=0.1)
    for reading in range(1, 20):
        run.sampler.tick(reading / 10)
    os.close(run.fd)

    assert run.sampler.deadlines.interval_seconds > 0.15
    assert len([event for event in run.sampler.events if "instead of 0.1 s" in event.text]) == 1


def test_a_sampler_that_slows_down_again_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reading is expensive, then cheap for a while, then expensive again."""
    run = Run(tmp_path, sleep_seconds=0.1, max_overhead=0.01)
    spent, cost, intervals = 0.0, 0.0, []

    def spend() -> float:
        nonlocal spent
        spent += cost
        return spent

    monkeypatch.setattr(time, "process_time", spend)
    for reading in range(1, 300):
        cost = 0.0 if 100 < reading < 200 else 0.01
        run.sampler.tick(reading / 10)
        intervals.append(run.sampler.deadlines.interval_seconds)
    os.close(run.fd)

    assert intervals[99] > 0.15 > intervals[198]
    assert intervals[-1] > 0.15
    assert len([event for event in run.sampler.events if "instead of 0.1 s" in event.text]) == 1


def test_a_full_disk_is_noted_once_and_costs_no_figures(tmp_path: Path) -> None:
    """The totals are complete, the file has whatever fitted."""
    run = Run(tmp_path)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, run.fd)
    os.close(full)
    for second in range(1, 6):
        MadeUp.readings = (process(rss=100 * second),)
        run.sampler.tick(float(second))
    end = run.sampler.finish(6.0, None, "stopped", None)
    os.close(run.fd)

    assert end.totals.peaks.ram.main.total_bytes == 500 * MB
    assert len([event for event in run.sampler.events if "could not be written" in event.text]) == 1


def test_a_deleted_recording_is_noted(run: Run) -> None:
    """At the end."""
    os.unlink(run.path)
    run.sampler.finish(1.0, None, "stopped", None)

    assert any("deleted" in event.text for event in run.sampler.events)


def test_the_first_intervals_are_short(run: Run) -> None:
    """A job of half a second is read a dozen times; a long one not more often than requested."""
    at: list[float] = []
    deadlines = run.sampler.deadlines
    while not at or at[-1] < 5:
        at.append(deadlines.next_seconds)
        run.sampler.tick(deadlines.next_seconds)

    assert at[0] == pytest.approx(0.01)
    assert len([moment for moment in at if moment < 0.5]) >= 10
    assert len([moment for moment in at if 4 < moment < 5]) == 4
    assert sorted(at) == at


def test_expensive_readings_do_not_begin_with_short_intervals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tree of thousands is read at the regular interval from the beginning."""
    run = Run(tmp_path)
    clock = iter(range(100))
    monkeypatch.setattr(time, "process_time", lambda: float(next(clock)))
    run.sampler.tick(0.01)
    os.close(run.fd)

    assert run.sampler.deadlines.interval_seconds >= 0.25


def test_the_job_peaks_at_least_as_high_as_each_of_its_regions(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A region reads the kernel's mark inside the job, where no other reading may have met it."""
    run.sampler.instruments = Instruments(str(tmp_path), 0.0)
    regions = [part(ROOT, 1.0, peak_ram_bytes=900 * MB, peak_ram_basis="exact"), part(ROOT, 1.0, path=("b",))]
    monkeypatch.setattr(run.sampler.instruments, "list_regions", lambda: regions)
    run.sampler.tick(1.0)
    peaks = run.sampler.finish(2.0, None, "stopped", None).totals.peaks.ram

    assert (peaks.main.total_bytes, peaks.main.basis) == (900 * MB, "exact")
    assert peaks.combined.total_bytes == 900 * MB


def test_the_report_says_that_logging_was_expensive(run: Run, tmp_path: Path) -> None:
    """All of it is read, whatever that costs; the file has the note, too."""
    run.sampler.instruments = Instruments(str(tmp_path), 0.0)
    run.sampler.instruments.n_metric_rows, run.sampler.instruments.metrics_cost_seconds = 1000, 5.0
    run.sampler.finish(2.0, None, "stopped", None)

    for events in (run.sampler.events, load(run.path).events):
        (note,) = [event.text for event in events if "called log" in event.text]
        assert note.startswith("The job called log 1,000 times in 2 s: ")


def test_reading_what_was_logged_last_is_part_of_the_cost(run: Run, tmp_path: Path) -> None:
    """The end has it, here and in the file."""

    class Busy(Instruments):
        """Its last reading takes a tenth of a second of CPU time."""

        def write(self, *arguments: Any, **options: Any) -> float:
            until = time.process_time() + 0.1
            while time.process_time() < until:
                pass
            return super().write(*arguments, **options)

    run.sampler.instruments = Busy(str(tmp_path), 0.0)
    before = time.process_time()
    end = run.sampler.finish(2.0, None, "stopped", None)

    assert end.tracker_cpu_seconds - before >= 0.1
    assert load(run.path).end == end


def test_what_the_job_does_besides_computing_is_read_once_a_second(run: Run) -> None:
    """Short jobs are spared it."""
    for at in (0.5, 1.0, 1.5, 2.0):
        MadeUp.readings, MadeUp.cpu_seconds = (process(page_faults=round(10 * at)),), at
        run.sampler.tick(at)
    MadeUp.readings, MadeUp.cpu_seconds = (process(page_faults=90),), 3.0
    totals = run.sampler.finish(3.0, None, "stopped", None).totals

    known = {sample.at_seconds: sample.counters.read_bytes for sample in load(run.path).samples}
    assert known == {0.0: None, 1.0: 10 * MB, 2.0: 20 * MB, 3.0: 90 * MB}
    assert totals.counters == TreeCounters(read_bytes=90 * MB)
    assert totals.stalls == Stalls(cpu_seconds=2.0)


def test_a_peak_is_written_with_who_held_it(run: Run) -> None:
    """At its own time, however long the job goes on."""
    MadeUp.readings = (process(rss=900), process(ROOT + 1, ROOT, rss=100, name="worker"))
    run.sampler.tick(1.0)
    MadeUp.readings = (process(rss=10),)
    run.sampler.tick(2.0)
    run.sampler.finish(3.0, None, "stopped", None)
    (moment,) = load(run.path).peak_moments

    assert (moment.subject, moment.at_seconds, moment.size_bytes) == ("ram", 1.0, 1000 * MB)
    assert moment.processes == (
        PeakProcess(ROOT, "job", 900 * MB),
        PeakProcess(ROOT + 1, "worker", 100 * MB),
    )


def open_region(mailbox: Path) -> tuple[SharedFileWriter, Callable[[], None]]:
    """A region of this process; the second leaves it."""
    writer = SharedFileWriter(str(mailbox))
    number = writer.add_region(0, "epoch")
    writer.words[OPEN + number] = count_open(0)

    def leave() -> None:
        writer.words[OPEN + number] = 0
        times = (1, 1, 1, 1, 0.0, 1, time.monotonic_ns())
        TIMES.pack_into(writer.memory, find_numbers_offset(number), *times)

    return writer, leave


def find_regions_at_peak(run: Run) -> tuple[tuple[str, ...], ...]:
    """As recorded."""
    run.sampler.finish(time.monotonic(), None, "stopped", None)
    os.close(run.fd)
    (moment,) = load(run.path).peak_moments
    return moment.regions


def test_a_region_that_is_left_during_the_reading_of_a_peak_was_open_at_it(tmp_path: Path) -> None:
    """Processes are read first, regions afterwards."""
    (mailbox := tmp_path / "mailbox").mkdir()
    run = Run(tmp_path, mailbox=str(mailbox))
    writer, leave = open_region(mailbox)
    MadeUp.readings, MadeUp.after_reading = (process(rss=900),), leave
    run.sampler.tick(time.monotonic())
    MadeUp.readings, MadeUp.after_reading = (process(rss=10),), object
    run.sampler.tick(time.monotonic())

    assert find_regions_at_peak(run) == (("epoch",),)
    writer.words.release()
    writer.memory.close()


def test_a_region_that_was_left_before_a_peak_is_not_named(tmp_path: Path) -> None:
    """However shortly before."""
    (mailbox := tmp_path / "mailbox").mkdir()
    run = Run(tmp_path, mailbox=str(mailbox))
    writer, leave = open_region(mailbox)
    leave()
    MadeUp.readings = (process(rss=900),)
    run.sampler.tick(time.monotonic())

    assert find_regions_at_peak(run) == ()
    writer.words.release()
    writer.memory.close()


def test_a_region_whose_process_ends_during_the_reading_of_a_peak_was_open_at_it(tmp_path: Path) -> None:
    """Its file is read to the end and removed before anything else is known of the reading."""
    (mailbox := tmp_path / "mailbox").mkdir()
    run = Run(tmp_path, mailbox=str(mailbox))
    code = (
        "import sys\n"
        "from gpu_tracker.instrument.shared_file import OPEN, SharedFileWriter, count_open\n"
        "writer = SharedFileWriter(sys.argv[1]); number = writer.add_region(0, 'epoch')\n"
        "writer.words[OPEN + number] = count_open(0); print(flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(mailbox)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as job:
        assert job.stdin is not None
        assert job.stdout is not None
        job.stdout.readline()
        run.sampler.tick(time.monotonic())
        MadeUp.readings = (process(), process(job.pid, ROOT, rss=900))
        job.stdin.close()
        MadeUp.after_reading = job.wait
        run.sampler.tick(time.monotonic())

    assert not list(mailbox.iterdir())
    assert find_regions_at_peak(run) == (("epoch",),)


def test_a_peak_that_is_known_by_reading_what_is_shared_was_in_the_region_of_that_reading(
    tmp_path: Path,
) -> None:
    """And not in the one of the next."""
    (mailbox := tmp_path / "mailbox").mkdir()
    run = Run(tmp_path, mailbox=str(mailbox))
    writer, leave = open_region(mailbox)
    MadeUp.readings = (process(rss=500), process(101, ROOT, rss=500, is_forked_copy=True))
    run.sampler.tick(time.monotonic())
    leave()
    run.sampler.tick(time.monotonic())

    assert MadeUp.sharing_reads
    assert find_regions_at_peak(run) == (("epoch",),)
    writer.words.release()
    writer.memory.close()


def test_living_processes_are_written_now_and_then(run: Run) -> None:
    """Whoever follows the recording sees them, and they are left of a job that is killed; longer runs write them more seldom."""
    workers = tuple(process(ROOT + 1 + number, ROOT, rss=50 + number) for number in range(9))
    for at in range(1, 1001):
        MadeUp.readings = (process(rss=10, cpu_seconds=at / 2), *workers)
        run.sampler.tick(float(at))
    lines = [
        json.loads(line)["process"]
        for line in Path(run.path).read_bytes().splitlines()
        if b'{"process"' in line
    ]
    moments = sorted({line["last_seconds"] for line in lines})
    pids = {line["pid"] for line in lines}
    root = next(one for one in load(run.path).processes if one.pid == ROOT)

    assert moments[:3] == [5.0, 10.0, 15.0]
    assert moments[-1] - moments[-2] > 5.0
    assert pids == {ROOT, *(worker.pid for worker in workers[-7:])}
    assert root.cpu_seconds == moments[-1] / 2
