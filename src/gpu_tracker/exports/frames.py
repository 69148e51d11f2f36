"""Tables for pandas, polars and Arrow. Types come from the columns, not from the first rows."""

from __future__ import annotations

from .packages import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ..analysis.tables import Table

# Int64: integers stay integers even if some are missing.
_PANDAS_TYPES = {"integer": "Int64", "real": "float64", "text": "object"}


def to_pandas(table: Table) -> Any:
    """A `pandas.DataFrame`."""
    pandas = need("pandas")
    if table.read_arrays is not None:
        names = (column.name for column in table.columns)
        return pandas.DataFrame(dict(zip(names, table.read_arrays(pandas), strict=True)), copy=False)
    columns = zip(table.columns, table.to_columns(), strict=True)
    return pandas.DataFrame(
        {column.name: pandas.Series(values, dtype=_PANDAS_TYPES[column.kind]) for column, values in columns}
    )


def to_polars(table: Table) -> Any:
    """A `polars.DataFrame`."""
    polars = need("polars")
    types = {"integer": polars.Int64, "real": polars.Float64, "text": polars.String}
    schema = {column.name: types[column.kind] for column in table.columns}
    batches = (polars.DataFrame(columns, schema=schema) for columns in _columns_of_batches(table))
    return polars.concat([polars.DataFrame(schema=schema), *batches])


def to_arrow(table: Table) -> Any:
    """A `pyarrow.Table`."""
    return need("pyarrow").Table.from_batches(arrow_batches(table), arrow_schema(table))


def arrow_schema(table: Table) -> Any:
    """The columns with Arrow types."""
    pyarrow = need("pyarrow")
    types = {"integer": pyarrow.int64(), "real": pyarrow.float64(), "text": pyarrow.string()}
    return pyarrow.schema([(column.name, types[column.kind]) for column in table.columns])


def arrow_batches(table: Table) -> Iterator[Any]:
    """The rows, many at a time."""
    pyarrow, schema = need("pyarrow"), arrow_schema(table)
    for columns in _columns_of_batches(table):
        arrays = [
            pyarrow.array(values, field.type) for values, field in zip(columns.values(), schema, strict=True)
        ]
        yield pyarrow.record_batch(arrays, schema=schema)


def _columns_of_batches(table: Table) -> Iterator[dict[str, list[Any]]]:
    for batch in table.batches():
        columns = zip(table.columns, zip(*batch, strict=True), strict=True)
        yield {column.name: [_fit(value, column.kind) for value in values] for column, values in columns}


def _fit(value: Any, kind: str) -> Any:
    if value is None or kind == "integer":
        return value
    return float(value) if kind == "real" else to_utf8(value)


def to_utf8(text: str) -> str:
    """Valid UTF-8: surrogates of undecodable bytes are escaped."""
    return text.encode("utf-8", "backslashreplace").decode()
