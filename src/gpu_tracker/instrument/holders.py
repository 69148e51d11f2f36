"""Who keeps an object alive, by the names that its user knows: `cache['x'][3]`, `x of train()`.

The garbage collector tells what refers to what; a name is found by going up from the object to a variable. Every look at it takes
as long as the program has objects, so the number of looks is bounded.
"""

from __future__ import annotations

import gc
import sys
from contextlib import suppress
from types import (
    AsyncGeneratorType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    ModuleType,
)

from ..core.values import NamedTuple
from .code_flags import OPTIMIZED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_MOST_LOOKS = 40
_MOST_SEARCHES = 4
# So many objects are asked at a time what they refer to, so that the answers take little memory.
_AT_ONCE = 10_000
_PACKAGE = __name__.partition(".")[0]
_MAIN = "__main__"
_ARRAYS = (("numpy", "ndarray"), ("torch", "Tensor"))
_SUSPENDED = (AsyncGeneratorType, CoroutineType, GeneratorType)


class _Place(NamedTuple):
    """An object on the way up, and how the value is reached from it."""

    holder: Any
    path: str


def is_of(value: object, kinds: type | tuple[type, ...]) -> bool:
    """As `isinstance`, which also asks the object for its class: one that has gone, or is not there yet, raises at that."""
    return issubclass(type(value), kinds)


def name_holder(value: object, namespace: Mapping[str, Any], *, or_kind: bool = True) -> str | None:
    """The nearest variable that keeps it, else the kind of object that does, if wanted; None if Python knows of none."""
    waiting = [_Place(value, "")]
    seen = {id(value), id(waiting)}
    unnamed, n_searches = None, 0
    for _ in range(_MOST_LOOKS):
        if not waiting:
            break
        place = waiting.pop(0)
        # Whatever holds an object that the collector follows is followed, too.
        is_searched_for = n_searches < _MOST_SEARCHES and not gc.is_tracked(place.holder)
        n_searches += is_searched_for
        for referrer in _list_referrers(place.holder, is_searched_for=is_searched_for):
            if id(referrer) in seen or _is_ours(referrer):
                continue
            seen.add(id(referrer))
            name = _name_root(referrer, place, namespace)
            if name is not None:
                return name
            unnamed = unnamed or f"an object of type {type(referrer).__name__}"
            waiting.append(_go_up(referrer, place))
    return _find_local(value) or (unnamed if or_kind else None)


def _list_referrers(value: object, *, is_searched_for: bool) -> Iterator[Any]:
    yield from gc.get_referrers(value)
    if is_searched_for:
        yield from _list_unfollowed(value)
    yield from _list_views(value)


def _list_unfollowed(value: object) -> list[Any]:
    """Dictionaries and tuples that refer to it, and that the collector does not follow: no circle can go through them.

    They are found from the objects that it does follow, or inside of each other.
    """
    found: list[Any] = []
    seen: set[int] = set()
    objects = gc.get_objects()
    for first in range(0, len(objects), _AT_ONCE):
        waiting = list(filter(_is_unfollowed, gc.get_referents(*objects[first : first + _AT_ONCE])))
        while waiting:
            container = waiting.pop()
            if id(container) not in seen:
                seen.add(id(container))
                inside = gc.get_referents(container)
                found += [container] if any(one is value for one in inside) else []
                waiting += filter(_is_unfollowed, inside)
    return found


def _list_views(value: Any) -> list[Any]:
    """Of an array or a tensor: others that have its numbers. They keep it, but the collector is not told."""
    kinds = _find_array_kinds()
    if not is_of(value, kinds):
        return []
    found: dict[int, Any] = {}
    seen: set[int] = set()
    objects = gc.get_objects()
    for first in range(0, len(objects), _AT_ONCE):
        waiting = gc.get_referents(*objects[first : first + _AT_ONCE])
        while waiting:
            one = waiting.pop()
            if _is_unfollowed(one) and id(one) not in seen:
                seen.add(id(one))
                waiting += gc.get_referents(one)
            elif is_of(one, kinds) and one is not value and _is_view(one, value):
                found[id(one)] = one
    return list(found.values())


def _find_array_kinds() -> tuple[type, ...]:
    """Those of NumPy and PyTorch, if they are loaded."""
    kinds = (getattr(sys.modules.get(name), kind, None) for name, kind in _ARRAYS)
    return tuple(kind for kind in kinds if isinstance(kind, type))


def _is_view(one: Any, value: Any) -> bool:
    """Whether it was made from that value, directly or not, or is a tensor with the numbers of an array."""
    with suppress(Exception):  # of a class of the user's
        base = one
        while is_of(base, _find_array_kinds()):
            base = getattr(base, "_base", None) if hasattr(base, "data_ptr") else base.base
            if base is value:
                return True
        if hasattr(one, "data_ptr") and not hasattr(value, "data_ptr"):
            start = int(value.__array_interface__["data"][0])
            return start <= int(one.data_ptr()) < start + int(value.nbytes)
    return False


def _is_unfollowed(value: object) -> bool:
    return type(value) in (dict, tuple) and not gc.is_tracked(value)


def _is_ours(referrer: Any) -> bool:
    if is_of(referrer, FrameType):
        return str(referrer.f_globals.get("__name__")).startswith(_PACKAGE)
    return is_of(referrer, _Place)


