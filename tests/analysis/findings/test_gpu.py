"""Rules about the work of devices: each fires, stays silent just below its threshold, and knows its guard."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_tracker.core.model import Call, Event, FrameworkMemory, RegionTotals
from gpu_tracker.reports.build import build
from made_runs import GB, Device, find, judge, made_run, why_not


def quiet(start: int, end: int, low: float = 0.0, high: float = 90.0) -> list[float]:
    """Busy, but for some of a hundred intervals."""
    return [low if start <= number < end else high for number in range(100)]


def test_an_own_mean_of_little_of_the_run_does_not_stand_for_it() -> None:
    """If the driver soon stopped to report utilization by process, the device's counts."""
    own = Device(busy=90.0, own=5.0)

    assert find(made_run(own), "gpu-low") is not None
    own.own_share = 0.2
    assert find(made_run(own), "gpu-low") is None


# ---- 1. gpu-unused.


@pytest.mark.parametrize(("granted", "severity"), [(2, "warning"), (None, "note")])
def test_a_device_that_was_never_used_is_named(granted: int | None, severity: str) -> None:
    """Somebody waits for it, if a scheduler gave it."""
    run = made_run(
        Device(), Device(1, has_job=False, job=0, used=0), n=100, step=4, given={"granted_gpus": granted}
    )

    finding = find(run, "gpu-unused")

    assert finding is not None
    assert (finding.severity, finding.sentence) == (
        severity,
        "GPU 1 was there for 6 min 40 s and never used.",
    )


@pytest.mark.parametrize("fields", [{"step": 2.99}, {"header": {"gpu_uuids": ("GPU-0",)}}])
def test_a_short_run_and_a_device_that_was_not_named_are_fine(fields: dict[str, Any]) -> None:
    """It takes five minutes, and a device that counts."""
    run = made_run(Device(), Device(1, has_job=False, job=0), **{"step": 4.0, **fields})

    assert find(run, "gpu-unused") is None


def test_two_unused_devices_are_one_finding() -> None:
    """There may be eight."""
    idle = [Device(number, has_job=False, job=0) for number in (1, 2)]

    finding = find(made_run(Device(), *idle, step=4), "gpu-unused")

    assert finding is not None
    assert finding.sentence.startswith("GPU 1, 2 were there")


@pytest.mark.parametrize(
    ("device", "command", "reason"),
    [
        (Device(has_job=False, job=None), "python", "the processes on a GPU are not known"),
        (Device(has_job=False, job=0), "make", "nobody gave a GPU to this job"),
    ],
)
def test_a_device_that_nobody_gave_to_the_job_is_no_waste(device: Device, command: str, reason: str) -> None:
    """A build on a workstation with a GPU is healthy, and an unknown list of processes proves nothing."""
    run = made_run(device, step=4, header={"command": (command,)})

    assert find(run, "gpu-unused") is None
    assert why_not(run, "gpu-unused") == reason


def test_python_without_its_gpu_is_a_hint() -> None:
    """The model may have been left on the CPU."""
    run = made_run(Device(has_job=False, job=0), step=4, header={"command": ("/usr/bin/python3", "train.py")})

    finding = find(run, "gpu-unused")

    assert finding is not None
    assert (finding.severity, finding.confidence) == ("note", "possible")
    assert why_not(made_run(step=4), "gpu-unused") == "there is no GPU"


# ---- 2. gpu-idle-stretch.


def test_a_device_that_holds_memory_and_does_nothing_is_idle() -> None:
    """For a quarter of an hour; an hour is serious."""
    idle = find(made_run(Device(busy=quiet(40, 55)), step=60), "gpu-idle-stretch")
    long = find(made_run(Device(busy=quiet(10, 70)), step=60), "gpu-idle-stretch")

    assert idle is not None
    assert idle.sentence == "GPU 0 held 30 GB and did nothing from 40:00 to 55:00."
    assert (idle.severity, idle.start_seconds, idle.end_seconds) == ("warning", 2400, 3300)
    assert long is not None
    assert long.severity == "serious"


@pytest.mark.parametrize(
    "device",
    [
        Device(busy=quiet(40, 54)),
        Device(busy=quiet(40, 55, low=2)),
        Device(busy=quiet(40, 55), job=2 * GB),
    ],
)
def test_a_shorter_rest_is_fine(device: Device) -> None:
    """Or one that is not quite idle, or holds little."""
    assert find(made_run(device, step=60), "gpu-idle-stretch") is None


