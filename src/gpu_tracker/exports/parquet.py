"""One table as Parquet, with the header, the summary and the notes as metadata. Needs pyarrow."""

from __future__ import annotations

from .about import describe
from .frames import arrow_batches, arrow_schema
from .packages import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.tables import Table
    from ..reports.build import Report

NAME = "parquet"
SUFFIXES = (".parquet",)
HOLDS_ALL_TABLES = False
NEEDS_SAMPLES = False


def write(path: str, report: Report, tables: Sequence[Table]) -> None:
    """Batch by batch."""
    (table,) = tables
    schema = arrow_schema(table).with_metadata(describe(report))
    with need("pyarrow.parquet").ParquetWriter(path, schema) as writer:
        for batch in arrow_batches(table):
            writer.write_batch(batch)
