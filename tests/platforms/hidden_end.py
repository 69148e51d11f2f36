"""A child ends while a sampler is started."""

from __future__ import annotations

import json
import os
import signal


def main() -> None:
    """Whether the handler of this program has met it."""
    from gpu_tracker.sampler.handle.process import without_child_signals
    from gpu_tracker.sources.platform import await_end_of_child

    heard: list[bool] = []
    signal.signal(signal.SIGCHLD, lambda *_: heard.append(os.waitpid(-1, os.WNOHANG)[0] == pid))
    with without_child_signals():
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        await_end_of_child(pid)
    print(json.dumps({"heard": heard}))


if __name__ == "__main__":
    main()