def _name_root(referrer: Any, place: _Place, namespace: Mapping[str, Any]) -> str | None:
    """The name of the variable, if the referrer is where variables are."""
    if is_of(referrer, FrameType):
        return _name_in_frame(referrer, place)
    if is_of(referrer, dict):
        module = _find_module(referrer)
        if referrer is not namespace and module is None:
            return None
        key = _find_variable(referrer, place.holder)
        is_far = referrer is not namespace and module != _MAIN
        return f"{module}.{key}{place.path}" if is_far else f"{key}{place.path}"
    if is_of(referrer, FunctionType):
        return f"{referrer.__qualname__}(), a function that refers to it"
    frame = _find_suspended(referrer)
    return None if frame is None else _name_in_frame(frame, place)


def _find_suspended(referrer: Any) -> FrameType | None:
    """The frame of a generator or coroutine that waits to be continued."""
    names = ("gi_frame", "cr_frame", "ag_frame") if is_of(referrer, _SUSPENDED) else ()
    return next((frame for name in names if (frame := getattr(referrer, name, None)) is not None), None)


def _name_in_frame(frame: FrameType, place: _Place) -> str:
    names = _name_locals(frame, place.holder)
    function = f"{frame.f_code.co_name}(), {_find_state(frame)}"
    return f"{names[0]}{place.path} of {function}" if names else function


def _find_state(frame: FrameType) -> str:
    if frame in _list_running():
        return "which runs"
    is_suspended = any(_find_suspended(one) is frame for one in gc.get_referrers(frame))
    return "which has not ended" if is_suspended else "kept by a traceback"


def _name_locals(frame: FrameType, value: object) -> list[str]:
    """The variables of a frame that have this value."""
    variables = frame.f_locals
    names = [name for name, one in variables.items() if one is value]
    is_copy = frame.f_code.co_flags & OPTIMIZED and isinstance(variables, dict)
    if is_copy and frame.f_trace is None:
        variables.clear()  # before Python 3.13 the frame keeps the copy, and all values with it
    return names


def _find_module(names: Mapping[str, Any]) -> str | None:
    """The module whose variables these are."""
    name = names.get("__name__")
    module = sys.modules.get(name) if isinstance(name, str) else None
    return name if isinstance(module, ModuleType) and vars(module) is names else None


def _go_up(holder: Any, place: _Place) -> _Place:
    """The next place. Where the way to the value cannot be written, it begins at the holder."""
    step = _find_step(holder, place.holder)
    return _Place(holder, "" if step is None else f"{step}{place.path}")


def _find_step(holder: Any, value: object) -> str | None:
    """How to get from one object to the next, in Python's own notation; None if there is no way to write it."""
    if is_of(holder, dict):
        key = _find_key(holder, value)
        return f".{key}" if _is_of_instance(holder) else f"[{key!r}]"
    if is_of(holder, (list, tuple)):
        return f"[{next((index for index, one in enumerate(holder) if one is value), 0)}]"
    if _find_dictionary(holder) is value:
        return ""  # its attributes, which were the last step
    name = next((name for name, one in _list_attributes(holder) if one is value), None)
    return None if name is None else f".{name}"


def _is_of_instance(names: dict[Any, Any]) -> bool:
    return any(
        getattr(type(one), "__dictoffset__", 0) and _find_dictionary(one) is names
        for one in gc.get_referrers(names)
        if not is_of(one, FrameType)
    )


def _list_attributes(holder: Any) -> Iterator[tuple[str, Any]]:
    yield from (_find_dictionary(holder) or {}).items()
    for kind in type(holder).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            try:
                yield name, object.__getattribute__(holder, name)
            except AttributeError:
                continue  # it has no value


def _find_dictionary(holder: Any) -> dict[str, Any] | None:
    """Without code of the holder's class, which may do anything."""
    try:
        found = object.__getattribute__(holder, "__dict__")
    except (AttributeError, TypeError):
        return None
    return found if isinstance(found, dict) else None


def _find_key(names: Mapping[Any, Any], value: object) -> Any:
    return next((key for key, one in list(names.items()) if one is value), "?")


def _find_variable(names: Mapping[str, Any], value: object) -> str:
    """By a name of the user's own, if it has one. `_` and the like have the output of a notebook's cell only until the next one."""
    found = [str(name) for name, one in list(names.items()) if one is value] or ["?"]
    own = next((name for name in found if not name.startswith("_")), None)
    outputs: Any = names.get("Out")
    if own is None and is_of(outputs, dict) and any(one is value for one in outputs.values()):
        return f"Out[{_find_key(outputs, value)!r}]"
    return own or found[0]


def _find_local(value: object) -> str | None:
    """A variable of a function that runs: while it does, the collector does not know it."""
    for frame in _list_running():
        if _name_locals(frame, value):
            return _name_in_frame(frame, _Place(value, ""))
    return None


def _list_running() -> list[FrameType]:
    """Of all threads, without ours: a frame in its own variables would be there until the next collection."""
    found = []
    frames: list[FrameType | None] = [*sys._current_frames().values()]  # noqa: SLF001 - the only way to other threads
    while frames:
        frame = frames.pop()
        if frame is not None:
            frames.append(frame.f_back)
            found += [] if _is_ours(frame) else [frame]
    return found
