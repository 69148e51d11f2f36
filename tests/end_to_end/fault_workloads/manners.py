"""What a guest must not touch: the root logger, and the order of start and stop."""

from __future__ import annotations

import logging

from end_to_end.fault_workloads.telling import burn, make_tracker, say, tell, tell_figures


def main() -> None:
    """Everything wrong once."""
    tracker = make_tracker()
    errors = [attempt(tracker.stop)]
    tracker.start()
    errors.append(attempt(tracker.start))
    burn(0.2)
    tracker.stop()
    errors.append(attempt(tracker.stop))
    tell(errors=errors, handlers=len(logging.getLogger().handlers), level=logging.getLogger().level)
    logging.basicConfig(format="mine: %(message)s", level=logging.INFO)
    logging.getLogger("job").info("hello")
    tracker.start()
    burn(0.2)
    tracker.stop()
    tell_figures(tracker)
    say("done")


def attempt(call: object) -> str:
    """The error that a call raises."""
    assert callable(call)
    try:
        call()
    except RuntimeError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    main()
