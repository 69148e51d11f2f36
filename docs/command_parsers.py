"""The parsers of the command line, for pages made from them and for whoever checks a command without running it."""

from __future__ import annotations

import argparse
import io
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any
from unittest import mock

from gpu_tracker.cli import COMMANDS, load_command

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = ("run", "attach", "-e", *(name for name in COMMANDS if name not in {"run", "attach"}))
"""All commands, those that track first. `-e` has no name: it is the compatible form."""
ACTIONS = {"sub-track": ("analyze", "combine", "compare")}
"""Of commands that have commands of their own."""


class _ParsedError(BaseException):
    """A command has got as far as its parser."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__()
        self.parser = parser


def find_parser(name: str, action: str | None = None) -> argparse.ArgumentParser:
    """The parser that the command makes."""
    try:
        parse(name, [] if action is None else [action])
    except _ParsedError as found:
        return found.parser
    raise AssertionError(f"{name} has no parser")


def check(name: str, arguments: list[str]) -> None:
    """UsageError, or SystemExit, if the parser of the command refuses the arguments. Nothing else happens."""
    words = [name, *arguments] if name == "-e" else arguments
    try:
        parse(name, words, is_checked=True)
    except _ParsedError:
        return
    raise AssertionError(f"{name} has no parser")


def parse(name: str, arguments: list[str], *, is_checked: bool = False) -> None:
    """Call the command, and leave it at its last parser."""
    n_actions = 1 if name in ACTIONS and arguments else 0

    def stop(parser: argparse.ArgumentParser, words: list[str] | None = None, *_: Any) -> argparse.Namespace:
        nonlocal n_actions
        if n_actions:
            n_actions -= 1
            return original(parser, words)
        if is_checked:
            original(parser, words)
        raise _ParsedError(parser)

    original: Callable[..., argparse.Namespace] = argparse.ArgumentParser.parse_args
    patched = mock.patch.object(argparse.ArgumentParser, "parse_args", stop)
    with patched, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        _call(name, arguments)


def _call(name: str, arguments: list[str]) -> None:
    command = load_command("execute" if name == "-e" else name)
    if name == "-e":
        command.make_parser().parse_args(arguments)
    elif name == "run":
        command.parse_options(arguments)
    elif name == "attach":
        command.main(arguments, None)
    else:
        command.main(arguments)
