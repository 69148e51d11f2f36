"""The configuration file of `-e --tconfig`: a JSON object with arguments of gpu-tracker 5's `Tracker`, checked by name and type."""

from __future__ import annotations

import json

from ..core.errors import UsageError
from .options import read_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_texts(value: object) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(item, str) for item in value)
    )


# Argument → what its value must be.
ARGUMENTS: dict[str, tuple[Callable[[object], bool], str]] = {
    "sleep_time": (_is_number, "a number"),
    "ram_unit": (_is_text, "text"),
    "gpu_ram_unit": (_is_text, "text"),
    "time_unit": (_is_text, "text"),
    "n_expected_cores": (_is_whole, "a whole number"),
    "gpu_uuids": (_is_texts, "a list of texts"),
    "disable_logs": (_is_flag, "true or false"),
    "resource_usage_file": (_is_text, "text"),
    "n_join_attempts": (_is_whole, "a whole number"),
    "join_timeout": (_is_number, "a number"),
    "gpu_brand": (_is_text, "text"),
    "tracking_file": (_is_text, "text"),
    "overwrite": (_is_flag, "true or false"),
}
# They concern how the original tool waits for its own process; nothing here depends on them.
_WITHOUT_EFFECT = ("resource_usage_file", "n_join_attempts", "join_timeout")
_OTHER_PROCESS = "process_id"


def read_config(path: str) -> dict[str, Any]:
    """Values for the options of `-e`, as the command line would have them."""
    content = read_object(path, '{"sleep_time": 0.5}')
    return to_options(content, path)


def to_options(content: dict[str, Any], path: str) -> dict[str, Any]:
    """The same of what the file holds; null is the default."""
    if _OTHER_PROCESS in content:
        raise UsageError(
            f"{path}: {_OTHER_PROCESS} cannot be set here, since the command's own process is tracked.",
            "To track a running process: gpu-tracker attach PID.",
        )
    unknown = [repr(name) for name in content if name not in ARGUMENTS]
    if unknown:
        raise UsageError(f"{path}: unknown {', '.join(unknown)}.", f"Arguments are {', '.join(ARGUMENTS)}.")
    given = {name: value for name, value in content.items() if value is not None}
    for name, value in given.items():
        is_valid, kind = ARGUMENTS[name]
        if not is_valid(value):
            raise UsageError(f"{path}: {name} must be {kind}, not {json.dumps(value)}.")
    return {name: _to_text(value) for name, value in given.items() if name not in _WITHOUT_EFFECT}


def _to_text(value: Any) -> Any:
    """As it is written on the command line; a flag is already what it becomes there."""
    if isinstance(value, bool):
        return value
    return ",".join(value) if isinstance(value, list) else str(value)