def test_a_region_may_say_why_a_device_waits() -> None:
    """Then it is named, and never serious; others are not."""
    calls = [
        Call(("epoch", "forward"), 100, 1, 600.0, 4200.0),
        Call(("epoch", "eval"), 100, 1, 600.0, 700.0),
        Call(("epoch", "eval"), 100, 0, 700.0, None),
    ]

    finding = find(made_run(Device(busy=quiet(10, 70)), step=60, calls=calls), "gpu-idle-stretch")

    assert finding is not None
    assert finding.sentence.endswith("to 1:10:00, in epoch/eval.")
    assert finding.severity == "warning"


def test_without_memory_nothing_is_known_of_idleness() -> None:
    """Neither of the device nor of the job."""
    unknown = Device(busy=0, gpu={"memory_bytes": None})

    assert why_not(made_run(unknown, step=60), "gpu-idle-stretch") == "the job's memory there is not known"
    assert why_not(made_run(), "gpu-idle-stretch") == "the job used no GPU"


def test_a_server_that_fills_the_memory_may_wait_for_requests() -> None:
    """As with low utilization."""
    server = made_run(Device(busy=quiet(10, 70), used=37 * GB, job=36.5 * GB), step=60)

    assert (
        why_not(server, "gpu-idle-stretch") == "its memory is filled, as by a server that waits for requests"
    )


# ---- 3. gpu-low.


@pytest.mark.parametrize(("busy", "severity"), [(15, "serious"), (16, "note"), (24.9, "note"), (25, None)])
def test_low_utilization_has_two_degrees(busy: float, severity: str | None) -> None:
    """As jobstats has them; the number is the report's."""
    finding = find(made_run(Device(busy=busy)), "gpu-low")

    assert (finding and finding.severity) == severity
    assert finding is None or finding.sentence == f"GPU 0 was busy for {busy:.0f} % of the time."


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"used": 39 * GB}, "its memory is filled, as by a server that waits for requests"),
        ({"used": 30 * GB, "job": 10 * GB}, "others use the device, and utilization is that of all"),
    ],
)
def test_a_server_and_a_shared_device_may_be_quiet(fields: dict[str, int], reason: str) -> None:
    """Neither says that the job wastes it."""
    assert why_not(made_run(Device(busy=5, **fields)), "gpu-low") == reason


@pytest.mark.parametrize(
    ("rule", "fields"),
    [
        ("gpu-low", {"busy": 5}),
        ("cpu-holds-gpu", {"busy": 5}),
        ("clocks-held-down", {"throttled": {"hardware": 0.4}}),
    ],
)
def test_a_device_that_is_known_for_less_than_half_of_the_time_is_not_judged(
    rule: str, fields: dict[str, Any]
) -> None:
    """What it did in the rest of it may be anything."""
    reason = why_not(made_run(Device(**fields, known_share=0.4)), rule)

    assert find(made_run(Device(**fields, known_share=0.6)), rule) is not None
    assert reason is not None
    assert reason.endswith("not known for most of the time")


def test_a_device_with_unknown_intervals_may_be_full_in_them() -> None:
    """Half of them are known, and in those there is room."""
    run = made_run(Device(busy=30, used=5 * GB), cores=1)
    unread = tuple(
        sample._replace(gpus=tuple(gpu._replace(utilization_percent=None) for gpu in sample.gpus))
        for sample in run.samples[40:90]
    )
    unseen = run._replace(samples=(*run.samples[:40], *unread, *run.samples[90:]))

    assert find(run, "room-for-batch") is not None
    assert why_not(unseen, "room-for-batch") == "its utilization is not known all of the time"


def test_the_jobs_own_share_counts_on_a_shared_device() -> None:
    """Where the driver tells it."""
    finding = find(made_run(Device(busy=90, own=5, job=10 * GB)), "gpu-low")

    assert finding is not None
    assert finding.sentence == "GPU 0 was busy for 5 % of the time (by this job; 90 % by all processes)."


