"""Figures that cannot all be true."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders import MB, alone, found, gpu, gpu_totals, header, recording, sample, totals
from gpu_tracker.analysis.runs import find_state
from gpu_tracker.core.model import (
    Allocation,
    End,
    Event,
    GpuCounters,
    MachineEnergy,
    Parts,
    Peaks,
    RamPeak,
    RecordingData,
    RegionTotals,
    Sample,
    Totals,
    add_parts,
)
from gpu_tracker.live.listing import list_file
from gpu_tracker.recording.contradictions import (
    find_contradictions,
    find_region_contradiction,
    is_contradiction,
)
from gpu_tracker.recording.reader import load, load_whole
from recorded import interval, part, run, write

BUSY = GpuCounters("GPU-0", 400.0, 10.0, 300.0, 10.0, 2000.0, 10.0)


def ended(reason: str = "exited", **fields: Any) -> RecordingData:
    """A recording of ten seconds with such an end."""
    summed = totals(**fields)
    return recording(totals=summed, end=End(reason, 0, summed, 0.0, 0), events=(found(gpu()),))


def at_end(**fields: Any) -> Sample:
    """The last sample of those ten seconds."""
    return sample(10.0, **{"peaks": Peaks(ram=alone(RamPeak(500 * MB))), **fields})


def held(combined: int | None, on_device: int | None = None) -> Peaks:
    """What the job held on all devices, and on the only one."""
    _, device = gpu_totals()
    device = device._replace(job_bytes=Parts(None, None, on_device))
    return totals().peaks._replace(gpu_bytes=Parts(None, None, combined), gpus=(device,))


@pytest.mark.parametrize(
    ("whole", "last"),
    [
        (ended(), at_end()),
        (ended(), at_end(cpu_seconds=add_parts(10.4, 0.0), peaks=Peaks(ram=alone(RamPeak(520 * MB))))),
        (ended(at_seconds=70.0), at_end()),
        (ended(at_seconds=5000.0, unread_seconds=4950.0), at_end()),
        (ended("sampler lost", at_seconds=5000.0), at_end()),
        (ended(gpu_counters=(BUSY,)), at_end(gpu_counters=(BUSY, BUSY._replace(uuid="GPU-1")))),
        (ended(peaks=held(30_000 * MB, 29_000 * MB)), at_end()),
        (ended(peaks=held(None, 29_000 * MB)), None),
        (ended(energy=MachineEnergy(4000.0, 100.0, 10.0)), at_end()),
        (recording(end=None, totals=Totals()), None),
    ],
)
def test_valid_recordings_are_not_doubted(whole: RecordingData, last: Sample | None) -> None:
    """With corrections, delays and gaps of which they tell, and what is not known."""
    assert find_contradictions(whole, last) == []


def test_samples_that_could_not_be_written_explain_a_late_end() -> None:
    """An event says so."""
    late = ended(at_seconds=5000.0)

    assert find_contradictions(late, at_end())
    assert not find_contradictions(late._replace(events=(Event(11.0, "unwritten", "full"),)), at_end())


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"cpu_seconds": add_parts(1.0, 0.0)}, "1 s of CPU time at its end, 10 s in its last sample."),
        ({"cpu_seconds": Parts(10.0, 0.0, 30.0)}, "its CPU time is not the sum of that of its parts."),
        ({"cpu_seconds": Parts(10.0, 20.0, 10.0)}, "its CPU time is not the sum of that of its parts."),
        ({"cpu_seconds": add_parts(1e6, 0.0)}, "11 d 13 h 46 min of CPU time in 10 s on 4 cores."),
        (
            {"peaks": Peaks(ram=alone(RamPeak(100 * MB)))},
            "a peak of 100 MB of RAM at its end, 500 MB in a sample.",
        ),
        ({"peaks": Peaks(ram=alone(RamPeak(2**49)))}, "a peak of 563 TB of RAM on a machine with 16 GB."),
        ({"peaks": held(2**49)}, "a peak of 563 TB of GPU memory on devices with 40 GB."),
        ({"peaks": held(MB, 900 * MB)}, "a peak of 1 MB of GPU memory, 900 MB of it on one device."),
        ({"at_seconds": 1e6}, "its end is at 11 d 13 h 46 min, its last sample at 10 s."),
        (
            {"gpu_counters": (BUSY._replace(utilization_percent_seconds=1e6),)},
            "the device GPU-0 was busy for more than all of the time.",
        ),
        (
            {"gpu_counters": (BUSY._replace(energy_joules=1e14),)},
            "more energy of the device GPU-0 than any device draws.",
        ),
        ({"energy": MachineEnergy(1e14)}, "more energy of processors than any machine draws."),
    ],
)
def test_an_end_that_cannot_be_is_said(fields: dict[str, Any], words: str) -> None:
    """Less than a sample before it had, or more than the machine can."""
    assert find_contradictions(ended(**fields), at_end()) == [f"The recording contradicts itself: {words}"]


@pytest.mark.parametrize(
    "change",
    [
        {"utilization_percent_seconds": 0.001},
        {"job_percent_seconds": 1.0},
        {"energy_joules": 1.0},
        {"utilization_seconds": 5.0},
        {"job_seconds": 5.0},
        {"energy_seconds": 5.0},
    ],
)
def test_counters_of_a_device_do_not_shrink(change: dict[str, Any]) -> None:
    """Each of them."""
    (sentence,) = find_contradictions(
        ended(gpu_counters=(BUSY._replace(**change),)), at_end(gpu_counters=(BUSY,))
    )

    assert sentence.endswith("counters of the device GPU-0 are less at its end than in its last sample.")


def test_gpu_memory_at_the_end_is_no_less_than_before() -> None:
    """Nor unknown."""
    for peaks in (held(MB), held(None)):
        (sentence,) = find_contradictions(ended(peaks=peaks), at_end(peaks=held(900 * MB)))
        assert "of GPU memory at its end, 900 MB in a sample." in sentence


def test_an_end_before_its_last_sample_is_said() -> None:
    """One reading may be amid its work at the end, but no more."""
    assert find_contradictions(ended(), at_end()._replace(at_seconds=10.9)) == []
    assert find_contradictions(ended(), at_end()._replace(at_seconds=11.2)) == [
        "The recording contradicts itself: its end is at 10 s, its last sample at 11.2 s."
    ]


def test_a_machine_has_cores() -> None:
    """At least one."""
    whole = ended()
    none = Allocation(0, 4.0, "machine", 16_000 * MB, 16_000 * MB, "machine")
    (sentence,) = find_contradictions(whole._replace(header=header(allocation=none)), None)

    assert sentence == "The recording contradicts itself: a machine of 0 cores."
    assert is_contradiction(sentence)


@pytest.mark.parametrize(
    ("region", "words"),
    [
        (part(1, 1.0, 2.0), None),
        (RegionTotals(1, ("step",)), None),
        (part(1, 1.0, open_calls=1, open_wall_seconds=9.0, wall_seconds=10.0), None),
        (part(1, 2.0, wall_seconds=0.001), "a call of 2 s, but 0.0010 s in all"),
        (part(1, 1.0, 1.0, wall_seconds=50.0), "50 s in 2 calls of 1 s at most"),
    ],
)
def test_calls_of_a_region_take_its_time(region: RegionTotals, words: str | None) -> None:
    """The longest no more than all together, all together no more than the longest allows."""
    beginning = "The recording contradicts itself: the region step has "

    assert find_region_contradiction(region) == (None if words is None else f"{beginning}{words}.")


def test_a_recording_that_contradicts_itself_is_damaged(tmp_path: Path) -> None:
    """For whoever reads all of it, or only its ends."""
    samples = tuple(interval(float(second), 400) for second in range(1, 11))
    path = write(tmp_path / "x.jsonl", run(samples=samples, regions=(part(1, 1.0),)))
    assert load_whole(str(path)).end is not None
    assert find_state(list_file(str(path))) == "finished"
    content = path.read_text()
    path.write_text(content.replace("[500000000,500000000", "[1,1"))

    assert any(map(is_contradiction, load(str(path)).problems))
    assert list_file(str(path)).ending == "damaged"


def test_an_earlier_line_of_a_region_does_not_count_later(tmp_path: Path) -> None:
    """Calls only grow."""
    regions = (part(1, 1.0), part(1, 1.0, 1.0), part(1, 1.0))
    path = write(tmp_path / "x.jsonl", run(regions=regions))

    assert list(load(str(path)).problems) == [
        "The recording contradicts itself: the region step has fewer calls than before."
    ]


@pytest.mark.parametrize("kind", ["region", "metrics", "process", "calls"])
def test_what_follows_the_end_is_damage(tmp_path: Path, kind: str) -> None:
    """It would take the place of what came before."""
    from recorded import make_full

    path = make_full(tmp_path / "x.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    moved = [line for line in lines if line.startswith(f'{{"{kind}"')][-1]
    assert not load(str(path)).problems
    lines.remove(moved)
    path.write_text("".join((*lines, moved)))
    (problem,) = load(str(path)).problems

    assert problem.endswith(" after its end.")


def test_a_region_that_contradicts_itself_is_said_when_it_is_read(tmp_path: Path) -> None:
    """Its one line is decoded only then."""
    path = write(tmp_path / "x.jsonl", run(regions=(part(1, 2.0, wall_seconds=0.001),)))
    loaded = load(str(path))

    assert [region.calls for region in loaded.regions] == [1]
    assert list(loaded.problems) == [
        "The recording contradicts itself: the region step has a call of 2 s, but 0.0010 s in all."
    ]
