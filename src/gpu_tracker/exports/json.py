"""One object: header, summary, notes, and each table as a list of objects."""

from __future__ import annotations

import json

from .about import describe, spell_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.tables import Table
    from ..reports.build import Report

NAME = "json"
SUFFIXES = (".json",)
HOLDS_ALL_TABLES = True
NEEDS_SAMPLES = False


def write(path: str, report: Report, tables: Sequence[Table]) -> None:
    """Row by row, a line each."""
    with open(path, "w", encoding="ascii") as file:
        file.write("{" + ",\n".join(f"{json.dumps(name)}: {text}" for name, text in describe(report).items()))
        for table in tables:
            names = [column.name for column in table.columns]
            file.write(f",\n{json.dumps(table.name)}: [")
            separator = "\n"
            for row in table.rows():
                file.write(separator + json.dumps(dict(zip(names, map(spell_number, row), strict=True))))
                separator = ",\n"
            file.write("]")
        file.write("}\n")
