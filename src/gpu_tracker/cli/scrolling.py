"""What `dmon` and `pmon` share: nvidia-smi's options for scrolling output, and the loop that writes it."""

from __future__ import annotations

from ..core.observation import list_notes
from ..live.monitors import MOMENTS, parse_letters
from ..sampler.handle.client import ObserverClient
from .observing import (
    add_observing,
    check_count,
    check_seconds,
    choose_gpus,
    open_output,
    repeat,
    say_once,
    write_lines,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Sequence

    from ..core.observation import Device, Observation


def add_scrolling(parser: argparse.ArgumentParser, *, groups: Iterable[str], default: str) -> None:
    """Add nvidia-smi's options."""
    parser.add_argument(
        "-s",
        "--select",
        metavar="GROUPS",
        default=default,
        help=f"columns, one or more of {''.join(groups)} (default {default})",
    )
    parser.add_argument(
        "-i", "--id", metavar="WHICH", help="comma-separated indices, UUIDs or bus ids (default: all GPUs)"
    )
    parser.add_argument(
        "-d", "--delay", metavar="SECONDS", default="1", help="seconds between readings (default 1)"
    )
    parser.add_argument("-c", "--count", metavar="N", help="stop after N readings")
    parser.add_argument("-o", "--options", metavar="DT", help="D adds the date, T the time")
    parser.add_argument("-f", "--filename", metavar="FILE", help="write to FILE")
    add_observing(parser)


def find_moments(options: argparse.Namespace) -> tuple[str, ...]:
    """The letters of `-o`."""
    return () if options.options is None else parse_letters("-o", options.options.upper(), MOMENTS)


def scroll(
    options: argparse.Namespace,
    heading: Sequence[str],
    build: Callable[[Observation, tuple[Device, ...]], list[str]],
    details: tuple[str, ...] = (),
) -> int:
    """Write the lines of each reading until there are enough, Ctrl-C is pressed, or nobody reads them."""
    interval = check_seconds("-d", options.delay, least=0.1)
    # As in nvidia-smi, 0 is for ever.
    count = None if options.count in (None, "0") else check_count("-c", options.count)
    timeout = check_seconds("--timeout", options.timeout, least=0.1)
    out = open_output(options.filename)
    with ObserverClient(timeout) as client:
        try:
            for number, _ in enumerate(repeat(interval, count)):
                observation = client.observe(details=details)
                gpus = choose_gpus(observation, options.id, must_exist=number == 0)
                lines = [*(heading if number == 0 else ()), *build(observation, gpus)]
                say_once(list_notes(observation, None if options.id is None else gpus))
                if not write_lines(lines, out):
                    break
        except KeyboardInterrupt:
            pass  # the normal end
    return 0
