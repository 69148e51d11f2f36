"""Many open calls: one more costs what the first did, and ended ones are let go."""

from __future__ import annotations

from pathlib import Path

import pytest

from api.test_regions import run

# Counts the lines of ours that calls take, which a clock could tell only on a machine that does nothing else. For the calls no time
# passes meanwhile: what is done only now and then would count the more often, the slower the machine is.
COUNT = """
import collections, gc
from gpu_tracker.instrument import stack
nothing = (None, None, None)
def count(frame, event, _):
    global lines
    if "gpu_tracker" not in frame.f_code.co_filename: return None
    lines += event == "line"
    return count
def weigh(shape, n):
    global lines
    lines, now, clock = 0, stack.monotonic_ns(), stack.monotonic_ns
    stack.monotonic_ns = lambda: now
    sys.settrace(count)
    try: shape(n)
    finally:
        sys.settrace(None)
        stack.monotonic_ns = clock
    return lines / n
def recursion(n):
    with region("deep"):
        if n > 1: recursion(n - 1)
def mutual(n):
    with region("ab"[n % 2]):
        if n > 1: mutual(n - 1)
def last_first(n):
    calls = [region("last first", parallel=True) for _ in range(n)]
    for call in calls: call.__enter__()
    for call in reversed(calls): call.__exit__(*nothing)
def first_first(n):
    calls = [region("first first", parallel=True) for _ in range(n)]
    for call in calls: call.__enter__()
    for call in calls: call.__exit__(*nothing)
def first_first_recursive(n, names):
    calls = [region(f"part {number % names}") for number in range(n)]
    for call in calls: call.__enter__()
    for call in calls: call.__exit__(*nothing)
def window(n, **options):
    calls = collections.deque()
    for _ in range(n):
        calls.append(region("window", **options))
        calls[-1].__enter__()
        if len(calls) > 3: calls.popleft().__exit__(*nothing)
    gc.collect()
    alive = sum(type(one).__name__ == "Frame" for one in gc.get_objects())
    for call in calls: call.__exit__(*nothing)
    return alive
"""


@pytest.mark.parametrize("shape", ["recursion", "mutual", "last_first", "first_first"])
def test_a_call_costs_the_same_however_many_are_open(tmp_path: Path, shape: str) -> None:
    """In recursion, and where parallel calls overlap in one context."""
    told = run(
        tmp_path,
        f"""
weigh({shape}, 100)
truth["few"] = weigh({shape}, 30)
truth["many"] = weigh({shape}, 300)
""",
        COUNT,
    )

    assert told.truth["many"] < 1.5 * told.truth["few"], told.truth


def test_leaving_in_the_order_of_entering_costs_no_more_for_many_regions(tmp_path: Path) -> None:
    """Where the call that is left has others of its region inside, which go on counting."""
    told = run(
        tmp_path,
        """
for names in (50, 5, 50): truth[str(names)] = weigh(lambda n: first_first_recursive(n, names), 200)
""",
        COUNT,
    )

    assert told.truth["50"] < 1.5 * told.truth["5"], told.truth


def test_a_leaf_costs_the_same_however_deep_it_is(tmp_path: Path) -> None:
    """Also if another thread is in the same region."""
    told = run(
        tmp_path,
        """
entered, end = threading.Event(), threading.Event()
other = threading.Thread(target=stay)
other.start()
entered.wait()
for depth in (10, 100, 10): truth[str(depth)] = dive(depth)
end.set()
other.join()
""",
        f"""{COUNT}
def stay():
    with region("dive"), region("leaf"): entered.set(); end.wait()
def leaf(n):
    for _ in range(n):
        with region("leaf"): pass
def dive(depth):
    with region("dive"): return dive(depth - 1) if depth else weigh(leaf, 100)
""",
    )

    assert told.truth["100"] < 1.5 * told.truth["10"]


def test_ended_calls_are_let_go_while_others_are_open(tmp_path: Path) -> None:
    """A program in which there is always one open does not grow."""
    told = run(
        tmp_path,
        """
truth["parallel"] = window(1000, parallel=True)
truth["nested"] = window(1000)
""",
        COUNT,
    )

    assert told.truth["parallel"] < 10
    assert told.truth["nested"] < 10


def test_ended_calls_need_no_garbage_collector(tmp_path: Path) -> None:
    """Also of code that is suspended, closed in the middle or driven by hand: many programs turn the collector off."""
    told = run(
        tmp_path,
        """
def count_calls(): return sum(type(one).__name__ == "Frame" for one in gc.get_objects())
gc.disable()
for shape in (use, use_half, drop, drive):
    for _ in range(1000): shape()
    truth[shape.__name__] = count_calls()
""",
        f"""{COUNT}
def rows():
    with region("rows"):
        yield 1
        yield 2
@region("wait")
async def wait(): await asyncio.sleep(0)
def use(): return list(rows())
def use_half():
    half = rows(); next(half); half.close()
def drop(): next(rows())
def drive():
    waiting = wait(); waiting.send(None)
    try: waiting.send(None)
    except StopIteration: pass
""",
    )

    # Those since the thread's clock was read last, about 0.1 ms ago, are still needed.
    assert max(told.truth[shape] for shape in ("use", "use_half", "drop", "drive")) < 100, told.truth


def test_regions_that_overlap_share_by_their_number_of_calls(tmp_path: Path) -> None:
    """In whatever order they end; a task has the time of its own call and of what it was created in."""
    told = run(
        tmp_path,
        """
small, *large = [region(name, parallel=True) for name in ("small", "large", "large", "large")]
for call in (small, *large): call.__enter__()
burn(0.2)
large.pop(1).__exit__(*nothing)
large.pop(0).__exit__(*nothing)
burn(0.2)
small.__exit__(*nothing)
burn(0.1)
large.pop().__exit__(*nothing)
asyncio.run(serve())
""",
        """
nothing = (None, None, None)
async def answer(name):
    with region(name, parallel=True):
        burn(0.1)
        await asyncio.sleep(0.02)
async def serve():
    with region("serve", parallel=True):
        await asyncio.gather(answer("one"), answer("two"))
""",
    )

    assert told["small"][0]["cpu_seconds"] == pytest.approx(0.05 + 0.1, abs=0.02)
    assert told["large"][0]["cpu_seconds"] == pytest.approx(0.15 + 0.1 + 0.1, abs=0.03)
    assert told["serve"][0]["cpu_seconds"] == pytest.approx(0.1, abs=0.02)
    for name in ("one", "two"):
        assert told[name][0]["cpu_seconds"] == pytest.approx(0.05, abs=0.02)
        assert told[name][0]["cpu_basis"] == "shared"
