"""The sampled figures of a recording as columns, without making its samples: there may be a million.

Lines of one shape differ only in their digits, so the first of them tells where each figure is in all.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import chain
from math import inf, nan

from ..core.values import NamedTuple
from .columns import learn, read_numbers
from .figures import (
    HELD,
    Faults,
    Key,
    count_disordered,
    drop_impossible,
    explain,
    explain_held,
    list_figures,
    merge,
    transpose,
)
from .lazy import SampleLines, decode_row, is_sound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from ..core.columns import Column, HeldColumns, SampleColumns
    from ..core.model import Peaks, RecordingData
    from .columns import Layout
    from .lazy import Block

# Few enough that their numbers stay in the processor's cache.
_BLOCK_LINES = 1000
# Twice what a month takes. Of more, as in full resolution, several become one: nothing that is shown is as fine.
_MOST_ROWS = 50_000
_UNKNOWN = array("d", [nan])


class _Plan(NamedTuple):
    """Where the figures are in the lines of one shape."""

    layout: Layout
    keys: tuple[Key, ...]


Plans = dict[tuple[tuple[str, ...], bytes], _Plan | None]
"""By the devices and the shape of lines; None for lines that must be read one by one."""


class _Part(NamedTuple):
    """Some lines of a block: which ones, and their figures."""

    indices: Sequence[int]
    columns: Mapping[Key, Sequence[float] | None]
    """None: not known in any of them."""
    is_alone: bool = False
    """Whether the lines were read one by one: only then a number can have a sign."""


def read_columns(recording: RecordingData, plans: Plans | None = None) -> SampleColumns:
    """The columns of a recording, from a file or not. Damaged lines are left out, as `load` leaves them out.

    Who reads many recordings learns the shapes of their lines once, by giving the same plans each time.
    """
    samples = recording.samples
    if isinstance(samples, SampleLines):
        return explain(*read_figures(samples, _count_together(len(samples)), plans))
    return explain_together(transpose(map(list_figures, samples)))


def explain_together(written: Mapping[Key, Column]) -> SampleColumns:
    """The columns, given the figures of all samples; of very many, several become one."""
    n_together = _count_together(len(written.get(Key("at"), ())))
    if n_together == 1:
        return explain(written)
    possible, n_impossible = drop_impossible(written)
    faults = Faults(count_disordered(possible[Key("at")]), n_impossible)
    return explain(merge(possible, n_together), faults)


def _count_together(n_samples: int) -> int:
    return -(-n_samples // _MOST_ROWS) or 1


def read_held(recording: RecordingData, plans: Plans | None = None) -> HeldColumns:
    """What a job held, for sums over many: of a thousand recordings nothing else is read."""
    samples = recording.samples
    if not isinstance(samples, SampleLines):
        written = transpose(map(list_figures, samples))
        return explain_held(
            written, [(one.at_seconds, one.peaks.ram.combined.total_bytes) for one in samples]
        )
    written, _ = read_figures(samples, _count_together(len(samples)), plans, HELD)
    return explain_held(written, samples.read_grown_ram())


def read_figures(
    samples: SampleLines,
    n_together: int = 1,
    plans: Plans | None = None,
    chosen: Collection[str] | None = None,
) -> tuple[dict[Key, Column], Faults]:
    """Every figure of every undamaged sample, as it was written, or of that many together, without those that cannot be.

    If only some are chosen, there may be others as well.
    """
    columns: dict[Key, Column] = {}
    plans = {} if plans is None else plans
    before: Mapping[Key, Sequence[float]] = {}
    n_rows = n_disordered = n_impossible = 0
    latest = -inf
    for block in samples.read_blocks(max(1, _BLOCK_LINES // n_together) * n_together):
        parts = [part for part in _read_parts(samples, block, plans, chosen) if part.indices]
        figures: Mapping[Key, Sequence[float]] = _join(parts)
        n_lines = sum(len(part.indices) for part in parts)
        if n_together > 1 and n_lines:
            figures, n_wrong = drop_impossible(figures, may_have_signs=any(part.is_alone for part in parts))
            at = figures[Key("at")]
            n_impossible, n_lines = n_impossible + n_wrong, n_lines - n_wrong
            n_disordered, latest = n_disordered + count_disordered(at, latest), max(latest, *at, latest)
        found = merge(figures, n_together, before)
        columns.update((key, _UNKNOWN * n_rows) for key in found if key not in columns)
        n_rows += -(-n_lines // n_together)
        for key, column in columns.items():
            column.extend(found.get(key, ()))
            column.extend(_UNKNOWN * (n_rows - len(column)))
        before = figures
    return columns, Faults(n_disordered, n_impossible)


def _read_parts(
    samples: SampleLines, block: Block, plans: Plans, chosen: Collection[str] | None
) -> Iterator[_Part]:
    peaks, offsets, lines, groups = block
    uuids = tuple(gpu.uuid for gpu in peaks.gpus)
    for shape, indices in groups.items():
        some = lines if len(indices) == len(lines) else [lines[index] for index in indices]
        if (uuids, shape) not in plans:
            plans[uuids, shape] = _make_plan(some[0], peaks)
        columns = _read_together(some, plans[uuids, shape], chosen)
        if columns is None:
            rows, _ = samples.read_rows([offsets[index] for index in indices], some, peaks, list_figures)
            yield _Part([indices[at] for at in rows], transpose(rows.values()), is_alone=True)
        else:
            yield _Part(indices, columns)


def _make_plan(line: bytes, peaks: Peaks) -> _Plan | None:
    """None if such lines must be read one by one."""
    if not is_sound(line, peaks):
        return None
    keys: tuple[Key, ...] = ()

    def list_values(marked: bytes) -> list[float | None]:
        nonlocal keys
        figures = decode_row(marked, peaks, list_figures)
        keys = tuple(figures)
        return list(figures.values())

    layout = learn(line, list_values)
    has_digits = any(map(str.isdigit, chain.from_iterable(key.reason for key in keys)))
    return None if layout is None or has_digits else _Plan(layout, keys)


def _read_together(
    lines: list[bytes], plan: _Plan | None, chosen: Collection[str] | None
) -> dict[Key, Sequence[float] | None] | None:
    """The figures of lines of one shape; None if they must be read one by one."""
    numbers = None if plan is None else read_numbers(lines, plan.layout)
    if plan is None or numbers is None:
        return None
    width = len(plan.layout.fields)
    return {
        key: _repeat(constant, len(lines)) if place is None else numbers[place::width]
        for key, place, constant in zip(plan.keys, plan.layout.places, plan.layout.constants, strict=True)
        if chosen is None or key.figure in chosen
    }


def _repeat(constant: float | None, n_lines: int) -> list[float] | None:
    return None if constant is None else [constant] * n_lines


def _join(parts: list[_Part]) -> dict[Key, Sequence[float]]:
    """The columns of a block, in the order of its lines; those that are not known at all are empty."""
    keys = dict.fromkeys(chain.from_iterable(part.columns for part in parts))
    if len(parts) < 2:
        return {key: part.columns[key] or () for part in parts for key in keys}
    # Almost always one part has almost all lines: the others are inserted into it.
    first, *others = sorted(parts, key=lambda part: -len(part.indices))
    rest = sorted(
        (index, number, at) for number, part in enumerate(others) for at, index in enumerate(part.indices)
    )
    places = [
        (bisect_left(first.indices, index) + n_before, number, at)
        for n_before, (index, number, at) in enumerate(rest)
    ]
    return {key: _insert(first, others, places, key) for key in keys}


def _insert(
    first: _Part, others: list[_Part], places: list[tuple[int, int, int]], key: Key
) -> Sequence[float]:
    """A figure of the lines of all parts; nothing if it is not known in any."""
    known, *inserted = (part.columns.get(key) for part in (first, *others))
    if not known and not any(inserted):
        return ()
    values = list(known or [nan] * len(first.indices))
    for place, number, at in places:
        column = inserted[number]
        values.insert(place, column[at] if column else nan)
    return values