def test_whose_share_of_the_time_is_told_where_the_device_had_more() -> None:
    """The report shows that of the device; where both are the same, nothing is added."""
    devices = Device(busy=90, own=81), Device(1, busy=40, own=36)
    shared, alone = made_run(*devices), made_run(Device(busy=90), Device(1, busy=40, own=40))

    balance, waiting = find(shared, "gpu-imbalance"), find(shared, "cpu-holds-gpu")

    assert balance is not None
    assert balance.sentence == (
        "GPU 1 was 36 % busy (by this job; 40 % by all processes), GPU 0 81 % (by this job; 90 % by all processes)."
    )
    assert waiting is not None
    assert "GPU 1 was less than 50 % busy by this job for half of the time (median 36 %)" in waiting.sentence
    balance = find(alone, "gpu-imbalance")
    assert balance is not None
    assert balance.sentence == "GPU 1 was 40 % busy, GPU 0 90 %."


def test_a_run_of_few_intervals_is_not_judged() -> None:
    """Thirty are needed after the first twentieth, however long they are."""
    busy = Device(busy=5)

    assert why_not(made_run(busy, n=31), "gpu-low") == "29 intervals after the start; 30 are needed"
    assert find(made_run(busy, n=32), "gpu-low") is not None
    assert find(made_run(busy, n=32, step=0.1), "gpu-low") is not None


def test_the_worst_device_speaks_for_the_others() -> None:
    """One finding per rule, not one per device."""
    finding = find(made_run(Device(busy=20), Device(1, busy=5), Device(2, busy=21), Device(3)), "gpu-low")

    assert finding is not None
    assert finding.sentence == "GPU 1 was busy for 5 % of the time. Also on GPU 0, 2."
    assert finding.severity == "serious"


def test_utilization_that_is_an_estimate_makes_a_finding_less_sure() -> None:
    """A driver that keeps no samples tells its latest value only."""
    polled = made_run(Device(busy=5), events=[Event(0.0, "polled", "GPU-0")])

    findings = [find(run, "gpu-low") for run in (made_run(Device(busy=5)), polled)]

    assert [finding and finding.confidence for finding in findings] == ["likely", "possible"]


def test_utilization_that_is_not_measured_is_not_low() -> None:
    """It is unknown."""
    run = made_run(Device(busy=5))
    peaks = run.totals.peaks._replace(
        gpus=tuple(peak._replace(utilization_percent=None) for peak in run.totals.peaks.gpus)
    )
    totals = run.totals._replace(gpu_counters=(), peaks=peaks)

    assert why_not(run._replace(totals=totals), "gpu-low") == "utilization was not measured"


# ---- 5. cpu-holds-gpu.


def test_a_device_that_waits_for_busy_cores_is_held_up() -> None:
    """Strictly for more than half of the time; softly if one core works and the device is half idle."""
    strict = find(made_run(Device(busy=quiet(0, 60, 5)), cores=15), "cpu-holds-gpu")
    soft = find(made_run(Device(busy=49), cores=0.91), "cpu-holds-gpu")

    assert strict is not None
    assert strict.sentence == "GPU 0 waited while all cores were busy for 58 % of the time."
    assert strict.severity == "warning"
    assert soft is not None
    assert (soft.severity, soft.confidence) == ("note", "possible")


@pytest.mark.parametrize(("busy", "cores"), [(quiet(0, 60, 5), 15), (49, 15)])
def test_more_workers_are_advised_only_if_cores_are_free(busy: Any, cores: float) -> None:
    """Where all are busy, only less work helps."""
    full = find(made_run(Device(busy=busy), cores=cores), "cpu-holds-gpu")
    free = find(made_run(Device(busy=49), cores=14), "cpu-holds-gpu")

    assert full is not None
    assert full.advice.startswith("More workers will not help: do less or cheaper work per item")
    assert free is not None
    assert "more workers, less work per item" in free.advice


@pytest.mark.parametrize(("busy", "cores"), [(quiet(0, 50, 5), 15), (49, 0.89), (50, 0.91)])
def test_a_device_that_works_half_of_the_time_is_not_held_up(busy: float, cores: float) -> None:
    """Nor one without busy cores."""
    assert find(made_run(Device(busy=busy), cores=cores), "cpu-holds-gpu") is None


def test_long_intervals_and_marked_waiting_hide_it() -> None:
    """What is marked says more, and long intervals average everything."""
    waits = [RegionTotals(100, ("data_wait",), calls=1, wall_seconds=1.0)]

    assert "too long" in str(why_not(made_run(Device(busy=5), step=31), "cpu-holds-gpu"))
    assert why_not(made_run(Device(busy=5), regions=waits), "cpu-holds-gpu") == "waiting-for-data says more"
    assert "are needed" in str(why_not(made_run(Device(busy=5), n=20), "cpu-holds-gpu"))


