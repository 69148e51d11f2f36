"""The settings, checked before anything is started. Rules and messages of the paper, and our own."""

from __future__ import annotations

import math
import os
import sys

from .errors import KindError, UsageError
from .units import check_memory_unit, check_time_unit
from .values import NamedTuple
from .vendors import VENDORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SHORTEST_SLEEP_SECONDS = 0.01
DEFAULT_MAX_OVERHEAD = 0.01
# How processes are read (one of those below), for kernels whose /proc is not reliable.
_SOURCE_VARIABLE = "GPU_TRACKER_SOURCE"
# Where recordings go, and which ranks of a job print, if nothing else is said.
RECORD_VARIABLE = "GPU_TRACKER_RECORD"
SAY_VARIABLE = "GPU_TRACKER_SAY"
# A file that changes the rules of findings.
RULES_VARIABLE = "GPU_TRACKER_RULES"
_NO_VENDOR = "none"
# What gpu-tracker 5 calls the vendors that it can read.
GPU_BRANDS = ("nvidia", "amd")
PROCESS_SOURCES = ("windows", "portable") if sys.platform == "win32" else ("procfs", "darwin", "portable")
"""How processes can be read, the best first of those that the system has."""
_LONGEST_LABEL = 200
_LONGEST_QUOTED = 40


class Settings(NamedTuple):
    """What the user asked for. Units only matter for output."""

    sleep_time: float = 1.0
    ram_unit: str = "gigabytes"
    gpu_ram_unit: str = "gigabytes"
    time_unit: str = "hours"
    n_expected_cores: int | None = None
    gpu_uuids: tuple[str, ...] | None = None
    disable_logs: bool = False
    max_overhead: float = DEFAULT_MAX_OVERHEAD
    full_resolution: bool = False
    gpu_vendors: tuple[str, ...] | None = None
    """Whose devices to read; None for all."""
    name: str | None = None
    """The user's name for the run."""
    labels: tuple[tuple[str, str], ...] = ()
    """The user's own labels: names and values."""


def check(settings: Settings) -> Settings:
    """The same settings, or a ValueError that says what is wrong with them."""
    list_process_sources()
    _check_number("Sleep time", settings.sleep_time)
    if not SHORTEST_SLEEP_SECONDS <= settings.sleep_time < math.inf:
        raise UsageError(
            f"Sleep time of {settings.sleep_time} is invalid. "
            f"Must be at least {SHORTEST_SLEEP_SECONDS} seconds."
        )
    check_memory_unit(settings.ram_unit, "RAM")
    check_memory_unit(settings.gpu_ram_unit, "GPU RAM")
    check_time_unit(settings.time_unit)
    if settings.name is not None and not 1 <= len(settings.name) <= _LONGEST_LABEL:
        raise UsageError(
            f"{_shorten(settings.name)} is not a valid name of a run. It has 1 to {_LONGEST_LABEL} characters."
        )
    cores = settings.n_expected_cores
    if cores is not None and not _is_positive(cores):
        raise UsageError(
            f"{cores!r} is not a valid number of expected cores. Must be a whole number of at least 1."
        )
    _check_number("max_overhead", settings.max_overhead)
    if not 0 < settings.max_overhead <= 1:
        raise UsageError(
            f"max_overhead of {settings.max_overhead} is invalid. "
            "Must be a share of one core, above 0 and at most 1."
        )
    return settings


def check_gpu_uuids(gpu_uuids: Iterable[str] | None) -> tuple[str, ...] | None:
    """Each UUID once, sorted."""
    if gpu_uuids is None:
        return None
    named = (gpu_uuids,) if isinstance(gpu_uuids, str) else _list("gpu_uuids", gpu_uuids)
    if not named:
        raise UsageError(
            "gpu_uuids is not None but the set is empty. Please provide a set of at least one GPU UUID."
        )
    for uuid in named:
        if not isinstance(uuid, str):
            raise UsageError(f"GPU UUID of {uuid!r} is not valid. It must be a string.")
    return tuple(sorted(set(named)))


