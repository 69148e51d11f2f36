"""The command line as values, read from its parsers: for completion in shells, and for the manual."""

from __future__ import annotations

from ..core.values import NamedTuple
from . import COMMANDS, load_command
from .examples import NAME, list_examples

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from .options import Parser


class Option(NamedTuple):
    """An option, or what stands without one (then it has no flags)."""

    flags: tuple[str, ...]
    meaning: str
    placeholder: str = ""
    values: tuple[str, ...] = ()

    @property
    def takes_value(self) -> bool:
        """Whether a word follows."""
        return bool(self.placeholder)


class Command(NamedTuple):
    """A command, or an action of one."""

    words: tuple[str, ...]
    summary: str
    usage: str
    notes: str
    options: tuple[Option, ...]
    places: tuple[Option, ...]
    examples: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """As it is typed after the name of the program."""
        return " ".join(self.words)


def describe_all() -> tuple[Command, ...]:
    """All commands, each before its actions; the first is the compatible form, without a name."""
    from .execute import make_parser

    parsers = (parser for name in COMMANDS for parser in list_parsers(name))
    return tuple(map(_describe, (make_parser(), *parsers)))


def list_parsers(name: str) -> tuple[Parser, ...]:
    """Of a command, and of its actions."""
    command = load_command(name)
    return (command.make_parser(), *getattr(command, "make_action_parsers", tuple)())


def _describe(parser: Parser) -> Command:
    words = tuple(parser.prog.split()[1:])
    described = [_describe_action(parser, action) for action in parser._actions]  # noqa: SLF001 - there is no public list
    return Command(
        words,
        (parser.description or "").partition("\n")[0],
        parser.format_usage().removeprefix("usage: ").strip(),
        _format_notes(parser),
        tuple(one for one in described if one.flags),
        tuple(one for one in described if not one.flags),
        tuple(list_examples(" ".join(words))),
    )


def _format_notes(parser: Parser) -> str:
    formatter = parser._get_formatter()  # noqa: SLF001 - that of its help
    formatter.add_text(parser.epilog)
    return formatter.format_help()


def _describe_action(parser: Parser, action: argparse.Action) -> Option:
    takes_value = action.nargs != 0
    name = action.metavar or action.dest.upper()
    values = parser.offers.get(action.dest) or action.choices or ()
    return Option(
        tuple(action.option_strings),
        (action.help or "") % {**vars(action), "prog": NAME},
        (name if isinstance(name, str) else " ".join(name)) if takes_value else "",
        tuple(map(str, values)),
    )
