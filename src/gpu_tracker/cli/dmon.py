"""Print the state of each GPU in scrolling columns, like `nvidia-smi dmon`."""

from __future__ import annotations

from ..core.errors import UsageError
from ..live.monitors import (
    DEVICE_GROUPS,
    Before,
    build_device_heading,
    build_device_row,
    list_columns,
    list_details,
    parse_letters,
)
from .options import Parser
from .scrolling import add_scrolling, find_moments, scroll

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.observation import Device, Observation

_EPILOG = """\
Groups: p power and temperature, u utilization, c clocks, v power and thermal
violations, m memory, e ECC and PCIe errors, t PCIe throughput. `-` is not
known. Ctrl-C stops it.
"""
_WORDS = ("csv", "nounit", "noheader")


def main(arguments: list[str]) -> int:
    """One line per GPU and reading."""
    options = make_parser().parse_args(arguments)
    columns = list_columns(parse_letters("-s", options.select, DEVICE_GROUPS))
    moments = find_moments(options)
    words = _parse_words(options.format)
    is_csv = "csv" in words
    heading = build_device_heading(columns, moments, is_csv=is_csv)
    before: dict[str, Before] = {}

    def build(observation: Observation, gpus: tuple[Device, ...]) -> list[str]:
        lines = [
            build_device_row(observation, gpu, before.get(gpu.gpu.uuid), columns, moments, is_csv=is_csv)
            for gpu in gpus
        ]
        before.update((gpu.gpu.uuid, Before(gpu, observation.at_seconds)) for gpu in gpus)
        return lines

    shown = () if "noheader" in words else heading[:1] if "nounit" in words else heading
    return scroll(options, shown, build, list_details(columns))


def make_parser() -> Parser:
    """Its options."""
    parser = Parser(prog="gpu-tracker dmon", description=__doc__)
    parser.epilog = _EPILOG
    add_scrolling(parser, groups=DEVICE_GROUPS, default="puc")
    parser.add_argument(
        "--format", metavar="WORDS", default="", help="csv, nounit and noheader, separated by commas"
    )
    return parser


def _parse_words(text: str) -> frozenset[str]:
    words = frozenset(word.strip() for word in text.split(",") if word.strip())
    unknown = sorted(words.difference(_WORDS))
    if unknown:
        raise UsageError(f"Unknown format {unknown[0]!r}.", f"Use {', '.join(_WORDS)}.")
    return words
