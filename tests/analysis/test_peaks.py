"""Peaks in words."""

from __future__ import annotations

import pytest

from builders import MB
from gpu_tracker.analysis.peaks import drop_contradicted, explain_peak, name_moment
from gpu_tracker.core.model import RAM, PeakMoment, PeakProcess, RegionTotals
from recorded import part

GB = 10**9


def hold(*processes: tuple[str, float], others: int = 0) -> PeakMoment:
    """A peak at 3:12 that these processes held; the first is the tracked one."""
    parts = [PeakProcess(number + 1, name, int(size * GB)) for number, (name, size) in enumerate(processes)]
    size = sum(part.size_bytes for part in parts)
    return PeakMoment("ram", 192.0, size, len(parts) + others, tuple(parts))


def test_processes_of_one_name_are_told_together() -> None:
    """The largest part first, and where it was."""
    moment = hold(("python", 10.9), *[("pt_data_worker", 2.4)] * 8)._replace(
        regions=(("epoch", "eval"), ("io",))
    )

    assert (
        explain_peak(moment, 1)
        == "30.1 GB at 3:12: 8 × pt_data_worker 2.4 GB, main 10.9 GB; in epoch/eval, io"
    )


def test_the_largest_sample_is_no_peak_if_the_kernel_knows_a_higher_one() -> None:
    """Differences that nobody can see do not count; where no peak is known, the sample is the best there is."""
    moment = hold(("python", 175))

    assert name_moment(moment, None) == name_moment(moment, 175 * GB + 1) == "peak"
    assert name_moment(moment, 193 * GB) == "largest reading"


def test_sizes_that_differ_are_a_range() -> None:
    """A mean would hide the large one."""
    moment = hold(("python", 1), ("worker", 1), ("worker", 4))

    assert explain_peak(moment, 1) == "6 GB at 3:12: 2 × worker 1 GB to 4 GB, main 1 GB"


def test_many_processes_are_counted() -> None:
    """Four groups are shown; a process may have no name."""
    moment = hold(("python", 6), ("a", 5), ("b", 4), ("c", 3), ("d", 2), ("", 1), others=10)

    assert explain_peak(moment, 1) == "21 GB at 3:12: main 6 GB, a 5 GB, b 4 GB, c 3 GB, and 12 more"
    assert explain_peak(hold(("", 1)), 99) == "1 GB at 3:12: ? 1 GB"


def test_a_peak_of_which_nobody_is_known_has_its_time() -> None:
    """As of a device that lists no processes."""
    assert explain_peak(hold()._replace(size_bytes=GB, at_seconds=93784.0), 1) == "1 GB at 26:03:04"


def at_peak(*parts: RegionTotals, subject: str = RAM) -> tuple[tuple[str, ...], ...]:
    """The regions that are named, if `fit` was open when a peak of 900 MB of process 1 was read."""
    moment = PeakMoment(subject, 5.0, 900 * MB, 1, (PeakProcess(1, "python", 900 * MB),), (("fit",),))
    (checked,) = drop_contradicted([moment], parts)
    return checked.regions


def test_the_region_that_had_the_peak_is_named_instead_of_the_next_one() -> None:
    """By the kernel's mark, which is read when the next one is open; the innermost, with the time of its call."""
    moment = PeakMoment(RAM, 5.0, 900 * MB, 1, (PeakProcess(1, "python", 900 * MB),), (("next",),))
    peaked = [
        part(1, 1.0, path=path, peak_ram_bytes=900 * MB, peak_ram_basis="exact", peak_ram_call_seconds=4.5)
        for path in (("fit",), ("fit", "spike"))
    ]
    others = [part(1, 1.0, path=("next",), peak_ram_bytes=100 * MB, peak_ram_basis="sampled")]

    (placed,) = drop_contradicted([moment], [*peaked, *others])
    (several,) = drop_contradicted([moment._replace(n_processes=2)], [*peaked, *others])

    assert (placed.regions, placed.at_seconds) == ((("fit", "spike"),), 4.5)
    assert several.regions == (("next",),)


def test_a_region_that_opened_after_the_peak_is_not_named() -> None:
    """A high-water mark is read later than it was reached: by its own mark, the region never held that much."""
    assert at_peak(part(1, 1.0, path=("fit",), peak_ram_bytes=100 * MB, peak_ram_basis="exact")) == ()


@pytest.mark.parametrize(
    "region",
    [
        part(1, 1.0, path=("fit",), peak_ram_bytes=899 * MB, peak_ram_basis="exact"),
        part(1, 1.0, path=("fit",), peak_ram_bytes=100 * MB, peak_ram_basis="sampled"),
        part(1, 1.0, path=("fit",), peak_ram_bytes=100 * MB, peak_ram_basis="exact", open_calls=1),
        part(2, 1.0, path=("fit",), peak_ram_bytes=100 * MB, peak_ram_basis="exact"),
        part(1, 1.0, path=("other",), peak_ram_bytes=100 * MB, peak_ram_basis="exact"),
    ],
)
def test_a_region_that_may_have_had_the_peak_is_named(region: RegionTotals) -> None:
    """It held as much, its own peak is only a lower bound, it is not over, or another process was in it."""
    assert at_peak(region) == (("fit",),)


def test_the_peak_of_a_device_is_not_compared_with_ram() -> None:
    """They have nothing to do with each other."""
    small = part(1, 1.0, path=("fit",), peak_ram_bytes=100 * MB, peak_ram_basis="exact")

    assert at_peak(small, subject="GPU-0") == (("fit",),)


@pytest.mark.parametrize(
    ("began", "regions"),
    [
        ({"peak_ram_call_seconds": 6.0, "first_seconds": 1.0}, (("next",),)),
        ({"first_seconds": 6.0}, (("next",),)),
        ({"peak_ram_call_seconds": 5.0}, (("later",),)),
        ({}, (("later",),)),
    ],
)
def test_a_region_that_began_after_the_moment_did_not_have_its_peak(
    began: dict[str, float], regions: tuple[tuple[str, ...], ...]
) -> None:
    """Its own may be a higher one, which nobody saw: the sampler was lost in between."""
    moment = PeakMoment(RAM, 5.0, 900 * MB, 1, (PeakProcess(1, "python", 900 * MB),), (("next",),))
    later = part(1, 1.0, path=("later",), peak_ram_bytes=950 * MB, peak_ram_basis="exact", **began)

    (placed,) = drop_contradicted([moment], [later])

    assert (placed.regions, placed.at_seconds) == (regions, 5.0)
