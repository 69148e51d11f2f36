"""Print a script that completes commands and options in bash, zsh or fish."""

from __future__ import annotations

from ..core.errors import UsageError
from .options import Parser
from .output import Output
from .shells import SHELLS

_EPILOG = """\
The script knows the commands and options of this version: evaluating it when the shell starts keeps it current.
"""


def main(arguments: list[str]) -> int:
    """The script goes to standard output."""
    shell = make_parser().parse_args(arguments).shell
    if shell not in SHELLS:
        raise UsageError(f"Unknown shell {shell!r}.", f"Use one of: {', '.join(SHELLS)}.")
    from .describe import describe_all

    Output(None).write(SHELLS[shell](describe_all()), otherwise=1)
    return 0


def make_parser() -> Parser:
    """Its options."""
    parser = Parser(prog="gpu-tracker completion", description=__doc__)
    parser.epilog = _EPILOG
    parser.add_argument("shell", metavar="SHELL", help=f"one of {', '.join(SHELLS)}")
    parser.offers["shell"] = tuple(SHELLS)
    return parser