def check_gpu_vendors(gpu: str | Iterable[str] | None) -> tuple[str, ...] | None:
    """The vendors whose devices are read: one, several, or none."""
    if gpu is None:
        return None
    chosen = tuple(gpu.split(",")) if isinstance(gpu, str) else _list("gpu", gpu)
    for vendor in chosen:
        if vendor not in (*VENDORS, _NO_VENDOR):
            raise UsageError(
                f'"{vendor}" is not a valid GPU vendor. '
                f"Valid values are {', '.join(sorted(VENDORS))} and {_NO_VENDOR}"
            )
    return tuple(vendor for vendor in VENDORS if vendor in chosen)


def choose_gpu_vendors(gpu: str | Iterable[str] | None, gpu_brand: str | None) -> tuple[str, ...] | None:
    """The same; or the one vendor that gpu-tracker 5 calls a brand."""
    if gpu_brand is None:
        return check_gpu_vendors(gpu)
    if gpu is not None:
        raise UsageError("gpu and gpu_brand both choose whose devices are read.", "Give one of them.")
    if gpu_brand not in GPU_BRANDS:
        raise UsageError(
            f'"{gpu_brand}" is not a valid GPU brand. Valid values are {" and ".join(GPU_BRANDS)}.',
            f"For other devices use gpu: {', '.join(VENDORS)} or {_NO_VENDOR}.",
        )
    return check_gpu_vendors(gpu_brand)


def check_join(n_join_attempts: object, join_timeout: object) -> None:
    """Refuse what would fail only when the tracking ends."""
    if n_join_attempts != 0 and not _is_positive(n_join_attempts):
        raise UsageError(
            f"n_join_attempts of {n_join_attempts!r} is invalid. Must be a whole number.",
            "gpu-tracker 5 has resource_usage_file in this place: give it by name."
            if n_join_attempts is None or isinstance(n_join_attempts, (str, os.PathLike))
            else "",
        )
    _check_number("join_timeout", join_timeout)


def check_labels(labels: Mapping[str, object] | None) -> tuple[tuple[str, str], ...]:
    """Names and values as text, in the order given."""
    if labels is None:
        return ()
    if not hasattr(labels, "items"):
        raise KindError(f"labels of {labels!r} are invalid. Must be a dictionary of names and values.")
    checked = tuple((str(name), str(value)) for name, value in labels.items())
    for name, value in checked:
        if not name or len(name) > _LONGEST_LABEL or len(value) > _LONGEST_LABEL:
            raise UsageError(
                f"{_shorten(name)} is not a valid label. Its name has 1 to {_LONGEST_LABEL} characters, "
                f"its value at most {_LONGEST_LABEL}."
            )
    return checked


def _shorten(text: str) -> str:
    return repr(text) if len(text) <= _LONGEST_QUOTED else f"{text[:_LONGEST_QUOTED]!r}..."


def check_process_id(process_id: int | None) -> int:
    """A valid process ID; None means this process."""
    if process_id is None:
        return os.getpid()
    if not _is_positive(process_id):
        raise UsageError(f"{process_id!r} is not a valid process ID. Must be a positive whole number.")
    return process_id


def check_path(what: str, path: object) -> str:
    """A path as text."""
    try:
        return os.fsdecode(path)  # type: ignore[arg-type]
    except TypeError:
        raise KindError(f"{what} of {path!r} is invalid. Must be a path.") from None


def _list(what: str, values: Iterable[str]) -> tuple[str, ...]:
    try:
        return tuple(values)
    except TypeError:
        raise KindError(f"{what} of {values!r} is invalid. Must be text, or several texts.") from None


def _is_positive(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _check_number(label: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        raise UsageError(f"{label} of {value!r} is invalid. Must be a number.")


def list_process_sources() -> tuple[str, ...]:
    """The process sources to try, the best first; only one if the environment names it."""
    name = os.environ.get(_SOURCE_VARIABLE)
    if not name:
        return PROCESS_SOURCES
    if name not in PROCESS_SOURCES:
        raise UsageError(
            f"{_SOURCE_VARIABLE}={name} is not a valid process source. "
            f"Valid values are {', '.join(PROCESS_SOURCES)}"
        )
    return (name,)
