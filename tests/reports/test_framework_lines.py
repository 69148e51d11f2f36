"""GPU memory of frameworks, in words."""

from __future__ import annotations

from builders import MB, found, gpu, recording, render_str
from gpu_tracker.analysis.frameworks import summarize_frameworks
from gpu_tracker.core.model import FrameworkMemory
from gpu_tracker.reports.build import build
from gpu_tracker.reports.framework_lines import format_frameworks

FULL = FrameworkMemory(
    42, "PyTorch", "cuda:0", "GPU-0", 9.0, 100 * MB, 12_800 * MB, "exact", 300 * MB, 13_500 * MB, 2, 1,
    9400 * MB, 13_500 * MB, 14_100 * MB, 2300 * MB, 7600 * MB,
)  # fmt: skip
PLAIN = FrameworkMemory(43, "JAX", "cuda:1", "", 9.0, 100 * MB, 500 * MB, "sampled")


def test_tensors_cache_and_context_are_separate() -> None:
    """And so are other processes and free memory."""
    shown = recording(events=(found(gpu()),), frameworks=(FULL,))
    first, second, third = format_frameworks(summarize_frameworks(shown))

    assert first == ("PyTorch", "GPU 0, process 42: tensors peak 12.8 GB (exact), 13.5 GB with cache")
    assert second == (
        "",
        "at its peak the process held 14.1 GB: tensors 9.4 GB, cached 4.1 GB, context and libraries 600 MB; "
        "other processes 2.3 GB; free 7.6 GB",
    )
    assert third == ("", "flushed its cache twice under memory pressure and ran out of memory once")
    assert first[1] in render_str(build(shown), "text")


def test_unknown_parts_are_left_out() -> None:
    """The device's number, the driver's figures, the cache."""
    (only,) = format_frameworks(summarize_frameworks(recording(frameworks=(PLAIN,))))
    held = PLAIN._replace(split_process_bytes=900 * MB, split_in_use_bytes=100 * MB)
    _, split = format_frameworks(summarize_frameworks(recording(frameworks=(held,))))

    assert only == ("JAX", "cuda:1, process 43: arrays peak 500 MB (sampled)")
    assert split == ("", "at its peak the process held 900 MB: arrays 100 MB")


def test_without_the_drivers_figures_the_cache_is_from_the_last_reading() -> None:
    """The context stays unknown."""
    unsplit = FULL._replace(split_process_bytes=None, split_in_use_bytes=None)
    (summary,) = summarize_frameworks(recording(frameworks=(unsplit,)))

    assert (summary.gpu, summary.cached_bytes, summary.context_bytes) == (None, 200 * MB, None)


def test_many_processes_are_counted() -> None:
    """Ordered by device."""
    many = tuple(PLAIN._replace(pid=pid) for pid in range(20))
    rows = format_frameworks(
        summarize_frameworks(recording(events=(found(gpu()),), frameworks=(*many, FULL)))
    )

    assert rows[0][0] == "PyTorch"
    assert rows[-1] == ("", "and 13 more processes or devices (the JSON report has all)")


def test_a_name_cannot_disturb_the_terminal() -> None:
    """A recording may come from anywhere."""
    hostile = PLAIN._replace(framework="\x1b[31mJAX", device="a\nb")
    ((label, text),) = format_frameworks(summarize_frameworks(recording(frameworks=(hostile,))))

    assert (label + text).isprintable()
