"""The command line: one file per command, and one place where errors become exit codes.

A command is a module with a `main`; the first line of its docstring is its help. Commands that track also get a sampler
that was started before their options were parsed: it starts up while we import the rest.
"""

from __future__ import annotations

import gc
import sys

from ..core import load_module, signal
from ..core.errors import TrackerError, UsageError
from .ending import end
from .interrupts import allow_interrupts, note_interrupts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

COMMANDS = (
    *("run", "attach", "report", "export", "compare", "size", "ls", "combine"),
    *("top", "send", "watch", "serve", "query", "dmon", "pmon", "doctor", "explain", "sub-track"),
    *("completion", "help"),
)
_TRACKING = ("run", "attach")
_HELP = ("-h", "--help", "-v", "--version")


def main() -> NoReturn:
    """Entry point of `gpu-tracker`."""
    note_interrupts()
    end(_run(sys.argv[1:]))


def _run(arguments: list[str]) -> int:
    """The exit code; negative for the signal that ended the job, or us."""
    try:
        return _dispatch(arguments)
    except TrackerError as error:
        _say(error)
        return error.exit_code
    except KeyboardInterrupt:
        note_interrupts()  # an impatient second one changes nothing
        return -signal.SIGINT
    except Exception:  # noqa: BLE001
        import traceback

        # A defect of ours; 1 and 2 would mean something else.
        traceback.print_exc()
        return TrackerError.exit_code


def _dispatch(arguments: list[str]) -> int:
    name = arguments[0] if arguments else "--help"
    if name in COMMANDS:
        if name in _TRACKING:
            return _track(name, arguments[1:])
        command = load_command(name)
        allow_interrupts()
        return int(command.main(arguments[1:]))
    if not name.startswith("-"):
        raise UsageError(f"Unknown command {name!r}.", _suggest(name))
    if not arguments or any(word in arguments for word in _HELP):
        from .help import show_help

        return show_help(arguments)
    return _track("execute", arguments)


def _suggest(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, COMMANDS, n=1)
    return f"Did you mean {near[0]!r}?" if near else "`gpu-tracker help` lists the commands."


def _track(name: str, arguments: list[str]) -> int:
    from ..sampler.handle.descriptor import reserve
    from ..sampler.handle.process import start_sampler

    gc.disable()  # we import and wait, and leave no garbage behind
    reserve()
    sampler = start_sampler(lambda _failure: None)  # the session tries again, and says it
    try:
        return int(load_command(name).main(arguments, sampler))
    finally:
        if sampler is not None and not sampler.is_gone:
            sampler.close()


def _say(error: Exception) -> None:
    from .output import say

    say(str(error))


def load_command(name: str) -> Any:
    """Its module."""
    return load_module(f"{__name__}.{name.replace('-', '_')}")
