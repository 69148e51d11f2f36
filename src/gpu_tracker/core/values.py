"""`NamedTuple` for processes that must start quickly.

Importing `typing` costs as much as starting the interpreter, and `collections.namedtuple` compiles code for
every class; the sampler and the command line pay for both once per job. Type checkers see the real one; at
run time a value class is a tuple with names, defaults and the methods written in its body.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Generic as Generic, NamedTuple as NamedTuple, TypeVar

    Value = TypeVar("Value")
else:
    from _collections import _tuplegetter as _make_getter

    Value = None

    class Generic:
        """Only type checkers use it."""

        def __class_getitem__(cls, _):
            return object

    class _ValueType(type):
        """Turns the annotations of a class body into fields of a tuple."""

        def __new__(cls, name, bases, body):
            """Make one value class."""
            kinds = body.get("__annotations__", {})
            fields = tuple(kinds)
            defaults = {field: body.pop(field) for field in fields if field in body}
            for position, field in enumerate(fields):
                body[field] = _make_getter(position, str(kinds[field]))  # with a text for help()
            body.update(__slots__=(), _fields=fields, _names=frozenset(fields), _defaults=defaults)
            return super().__new__(cls, name, bases, body)

    class NamedTuple(tuple, metaclass=_ValueType):
        """An immutable value."""

        def __new__(cls, *values, **named):
            fields = cls._fields
            if not values and named.keys() == cls._names:
                return tuple.__new__(
                    cls, map(named.__getitem__, fields)
                )  # the usual case, and the fastest way
            if len(values) != len(fields) or named:
                missing = fields[len(values) :]
                try:
                    values += tuple(
                        named.pop(field) if field in named else cls._defaults[field] for field in missing
                    )
                except KeyError as field:
                    raise TypeError(f"{cls.__name__} needs {field}") from None
                if named or len(values) != len(fields):
                    raise TypeError(f"{cls.__name__} takes {', '.join(fields)}, once each")
            return tuple.__new__(cls, values)

        _make = classmethod(tuple.__new__)
        """A value of all its fields, in their order; half the time of a call."""

        def __repr__(self):
            shown = (f"{field}={value!r}" for field, value in self._asdict().items())
            return f"{type(self).__name__}({', '.join(shown)})"

        def __getnewargs__(self):
            return tuple(self)

        def _asdict(self):
            return dict(zip(self._fields, self))

        def _replace(self, **changes):
            return type(self)(**{**self._asdict(), **changes})
