"""Rows of all samples as arrays for pandas, without making each sample. Its parser reads numbers faster than any of Python's."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from io import BytesIO

from .columns import is_short, learn, reduce
from .lazy import decode_row, is_sound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from ..core.model import Sample
    from .columns import Layout
    from .lazy import Block, SampleLines

    MakeRow = Callable[[Sample], Sequence[Any]]

_BLOCK_LINES = 10_000
_COMMA, _NEWLINE, _DOT, _ZERO = b",\n.0"
# More digits than a float can hold, of an integer or before the point.
_TOO_LARGE = b"," + b"1" * 16
_ONES = bytes.maketrans(b"023456789\n", b"1" * 9 + b",")
_EMPTY = {"integer": 0, "real": float("nan"), "text": None}
_TYPES = {"integer": "int64", "real": "float64", "text": "object"}


class _Column:
    """One column while it is filled."""

    def __init__(self, numpy: Any, kind: str, n_rows: int) -> None:
        self._is_integer = kind == "integer"
        self._values = numpy.full(n_rows, _EMPTY[kind], dtype=_TYPES[kind])
        self._is_unknown = numpy.ones(n_rows if self._is_integer else 0, dtype="bool")

    def put(self, rows: Any, value: Any) -> None:
        """One value or several; what is never put is not known."""
        if value is not None:
            self._values[rows] = value
            if self._is_integer:
                self._is_unknown[rows] = False

    def finish(self, pandas: Any, is_kept: Any) -> Any:
        """The rows that are kept, in the type that the table promises."""
        if not self._is_integer:
            return pandas.Series(self._values[is_kept], dtype=self._values.dtype, copy=False)
        return pandas.arrays.IntegerArray(self._values[is_kept], self._is_unknown[is_kept])


def read_arrays(samples: SampleLines, pandas: Any, kinds: Sequence[str], make_row: MakeRow) -> list[Any]:
    """What `make_row` gives for each undamaged sample, one array per column: `integer`, `real` or `text`."""
    numpy = import_module("numpy")
    columns = [_Column(numpy, kind, len(samples)) for kind in kinds]
    is_kept = numpy.zeros(len(samples), dtype="bool")
    layouts: dict[tuple[tuple[str, ...], bytes], Layout | None] = {}
    n_before = 0
    for block in samples.read_blocks(_BLOCK_LINES):
        for indices, values in _read_block(samples, block, (numpy, pandas), layouts, make_row):
            rows = numpy.asarray(indices) + n_before
            is_kept[rows] = True
            for column, value in zip(columns, values, strict=True):
                column.put(rows, value)
        n_before += len(block.lines)
    return [column.finish(pandas, slice(None) if is_kept.all() else is_kept) for column in columns]


def _read_block(
    samples: SampleLines,
    block: Block,
    packages: tuple[Any, Any],
    layouts: dict[tuple[tuple[str, ...], bytes], Layout | None],
    make_row: MakeRow,
) -> Iterator[tuple[Sequence[int], Sequence[Any]]]:
    """Positions in the block, and the values there of each column."""
    uuids = tuple(gpu.uuid for gpu in block.peaks.gpus)
    for shape, indices in block.groups.items():
        some = [block.lines[index] for index in indices]
        if (uuids, shape) not in layouts:
            decode = partial(decode_row, peaks=block.peaks, make_row=make_row)
            layouts[uuids, shape] = learn(some[0], decode) if is_sound(some[0], block.peaks) else None
        values = _read_together(packages, some, layouts[uuids, shape])
        if values is not None:
            yield indices, values
            continue
        where = [block.offsets[index] for index in indices]
        rows, _ = samples.read_rows(where, some, block.peaks, make_row)
        yield from (([indices[at]], row) for at, row in rows.items())


def _read_together(packages: tuple[Any, Any], lines: list[bytes], layout: Layout | None) -> list[Any] | None:
    """The columns of lines of one layout; None if they must be read one by one."""
    if layout is None:
        return None
    numpy, pandas = packages
    numbers = reduce(lines, drops_texts=layout.drops_texts)
    if not is_simple(numpy, numbers):
        return None
    exactly = {} if is_short(numbers) else _read_exactly(pandas)
    read = pandas.read_csv(BytesIO(numbers), header=None, dtype="float64", skip_blank_lines=False, **exactly)
    has_numbers = [has_number * len(lines) for has_number in layout.fields]
    if read.shape != (len(lines), len(layout.fields)) or list(read.count()) != has_numbers:
        return None
    matrix, columns = read.to_numpy(), zip(layout.places, layout.constants, strict=True)
    return [constant if place is None else matrix[:, place] for place, constant in columns]


def _read_exactly(pandas: Any) -> dict[str, str]:
    """The option that older versions need to read many digits exactly; newer ones warn of it."""
    major, minor = map(int, pandas.__version__.split(".")[:2])
    return {"float_precision": "round_trip"} if (major, minor) < (3, 1) else {}


def is_simple(numpy: Any, numbers: bytes) -> bool:
    """Whether all numbers are valid in JSON, and none is too large for a float to be exact."""
    letters = numpy.frombuffer(b",%b," % numbers, dtype="uint8")
    is_edge, is_dot = (letters == _COMMA) | (letters == _NEWLINE), letters == _DOT
    has_bare_dot = (is_edge[:-1] & is_dot[1:]) | (is_dot[:-1] & is_edge[1:])
    has_leading_zero = is_edge[:-2] & (letters[1:-1] == _ZERO) & ~(is_edge | is_dot)[2:]
    is_exact = is_short(numbers) or _TOO_LARGE not in b"," + numbers.translate(_ONES)
    return is_exact and not has_bare_dot.any() and not has_leading_zero.any()
