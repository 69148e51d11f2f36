"""Objects that were made since a moment and are still there, as far as they are worth a word: values of variables, and tensors."""

from __future__ import annotations

import gc
import sys
import weakref
from contextlib import suppress
from functools import partial
from types import BuiltinFunctionType, FrameType, FunctionType, GeneratorType, MethodType, ModuleType

from ..core.model import Survivor
from .holders import is_of, name_holder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

_MOST_NAMED = 8
_MOST_REACHED = 200_000
# Below this, what cannot be followed by a weak reference (lists, bytes) is not looked for.
_LEAST_BYTES = 1_000_000
_TOOLS = (BuiltinFunctionType, FunctionType, ModuleType, type)
_NO_WAY_THROUGH = (*_TOOLS, FrameType)


class Snapshot:
    """The tensors at one moment."""

    def __init__(self) -> None:
        self._references = {id(tensor): weakref.ref(tensor) for tensor in _list_tensors()}

    def list_new(self, without: Iterable[int]) -> list[Any]:
        """The tensors since then, without those of these IDs."""
        left_out = set(without)
        return [one for one in _list_tensors() if id(one) not in left_out and not self._is_known(one)]

    def _is_known(self, tensor: object) -> bool:
        reference = self._references.get(id(tensor))
        return reference is not None and reference() is tensor


def is_tool(value: object) -> bool:
    """Whether it is code rather than data: a module, a function, a class, or what a decorator has made of a function.

    The latter can be called and has a name, as functions have. A method of an object is that object.
    """
    if is_of(value, MethodType):
        return False
    return is_of(value, (*_TOOLS, partial)) or (callable(value) and _has_name(value))


def _has_name(value: object) -> bool:
    with suppress(Exception):  # code of its class
        return isinstance(getattr(value, "__name__", None), str)
    return False


def release(
    values: dict[str, Any], kept: Sequence[Any], before: Snapshot, namespace: Mapping[str, Any]
) -> tuple[tuple[Survivor, ...], int]:
    """Empty a dictionary of values, and find those that live on, the largest first; and how many more there are."""
    apart = frozenset(map(id, namespace.values()))
    found = _find_without_reference(values, namespace, apart)
    references: list[tuple[str, Any]] = [
        (name, weakref.ref(value)) for name, value in values.items() if _can_be_followed(value)
    ]
    values.clear()
    gc.collect()
    followed = ((name, follow()) for name, follow in references)
    alive = {id(value): (name, value) for name, value in followed if value is not None}
    tensors = before.list_new([*alive, *_list_reachable(kept), *_list_reachable(list(alive.values()))])
    sized = _sort([*alive.values(), *((None, tensor) for tensor in tensors)], apart)
    del alive, tensors, followed
    more = max(0, len(sized) - _MOST_NAMED)
    del sized[_MOST_NAMED:]
    while sized:  # one by one, so that we hold none of those that are looked for
        size_bytes, name, value = sized.pop(0)
        found.append(Survivor(name, type(value).__name__, size_bytes, name_holder(value, namespace)))
    return tuple(sorted(found, key=lambda one: -one.size_bytes)), more


def _sort(named: list[tuple[str | None, Any]], apart: frozenset[int]) -> list[tuple[int, str | None, Any]]:
    """The largest first, by all that they hold."""
    sized = [(measure_bytes(value, apart), name, value) for name, value in named]
    return sorted(sized, key=lambda one: -one[0])


def measure_bytes(value: Any, apart: frozenset[int] = frozenset()) -> int:
    """Its size and that of all that it holds, without objects of these IDs; of tensors and arrays, that of their numbers."""
    waiting, seen, size_bytes = [value], {id(value)}, 0
    while waiting and len(seen) < _MOST_REACHED:
        one = waiting.pop()
        size_bytes += _measure_one(one)
        for inner in _list_held(one):
            if id(inner) not in seen and id(inner) not in apart and not is_of(inner, _NO_WAY_THROUGH):
                seen.add(id(inner))
                waiting.append(inner)
    return size_bytes + sum(map(_measure_one, waiting))


def _list_held(value: Any) -> tuple[Any, ...]:
    """What it refers to; nothing if its class says how large it is with all of that."""
    if hasattr(type(value), "nbytes") or isinstance(type(value).__sizeof__, FunctionType):
        return _list_gradient(value)
    return (*gc.get_referents(value), *_list_variables(value))


def _list_variables(value: Any) -> tuple[Any, ...]:
    """Of a suspended generator: before Python 3.11 the collector finds them only in its frame, together with the whole module."""
    frame = value.gi_frame if type(value) is GeneratorType else None
    return () if frame is None else tuple(frame.f_locals.values())


def _measure_one(value: Any) -> int:
    with suppress(Exception):  # code of its class
        if hasattr(type(value), "nbytes"):
            return int(value.nbytes)
        return sys.getsizeof(value)
    return 0


def _can_be_followed(value: object) -> bool:
    return bool(type(value).__weakrefoffset__)


def _find_without_reference(
    values: dict[str, Any], namespace: Mapping[str, Any], apart: frozenset[int]
) -> list[Survivor]:
    """Large values that cannot be followed: whether a variable has them, besides the dictionary."""
    named = {id(value): (name, value) for name, value in values.items() if not _can_be_followed(value)}
    sized = _sort(list(named.values()), apart)
    del named
    found: list[Survivor] = []
    while sized:
        size_bytes, name, value = sized.pop(0)
        is_worth_it = size_bytes >= _LEAST_BYTES and len(found) < _MOST_NAMED
        holder = name_holder(value, namespace, or_kind=False) if is_worth_it else None
        if holder is not None:
            found.append(Survivor(name, type(value).__name__, size_bytes, holder))
    return found


def _list_tensors() -> list[Any]:
    """All of PyTorch, if it is loaded."""
    kind = getattr(sys.modules.get("torch"), "Tensor", None)
    if not isinstance(kind, type):
        return []
    return [one for one in gc.get_objects() if issubclass(type(one), kind)]


def _list_reachable(values: Sequence[Any]) -> set[int]:
    """What these values refer to, over any number of steps."""
    waiting, seen = list(values), set(map(id, values))
    while waiting and len(seen) < _MOST_REACHED:
        value = waiting.pop()
        for one in (*gc.get_referents(value), *_list_gradient(value)):
            if id(one) not in seen and not is_of(one, _NO_WAY_THROUGH):
                seen.add(id(one))
                waiting.append(one)
    return seen


def _list_gradient(value: Any) -> tuple[Any, ...]:
    """Of a tensor: the collector does not see it."""
    if not hasattr(type(value), "grad"):
        return ()
    with suppress(Exception):
        return (value.grad,) if value.is_leaf and value.grad is not None else ()
    return ()