# ---- 6. gpu-fluctuates.


def alternate(low: float, high: float) -> list[float]:
    """One interval each."""
    return [low if number % 2 else high for number in range(100)]


def test_a_device_that_is_full_and_empty_in_turn_fluctuates() -> None:
    """By the extremes without the last twentieth on each side."""
    finding = find(made_run(Device(busy=alternate(9, 70))), "gpu-fluctuates")

    assert finding is not None
    assert finding.sentence == "GPU 0 alternates between 70 % and 9 % busy."


@pytest.mark.parametrize(("low", "high"), [(10, 70), (9, 69)])
def test_a_device_that_is_never_empty_or_never_full_does_not_fluctuate(low: float, high: float) -> None:
    """Just beyond the thresholds."""
    assert find(made_run(Device(busy=alternate(low, high))), "gpu-fluctuates") is None


def test_what_explains_the_change_is_left_to_others() -> None:
    """A long rest, marked waiting, or intervals that are too long to see it."""
    waits = [RegionTotals(100, ("data_wait",), calls=1, wall_seconds=1.0)]
    busy = Device(busy=alternate(0, 99))

    assert why_not(made_run(busy, regions=waits), "gpu-fluctuates") == "waiting-for-data says more"
    assert "too long" in str(why_not(made_run(busy, step=6), "gpu-fluctuates"))
    resting = made_run(Device(busy=lambda number: 0 if number >= 500 else 99), n=1000, step=2)
    assert why_not(resting, "gpu-fluctuates") == "one long idle time explains it"
    assert "are needed" in str(why_not(made_run(Device(), n=20), "gpu-fluctuates"))


# ---- 7. gpu-imbalance.


@pytest.mark.parametrize(("one", "other"), [(90, 53), (90, 65), (40, 23)])
def test_devices_with_different_loads_are_unbalanced(one: float, other: float) -> None:
    """By their ratio, or by 25 points."""
    finding = find(made_run(Device(busy=one), Device(1, busy=other)), "gpu-imbalance")

    assert finding is not None
    assert finding.sentence == f"GPU 1 was {other} % busy, GPU 0 {one} %."


@pytest.mark.parametrize(("one", "other"), [(90, 66), (40, 24)])
def test_devices_with_similar_loads_are_balanced(one: float, other: float) -> None:
    """Just within the thresholds."""
    assert find(made_run(Device(busy=one), Device(1, busy=other)), "gpu-imbalance") is None


def test_one_device_or_idle_devices_are_not_unbalanced() -> None:
    """2 % is not twice as much work as 1 %."""
    idle = made_run(Device(busy=20), Device(1, busy=1))

    assert why_not(idle, "gpu-imbalance") == "none of them was busy"
    assert why_not(made_run(Device()), "gpu-imbalance") == "the job used fewer than two GPUs"
    assert "are needed" in str(why_not(made_run(Device(), Device(1), n=20), "gpu-imbalance"))


# ---- 8. room-for-batch.


@pytest.mark.parametrize(
    ("busy", "used", "cores", "is_found"),
    [
        (69, 27 * GB, 11, True),
        (70, 27 * GB, 11, False),
        (69, 28 * GB, 11, False),
        (69, 27 * GB, 11.2, False),
        (14, 27 * GB, 11, False),
    ],
)
def test_there_is_room_if_nothing_is_full(busy: float, used: int, cores: float, is_found: bool) -> None:
    """Cores, utilization and memory, all below 70 %; gpu-low speaks for a device that is hardly used."""
    finding = find(made_run(Device(busy=busy, used=used), cores=cores), "room-for-batch")

    assert (finding is not None) == is_found


