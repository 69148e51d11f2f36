"""Every shared page is counted once, as far as known."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from builders import MB, ROOT, process
from gpu_tracker.accounts.sharing import (
    NOTHING,
    Overlap,
    choose_examples,
    find_overlap,
    hold,
    hold_the_same,
    is_settled,
    is_torn,
)
from gpu_tracker.core.model import ProcessReading, SharingReading


def fork(pid: int, parent: int = ROOT, **fields: int) -> ProcessReading:
    """A copy of its parent that has not called exec."""
    return process(pid, parent, is_forked_copy=True, **fields)


def test_no_process_holds_nothing() -> None:
    """An empty tree."""
    assert hold([], {}) == NOTHING


def test_one_process_holds_its_resident_set() -> None:
    """Its files count as shared until sharing is read."""
    assert hold([process(rss=100, file=20)], {}) == (100 * MB, 100 * MB, 20 * MB, 20 * MB, 0)
    assert hold([process(rss=100, file=20)], {ROOT: Overlap(0, 0, 0, 5 * MB)}).shared_bytes == 5 * MB


def test_forked_copies_share_their_anonymous_memory() -> None:
    """Four children of a process of 500 MB hold at least 500 MB together, which is what counts."""
    holding = hold([process(rss=500), *(fork(200 + n, rss=500) for n in range(4))], {})

    assert holding.unique_bytes == 500 * MB
    assert holding.ceiling_bytes == 2500 * MB


def test_programs_share_only_files() -> None:
    """Anonymous memory does not survive an exec."""
    holding = hold([process(rss=300, file=10), process(201, ROOT, rss=200, file=20)], {})

    assert holding.unique_bytes == (290 + 180 + 20) * MB
    assert holding.shared_bytes == 20 * MB


def test_shared_memory_of_several_programs_counts_once() -> None:
    """Five processes map the same 300 MB."""
    processes = [process(ROOT + n, rss=310, file=300) for n in range(5)]

    assert hold(processes, {}).unique_bytes == (5 * 10 + 300) * MB


def test_memory_written_by_copies_is_private_once_it_was_read() -> None:
    """Each of two copies has written half of the 500 MB."""
    parent, child = process(rss=500), fork(201, rss=500)
    sharing = SharingReading(375 * MB, 375 * MB, 250 * MB)
    overlaps = {reading.pid: find_overlap(reading, sharing) for reading in (parent, child)}
    holding = hold([parent, child], overlaps)

    assert holding.unique_bytes == 750 * MB
    assert holding.shared_bytes == 250 * MB


def test_growth_after_the_reading_is_private() -> None:
    """New anonymous pages are not shared."""
    parent, child = process(rss=500), fork(201, rss=500)
    sharing = SharingReading(250 * MB, 250 * MB, 0)
    overlaps = {reading.pid: find_overlap(reading, sharing) for reading in (parent, child)}

    assert hold([parent, fork(201, rss=600)], overlaps).unique_bytes == 600 * MB


def test_a_copy_of_a_copy_belongs_to_the_same_image() -> None:
    """A copy whose parent has ended stands for itself."""
    grandchild = fork(202, 201, rss=500)

    assert hold([process(rss=500), fork(201, rss=500), grandchild], {}).unique_bytes == 500 * MB
    assert hold([process(rss=500), grandchild], {}).unique_bytes == 1000 * MB


def test_copies_share_with_each_other_even_without_their_parent() -> None:
    """Three workers of a parent of 400 MB hold those 400 MB once, and 120 MB each of their own."""
    workers = [fork(201 + n, rss=520) for n in range(3)]
    assert hold(workers, {}).unique_bytes == 520 * MB

    sharing = SharingReading(220 * MB, 220 * MB, 120 * MB)
    overlaps = {worker.pid: find_overlap(worker, sharing) for worker in workers}
    assert hold(workers, overlaps).unique_bytes == 760 * MB


def test_proportional_shares_of_the_whole_tree_are_exact() -> None:
    """The total is at least the largest process."""
    tree = [process(rss=110, file=100), fork(201, rss=110, file=100)]
    sharing = SharingReading(55 * MB, 5 * MB, 1 * MB)
    overlaps = {reading.pid: find_overlap(reading, sharing) for reading in tree}

    assert hold(tree, overlaps, is_whole_tree=True).unique_bytes == 110 * MB
    assert hold(tree, overlaps).unique_bytes == 111 * MB


def test_pages_shared_with_processes_outside_count_in_full() -> None:
    """A descendant of 150 MB is not hidden by what its parent shares with another program: files, or memory of before a fork."""
    child = process(201, rss=150)
    private = SharingReading(150 * MB, 150 * MB, 150 * MB)
    for root, half in (
        (process(rss=440, file=400), SharingReading(240 * MB, 40 * MB, 40 * MB)),
        (process(rss=440, file=40), SharingReading(220 * MB, 200 * MB, 0)),
    ):
        overlaps = {ROOT: find_overlap(root, half), 201: find_overlap(child, private)}
        assert hold([root, child], overlaps, is_whole_tree=True).unique_bytes == 590 * MB
        assert hold([root, child], {}, is_whole_tree=True).unique_bytes == 590 * MB


def read_workers(n_read: int, n_workers: int) -> tuple[list[ProcessReading], dict[int, Overlap]]:
    """A parent of 300 MB and workers that have written 10 MB each, of which some were read."""
    workers = [fork(201 + n, rss=310)._replace(page_faults=2560) for n in range(n_workers)]
    share = 300 * MB // (1 + n_workers)
    overlaps = {ROOT: find_overlap(process(rss=300), SharingReading(share, share, 0))}
    for worker in workers[:n_read]:
        overlaps[worker.pid] = find_overlap(worker, SharingReading(share + 10 * MB, share + 10 * MB, 10 * MB))
    return [process(rss=300), *workers], overlaps


def test_workers_that_were_not_read_resemble_those_that_were() -> None:
    """Two of a hundred tell what each holds besides the memory that all share; nothing is certain then."""
    tree, overlaps = read_workers(2, 100)
    holding = hold(tree, overlaps, is_whole_tree=True)

    assert holding.unique_bytes == (300 + 100 * 10) * MB
    assert holding.doubtful_bytes == holding.ceiling_bytes - holding.unique_bytes
    assert hold(tree, {ROOT: overlaps[ROOT]}, is_whole_tree=True).unique_bytes == 310 * MB


def test_a_copy_that_has_touched_nothing_adds_nothing() -> None:
    """However much its parent has grown since the others were read."""
    tree, overlaps = read_workers(4, 4)
    newborn = fork(299, rss=600)._replace(page_faults=100)
    before = hold(tree, overlaps, is_whole_tree=True).unique_bytes

    assert hold([*tree, newborn], overlaps).unique_bytes == 600 * MB
    assert hold([*tree, newborn], overlaps, is_whole_tree=True).unique_bytes == max(
        600 * MB, before + 100 * 4096
    )


def test_what_was_copied_since_the_reading_is_in_doubt() -> None:
    """No more of it than was shared. New memory of a process is its own, so it is known."""
    tree, overlaps = read_workers(4, 4)

    def doubt(page_faults: int = 2560, rss: int = 310 * MB, file: int = 0) -> int:
        changed = tree[1]._replace(page_faults=page_faults, rss_bytes=rss, file_bytes=file)
        return hold([tree[0], changed, *tree[2:]], overlaps, is_whole_tree=True).doubtful_bytes

    assert doubt() == 0
    assert doubt(page_faults=2560 + 1000) == 1000 * 4096
    assert doubt(page_faults=10**9) == 240 * MB
    assert doubt(page_faults=2560 + 1000, rss=310 * MB + 1000 * 4096) == 0
    assert doubt(rss=330 * MB, file=20 * MB) == 20 * MB


def test_examples_are_the_largest_of_many_copies() -> None:
    """And the root; where there are few, or other programs, reading them all is as good."""
    copies = [fork(201 + n, rss=100 + n) for n in range(20)]
    tree = [process(rss=100), process(150, rss=900), *copies]

    assert [one.pid for one in choose_examples(tree, ROOT)] == [ROOT, 220, 219, 218, 217]
    assert choose_examples(tree[:8], ROOT) == []
    assert choose_examples([process(ROOT + n) for n in range(20)], ROOT) == []


def test_memory_is_settled_when_little_of_it_is_touched() -> None:
    """Growth is touched memory, and so is every page fault: a copy that writes to its memory does not grow."""
    tree = [process(rss=500), fork(201, rss=500)]

    def is_settled_after(seconds: float, *, rss: int = 500, page_faults: int = 0) -> bool:
        return is_settled(tree, [tree[0], fork(201, rss=rss)._replace(page_faults=page_faults)], seconds)

    assert is_settled_after(0.1)
    assert is_settled_after(1.0, rss=505, page_faults=1000)
    assert not is_settled_after(0.01, rss=505)
    assert not is_settled_after(1.0, rss=450)
    assert not is_settled_after(1.0, page_faults=10_000)
    assert not is_settled(tree[:1], tree, 1.0)


def test_only_processes_that_touched_no_memory_hold_the_same() -> None:
    """CPU time and high-water marks may differ, but not who there is, nor what anyone holds or has touched."""
    tree = [process(rss=500 * MB)._replace(page_faults=9), fork(201, rss=500)._replace(page_faults=9)]
    known = tuple(tree)

    def hold_the_same_after(**changes: Any) -> bool:
        return hold_the_same(known, [tree[0], tree[1]._replace(**changes)])

    assert hold_the_same(known, tree)
    assert hold_the_same_after(peak_rss_bytes=600 * MB, cpu_seconds=5)
    assert not hold_the_same_after(rss_bytes=501 * MB)
    assert not hold_the_same_after(file_bytes=tree[1].file_bytes + 4096)
    assert not hold_the_same_after(page_faults=tree[1].page_faults + 1)
    assert not hold_the_same_after(pid=202)
    assert not hold_the_same(known, tree[:1])
    assert not hold_the_same(known, [*tree, fork(202)])


def test_without_page_faults_only_processes_that_have_not_run_hold_the_same() -> None:
    """Whoever writes to memory that it shares need not grow."""
    idle, has_run = fork(201, rss=500), fork(201, rss=500)._replace(cpu_seconds=5.0)

    assert hold_the_same([idle], [idle._replace()])
    assert not hold_the_same([idle], [has_run])


def test_sharing_that_changed_while_it_was_read_is_torn() -> None:
    """Pages that a child began or ceased to share between the reading of its parent and its own."""
    tree = [process(rss=310, file=300), process(201, rss=110, file=100)]
    sharings = {reading.pid: SharingReading(200 * MB, 10 * MB, 10 * MB) for reading in tree}

    def moved(**child: int) -> bool:
        return is_torn(tree, [tree[0], process(201, **child)], sharings)

    assert moved(rss=140, file=130)
    assert moved(rss=80, file=70)
    assert moved(rss=100, file=100)
    assert is_torn(tree, tree[:1], sharings)
    assert not moved(rss=110, file=100)
    assert not moved(rss=500, file=101)
    assert not is_torn(tree, [*tree, process(202, rss=900)], sharings)


_SIZES = st.integers(0, 1000)


@given(st.lists(st.tuples(_SIZES, _SIZES, st.booleans(), _SIZES, _SIZES), min_size=1, max_size=6))
def test_the_bounds_hold(shapes: list[tuple[int, int, bool, int, int]]) -> None:
    """Never less than the largest process, never more than the sum; shared is a part of it."""
    readings, overlaps = [], {}
    for index, (rss, file, is_copy, pss, private) in enumerate(shapes):
        reading = process(
            ROOT + index, ROOT, rss=rss, file=min(file, rss), is_forked_copy=is_copy and index > 0
        )
        readings.append(reading)
        pss = min(pss, rss)
        overlaps[reading.pid] = find_overlap(
            reading, SharingReading(pss * MB, pss * MB, min(private, pss) * MB)
        )
    for known in ({}, overlaps):
        holding = hold(readings, known)
        assert max(reading.rss_bytes - reading.file_bytes for reading in readings) <= holding.unique_bytes
        assert holding.unique_bytes <= holding.ceiling_bytes == sum(r.rss_bytes for r in readings)
        assert 0 <= holding.shared_bytes <= holding.unique_bytes
