"""Documents that are made from the code say what the code says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import gpu_tracker
from gpu_tracker import __version__
from gpu_tracker.cli.tracker_config import ARGUMENTS
from gpu_tracker.core.model import INTEGRATED, POLLED, UNMETERED
from gpu_tracker.recording import schema
from gpu_tracker.reports.contract import choose_format, list_formats
from gpu_tracker.sinks.prometheus import FAMILIES

PROJECT = Path(__file__).parents[1]
DOCS = PROJECT / "docs"
_KINDS = re.compile(r'^    {"(\w+)": ', re.MULTILINE)
# Where an event is made, and where one is looked for.
_MADE = re.compile(r'(?:\bEvent\([^,()]+, |_say\([^()]+, |monotonic\(\), |event\.kind == )"([a-z]+)"')
_DOCUMENTS = {
    "report": "Report",
    "run": "Report",
    "attach": "Report",
    "compare": "Comparison",
    "combine": "Combined",
    "ls": "Runs",
    "size": "SizingReport",
    "doctor": "Diagnosis",
    "-e": "ResourceUsage",
}
_SUFFIXES = {"text": "txt", "markdown": "md"}


@pytest.mark.parametrize("script", ["make_recording_format.py", "make_findings.py", "make_dashboards.py"])
def test_a_document_made_from_the_code_is_that_of_the_code(script: str) -> None:
    """If this fails: python docs/make_recording_format.py, or the one that is named."""
    assert subprocess.run([sys.executable, DOCS / script, "--check"]).returncode == 0


def test_every_name_in_the_dashboard_is_told_to_prometheus() -> None:
    """And every panel has queries."""
    panels = json.loads((DOCS / "grafana.json").read_text())["panels"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    asked = {name for query in queries for name in re.findall(r"gpu_tracker_\w+", query)}

    assert all(panel["targets"] for panel in panels)
    assert asked <= {family.name for family in FAMILIES}
    assert len(asked) > 15


def test_the_five_files_to_read_are_short() -> None:
    """They exist, and a newcomer reads them in half an hour."""
    text = (DOCS / "architecture.md").read_text()
    chapter = text.partition("## Read five files")[2].partition("\n## ")[0]
    files = re.findall(r"^\d\. `([^`]+)`", chapter, re.MULTILINE)

    assert len(files) == 5
    assert sum(len((PROJECT / file).read_text().splitlines()) for file in files) < 600


def test_the_front_page_reads_the_same_anywhere() -> None:
    """It is shown on the page of the package too, where links to other files lead nowhere, and words stand for a picture."""
    text = (PROJECT / "README.md").read_text()
    pictures = re.findall(r"!\[[^\]]{20,}\]\(([^)]*)\)", text)
    links = re.findall(r"\]\(([^)]*)\)", text)

    assert not [link for link in links if not link.startswith("https://") and link not in pictures]
    assert all((PROJECT / picture).exists() for picture in pictures)
    assert not [
        file for file in re.findall(r"`((?:docs|examples)/[^`]*)`", text) if not (PROJECT / file).exists()
    ]


def test_one_sentence_says_what_it_is() -> None:
    """The same on the front page, on the page of the package, where it is cited and in `help()`."""
    sentence = (gpu_tracker.__doc__ or "").splitlines()[0]

    assert all(
        sentence in (PROJECT / file).read_text() for file in ("README.md", "pyproject.toml", "CITATION.cff")
    )


def test_the_version_to_cite_is_that_of_the_code() -> None:
    """And the changelog has a section for it."""
    assert f"\nversion: {__version__}\n" in (PROJECT / "CITATION.cff").read_text()
    assert f"\n## {__version__} " in (PROJECT / "CHANGELOG.md").read_text()


def test_every_dependency_has_its_reason() -> None:
    """In CONTRIBUTING.md, by name."""
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")  # pytest brings the latter
    data = toml.loads((PROJECT / "pyproject.toml").read_text())
    project = data["project"]
    groups = {**project["optional-dependencies"], **data["dependency-groups"]}
    lists = [data["build-system"]["requires"], project["dependencies"], *groups.values()]
    names = {re.split(r"[^\w-]", requirement)[0] for requirements in lists for requirement in requirements}
    explained = set(re.findall(r"`([\w-]+)`", (PROJECT / "CONTRIBUTING.md").read_text()))

    assert names - explained == set()


def test_every_kind_of_line_and_every_field_is_in_the_document() -> None:
    """The kinds that the schema lists, and the fields of recordings that have almost all of them."""
    text = (DOCS / "recording-format.md").read_text()
    named = set(re.findall(r"`([a-z_]+)`", text))
    lines = [
        json.loads(line)
        for file in sorted((PROJECT / "tests/recording/golden").glob("*.jsonl"))
        for line in file.read_text().splitlines()
    ]
    kinds = _KINDS.findall(schema.__doc__ or "")
    fields = {field for line in lines for data in line.values() for field in data}

    assert {kind for line in lines for kind in line} <= {*kinds}
    assert [kind for kind in kinds if f'`{{"{kind}": ...}}`' not in text] == []
    assert fields - named == set()


def test_every_kind_of_event_is_in_the_document() -> None:
    """Those that the code makes or looks for."""
    text = (DOCS / "recording-format.md").read_text()
    _, _, section = text.partition("\n### event\n")
    named = set(re.findall(r"`([a-z]+)` \(", section.partition("\n| field")[0]))
    sources = "".join(file.read_text() for file in sorted(Path(gpu_tracker.__file__).parent.rglob("*.py")))
    made = {*_MADE.findall(sources), UNMETERED, POLLED, INTEGRATED}

    assert {"note", "polled", "oom", "exception", "unattributed"} <= made <= named
    assert [kind for kind in named if f'"{kind}"' not in sources] == []


def test_every_format_of_every_command_is_in_the_document() -> None:
    """As the table of renderers has it."""
    text = (DOCS / "commands.md").read_text()
    _, _, section = text.partition("\n### Formats\n")
    rows = [re.findall(r"`([^`]+)`", row) for row in section.partition("\n\nIn Python")[0].splitlines()]
    rows = [row for row in rows if row and row[0].startswith(".")]
    told = {
        (suffix, command)
        for row in rows
        for suffix in row
        if suffix.startswith(".")
        for command in row
        if command in _DOCUMENTS
    }
    names = {name for row in rows for name in row if name in list_formats("Report")}

    assert told == {
        (f".{_SUFFIXES.get(name, name)}", command)
        for command, document in _DOCUMENTS.items()
        for name in list_formats(document)
    }
    assert names == set(list_formats("Report"))


@pytest.mark.parametrize("suffix", ["txt", "json", "md", "html"])
def test_the_suffixes_are_those_of_the_code(suffix: str) -> None:
    """The format of a file is that of the document."""
    assert _SUFFIXES.get(choose_format("Report", None, f"a.{suffix}"), suffix) == suffix


def test_the_page_for_switchers_names_everything_that_they_used() -> None:
    """Every parameter, option and name of the existing tool."""
    rows = [line for line in (DOCS / "migrating.md").read_text().splitlines() if line.startswith("|")]
    quoted = " ".join(code for row in rows for code in re.findall(r"`([^`]+)`", row))
    options = "-e -o -f --st --ru --gru --tu --nec --guuids --disable-logs --gb --tf --overwrite --tconfig --stf -p -m --stat --cconfig"
    names = [*ARGUMENTS, "process_id", "SubTracker", "sub_track", "SubTrackingAnalyzer", "TrackingComparison"]

    assert [
        word for word in (*names, *options.split()) if not re.search(rf"(?<![\w-]){word}\b", quoted)
    ] == []


def test_the_versions_of_trainers_are_those_that_are_tested() -> None:
    """What is installed for the tests is in the table of the document."""
    group = re.search(r"^trainers = \[(.*)\]$", (PROJECT / "pyproject.toml").read_text(), re.MULTILINE)
    assert group is not None
    pins = dict(re.findall(r'"([\w-]+)==([\d.]+)"', group[1]))
    table = (DOCS / "training.md").read_text().partition("| tested version |")[2]

    assert len(pins) == group[1].count(",") + 1
    for package, version in pins.items():
        assert re.search(rf"`{package}`.*\b{re.escape(version)}\b", table), package


def test_the_versions_of_engines_are_those_that_are_tested() -> None:
    """What `make clusters` installs is in the document."""
    group = re.search(r"^engines = \[(.*)\]$", (PROJECT / "pyproject.toml").read_text(), re.MULTILINE)
    assert group is not None
    pins = dict(re.findall(r'"([\w-]+)==([\d.]+)"', group[1]))
    text = re.sub(r"\s+", " ", (DOCS / "clusters.md").read_text())

    assert set(pins) == {"distributed", "ray"}
    assert all(
        re.search(rf"\b{package} {re.escape(version)}\b", text, re.IGNORECASE)
        for package, version in pins.items()
    )
