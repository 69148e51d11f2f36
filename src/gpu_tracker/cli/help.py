"""Explain a command or a topic; without one, list them."""

from __future__ import annotations

import textwrap

from ..core.errors import UsageError
from . import COMMANDS, load_command
from .describe import list_parsers
from .examples import NAME
from .execute import make_parser as make_compatible_parser
from .interrupts import allow_interrupts
from .options import HELP_COLUMNS, Parser
from .output import Output
from .topics import TOPICS, explain_topic, list_topics

_FIRST_STEPS = """\
Measures what a job and all its descendants use: RAM, CPU, GPU memory, GPU
utilization, time. Five things to do now:

  gpu-tracker run -- python train.py   track a command; then read its report
  gpu-tracker report -o report.html    charts of the newest run
  gpu-tracker watch                    the GPUs of this machine, live
  gpu-tracker doctor                   what can be measured here
  gpu-tracker help                     all commands and topics

In Python: import gpu_tracker as gput; with gput.Tracker() as tracker: ...
"""


def main(arguments: list[str]) -> int:
    """The text goes to standard output."""
    topic = " ".join(make_parser().parse_args(arguments).topic)
    Output(None).write(_explain(topic), otherwise=1)
    return 0


def make_parser() -> Parser:
    """Its options."""
    parser = Parser(prog=f"{NAME} help", description=__doc__)
    parser.add_argument("topic", metavar="TOPIC", nargs="*", help="a command or a topic")
    parser.offers["topic"] = (*COMMANDS, *TOPICS)
    return parser


def show_help(arguments: list[str]) -> int:
    """The help or the version that the options ask for; what to do first if nothing but the name of the program was typed."""
    if not arguments:
        Output(None).write(_FIRST_STEPS, otherwise=1)
        return 0
    parser = make_compatible_parser()
    parser.epilog = _list_commands()
    allow_interrupts()
    parser.parse_args(arguments)
    return 0


def _explain(topic: str) -> str:
    if not topic:
        return f"{_list_commands()}\n\n{list_topics()}"
    if topic in TOPICS:
        return explain_topic(topic)
    name, *action = topic.split()
    if name not in COMMANDS:
        from difflib import get_close_matches

        near = get_close_matches(name, (*COMMANDS, *TOPICS), n=1)
        raise UsageError(
            f"No help on {topic!r}.", f"Did you mean {near[0]!r}?" if near else f"`{NAME} help` lists it all."
        )
    for parser in list_parsers(name):
        if parser.prog.split()[1:] == [name, *action]:
            return parser.format_help()
    raise UsageError(f"No help on {topic!r}.", f"`{NAME} {name} --help` lists what it can do.")


def _list_commands() -> str:
    lines = [f"Commands (details: {NAME} COMMAND --help):"]
    for name in COMMANDS:
        summary = (load_command(name).__doc__ or "").splitlines()[0]
        lines += textwrap.wrap(
            summary, HELP_COLUMNS, initial_indent=f"  {name:<10} ", subsequent_indent=" " * 13
        )
    return "\n".join(lines)