def test_memory_taken_in_advance_says_nothing_about_room() -> None:
    """JAX fills three quarters at once; and unknown memory may be full."""
    jax = FrameworkMemory(100, "JAX", "cuda:0", "GPU-0", 9.5, 1 * GB, 9 * GB, "exact")
    pool = made_run(Device(busy=50, used=30 * GB), frameworks=(jax,), cores=4)
    unknown = made_run(Device(busy=50, gpu={"memory_bytes": None}), cores=4)

    assert why_not(pool, "room-for-batch") == "the framework took its memory in advance"
    assert why_not(unknown, "room-for-batch") == "its memory is not known"
    assert "are needed" in str(why_not(made_run(Device(), n=20), "room-for-batch"))
    unread = made_run(Device())
    hidden = unread._replace(samples=tuple(sample._replace(gpus=()) for sample in unread.samples))
    assert why_not(hidden, "room-for-batch") == "there are no samples of it"


# ---- 14. clocks-held-down.


@pytest.mark.parametrize(
    ("throttled", "severity", "words"),
    [
        ({"hardware": 0.011, "heat": 0.5}, "serious", "The hardware slowed GPU 0 down for 1 % of the time."),
        ({"heat": 0.23}, "warning", "Heat slowed GPU 0 down for 23 % of the time."),
        ({"power": 0.51}, "note", "The power limit held the clocks of GPU 0 down for 51 % of the time."),
    ],
)
def test_what_slows_a_device_is_named(throttled: dict[str, float], severity: str, words: str) -> None:
    """The worst reason only."""
    finding = find(made_run(Device(throttled=throttled)), "clocks-held-down")

    assert finding is not None
    assert (finding.severity, finding.sentence) == (severity, words)


def test_the_highest_temperature_is_told() -> None:
    """It is what to look at."""
    finding = find(made_run(Device(throttled={"heat": 0.2}, celsius=87.4)), "clocks-held-down")

    assert finding is not None
    assert "(up to 87 °C)" in finding.sentence


@pytest.mark.parametrize("throttled", [{"hardware": 0.01}, {"heat": 0.1}, {"power": 0.5}, {}])
def test_a_little_throttling_is_normal(throttled: dict[str, float]) -> None:
    """Power above all."""
    assert find(made_run(Device(throttled=throttled)), "clocks-held-down") is None


def test_throttling_that_was_not_measured_is_not_judged() -> None:
    """Without samples of the device nothing is known."""
    run = made_run(Device())

    unread = run._replace(samples=tuple(sample._replace(gpus=()) for sample in run.samples))

    assert why_not(unread, "clocks-held-down") == "throttling was not measured"


# ---- 15. busy-but-cool, 15b. sm-ineffective.


@pytest.mark.parametrize(("busy", "watts", "is_found"), [(90, 199, True), (89, 199, False), (90, 200, False)])
def test_a_busy_device_that_draws_little_has_small_kernels(busy: float, watts: float, is_found: bool) -> None:
    """Half of its power limit."""
    device = Device(busy=busy, watts=watts, gpu={"power_limit_watts": 400.0})

    assert (find(made_run(device), "busy-but-cool") is not None) == is_found


def test_power_needs_a_limit_and_a_whole_device() -> None:
    """Instances have no power of their own."""
    part = Device(busy=99, watts=1, gpu={"power_limit_watts": 400.0, "parent_uuid": "GPU-x"})
    whole = Device(busy=99, watts=1, gpu={"power_limit_watts": 400.0})

    assert (
        why_not(made_run(Device(busy=99, watts=1)), "busy-but-cool")
        == "power, or its limit, was not measured"
    )
    assert why_not(made_run(part), "busy-but-cool") == "a part of a device has no power of its own"
    assert "are needed" in str(why_not(made_run(whole, n=20), "busy-but-cool"))


@pytest.mark.parametrize(("busy", "active", "is_found"), [(80, 49, True), (79, 49, False), (80, 50, False)])
def test_few_busy_multiprocessors_are_ineffective(busy: float, active: float, is_found: bool) -> None:
    """Half of them, while something runs most of the time."""
    found = find(made_run(Device(busy=busy, sm=active)), "sm-ineffective")

    assert (found is not None) == is_found
    if found:
        assert found.sentence == "GPU 0 was 80 % busy, but only 49 % of its multiprocessors had work."


def test_multiprocessors_are_judged_only_where_they_are_measured() -> None:
    """Not before Hopper, and not after a few readings."""
    assert why_not(made_run(Device()), "sm-ineffective") == "the activity of multiprocessors was not measured"
    assert "are needed" in str(why_not(made_run(Device(sm=10), n=20), "sm-ineffective"))


# ---- 33. gpu-too-big.


