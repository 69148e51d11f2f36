"""Programs with regions in threads, coroutines and generators, which print what CPU time each region really had."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

import gpu_tracker as gput
from end_to_end.workloads.truth import burn

used: dict[str, float] = {}
_STEP = 0.01


def use(name: str, cpu_seconds: float) -> None:
    """Burn for a region, and keep the account."""
    before = time.thread_time()
    burn(cpu_seconds)
    used[name] = used.get(name, 0.0) + time.thread_time() - before


def threads() -> None:
    """One thread works, nine wait in another region, and the main thread works outside of all regions."""
    is_over = threading.Event()

    def wait() -> None:
        with gput.region("wait"):
            is_over.wait()

    def work() -> None:
        with gput.region("work"):
            use("work", 1.0)

    waiting = [threading.Thread(target=wait) for _ in range(9)]
    worker = threading.Thread(target=work)
    for thread in (*waiting, worker):
        thread.start()
    burn(0.3)
    worker.join()
    is_over.set()
    used["wait"] = 0.0
    for thread in waiting:
        thread.join()


async def _parse() -> None:
    for _ in range(50):
        use("parse", _STEP)
        await asyncio.sleep(0)


async def _wait() -> None:
    await asyncio.sleep(_STEP)


def coroutines() -> None:
    """Fifty wait, one parses and gives way again and again, one works outside of all regions."""

    async def parse() -> None:
        with gput.region("parse"):
            await _parse()

    async def wait() -> None:
        for _ in range(5):
            with gput.region("wait"):
                await _wait()

    _run_together(parse, wait)


def decorated_coroutines() -> None:
    """The same with decorated functions."""
    waiting = gput.region("wait")(_wait)

    async def wait() -> None:
        for _ in range(5):
            await waiting()

    _run_together(gput.region("parse")(_parse), wait)


def _run_together(parse: object, wait: object) -> None:
    async def burn_outside() -> None:
        for _ in range(20):
            burn(_STEP)
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(parse(), burn_outside(), *(wait() for _ in range(50)))  # type: ignore[operator]

    asyncio.run(main())
    used["wait"] = 0.0


def helpers() -> None:
    """A pool that existed before works for the region that waits for it, like that of a BLAS library."""
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(time.sleep, [0.01] * 4))
        with gput.region("multiply"):
            list(pool.map(use, ["multiply"] * 4, [0.2] * 4))
        with gput.region("rest"):
            time.sleep(0.1)
    used["rest"] = 0.0


def divided_helpers() -> None:
    """Two regions run at once, and nobody can tell for which of them the pool works."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(time.sleep, 0).result()

        def wait() -> None:
            with gput.region("one"):
                time.sleep(0.1)
                pool.submit(use, "both", 0.5).result()

        thread = threading.Thread(target=wait)
        thread.start()
        with gput.region("other"):
            thread.join()


def awaited_helper() -> None:
    """A coroutine waits for a thread that works for it."""

    async def main() -> None:
        with gput.region("fetch"):
            await asyncio.to_thread(use, "fetch", 0.5)

    asyncio.run(main())


def async_generator() -> None:
    """A decorated one works, waits and gives; what is done with its items is not its work."""

    @gput.region("rows")
    async def rows() -> AsyncIterator[int]:
        try:
            for row in range(5):
                use("rows", 0.05)
                await asyncio.sleep(0.01)
                yield row
        finally:
            use("rows", 0.1)

    async def main() -> None:
        async with contextlib.aclosing(rows()) as opened:  # type: ignore[type-var]
            async for row in opened:
                burn(0.05)
                if row == 3:
                    break

    asyncio.run(main())


def generator() -> None:
    """A `with` in a generator: before Python 3.12, nobody tells when it is suspended."""

    def rows() -> Iterator[int]:
        with gput.region("rows"):
            for row in range(5):
                use("rows", 0.05)
                yield row

    for _ in rows():
        burn(0.05)


def context_manager() -> None:
    """A generator that contextlib has made a context manager of: the code of the block is inside."""

    @contextlib.contextmanager
    def phase() -> Iterator[None]:
        with gput.region("phase"):
            yield

    with phase():
        use("phase", 0.2)
        with gput.region("inner"):
            use("phase", 0.1)
    with contextlib.ExitStack() as stack:
        stack.enter_context(gput.region("stacked"))
        use("stacked", 0.2)


def recursion() -> None:
    """Two functions call each other."""

    @gput.region("even")
    def even(depth: int) -> None:
        use("even", 0.02)
        if depth:
            odd(depth - 1)

    @gput.region("odd")
    def odd(depth: int) -> None:
        use("odd", 0.02)
        if depth:
            even(depth - 1)

    began = time.monotonic()
    even(9)
    used["seconds"] = time.monotonic() - began


