"""Which devices a user means by a name: the same ones wherever devices are named. Pure.

A name is a UUID or the beginning of one (of an instance also its old form, `MIG-GPU-.../7/0`), a number (`0`, that of an instance `1:0`, with its vendor `amd:0`), an address on the
bus as the kernel or nvidia-smi writes it, or a model. Whatever names a device that is split means all its instances, too.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .model import Gpu

# `GPU-` and `MIG-` alone would mean all of them.
_KIND_LETTERS = 4


def find_gpus(name: str, gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """The devices with this name; ValueError if there is none, or if it is ambiguous."""
    found = _find(name, gpus)
    split = {gpu.uuid for gpu in found if gpu.is_split}
    return tuple(gpu for gpu in gpus if gpu in found or gpu.parent_uuid in split)


def may_mean(gpu: Gpu, name: str) -> bool:
    """Whether this device has that name, among others perhaps."""
    wanted = name.strip().lower()
    is_numbered = any(_is_numbered(gpu, number, wanted) for number in (gpu.place, str(gpu.ordinal)))
    names = {gpu.name.lower(), gpu.old_uuid.lower(), find_address(gpu.bus_id)} - {""}
    return is_numbered or not names.isdisjoint((wanted, find_address(wanted))) or _begins(gpu, wanted)


def find_address(bus_id: str) -> str:
    """An address on the bus in one spelling: the kernel writes `0000:4f:00.0`, nvidia-smi `00000000:4F:00.0`."""
    domain, colon, rest = bus_id.strip().lower().partition(":")
    return f"{domain.lstrip('0').zfill(4)}{colon}{rest}" if rest else ""


def _find(name: str, gpus: Sequence[Gpu]) -> list[Gpu]:
    wanted = name.strip().lower()
    address = find_address(wanted)
    numbered = [gpu for gpu in gpus if _has_number(gpu) and _is_numbered(gpu, gpu.place, wanted)]
    if len({gpu.vendor for gpu in numbered}) > 1:
        choices = " or ".join(sorted(f"{gpu.vendor}:{gpu.place}" for gpu in numbered))
        raise ValueError(f"GPU {name} is ambiguous: there is one of each vendor. Write {choices}.")
    candidates = (
        [gpu for gpu in gpus if gpu.uuid.lower() == wanted or gpu.old_uuid.lower() == wanted != ""],
        numbered,
        [gpu for gpu in gpus if gpu.instance is not None and _is_numbered(gpu, str(gpu.ordinal), wanted)],
        [gpu for gpu in gpus if (gpu.parent_uuid or "").lower() == wanted != ""],
        [gpu for gpu in gpus if address and find_address(gpu.bus_id) == address],
        [gpu for gpu in gpus if gpu.name.lower() == wanted != ""],
    )
    return next(filter(None, candidates), None) or _find_begun(name, gpus)


def _find_begun(name: str, gpus: Sequence[Gpu]) -> list[Gpu]:
    wanted = name.strip().lower()
    begun = [gpu for gpu in gpus if _begins(gpu, wanted)]
    meant = {gpu.uuid if gpu.uuid.lower().startswith(wanted) else gpu.parent_uuid or "" for gpu in begun}
    if len(meant) > 1:
        raise ValueError(
            f"GPU UUID of {name} is ambiguous. It is the beginning of: {', '.join(sorted(meant))}"
        )
    if not begun:
        available = ", ".join(sorted(gpu.uuid for gpu in gpus if not gpu.is_split))
        raise ValueError(f"GPU UUID of {name} is not valid. Available UUIDs are: {available}")
    return begun


def _begins(gpu: Gpu, wanted: str) -> bool:
    uuids = (gpu.uuid.lower(), (gpu.parent_uuid or "").lower())
    return len(wanted) > _KIND_LETTERS and any(uuid.startswith(wanted) for uuid in uuids)


def _has_number(gpu: Gpu) -> bool:
    """An instance without a number of its own, as in older recordings, has none that could be meant."""
    return gpu.parent_uuid is None or gpu.instance is not None


def _is_numbered(gpu: Gpu, number: str, wanted: str) -> bool:
    return wanted in (number, f"{gpu.vendor}:{number}")
