"""What `gpu-tracker --help` shows: the options of the compatible form, and all commands."""

from __future__ import annotations

import textwrap

from . import COMMANDS, load_command
from .execute import make_parser
from .interrupts import allow_interrupts
from .options import HELP_COLUMNS


def show_help(arguments: list[str]) -> int:
    """The help or the version that the options ask for."""
    parser = make_parser()
    lines = ["Commands (details: gpu-tracker COMMAND --help):"]
    for name in COMMANDS:
        summary = (load_command(name).__doc__ or "").splitlines()[0]
        lines += textwrap.wrap(
            summary, HELP_COLUMNS, initial_indent=f"  {name:<9} ", subsequent_indent=" " * 12
        )
    parser.epilog = "\n".join(lines)
    allow_interrupts()
    parser.parse_args(arguments)
    return 0
