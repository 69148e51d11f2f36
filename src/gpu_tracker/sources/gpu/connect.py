"""Which vendors have devices here, and the best source for each."""

from __future__ import annotations

import os
import time

from ...core import load_module
from ...core.vendors import VENDORS, explain_request
from .. import NotAvailableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ...core.model import Gpu
    from ...core.observation import Missing
    from ...core.vendors import Vendor
    from .. import GpuSource


def find_vendors(environment: Mapping[str, str]) -> list[str]:
    """The vendors that may have devices here, or whose devices are asked for.

    This runs at every start, often on machines without a GPU, so it must cost almost nothing.
    """
    return [
        name
        for name, vendor in VENDORS.items()
        if _may_have_devices(vendor) or explain_request(vendor, environment)
    ]


def connect(
    vendor: Vendor, environment: Mapping[str, str]
) -> tuple[GpuSource | None, str, tuple[Missing, ...]]:
    """The first source that works, its name, and why those before it do not."""
    from ...core.observation import ABSENT, BROKEN, REQUESTED, Missing
    from .belief import BelievedSource
    from .returning import ReturningSource

    missing: list[Missing] = []
    for name in vendor.sources:
        try:
            module = _load(name)
            reason = module.why_absent()
            if reason is None:

                def connect_anew(module: Any = module) -> GpuSource:
                    return BelievedSource(module.connect(time.monotonic))

                return ReturningSource(connect_anew, time.monotonic), name, tuple(missing)
            missing.append(Missing(name, ABSENT, reason))
        except NotAvailableError as error:
            missing.append(Missing(name, BROKEN, str(error)))
        except Exception as error:  # noqa: BLE001 - one vendor's bug must not cost the others
            missing.append(Missing(name, BROKEN, describe_bug(name, error)))
    request = explain_request(vendor, environment)
    if request and all(one.kind == ABSENT for one in missing):
        missing = [Missing(vendor.sources[0], REQUESTED, request)]
    return None, "", tuple(missing)


def list_gpus(vendors: Iterable[str] | None) -> list[Gpu]:
    """Every device that can be read."""
    gpus: list[Gpu] = []
    for vendor in find_vendors({}) if vendors is None else vendors:
        source, _, _ = connect(VENDORS[vendor], {})
        if source is not None:
            gpus.extend(source.gpus)
            source.close()
    return gpus


def describe_bug(name: str, error: Exception) -> str:
    """An unexpected error, in one sentence."""
    return f"Reading GPUs through {name} failed: {type(error).__name__}: {error}."


def _may_have_devices(vendor: Vendor) -> bool:
    if not os.path.isdir(vendor.root):
        return False
    if vendor.quick_check:
        return bool(_load(vendor.quick_check).may_have_devices())
    return any(_load(name).why_absent() is None for name in vendor.sources)


def _load(name: str) -> Any:
    return load_module(f"{__package__}.{name}")
