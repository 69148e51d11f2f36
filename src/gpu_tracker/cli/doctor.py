"""Check what can be measured here, what cannot, why, and what to do about it."""

from __future__ import annotations

import os

from ..analysis.checks import Check, Diagnosis, Signs, check_gpus, fail_gpus
from ..core.errors import TrackerError
from ..core.observation import PROBE
from ..reports.contract import choose_format, render
from ..sampler.handle.client import ObserverClient
from ..sources.gpu.hardware import find_device_files, find_on_bus
from .checks import (
    check_allocation,
    check_energy,
    check_namespace,
    check_processes,
    check_recording,
    check_versions,
)
from .observing import add_observing, check_seconds
from .options import Parser, add_output
from .output import Output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_EPILOG = """\
Exit code 0: everything on this machine can be measured (it need not have a
             GPU).
          1: something cannot be measured: a driver that fails or hangs, a
             device or figure that is denied or lost.
Figures that a device does not have, and warnings (!), do not count.
"""


def main(arguments: list[str]) -> int:
    """Try everything that a job would be measured with."""
    options = make_parser().parse_args(arguments)
    format_name = choose_format("Diagnosis", options.format, options.output)
    output = Output(options.output)
    timeout = check_seconds("--timeout", options.timeout, least=0.1)
    diagnosis = Diagnosis(
        (
            *check_versions(),
            *check_processes(),
            *check_namespace(),
            *check_allocation(os.environ),
            *check_recording(),
            *check_energy(),
            *_check_gpus(timeout),
        )
    )
    output.write(render(diagnosis, format_name, output.find_view(1)), otherwise=1)
    return 0 if diagnosis.is_fine else 1


def make_parser() -> Parser:
    """Its options."""
    parser = Parser(prog="gpu-tracker doctor", description=__doc__)
    parser.epilog = _EPILOG
    parser.add_argument(
        "--json", dest="format", action="store_const", const="json", help="the same as -f json"
    )
    add_output(parser, "Diagnosis")
    add_observing(parser)
    return parser


def _check_gpus(timeout_seconds: float) -> tuple[Check, ...]:
    """A driver that crashes takes the answers of the others with it, but no other check."""
    try:
        with ObserverClient(timeout_seconds) as client:
            observation = client.observe(details=(PROBE,))
    except TrackerError as error:
        return (fail_gpus(str(error)),)
    return check_gpus(observation, _find_signs(vendor.vendor for vendor in observation.vendors))


def _find_signs(vendors: Iterable[str]) -> dict[str, Signs]:
    on_bus = find_on_bus()
    return {
        vendor: Signs(
            tuple(device.bus_id for device in on_bus if device.vendor == vendor), find_device_files(vendor)
        )
        for vendor in vendors
    }
