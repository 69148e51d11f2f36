"""`NamedTuple` without importing `typing`.

Importing `typing` costs as much as starting the whole interpreter (it pulls in `re`), and the sampler
and the command line start once per job. Type checkers see the real one; at run time a value
class is a `collections.namedtuple` that keeps the methods written in its body.
"""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:

    class _ValueMaker(type):
        def __new__(cls, name, bases, body):
            fields = body.get("__annotations__", {})
            defaults = [body.pop(field) for field in fields if field in body]
            value = namedtuple(name, fields, defaults=defaults, module=body["__module__"])
            for attribute, member in body.items():
                if attribute not in ("__module__", "__qualname__"):
                    setattr(value, attribute, member)
            return value

    NamedTuple = type.__new__(_ValueMaker, "NamedTuple", (), {})
