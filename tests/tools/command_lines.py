"""Say what a command's parser has against its arguments, without running it."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

from gpu_tracker import UsageError
from gpu_tracker.cli import COMMANDS
from gpu_tracker.cli.describe import list_parsers
from gpu_tracker.cli.execute import make_parser


def find_fault(words: list[str]) -> str:
    """Empty if there is none. The words are those after `gpu-tracker`."""
    name = words[0]
    if name not in COMMANDS and not name.startswith("-"):
        return f"there is no command {name!r}"
    parser, *actions = list_parsers(name) if name in COMMANDS else (make_parser(),)
    arguments = words[1:] if name in COMMANDS else words
    try:
        with redirect_stdout(io.StringIO()):
            parser.parse_args(arguments[:1] if actions else arguments)
            for action in actions:
                if action.prog.split()[-1] == arguments[0]:
                    action.parse_args(arguments[1:])
    except UsageError as error:
        return str(error)
    except SystemExit as error:
        return str(error.code or "")  # --help
    return ""
