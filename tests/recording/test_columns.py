"""Many lines at once give what each of them gives."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import gpu_tracker as gput
from gpu_tracker.core.model import Parts, Spread
from gpu_tracker.recording import arrays
from gpu_tracker.recording.arrays import is_simple
from gpu_tracker.recording.columns import is_short, learn, read_numbers, reduce, shape_of
from recorded import make_full, make_plain, plain_sample, run, write


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        *((text, True) for text in (b"1,2.5,0.25\n", b"0,0.0\n10,100.01\n", b"")),
        *(
            (text, False)
            for text in (b"01\n", b"1,007\n", b"1,\n00\n", b".5\n", b"1,5.\n", b"1,.5\n", b"5.,1\n")
        ),
        *((text, False) for text in (b"1234567890123456\n", b"1,1000000000000000.5\n")),
        *((text, True) for text in (b"123456789012345\n", b"1.0000000000000001\n", b"333333333.33333331\n")),
    ],
)
def test_only_simple_numbers_are_read_at_once(numbers: bytes, expected: bool) -> None:
    """Others are read one by one, and damage is found there."""
    assert is_simple(np, numbers) == expected


@pytest.mark.parametrize(
    ("numbers", "expected"), [(b"1,12345678901234\n5\n", True), (b"1,333333333.3333333\n", False)]
)
def test_numbers_with_many_digits_need_a_slower_parser(numbers: bytes, expected: bool) -> None:
    """Fast ones round them wrongly."""
    assert is_short(numbers) == expected


def test_numbers_with_many_digits_are_read_at_once_and_exactly(tmp_path: Path, decoded: list[bytes]) -> None:
    """One of them does not send all lines of its block the slow way."""
    samples = tuple(
        plain_sample(float(at))._replace(system_cpu_seconds=at / 3, ram_bytes=spread(at))
        for at in range(1, 1001)
    )
    recording = gput.load(write(tmp_path / "x.jsonl", run(samples=samples)))
    expected = _slow(recording)
    decoded.clear()

    assert recording.to_pandas().equals(expected)
    assert len(decoded) < 100


def spread(at: int) -> Parts[Spread]:
    """Memory with a mean of many digits."""
    held = Spread(1, 10**9 / 3 + at / 7, 10**9)
    return Parts(held, held, held)


def test_a_layout_tells_where_each_value_is() -> None:
    """Or that it is the same in all lines of the shape."""
    line = b'{"a":[7,2.5],"b":3}\n'
    layout = learn(line, lambda marked: (json.loads(marked)["b"], json.loads(marked)["a"][1], 0, None, "x"))

    assert layout is not None
    assert (layout.fields, layout.places) == ((True,) * 3, (2, 1, None, None, None))
    assert layout.constants[2:] == (0, None, "x")
    assert reduce([line, line]) == b"7,2.5,3\n7,2.5,3\n"
    assert shape_of(line) == shape_of(b'{"a":[70,20.55],"b":31}\n')


@pytest.mark.parametrize("line", [b'{"a":-1}', b'{"a":1e5}', b'{"a":1,"b":"\\""}', b'{"b":1}', b'{"a":"t5"}'])
def test_what_cannot_be_told_is_read_one_by_one(line: bytes) -> None:
    """Signs, exponents, an escaped quotation mark, missing values, text with numbers."""
    assert learn(line, lambda marked: (json.loads(marked)["a"],)) is None


@pytest.mark.parametrize("text", [b"GPU-1", b"5u7", b"3.11", b"a,b", b".", b"1e5"])
def test_what_looks_like_a_number_in_a_text_is_none(text: bytes) -> None:
    """The numbers after it are found all the same."""
    line = b'{"c":1,"b":["%b",7],"a":3}\n' % text
    layout = learn(line, lambda marked: (json.loads(marked)["a"],))

    assert layout is not None
    assert read_numbers([line, line], layout) == [1, -1, 7, 3] * 2
    assert layout.places == (3,)


@pytest.mark.parametrize("make", [make_plain, make_full])
@pytest.mark.parametrize("block", [1, 2, 10_000])
def test_frames_are_equal_to_rows(
    tmp_path: Path, make: object, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a recording with a damaged sample of the right shape, in blocks of any size."""
    monkeypatch.setattr(arrays, "_BLOCK_LINES", block)
    path = make(tmp_path / "x.jsonl")  # type: ignore[operator]
    lines = path.read_bytes().splitlines(keepends=True)
    last = max(index for index, line in enumerate(lines) if line.startswith(b'{"sample"'))
    for wrong in (b'"threads":', b'"threads":00', b'"threads":' + b"9" * 40):
        more = lines[last].replace(b'"threads":', wrong, 1)
        if wrong == b'"threads":':
            more = more.replace(b'"threads":1', b'"threads":', 1)
        path.write_bytes(b"".join([*lines[: last + 1], more, lines[last], *lines[last + 1 :]]))
        recording = gput.load(path)

        assert recording.to_pandas().equals(_slow(recording))
        assert len(recording.to_pandas()) == len(tuple(recording.samples))


def _slow(recording: gput.Recording) -> object:
    from gpu_tracker.exports import frames

    return frames.to_pandas(recording._table("samples")._replace(read_arrays=None))


def test_samples_with_peaks_are_read_at_once_too(tmp_path: Path, decoded: list[bytes]) -> None:
    """Of the texts in them nothing remains."""
    samples = tuple(plain_sample(float(at), 100 * at) for at in range(1, 1001))
    path = write(tmp_path / "x.jsonl", run(samples=samples, end=None))
    assert path.read_bytes().count(b'"peaks":') > 900
    recording = gput.load(path)
    expected = _slow(recording)
    decoded.clear()
    assert recording.to_pandas().equals(expected)
    assert len(decoded) < 100
