"""Who held a peak, and when."""

from __future__ import annotations

from gpu_tracker.accounts.peak_moments import PeakMoments


def test_the_highest_moment_is_known_at_the_end_though_not_each_is_written() -> None:
    """One that is hardly higher than the last that was written waits for the end."""
    moments = PeakMoments()
    written = []
    for at, (size, name) in enumerate([(1000, "a"), (1005, "b"), (990, "c"), (1020, "d"), (1021, "e")]):
        if moments.is_new("ram", size):
            moments.take("ram", float(at), size, [(1, name, size)])
        moments.add_regions([(name,)])
        for moment in moments.list_unwritten():
            moments.note_written(moment)
            written.append(moment.size_bytes)

    (last,) = moments.list_unwritten(is_last=True)
    moments.note_written(last)

    assert written == [1000, 1020]
    assert (last.size_bytes, last.at_seconds, last.regions) == (1021, 4.0, (("e",),))
    assert moments.list_latest() == (last,)
    assert not moments.list_unwritten(is_last=True)
    assert [moments.is_new("ram", size, is_read=False) for size in (1022, 1040)] == [False, True]
