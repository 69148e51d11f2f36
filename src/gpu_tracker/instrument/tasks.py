"""Which task of asyncio or trio runs: what is begun in another one than a call rests in was created inside that call."""

from __future__ import annotations

import sys


def find_task() -> int:
    """The identity of the task that the calling thread runs; 0 outside of asyncio and trio."""
    tasks = sys.modules.get("asyncio.tasks")
    loop = None if tasks is None else tasks.events._get_running_loop()  # noqa: SLF001 - it does not raise
    task = None if tasks is None or loop is None else tasks.current_task(loop)
    if task is None and "trio" in sys.modules:
        # Its public function raises outside of a task, which a signal handler may do, too.
        run = getattr(sys.modules.get("trio._core._run"), "GLOBAL_RUN_CONTEXT", None)
        task = getattr(run, "task", None)
    return 0 if task is None else id(task)
