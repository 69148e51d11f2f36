"""A program that keeps things in many ways, and prints who is said to keep them: JSON of name → holder."""

from __future__ import annotations

import functools
import gc
import json
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from gpu_tracker.instrument.holders import name_holder

found: dict[str, str | None] = {}


class Thing:
    """Something to be kept."""


class Box:
    """Keeps it in an attribute."""

    def __init__(self, thing: object) -> None:
        self.thing = thing


class Slot:
    """Keeps it where there is no dictionary."""

    __slots__ = ("empty", "thing")

    def __init__(self, thing: object) -> None:
        self.thing = thing


def ask(name: str, *, or_kind: bool = True) -> None:
    """Who holds the only thing there is; not in a variable of ours."""
    (reference,) = [weakref.ref(one) for one in gc.get_objects() if type(one) is Thing]
    found[name] = name_holder(reference(), globals(), or_kind=or_kind)


def make_closure() -> Callable[[], object]:
    """A function that keeps something."""
    thing = Thing()
    return lambda: thing


def fail() -> None:
    """With something in a local variable."""
    thing = Thing()
    raise ValueError(str(thing))


def catch() -> BaseException:
    """The error, with its traceback."""
    try:
        fail()
    except ValueError as error:
        return error
    raise AssertionError


def wait_with_a_thing(has_begun: threading.Event, may_end: threading.Event) -> None:
    """Until told."""
    thing = Thing()
    has_begun.set()
    may_end.wait()
    assert thing is not None


def yield_with_a_thing() -> Iterator[int]:
    """Something is kept between two steps."""
    thing = Thing()
    yield 1
    assert thing is not None


def make_circle() -> None:
    """Two objects that have only each other."""
    thing: Any = Thing()
    thing.partner = Box(thing)


kept: Any = Thing()
ask("variable")
kept = [0, Thing()]
ask("list")
kept = {"x": [Thing()]}
ask("dictionary")
kept = Box(Thing())
ask("attribute")
assert vars(kept)
ask("attribute in a dictionary")
kept = Slot(Thing())
ask("slot")
kept = {"x": Box((Thing(),))}
ask("deep")
kept = deque([Thing()])
ask("deque")
kept = functools.partial(print, Thing())
ask("partial")
kept = None
_3: Any = Thing()
Out: Any = {3: _3}
ask("output of a cell")
Out = _3 = None
json.kept = [Thing()]  # type: ignore[attr-defined]
ask("another module")
del json.kept  # type: ignore[attr-defined]
kept = make_closure()
ask("closure")
kept = catch()
ask("traceback")
kept = None
found["left by looking"] = str([one for one in gc.get_objects() if type(one) is Thing])
kept = yield_with_a_thing()
next(kept)
ask("generator")
kept.close()
begun, end = threading.Event(), threading.Event()
thread = threading.Thread(target=wait_with_a_thing, args=(begun, end))
thread.start()
begun.wait()
ask("thread")
end.set()
thread.join()
gc.collect()  # after this, the collector does not follow what cannot be part of a circle
kept = {"x": bytes(1000)}
found["unfollowed dictionary"] = name_holder(kept["x"], globals())
kept = [(1, {"x": (bytes(1000),)})]
gc.collect()
found["unfollowed inside each other"] = name_holder(kept[0][1]["x"][0], globals())
shared: Any = ()
for _ in range(60):
    shared = (shared, shared)
gc.collect()
found["unfollowed and shared"] = name_holder(bytes(1000), globals())
gc.disable()
make_circle()
ask("circle")
ask("circle by name", or_kind=False)
gc.collect()
print(json.dumps(found))
