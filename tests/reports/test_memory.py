"""Memory as it is now, and what was given back, in words and in HTML."""

from __future__ import annotations

from types import SimpleNamespace

from gpu_tracker.analysis.memory import GpuMemory, RamMemory
from gpu_tracker.reports.memory import Memory, Reclaimed, Step

GB = 10**9
RAM = RamMemory(1_200_000_000, 3_400_000_000, 25_300_000_000, "machine")
GPU = GpuMemory(
    label="0",
    name="A100",
    uuid="GPU-0",
    total_bytes=24 * 2**30,
    process_bytes=14_100_000_000,
    tensors_bytes=9_400_000_000,
    cached_bytes=4_100_000_000,
    context_bytes=600_000_000,
    others_bytes=2_300_000_000,
    free_bytes=7_600_000_000,
    peak_tensors_bytes=12_800_000_000,
)
SENTENCE = (
    "GPU 0: this process holds 14.1 GB of 24 GiB: tensors 9.4 GB (peak 12.8 GB), cached for reuse 4.1 GB, "
    "context and libraries 600 MB; other processes 2.3 GB; free 7.6 GB"
)


def test_there_is_one_sentence_for_ram_and_one_per_gpu() -> None:
    """With the words of the reports."""
    assert str(Memory(RAM, (GPU,))).splitlines() == [
        "RAM: this process holds 1.2 GB, with its descendants 3.4 GB, of 25.3 GB",
        SENTENCE,
    ]


def test_ram_names_its_limit() -> None:
    """And the tree only if there is more of it than the process."""
    limited = RamMemory(1_200_000_000, 1_200_000_000, 4 * 2**30, "Slurm")

    assert str(Memory(limited, ())) == "RAM: this process holds 1.2 GB of 4 GiB (Slurm limit)"
    assert str(Memory(RamMemory(None, None, None, "machine"), ())) == (
        "RAM: this process holds an unknown amount"
    )


def test_what_is_not_known_is_not_called_zero() -> None:
    """It is left out, or said."""
    unknown = GPU._replace(
        total_bytes=None,
        process_bytes=None,
        tensors_bytes=None,
        peak_tensors_bytes=None,
        cached_bytes=None,
        context_bytes=None,
        others_bytes=None,
    )
    without_peak = GPU._replace(peak_tensors_bytes=None)

    assert str(Memory(RAM, (unknown,))).splitlines()[1] == (
        "GPU 0: this process holds an unknown amount; free 7.6 GB"
    )
    assert "tensors 9.4 GB, cached" in str(Memory(RAM, (without_peak,)))


def test_a_notebook_shows_bars_without_scripts() -> None:
    """One slice per part that is there; the sentence is the text."""
    html = Memory(RAM, (GPU, GPU._replace(label="1")))._repr_html_()
    empty = GPU._replace(
        tensors_bytes=0, cached_bytes=0, context_bytes=None, others_bytes=None, free_bytes=None
    )

    assert html.count("float:left") == 10
    assert SENTENCE in html
    assert not any(word in html for word in ("<script", "<style", "class="))
    assert "float:left" not in Memory(RAM, (empty,))._repr_html_()


def test_every_step_says_what_it_gave_back() -> None:
    """And that a cache is left, which was not asked for."""
    steps = (
        Step("frames of the last traceback", 3, 120_000_000, 2 * GB, None),
        Step("garbage", 5, -4096, 0, 0),
    )
    text = str(Reclaimed(steps, 3 * GB))

    assert text.splitlines() == [
        "frames of the last traceback: RAM 120 MB, tensors 2 GB given back",
        "garbage: nothing given back",
        "still cached for reuse: 3 GB (reclaim(empty_cache=True) returns what is not in use to the driver)",
    ]
    assert "cached" not in str(Reclaimed(steps, 0))
    assert "<p>garbage: nothing given back</p>" in Reclaimed(steps, None)._repr_html_()


def test_ipython_shows_the_words_too() -> None:
    """In a terminal, and beside the HTML."""
    texts: list[str] = []
    Memory(RAM, (GPU,))._repr_pretty_(SimpleNamespace(text=texts.append), None)

    Reclaimed((), None)._repr_pretty_(SimpleNamespace(text=texts.append), None)

    assert texts == [str(Memory(RAM, (GPU,))), ""]
