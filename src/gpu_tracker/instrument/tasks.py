"""Which asyncio task runs: what is begun in another one than a call rests in was created inside that call."""

from __future__ import annotations

import sys


def find_task() -> int:
    """The identity of the task that the calling thread runs; 0 outside of asyncio."""
    tasks = sys.modules.get("asyncio.tasks")
    loop = None if tasks is None else tasks.events._get_running_loop()  # noqa: SLF001 - it does not raise
    task = None if tasks is None or loop is None else tasks.current_task(loop)
    return 0 if task is None else id(task)
