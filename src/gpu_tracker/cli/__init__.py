"""The command line: one file per command, and one place where errors become exit codes.

A command is a module with a `main`; the first line of its docstring is its help. Commands that track also get a sampler
that was started before their options were parsed: it starts up while we import the rest.
"""

from __future__ import annotations

import gc
import os
import sys

from ..core import load_module, signal
from ..core.errors import TrackerError, UsageError
from .interrupts import allow_interrupts, note_interrupts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

COMMANDS = (
    "run",
    "attach",
    "report",
    "export",
    "compare",
    "size",
    "ls",
    "combine",
    "watch",
    "query",
    "doctor",
    "explain",
)
_TRACKING = ("run", "attach")
_HELP = ("-h", "--help", "-v", "--version")


def main() -> NoReturn:
    """Entry point of `gpu-tracker`."""
    note_interrupts()
    code = _run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError):
            continue  # closed by the caller, or its disk is full
    # Everything is written; a tidy exit of the interpreter would only keep the caller waiting.
    if code < 0:
        _die_of(-code)
    os._exit(code)


def _die_of(number: int) -> NoReturn:
    """End by the same signal as the job: a shell goes on with its loop or script after a program that exits."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(
        resource.RLIMIT_CORE, (0, most)
    )  # the job has left its core, and ours would overwrite it
    try:
        signal.signal(number, signal.SIG_DFL)
    except (OSError, ValueError):
        pass  # it cannot be caught, or is no signal of this system
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # the first process of a container does not die of it


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
    arguments = arguments or ["--help"]
    name = arguments[0]
    if name in COMMANDS:
        if name in _TRACKING:
            return _track(name, arguments[1:])
        command = _load(name)
        allow_interrupts()
        return int(command.main(arguments[1:]))
    if not name.startswith("-"):
        raise UsageError(f"Unknown command {name!r}.", _suggest(name))
    if any(word in arguments for word in _HELP):
        return _show_help(arguments)
    return _track("execute", arguments)


def _suggest(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, COMMANDS, n=1)
    return f"Did you mean {near[0]!r}?" if near else "`gpu-tracker --help` lists the commands."


def _track(name: str, arguments: list[str]) -> int:
    from ..sampler.handle.descriptor import reserve
    from ..sampler.handle.process import start_sampler

    gc.disable()  # we import and wait, and leave no garbage behind
    reserve()
    sampler = start_sampler(lambda _failure: None)  # the session tries again, and says it
    try:
        return int(_load(name).main(arguments, sampler))
    finally:
        if sampler is not None and not sampler.is_gone:
            sampler.close()


def _show_help(arguments: list[str]) -> int:
    import textwrap

    from .execute import make_parser
    from .options import HELP_COLUMNS

    parser = make_parser()
    lines = ["Commands (details: gpu-tracker COMMAND --help):"]
    for name in COMMANDS:
        summary = (_load(name).__doc__ or "").splitlines()[0]
        lines += textwrap.wrap(
            summary, HELP_COLUMNS, initial_indent=f"  {name:<8} ", subsequent_indent=" " * 11
        )
    parser.epilog = "\n".join(lines)
    allow_interrupts()
    parser.parse_args(arguments)
    return 0


def _say(error: Exception) -> None:
    from .output import say

    say(str(error))


def _load(name: str) -> Any:
    return load_module(f"{__name__}.{name}")