@pytest.mark.parametrize(
    ("busy", "job", "cores", "memory", "is_found"),
    [
        (14, 9 * GB, 2, 40 * GB, True),
        (15, 9 * GB, 2, 40 * GB, False),
        (14, 10 * GB, 2, 40 * GB, False),
        (14, 9 * GB, 2.1, 40 * GB, False),
        (14, 9 * GB, 2, 16 * GB, False),
    ],
)
def test_a_large_device_for_little_work_is_too_big(
    busy: float, job: int, cores: float, memory: int, is_found: bool
) -> None:
    """Little utilization, little memory and few cores."""
    device = Device(busy=busy, used=job, gpu={"memory_bytes": memory})

    assert (find(made_run(device, cores=cores, step=4), "gpu-too-big") is not None) == is_found


def test_an_instance_a_short_run_or_unknown_memory_are_not_too_big() -> None:
    """Nor is anything judged by a few intervals."""
    part = Device(busy=5, used=GB, gpu={"parent_uuid": "GPU-x"})
    small = Device(busy=5, used=GB)

    assert why_not(made_run(part, cores=1, step=4), "gpu-too-big") == "it is a part of a device already"
    assert "shorter" in str(why_not(made_run(small, cores=1), "gpu-too-big"))
    assert "not measured" in str(why_not(made_run(Device(job=None), step=4), "gpu-too-big"))
    assert "are needed" in str(why_not(made_run(small, n=20, step=60), "gpu-too-big"))


def test_a_healthy_run_on_devices_has_nothing_worse_than_hints() -> None:
    """Two devices that work."""
    findings = judge(made_run(Device(), Device(1), n=200, step=4)).findings

    assert [finding.rule for finding in findings] == ["cpu-percent"]


# ---- 36. gpu-faults.

FAULT = Event(61.0, "gpu_fault", "GPU 0: the driver reports Xid 79: the device has fallen off the bus.")
ERROR = Event(5.0, "gpu_error", "GPU 0: the driver reports Xid 31: a kernel used memory that is not mapped.")
ELSEWHERE = ERROR._replace(text=ERROR.text.replace("GPU 0", "GPU 1"))


def test_a_device_that_fails_is_serious() -> None:
    """It comes before errors of the program, whichever was first."""
    finding = find(made_run(Device(), events=[ERROR, FAULT]), "gpu-faults")

    assert finding is not None
    assert (finding.severity, finding.confidence) == ("serious", "certain")
    assert finding.sentence == (
        "GPU 0: the driver reports Xid 79: the device has fallen off the bus, at 1:01. "
        "There was 1 other error: see the notes."
    )
    assert "administrator" in finding.advice
    assert finding.start_seconds == 61


def test_an_error_of_the_program_is_a_warning() -> None:
    """The device is in order."""
    finding = find(made_run(Device(), events=[ERROR]), "gpu-faults")

    assert finding is not None
    assert (finding.severity, finding.confidence) == ("warning", "likely")
    assert finding.sentence.endswith("not mapped, at 5 s.")
    assert "compute-sanitizer" in finding.advice


def test_an_error_on_a_device_with_others_may_be_theirs() -> None:
    """The driver does not say whose it is."""
    finding = find(made_run(Device(used=30 * GB, job=10 * GB), events=[ERROR]), "gpu-faults")

    assert finding is not None
    assert finding.confidence == "possible"
    assert finding.sentence.endswith("It may be another program's.")


def test_an_error_on_a_device_without_the_job_is_another_programs() -> None:
    """One that fails matters nevertheless: the job may want to use it."""
    run = made_run(Device(), events=[ELSEWHERE])

    assert why_not(run, "gpu-faults") == "the job did not use the GPU that reported an error"


def test_other_notes_on_devices_are_no_faults() -> None:
    """Nor is there anything to judge without a device."""
    note = Event(5.0, "note", "GPU 0: 7 corrected memory errors (ECC).")

    assert find(made_run(Device(), events=[note]), "gpu-faults") is None
    assert why_not(made_run(), "gpu-faults") == "there is no GPU"


def test_a_fault_is_judged_however_short_the_run_was() -> None:
    """Of a run with few readings nothing else is."""
    short = made_run(Device(), n=2, events=[FAULT])
    short = short._replace(totals=short.totals._replace(readings=2))

    assert [finding.rule for finding in build(short).findings] == ["gpu-faults"]
    assert build(short._replace(events=())).findings == ()
