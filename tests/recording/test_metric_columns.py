"""Metrics of many lines as columns have what each row has."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, strategies as st

from gpu_tracker.analysis.logged import collect
from gpu_tracker.core.model import MetricRow
from gpu_tracker.recording.reader import load
from gpu_tracker.recording.sampled import read_columns
from gpu_tracker.reports.build import build
from recorded import Made, plain_sample, run, write

ROWS = st.builds(
    MetricRow,
    st.floats(0, 1e6),
    st.dictionaries(st.sampled_from(["loss", "lr", "step 1"]), st.floats(width=32) | st.integers(-5, 5)),
    st.none() | st.integers(0, 9) | st.just(float("nan")),
    st.integers(1, 3),
)


def check(path: Path) -> None:
    """The columns are those of the rows, and the same damage is found."""
    one, other = load(str(path)), load(str(path))
    expected, columns = collect(tuple(one.metrics)), collect(other.metrics)

    assert repr(columns) == repr(expected)  # nan is not equal to itself
    assert tuple(one.problems) == tuple(other.problems)


@given(st.lists(st.lists(ROWS, min_size=1, max_size=3), min_size=1, max_size=6), st.data())
def test_columns_are_equal_to_rows(lines: list[list[MetricRow]], data: st.DataObject) -> None:
    """Whatever was logged, and wherever a few bytes of it are damaged."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.jsonl"
        with Made(path) as writer:
            for rows in lines:
                writer.write_metrics(rows)
        check(path)
        content = bytearray(path.read_bytes())
        start = content.index(b'{"metrics"')
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(start, len(content) - 1))
            content[at : at + 1] = data.draw(
                st.sampled_from([b"0", b"", b".", b",", b"-", b"]", b"\n", b"99", b'"', b"null"])
            )
        path.write_bytes(content)
        check(path)


def test_a_point_without_numbers_is_the_last_that_was_heard(tmp_path: Path) -> None:
    """It says that the job was alive."""
    rows = (MetricRow(1.0, {"loss": 2.0}), MetricRow(9.0, {}))
    columns = collect(load(str(write(tmp_path / "x.jsonl", run(metrics=rows)))).metrics)

    assert columns.last_seconds == 9.0
    assert [list(column) for column in columns.metrics["loss"]] == [[1.0], [2.0]]


def test_a_report_decodes_each_line_of_metrics_once(tmp_path: Path, decoded: list[bytes]) -> None:
    """And the first once more, to know whether there are any."""
    path = tmp_path / "x.jsonl"
    with Made(path) as writer:
        for at in range(100):
            writer.write_sample(plain_sample(at + 1.0))
            writer.write_metrics([MetricRow(float(at), {"loss": 1.0})])
    recording = load(str(path))
    decoded.clear()
    report = build(recording, read_columns(recording))

    assert (report.metrics[0].logged, len(report.logged[0].values)) == (100, 100)
    assert sum(line.startswith(b'{"metrics"') for line in decoded) == 101
