"""Our NamedTuple behaves like the standard one."""

from __future__ import annotations

import copy
import pickle

import pytest

from gpu_tracker.core.values import NamedTuple


class Point(NamedTuple):
    """For the tests."""

    x: int
    y: int = 2

    @property
    def total(self) -> int:
        """A method in the body is kept."""
        return self.x + self.y


def test_it_is_a_tuple_with_names_and_defaults() -> None:
    """By position, by name, or by default."""
    assert Point(1) == Point(1, 2) == Point(x=1) == (1, 2)
    assert Point(1, y=5).total == 6
    assert Point(1)._asdict() == {"x": 1, "y": 2}
    assert Point(1)._replace(x=7) == (7, 2)
    assert repr(Point(1)) == "Point(x=1, y=2)"


@pytest.mark.parametrize(("values", "named"), [((), {}), ((1, 2, 3), {}), ((1,), {"x": 1}), ((1,), {"z": 1})])
def test_wrong_fields_are_refused(values: tuple[int, ...], named: dict[str, int]) -> None:
    """Too few, too many, twice, unknown."""
    with pytest.raises(TypeError):
        Point(*values, **named)


def test_it_cannot_be_changed() -> None:
    """Values are immutable and carry no dictionary."""
    with pytest.raises(AttributeError):
        Point(1).x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Point(1).z = 2  # type: ignore[attr-defined]


def test_it_survives_copying_and_pickling() -> None:
    """Values may be sent between processes."""
    assert pickle.loads(pickle.dumps(Point(1))) == copy.deepcopy(Point(1)) == Point(1)
