"""Which devices a job may use, by its environment; and which devices a user names. Pure.

The variables apply to the vendors' compute libraries, not to their monitoring tools: a tool sees every device, a job
often fewer. If an entry cannot be matched to a device with certainty, all devices of that vendor count as visible:
measuring one too many is harmless, leaving out the one in use is not.
"""

from __future__ import annotations

from ...core.gpu_names import find_gpus
from ...core.vendors import VENDORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ...core.model import Gpu

# Devices allocated by a scheduler, by their number on the machine; the narrowest first.
_SCHEDULER_VARIABLES = ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "GPU_DEVICE_ORDINAL")


def choose_visible(gpus: Sequence[Gpu], environment: Mapping[str, str]) -> frozenset[str]:
    """The UUIDs of the devices that a job with this environment may use: of one that is split, the instances."""
    vendors = {gpu.vendor for gpu in gpus}
    chosen: set[str] = set()
    for vendor in vendors:
        own = sorted((gpu for gpu in gpus if gpu.vendor == vendor), key=lambda gpu: gpu.ordinal)
        variables = VENDORS[vendor].variables
        # If a scheduler has set one of these, it is enough.
        if any(variable in environment for variable in variables):
            is_cuda = vendor == "nvidia"
            # A number or UUID of one that is split means its instances.
            chosen |= _choose_nvidia(own, environment) if is_cuda else _choose(own, environment, variables)
            continue
        if vendor == "nvidia":
            own = _choose_injected(own, environment.get("NVIDIA_VISIBLE_DEVICES"))
        # A scheduler numbers the devices of a node regardless of vendor.
        allocated = _find_allocated(environment) if len(vendors) == 1 else None
        chosen |= _uuids_of(own if allocated is None else _choose_allocated(own, allocated))
    return frozenset(chosen - {gpu.uuid for gpu in gpus if gpu.is_split})


# ---- NVIDIA.


def _choose_nvidia(gpus: list[Gpu], environment: Mapping[str, str]) -> set[str]:
    text = environment["CUDA_VISIBLE_DEVICES"]
    is_by_bus = environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    injected = _choose_injected(gpus, environment.get("NVIDIA_VISIBLE_DEVICES"))
    highest = max(parse_ordinals(text), default=-1)
    if injected and len(_wholes_of(injected)) <= highest < len(_wholes_of(gpus)):
        # A number beyond the injected devices: this is not a container, and the other variable has no effect.
        injected = gpus
    return _choose_cuda(injected, text, is_by_bus=is_by_bus)


def _choose_cuda(gpus: list[Gpu], text: str, *, is_by_bus: bool) -> set[str]:
    """CUDA's rules: the first invalid entry ends the list, a repeated one empties it."""
    if text.startswith("GPU-"):
        return _choose_by_uuid(_wholes_of(gpus), gpus, text)
    if text.startswith("MIG-"):
        return _choose_instances(gpus, text)
    wholes = _wholes_of(gpus)
    ordinals = []
    for ordinal in parse_ordinals(text):
        if ordinal >= len(wholes):
            break
        if ordinal in ordinals:
            return set()
        ordinals.append(ordinal)
    if ordinals and not is_by_bus and len({gpu.name for gpu in wholes if gpu.name}) > 1:
        # CUDA then numbers the fastest first, by its own criteria; NVML numbers by bus.
        return _uuids_of(gpus)
    return _with_instances([wholes[ordinal] for ordinal in ordinals], gpus)


def parse_ordinals(text: str) -> tuple[int, ...]:
    """Numbers as C parses them (`1gpu2,2x` is 1 and 2), up to the first entry that does not begin with one."""
    ordinals = []
    for entry in text.split(","):
        ordinal = _parse_leading_number(entry.strip())
        if ordinal is None:
            break
        ordinals.append(ordinal)
    return tuple(ordinals)


def _parse_leading_number(entry: str) -> int | None:
    is_negative = entry.startswith("-")
    digits = entry[1:] if entry[:1] in {"+", "-"} else entry
    length = 0
    while length < len(digits) and digits[length] in "0123456789":
        length += 1
    # Capped, because Python refuses to parse numbers of thousands of digits.
    number = min(int(digits[:length][:20]), 10**9) if length else None
    return None if number is None or (is_negative and number > 0) else number


def _choose_by_uuid(candidates: Sequence[Gpu], gpus: Sequence[Gpu], text: str) -> set[str]:
    """Entries that are each the beginning of one UUID. Blanks are not stripped, as in PyTorch."""
    chosen: list[Gpu] = []
    for entry in text.split(","):
        is_of_the_kind = entry[:4] == text[:4]
        matches = [
            gpu
            for gpu in candidates
            if is_of_the_kind and (gpu.uuid.startswith(entry) or gpu.old_uuid == entry)
        ]
        if len(matches) != 1:
            break
        if matches[0] in chosen:
            return set()
        chosen += matches
    return _with_instances(chosen, gpus)


