"""A header from anywhere: unknown keys are ignored, invalid values of optional ones are dropped and named. Pure."""

from __future__ import annotations

from ..core.errors import WRONG_DATA
from ..core.model import Allocation, Header, Identity
from .schema import decode_header
from .validate import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The smallest valid number, and one that no job reaches.
_BOUNDS = {name: (least, 2**24) for name, least in (("rank", 0), ("local_rank", 0), ("ranks", 1))}


def repair_header(data: dict[str, Any]) -> tuple[Header, tuple[str, ...]]:
    """The header, and a sentence for each value that was dropped. Raises one of WRONG_DATA if a needed one is invalid."""
    allocation = _keep_known(data["allocation"], Allocation)
    identity = data.get("identity")
    identity = _keep_known(identity, Identity) if isinstance(identity, dict) else {}
    dropped = [] if _is_valid(identity) else _list_invalid(identity)
    kept = {
        **_keep_known(data, Header),
        "allocation": allocation,
        "identity": {name: value for name, value in identity.items() if name not in dropped},
    }
    if not _are_uuids(kept.setdefault("gpu_uuids", None)):
        kept["gpu_uuids"] = None
        dropped.append("gpu_uuids")
    if not _is_positive(kept["n_expected_cores"]):
        kept["n_expected_cores"] = allocation["cores"]
        dropped.append("n_expected_cores")
    header = decode_header(kept)
    check(header)
    return header, tuple(f"The header's {name} is not valid and was ignored." for name in dropped)


def _keep_known(data: dict[str, Any], kind: type[Header | Allocation | Identity]) -> dict[str, Any]:
    return {name: data[name] for name in kind._fields if name in data}


def _list_invalid(identity: dict[str, Any]) -> list[str]:
    return [name for name, value in identity.items() if not _is_valid({name: value})]


def _is_valid(values: dict[str, Any]) -> bool:
    """Whether an identity with these values alone would be valid."""
    try:
        labels = {"labels": tuple(values["labels"].items())} if "labels" in values else {}
        check(Identity(**{**values, **labels}))
        known = ((values[name], bounds) for name, bounds in _BOUNDS.items() if values.get(name) is not None)
        return all(least <= value < most for value, (least, most) in known)
    except WRONG_DATA:
        return False


def _are_uuids(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(uuid, str) for uuid in value))


def _is_positive(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < float("inf")
