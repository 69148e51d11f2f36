"""Names from outside are only names: in no format do they become markup, commands, formulas or escape codes."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from gpu_tracker.analysis.compare import compare
from gpu_tracker.analysis.job import combine
from gpu_tracker.analysis.measures import measure
from gpu_tracker.analysis.runs import ListedRun, Runs
from gpu_tracker.analysis.tables import TABLES, make_table
from gpu_tracker.core.model import RecordingData
from gpu_tracker.core.text import join_command, neutralize
from gpu_tracker.exports import find_format
from gpu_tracker.recording.sampled import read_held
from gpu_tracker.reports.build import build
from gpu_tracker.reports.contract import View, render
from rich import make_rich, report_rich

NAMES = {
    "html": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "attribute": "\"'><svg onload=alert(1)>",
    "cdata": "]]><!--&lt;&#60;",
    "markdown": "|a\\|b `` ` ``` [x](javascript:alert(1)) ![y](http://evil/z) **b** _c_ # h\n# heading\n- item",
    "mention": "@everyone #1 https://evil www.evil.example ~~x~~",
    "terminal": "\x1b]0;title\x07\x1b[2J\x9b31m\r\n\x00\u202e\ud800",
    "formula": "=cmd|' /C calc'!A0",
    "plus": "+1+cmd|' /C calc'!A0",
    "at": "@SUM(1+1)",
    "minus": "-1+1",
    "math": "$\\frac{$ {x} %s",
}
ALLOWED_TAGS = {"svg", "title", "text", "rect", "line", "polygon", "polyline", "circle"}
every_name = pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)


def render_documents(names: str, form: str) -> list[str]:
    """Every document that has this format and names from outside."""
    made = make_rich(2, names)
    group = f"{names}a"
    documents = [
        report_rich(2, names),
        compare([(group, [measure(made)]), ("b", [measure(made)])])._replace(notes=(names,)),
        combine([(group, made)], read_held)._replace(notes=(names,)),
        Runs(
            (
                ListedRun(f"{names}x.jsonl", command=(names, "x"), name=names, started_at=names),
                ListedRun("y", names),
            )
        ),
    ]
    return [str(render(document, form, View(100))) for document in documents]


@every_name
def test_text_has_no_control_characters(names: str) -> None:
    """With colours, the only escape codes are ours."""
    for text in (
        *render_documents(names, "text"),
        str(render(report_rich(2, names), "text", View(80, True, True))),
    ):
        plain = re.sub("\x1b\\[[0-9]*m", "", text)
        assert all(letter.isprintable() or letter == "\n" for letter in plain)
    assert str(render(report_rich(2, names), "text", View(80, has_unicode=False))).isascii()


@every_name
def test_svg_has_only_our_elements(names: str) -> None:
    """Names are text in them, and whole."""
    drawn = ET.fromstring(render(report_rich(2, names), "svg"))
    elements = list(drawn.iter())

    assert {element.tag.partition("}")[2] for element in elements} <= ALLOWED_TAGS
    assert not [
        name for element in elements for name in element.attrib if name.startswith(("on", "href", "style"))
    ]
    assert any(
        (element.text or "").startswith(f"python {neutralize(join_command([names]))[:20]}")
        for element in elements
    )


def tear_apart(row: str) -> list[str]:
    """The cells of a table row, as GitHub splits them: at bars without a backslash before them."""
    return re.findall(r"(?:\\.|[^|\\])+", row.strip("|"))


@every_name
def test_markdown_has_only_our_markup(names: str) -> None:
    """Outside of code there is no active character of theirs, and no table row gets more cells."""
    for text in render_documents(names, "markdown"):
        width = 0
        for line in text.splitlines():
            if line.startswith("|"):
                cells = tear_apart(line)
                width = width or len(cells)
                assert len(cells) == width, line
            else:
                width = 0
            outside = re.sub(r"(?<![\\`])(`+)(?!`).*?(?<!`)\1(?!`)", "", line)
            outside = re.sub(r"\\[!-/:-@\[-`{-~]", "", outside)
            assert not re.search(r"[<>\[\]`@]|://|www\.", outside), line
            assert not re.match(r"\s*#(?!## )", outside), line
        assert all(letter.isprintable() or letter == "\n" for letter in text)


@every_name
@pytest.mark.parametrize("table", TABLES)
def test_a_spreadsheet_calculates_nothing(tmp_path: Path, names: str, table: str) -> None:
    """No field of a CSV file begins like a formula; numbers do not count."""
    made = make_rich(1, names)
    path = tmp_path / "x.csv"
    find_format(str(path)).write(str(path), build(made), [make_table(made, table)])
    with path.open(encoding="utf-8", newline="") as file:
        fields = [field for row in csv.reader(file) for field in row]

    assert not [field for field in fields if field[:1] in set("=+-@\t\r") and not _is_number(field)]


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def export_trace(path: Path, made: RecordingData, names: str) -> str:
    """The text of a trace."""
    tables = [make_table(made, name) for name in TABLES]
    find_format(str(path)).write(str(path), report_rich(2, names), tables)
    return path.read_text("ascii")


@every_name
def test_json_and_traces_hold_names_as_text(tmp_path: Path, names: str) -> None:
    """They can be read back, and a page that includes them is not torn apart by them."""
    made = make_rich(2, names)
    trace = json.loads(export_trace(tmp_path / "x.trace.json", made, names))
    plain = [json.loads(text) for text in render_documents(names, "json")]

    assert plain[0]["header"]["command"][1] == f"{names}train.py"
    assert trace["otherData"]["host"] == f"{names}node7"
    assert all(event["name"].isprintable() for event in trace["traceEvents"])


@every_name
def test_plots_show_names_as_they_are(plotting: None, names: str) -> None:
    """Not as formulas of mathematics, which can fail."""
    figure = report_rich(1, names).plot(["cpu", "regions", "metrics"])
    figure.canvas.draw()

    assert figure.get_suptitle().startswith(f"python {neutralize(join_command([names]))[:20]}")


@pytest.mark.parametrize("names", [*NAMES.values(), "训练 🚀"], ids=[*NAMES, "other writing"])
@pytest.mark.parametrize("form", ["png", "pdf"])
def test_pictures_are_saved_without_a_warning(plotting: None, names: str, form: str) -> None:
    """Neither of control characters, also in the name of a limit, nor of letters that the font lacks."""
    report = report_rich(1, names)
    limited = report.summary._replace(ram_source=names)

    assert len(render(report._replace(summary=limited), form)) > 10_000