def killed() -> None:
    """It dies in the middle of a region."""
    gput.region("train").__enter__()
    with gput.region("step"):
        use("train", 0.2)
    use("train", 1.0)
    time.sleep(1.0)


def killed_threads() -> None:
    """It dies with one thread working, one waiting, each in its region, and the main thread in none."""
    is_ready = threading.Barrier(3)

    def work() -> None:
        with gput.region("work"):
            is_ready.wait()
            use("work", 1.0)
            time.sleep(100)

    def wait() -> None:
        with gput.region("wait"):
            is_ready.wait()
            time.sleep(100)

    for target in (work, wait):
        threading.Thread(target=target, daemon=True).start()
    is_ready.wait()
    while "work" not in used:
        time.sleep(0.1)
    burn(0.3)
    used["wait"] = 0.0
    time.sleep(1.0)


def parallel() -> None:
    """Requests overlap in one context, as callbacks of an event loop do."""
    requests = [gput.region("request", parallel=True) for _ in range(3)]
    for request in requests:
        request.__enter__()
        use("request", 0.1)
    with gput.region("parse"):
        use("parse", 0.1)
    for request in requests:
        use("request", 0.1)
        request.__exit__(None, None, None)


def parallel_tasks() -> None:
    """Requests overlap in an event loop, each a task."""

    async def answer() -> None:
        with gput.region("request", parallel=True):
            for _ in range(5):
                use("request", 0.01)
                await asyncio.sleep(0)
            with gput.region("parse"):
                use("parse", 0.01)

    async def main() -> None:
        with gput.region("serve"):
            await asyncio.gather(*(answer() for _ in range(10)))

    asyncio.run(main())


def _spin(name: str, cpu_ns: int) -> None:
    """Use a few microseconds."""
    before = now = time.thread_time_ns()
    while now < before + cpu_ns:
        now = time.thread_time_ns()
    used[name] = used.get(name, 0.0) + (now - before) / 1e9


def short_calls() -> None:
    """Calls in turns, far shorter than a clock can be read for each."""
    outer, inner, next_one = gput.region("round"), gput.region("quick"), gput.region("slow")
    for _ in range(20_000):
        with outer:
            with inner:
                _spin("round/quick", 10_000)
            with next_one:
                _spin("round/slow", 60_000)
    used["round"] = used["round/quick"] + used["round/slow"]


def nested_calls() -> None:
    """Short ones around shorter ones that have nearly all of their time."""
    outer, middle, inner = gput.region("outer"), gput.region("middle"), gput.region("inner")
    for _ in range(20_000):
        before = time.thread_time_ns()
        with outer, middle, inner:
            _spin("outer/middle/inner", 20_000)
        used["loop"] = used.get("loop", 0.0) + (time.thread_time_ns() - before) / 1e9
    used["outer"] = used["outer/middle"] = used["outer/middle/inner"]


def crossed_calls() -> None:
    """Short ones that are left in the order in which they were entered."""
    first, second = gput.region("first"), gput.region("second")
    for _ in range(10_000):
        first.__enter__()
        _spin("first", 20_000)
        second.__enter__()
        _spin("both", 20_000)
        first.__exit__(None, None, None)
        _spin("first/second", 20_000)
        second.__exit__(None, None, None)
    used["first"] += used["both"]
    used["first/second"] += used["both"]


def short_waits() -> None:
    """One works for a few microseconds, the next one mostly waits."""
    inner, next_one = gput.region("work"), gput.region("wait")
    for _ in range(20_000):
        with inner:
            _spin("work", 20_000)
        with next_one:
            before = time.thread_time_ns()
            time.sleep(1e-6)
            used["wait"] = used.get("wait", 0.0) + (time.thread_time_ns() - before) / 1e9


def rare_calls() -> None:
    """Short ones, between much that is in no region."""
    inner = gput.region("work")
    for _ in range(1000):
        with inner:
            _spin("work", 40_000)
        _spin("besides", 1_000_000)


def main() -> None:
    """Play one scene: inside a tracker of its own, or under whoever tracks it."""
    scene, record = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    with (
        gput.Tracker(sleep_time=0.2, disable_logs=True, record=record) if record else contextlib.nullcontext()
    ):
        before = time.process_time()
        globals()[scene]()
        used["process"] = time.process_time() - before
    print(json.dumps(used), flush=True)
    if scene.startswith("killed"):
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
