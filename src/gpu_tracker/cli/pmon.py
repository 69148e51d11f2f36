"""Print the processes on each GPU in scrolling columns, like `nvidia-smi pmon`."""

from __future__ import annotations

from ..live.monitors import PROCESS_GROUPS, build_process_heading, build_process_rows, parse_letters
from .options import Parser
from .scrolling import add_scrolling, find_moments, scroll

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.observation import Device, Observation

_EPILOG = """\
Groups: u utilization, m memory. `-` is not known, or a GPU without processes.
C computes, G draws, C+G does both. Ctrl-C stops it.
"""


def main(arguments: list[str]) -> int:
    """One line per process and reading."""
    options = make_parser().parse_args(arguments)
    groups = parse_letters("-s", options.select, PROCESS_GROUPS)
    moments = find_moments(options)

    def build(observation: Observation, gpus: tuple[Device, ...]) -> list[str]:
        return [line for gpu in gpus for line in build_process_rows(observation, gpu, groups, moments)]

    return scroll(options, build_process_heading(groups, moments), build)


def make_parser() -> Parser:
    """Its options."""
    parser = Parser(prog="gpu-tracker pmon", description=__doc__)
    parser.epilog = _EPILOG
    add_scrolling(parser, groups=PROCESS_GROUPS, default="u")
    return parser
