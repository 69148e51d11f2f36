"""Pages of the manual (troff, section 1), from the described command line. Pure."""

from __future__ import annotations

from .examples import NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .describe import Command, Option


def name_page(command: Command) -> str:
    """The name under which `man` finds it."""
    return "-".join((NAME, *command.words))


def write_page(command: Command, commands: Sequence[Command], version: str) -> str:
    """The page of one command; that of the compatible form names the others."""
    return "\n".join([*_list_lines(command, commands, version), ""])


def _list_lines(command: Command, commands: Sequence[Command], version: str) -> Iterator[str]:
    name = name_page(command)
    yield f'.TH {name.upper()} 1 "" "{NAME} {version}" "User commands"'
    yield from (".SH NAME", f"{name} \\- {_escape(_find_summary(command))}")
    yield from (".SH SYNOPSIS", ".nf", *map(_escape, command.usage.splitlines()), ".fi")
    yield ".SH EXAMPLES"
    for line, meaning in command.examples:
        yield from (".TP", f".B {_escape(line)}", _escape(meaning))
    yield from (".SH DESCRIPTION", _escape(command.summary))
    if command.notes:
        yield from (".PP", ".nf", *map(_escape, command.notes.rstrip().splitlines()), ".fi")
    for heading, options in (("ARGUMENTS", command.places), ("OPTIONS", command.options)):
        if options:
            yield f".SH {heading}"
            for option in options:
                yield from (".TP", f".B {_escape(_head(option))}", _escape(option.meaning))
    if not command.words:
        yield ".SH COMMANDS"
        for other in commands:
            if len(other.words) == 1:
                yield from (".TP", f".BR {_escape(name_page(other))} (1)", _escape(other.summary))
    else:
        yield from (".SH SEE ALSO", f".BR {_escape(NAME)} (1)")


def _find_summary(command: Command) -> str:
    summary = command.summary.rstrip(".")
    return summary[:1].lower() + summary[1:]


def _head(option: Option) -> str:
    return " ".join(filter(None, (", ".join(option.flags), option.placeholder)))


def _escape(text: str) -> str:
    """A line never begins like a request; hyphens, quotes and backslashes stand for themselves."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{escaped}" if escaped[:1] in {".", "'"} else escaped
