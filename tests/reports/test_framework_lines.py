"""What frameworks hold, in words."""

from __future__ import annotations

from builders import MB, found, gpu, recording, render_str
from gpu_tracker.analysis.frameworks import summarize_frameworks
from gpu_tracker.core.model import FrameworkMemory
from gpu_tracker.reports.build import build
from gpu_tracker.reports.framework_lines import tell_frameworks

FULL = FrameworkMemory(
    42, "PyTorch", "cuda:0", "GPU-0", 9.0, 100 * MB, 12_800 * MB, "exact", 300 * MB, 13_500 * MB, 2, 1,
    9400 * MB, 13_500 * MB, 14_100 * MB, 2300 * MB, 7600 * MB,
)  # fmt: skip
PLAIN = FrameworkMemory(43, "JAX", "cuda:1", "", 9.0, 100 * MB, 500 * MB, "sampled")


def test_everything_is_told_by_its_right_name() -> None:
    """What tensors need is not what is cached, and neither is what the process holds."""
    shown = recording(events=(found(gpu()),), frameworks=(FULL,))
    first, second, third = tell_frameworks(summarize_frameworks(shown))

    assert first == ("PyTorch", "GPU 0, process 42: tensors 12.8 GB at most (exact), 13.5 GB with its cache")
    assert second == (
        "",
        "of 14.1 GB held at the fullest moment: tensors 9.4 GB, cached 4.1 GB, context and libraries 600 MB; "
        "other processes 2.3 GB; free 7.6 GB",
    )
    assert third == ("", "gave its cache back twice to make room and ran out of memory once")
    assert first[1] in render_str(build(shown), "text")


def test_what_is_not_known_is_not_told() -> None:
    """Neither the device's number nor the driver's account nor a cache."""
    (only,) = tell_frameworks(summarize_frameworks(recording(frameworks=(PLAIN,))))
    held = PLAIN._replace(split_process_bytes=900 * MB, split_in_use_bytes=100 * MB)
    _, split = tell_frameworks(summarize_frameworks(recording(frameworks=(held,))))

    assert only == ("JAX", "cuda:1, process 43: arrays 500 MB at most (sampled)")
    assert split == ("", "of 900 MB held at the fullest moment: arrays 100 MB")


def test_without_the_drivers_account_the_cache_is_that_of_the_last_moment() -> None:
    """The context stays unknown."""
    unsplit = FULL._replace(split_process_bytes=None)
    (summary,) = summarize_frameworks(recording(frameworks=(unsplit,)))

    assert (summary.gpu, summary.cached_bytes, summary.context_bytes) == (None, 200 * MB, None)


def test_many_processes_are_counted() -> None:
    """By device first."""
    many = tuple(PLAIN._replace(pid=pid) for pid in range(20))
    rows = tell_frameworks(summarize_frameworks(recording(events=(found(gpu()),), frameworks=(*many, FULL))))

    assert rows[0][0] == "PyTorch"
    assert rows[-1] == ("", "and 13 more processes or devices (the JSON report has all)")


def test_a_name_cannot_disturb_the_terminal() -> None:
    """A recording may come from anybody."""
    hostile = PLAIN._replace(framework="\x1b[31mJAX", device="a\nb")
    ((label, text),) = tell_frameworks(summarize_frameworks(recording(frameworks=(hostile,))))

    assert (label + text).isprintable()
