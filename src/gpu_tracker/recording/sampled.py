"""The sampled figures of a recording as columns, without making its samples: there may be a million.

Lines of one shape differ only in their digits, so the first of them tells where each figure is in all.
"""

from __future__ import annotations

from array import array
from itertools import chain
from math import nan

from ..core.values import NamedTuple
from .columns import learn, read_numbers
from .figures import explain, known, list_figures, transpose
from .lazy import SampleLines, decode_row, group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..core.columns import Column, SampleColumns
    from ..core.model import Peaks, RecordingData
    from .columns import Layout
    from .figures import Key

# Few enough that their numbers stay in the processor's cache.
_BLOCK_LINES = 500


class _Plan(NamedTuple):
    """Where the figures are in the lines of one shape."""

    layout: Layout
    keys: tuple[Key, ...]


class _Part(NamedTuple):
    """Some lines of a block: which ones, and their figures."""

    indices: Sequence[int]
    columns: Mapping[Key, Sequence[float]]


def read_columns(recording: RecordingData) -> SampleColumns:
    """The columns of a recording, from a file or not. Damaged lines are left out, as `load` leaves them out."""
    samples = recording.samples
    if isinstance(samples, SampleLines):
        return explain(read_figures(samples))
    return explain(transpose(map(list_figures, samples)))


def read_figures(samples: SampleLines) -> dict[Key, Column]:
    """Every figure of every undamaged sample, as it was written."""
    columns: dict[Key, Column] = {}
    plans: dict[tuple[tuple[str, ...], bytes], _Plan | None] = {}
    unknown, n_rows = array("d", [nan]) * len(samples), 0
    for peaks, offsets, lines in samples.read_blocks(_BLOCK_LINES):
        parts = list(_read_parts(samples, offsets, lines, peaks, plans))
        found = dict(_join(parts))
        columns.update((key, unknown[:]) for key in found if key not in columns)
        after = n_rows + sum(len(part.indices) for part in parts)
        for key, values in found.items():
            columns[key][n_rows:after] = values
        n_rows = after
    for column in columns.values():
        del column[n_rows:]
    return columns


def _read_parts(
    samples: SampleLines,
    offsets: Sequence[int],
    lines: list[bytes],
    peaks: Peaks,
    plans: dict[tuple[tuple[str, ...], bytes], _Plan | None],
) -> Iterator[_Part]:
    uuids = tuple(gpu.uuid for gpu in peaks.gpus)
    for shape, indices in group(lines).items():
        some = [lines[index] for index in indices]
        if (uuids, shape) not in plans:
            plans[uuids, shape] = _make_plan(some[0], peaks)
        columns = _read_together(some, plans[uuids, shape])
        if columns is None:
            rows, _ = samples.read_rows([offsets[index] for index in indices], some, peaks, list_figures)
            yield _Part([indices[at] for at in rows], transpose(rows.values()))
        else:
            yield _Part(indices, columns)


def _make_plan(line: bytes, peaks: Peaks) -> _Plan | None:
    """None if such lines must be read one by one."""
    keys: tuple[Key, ...] = ()

    def list_values(marked: bytes) -> list[float | None]:
        nonlocal keys
        figures = decode_row(marked, peaks, list_figures)
        keys = tuple(figures)
        return list(figures.values())

    layout = learn(line, list_values)
    has_digits = any(map(str.isdigit, chain.from_iterable(key.reason for key in keys)))
    return None if layout is None or has_digits else _Plan(layout, keys)


def _read_together(lines: list[bytes], plan: _Plan | None) -> dict[Key, Sequence[float]] | None:
    """The figures of lines of one shape; None if they must be read one by one."""
    numbers = None if plan is None else read_numbers(lines, plan.layout)
    if plan is None or numbers is None:
        return None
    width = len(plan.layout.fields)
    return {
        key: [known(constant)] * len(lines) if place is None else numbers[place::width]
        for key, place, constant in zip(plan.keys, plan.layout.places, plan.layout.constants, strict=True)
    }


def _join(parts: list[_Part]) -> Iterator[tuple[Key, Column]]:
    """The columns of a block, in the order of its lines."""
    indices = list(chain.from_iterable(part.indices for part in parts))
    order = sorted(range(len(indices)), key=indices.__getitem__)
    for key in dict.fromkeys(chain.from_iterable(part.columns for part in parts)):
        values = [part.columns.get(key) or [nan] * len(part.indices) for part in parts]
        every = values[0] if len(values) == 1 else list(chain.from_iterable(values))
        yield key, array("d", every if len(values) == 1 else map(every.__getitem__, order))
