"""What the job logged, as columns. Pure."""

from __future__ import annotations

from array import array

from ..core.columns import LoggedColumns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.columns import Column
    from ..core.model import MetricRow


def collect(rows: Sequence[MetricRow]) -> LoggedColumns:
    """The columns of these rows; those of a file are read once, and without making its rows."""
    read = getattr(rows, "read_columns", None)
    if read is not None:
        columns: LoggedColumns = read()
        return columns
    metrics: dict[str, tuple[Column, Column]] = {}
    for row in rows:
        for name, value in row.values.items():
            moments, values = metrics.setdefault(name, (array("d"), array("d")))
            moments.append(row.at_seconds)
            values.append(value)
    return LoggedColumns(metrics, max((row.at_seconds for row in rows), default=None))
