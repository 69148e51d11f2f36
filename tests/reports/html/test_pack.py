"""Columns that a browser can unpack."""

from __future__ import annotations

import zlib
from array import array
from base64 import b64decode
from itertools import accumulate
from math import isnan, nan

import pytest
from hypothesis import given, strategies as st

from gpu_tracker.reports.html import pack
from gpu_tracker.reports.html.pack import COARSE, FINE, Packer, quantize

# Smaller differences than this are none.
SIZES = st.floats(-1e12, 1e12).filter(lambda size: size == 0 or abs(size) > 1e-280)


def unpack(content: bytes, size: int) -> list[int]:
    """Numbers of that many bytes, lowest bytes first."""
    rows = len(content) // size
    return [sum(content[place * rows + row] << 8 * place for place in range(size)) for row in range(rows)]


@given(st.lists(SIZES | st.just(nan), min_size=1, max_size=50), st.sampled_from([COARSE, FINE]))
def test_a_value_is_found_again(values: list[float], levels: int) -> None:
    """To less than a level; what is unknown stays unknown."""
    packed, content = quantize(array("d", values), levels)
    known = [value for value in values if not isnan(value)]
    width = (max(known) - min(known)) / (levels - 1) if known else 0.0
    for value, level in zip(values, unpack(content, 2), strict=True):
        if isnan(value):
            assert level == packed.unknown == levels
        else:
            assert abs(packed.low + level * packed.step - value) <= width * 0.51 + 1e-9 * abs(value)


@given(st.lists(st.floats(0, 4e6), max_size=50).map(sorted))
def test_moments_are_found_again(moments: list[float]) -> None:
    """To the millisecond, over a month."""
    packer = Packer()
    assert packer.add_times(moments) == 0
    assert packer.columns == [{"rows": len(moments)}]
    steps = unpack(zlib.decompress(b64decode(packer.pack())), 4)
    assert [found / 1000 for found in accumulate(steps)] == [round(moment, 3) for moment in moments]


def test_columns_follow_each_other() -> None:
    """Each is known by its number."""
    packer = Packer()
    assert [packer.add([1.0, 2.0]), packer.add([nan, 5.0, 6.0], FINE)] == [0, 1]
    assert [column["rows"] for column in packer.columns] == [2, 3]
    assert len(zlib.decompress(b64decode(packer.pack()))) == 2 * (2 + 3)


def test_other_processors_write_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lowest byte comes first everywhere."""
    _, little = quantize(array("d", [0.0, 1.0, 4.0]), COARSE)
    swapped = array("H", [0, 1024, 4094])
    swapped.byteswap()
    monkeypatch.setattr(pack, "_IS_BIG_ENDIAN", True)
    assert pack._split_bytes(swapped) == little
