"""What ours can tell of the end of a child."""

from __future__ import annotations

import json
import os
import select


def main() -> None:
    """Before it ends, after that, and when it has been waited for."""
    from gpu_tracker.sources.platform import (
        await_end,
        await_end_of_child,
        has_ended_children,
        is_child,
        open_exit,
    )

    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    fd = open_exit(pid)
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    told: dict[str, object] = {"readable_before": bool(poll.poll(0)), "awaited_before": await_end(pid, 0.01)}
    ended, children = [has_ended_children()], [is_child(pid)]
    os.close(writing)
    await_end_of_child(pid)
    told |= {"readable_after": bool(poll.poll(0)), "awaited_after": await_end(pid, 0.01)}
    ended.append(has_ended_children())
    children.append(is_child(pid))
    os.waitpid(pid, 0)
    ended.append(has_ended_children())
    children.append(is_child(pid))
    print(json.dumps({**told, "has_ended_children": ended, "is_child": children}))


if __name__ == "__main__":
    main()