def _choose_instances(gpus: list[Gpu], text: str) -> set[str]:
    """MIG instances, by UUID or in the old style by parent and two numbers."""
    instances = [gpu for gpu in gpus if gpu.parent_uuid is not None]
    if not text.startswith("MIG-GPU-"):
        # Without listed instances the device of an instance is unknown.
        return _choose_by_uuid(instances, gpus, text) if instances else _uuids_of(gpus)
    if any(gpu.old_uuid or gpu.uuid.startswith("MIG-GPU-") for gpu in instances):
        return _choose_by_uuid(instances, gpus, text)
    parents = {entry.removeprefix("MIG-").partition("/")[0] for entry in text.split(",")}
    return {gpu.uuid for gpu in gpus if gpu.uuid in parents or gpu.parent_uuid in parents}


def _choose_injected(gpus: list[Gpu], text: str | None) -> list[Gpu]:
    """The devices requested from a container runtime, in the order in which the container sees them.

    In a container only those devices exist, and they are renumbered: an unknown number means that we are in one.
    The Container Device Interface sets `void` where it has added devices itself.
    """
    if text is None or text in {"", "all", "void"}:
        return gpus
    if text == "none":
        return []
    chosen = set()
    for entry in text.split(","):
        matches = [gpu for gpu in gpus if entry in (gpu.uuid, str(gpu.ordinal) if _is_whole(gpu) else None)]
        if not matches:
            return gpus
        chosen |= _with_instances(matches, gpus)
    return [gpu for gpu in gpus if gpu.uuid in chosen]


# ---- Other vendors: AMD's rules.


def _choose(gpus: list[Gpu], environment: Mapping[str, str], variables: tuple[str, ...]) -> set[str]:
    """The first variable, then one of the others within its devices: HIP uses CUDA's if its own is not set."""
    first, *others = variables
    if first in environment:
        gpus = _choose_entries(gpus, environment[first])
    text = next((environment[name] for name in others if name in environment), None)
    return _uuids_of(gpus if text is None else _choose_entries(gpus, text))


def _choose_entries(gpus: list[Gpu], text: str) -> list[Gpu]:
    """Devices in the order of the list, which renumbers them; the first invalid entry ends it."""
    chosen: list[Gpu] = []
    for entry in map(str.strip, text.split(",")):
        if entry.startswith("GPU-"):
            bare = entry.removeprefix("GPU-").lower()
            found = [gpu for gpu in gpus if bare and _bare_uuid(gpu).startswith(bare)]
        else:
            ordinal = _parse_leading_number(entry)
            found = [] if ordinal is None else gpus[ordinal : ordinal + 1]
        if len(found) != 1:
            break
        chosen += [gpu for gpu in found if gpu not in chosen]
    return chosen


def _bare_uuid(gpu: Gpu) -> str:
    """ROCm writes `GPU-` and 16 hexadecimal digits, the kernel `0x` or only the digits."""
    return gpu.uuid.lower().removeprefix("gpu-").removeprefix("0x")


# ---- Schedulers.


def _find_allocated(environment: Mapping[str, str]) -> str | None:
    return next((environment[name] for name in _SCHEDULER_VARIABLES if environment.get(name)), None)


def _choose_allocated(gpus: list[Gpu], text: str) -> list[Gpu]:
    """The devices with these numbers. If one is missing, a cgroup has hidden all but the job's."""
    numbers = set(_parse_ranges(text))
    wholes = {gpu.ordinal: gpu for gpu in gpus if _is_whole(gpu)}
    if not numbers or not numbers <= wholes.keys():
        return gpus
    chosen = _with_instances([wholes[number] for number in numbers], gpus)
    return [gpu for gpu in gpus if gpu.uuid in chosen]


def _parse_ranges(text: str) -> list[int]:
    """`0-2,5` as numbers; empty if any part is invalid."""
    numbers: list[int] = []
    for part in text.strip("[]").split(","):
        low, dash, high = part.strip().partition("-")
        ends = [low, high if dash else low]
        if not all(end.isascii() and end.isdigit() and len(end) <= 4 for end in ends):
            return []
        numbers += range(int(ends[0]), int(ends[1]) + 1)
    return numbers


# ---- Devices named by a user.


def resolve_gpus(names: Sequence[str], gpus: Sequence[Gpu]) -> tuple[str, ...]:
    """The UUIDs of the named devices, each once, in the order of the names: of one that is split, the instances."""
    resolved = (gpu for name in names for gpu in find_gpus(name, gpus))
    return tuple(dict.fromkeys(gpu.uuid for gpu in resolved if not gpu.is_split))


# ---- Devices and their instances.


def _is_whole(gpu: Gpu) -> bool:
    return gpu.parent_uuid is None


def _wholes_of(gpus: Iterable[Gpu]) -> list[Gpu]:
    return [gpu for gpu in gpus if _is_whole(gpu)]


def _uuids_of(gpus: Iterable[Gpu]) -> set[str]:
    return {gpu.uuid for gpu in gpus}


def _with_instances(chosen: Iterable[Gpu], gpus: Iterable[Gpu]) -> set[str]:
    """The devices, and their MIG instances."""
    uuids = _uuids_of(chosen)
    return uuids | {gpu.uuid for gpu in gpus if gpu.parent_uuid in uuids}
