"""What the site has besides the pages in docs/: the front page, the reference, examples, changes. A hook of mkdocs, for `make docs`.

Everything is made from the code when the site is built, and nothing is kept: README.md is the front page, each command has a page
made from its parser, public names come from their docstrings, figures from their table.
"""

from __future__ import annotations

import ast
import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from command_parsers import ACTIONS, NAMES, find_parser
from mkdocs.structure.files import File

import gpu_tracker
from gpu_tracker.core import figures

if TYPE_CHECKING:
    import argparse

ROOT = Path(__file__).parent.parent
_COMMANDS = "reference/commands"
_WIDE = ("index.md", "tutorial.md")
"""Pages beside which there is nothing to navigate to."""
_LONGEST_WHOLE = 26
"""Characters of a name that is not broken at its hyphens."""
_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
"""Files of the project that are pages of the site."""


# ---- What mkdocs calls.


def on_config(config: Any) -> Any:
    """The navigation: one entry per command in place of their directory."""
    config.nav = [_fill(entry) for entry in config.nav]
    return config


def _fill(entry: Any) -> Any:
    if isinstance(entry, list):
        return [
            one
            for inner in entry
            for one in (_list_commands() if inner == f"{_COMMANDS}/" else [_fill(inner)])
        ]
    if isinstance(entry, dict):
        return {title: _fill(inner) for title, inner in entry.items()}
    return entry


def _list_commands() -> list[dict[str, str]]:
    return [{name: f"{_COMMANDS}/{_name_page(name)}"} for name in NAMES]


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made."""
    pages = {
        **{page: (ROOT / name).read_text(encoding="utf-8") for name, page in _PAGES.items()},
        **{f"{_COMMANDS}/{_name_page(name)}": render_command(name) for name in NAMES},
        "reference/index.md": render_reference(),
        "reference/python.md": render_names(),
        "reference/figures.md": render_figures(),
        "howto/examples.md": render_examples(),
    }
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links as the site has them. In the project, pages name files of the project."""
    up = "../" * page.file.src_uri.count("/")
    if page.file.src_uri in _WIDE:
        page.meta["hide"] = ["navigation"]
    return link(markdown, up)


def on_page_content(html: str, **_: Any) -> str:
    """Browsers break at every hyphen, also in the middle of an option."""
    return re.sub(rf"<code>([^<\n]{{1,{_LONGEST_WHOLE}}})</code>", r'<code class="short">\1</code>', html)


# ---- Links.


def link(markdown: str, up: str) -> str:
    """Names of files become links to their pages, except in blocks of code."""
    parts = re.split(r"(^ *```.*?^ *```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.lstrip().startswith("```") else _link_text(part, up) for part in parts)


def _link_text(text: str, up: str) -> str:
    text = re.sub(r"<!-- (?!generated|end of).*?-->\n?", "", text, flags=re.DOTALL)  # marks of blocks
    text = re.sub(r"`([^`\n]*\\\|[^`\n]*)`", lambda found: _show_bar(found[1]), text)
    text = re.sub(r"\]\(docs/", f"]({up}", text)
    text = re.sub(r"\[([\w-]+\.md)\]\(\1\)", lambda found: _name(found[0], found[1], ""), text)
    text = re.sub(r"\]\((?:\.\./)+examples/(\w+)\.py\)", rf"]({up}howto/examples.md#\1)", text)
    text = re.sub(r"(?<!\[)`docs/([\w/-]+\.md)`(?!\])", lambda found: _name(found[0], found[1], up), text)
    text = re.sub(r"(?<!\[)`docs/grafana\.json`", f"[`grafana.json`]({up}grafana.json)", text)
    text = re.sub(r"(?<!\[)`examples/(\w+)\.py`(?!\])", rf"[`\1.py`]({up}howto/examples.md#\1)", text)
    text = re.sub(r"(?<!\[)`examples/`", f"[`examples/`]({up}howto/examples.md)", text)
    for name, target in _PAGES.items():
        text = re.sub(
            rf"(?<!\[)`{re.escape(name)}`(?!\])", f"[{target.removesuffix('.md')}]({up}{target})", text
        )
    return text


def _show_bar(code: str) -> str:
    """In a table, GitHub needs a backslash before a bar in code, which Python's Markdown would show."""
    return f"<code>{escape(code.replace(chr(92) + '|', '|')).replace('|', '&#124;')}</code>"


def _name(found: str, page: str, up: str) -> str:
    """A link under the title of the page."""
    path = ROOT / "docs" / page
    if not path.exists():
        return found
    title = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
    return f"[{title.partition(':')[0]}]({up}{page})"


# ---- Pages.


def render_reference() -> str:
    """What there is to look up."""
    rows = [
        f"| [`gpu-tracker {name}`](commands/{_name_page(name)}) | {_summarize(find_parser(name))} |"
        for name in NAMES
    ]
    return "\n".join(
        [
            "# Reference",
            "",
            "* [Python](python.md): every public name",
            "* [Figures](figures.md): their names, labels and units",
            "* [Findings](../findings.md): every rule that judges a run",
            "* [Recording format](../recording-format.md): every field",
            "* [Commands](../commands.md): how they work together, formats, keys; or one by one:",
            "",
            "| command | |",
            "|---|---|",
            *rows,
            "",
        ]
    )


def _name_page(name: str) -> str:
    return "execute.md" if name == "-e" else f"{name}.md"


def _summarize(parser: argparse.ArgumentParser) -> str:
    return (parser.description or "").partition("\n")[0]


def render_command(name: str) -> str:
    """A page from the parser."""
    parser = find_parser(name)
    parts = [f"# gpu-tracker {name}", "", *_render_parser(parser)]
    for action in ACTIONS.get(name, ()):
        parts += [f"## {name} {action}", "", *_render_parser(find_parser(name, action))]
    return "\n".join(parts)


def _render_parser(parser: argparse.ArgumentParser) -> list[str]:
    import argparse

    usage = parser.format_usage().removeprefix("usage: ").rstrip()
    description = [line for line in (parser.description or "").splitlines() if line.strip()]
    actions = [action for action in parser._actions if action.help is not argparse.SUPPRESS]  # noqa: SLF001
    rows = [f"| {_name_action(action)} | {_explain(action, parser)} |" for action in actions]
    text = parser._get_formatter()._fill_text(parser.epilog or "", 88, "").strip("\n")  # noqa: SLF001
    epilog = ["```text", text, "```", ""] if text else []
    return [*description, "", "```text", usage, "```", "", "| option | |", "|---|---|", *rows, "", *epilog]


def _name_action(action: argparse.Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else None
    value = metavar or (
        "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()
    )
    if action.nargs == 0:
        value = ""
    elif action.nargs == "?" and action.option_strings:
        value = f"[{value}]"
    words = action.option_strings or [value]
    text = ", ".join(f"`{word}`" for word in words)
    text += f" `{value}`" if value and action.option_strings else ""
    return text.replace("|", "\\|")


def _explain(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    text = parser._get_formatter()._expand_help(action) if action.help else ""  # noqa: SLF001
    return _escape(" ".join(text.split()))


def _escape(text: str) -> str:
    return re.sub(r"([*_<|])", r"\\\1", text)


_GROUPS = (
    ("Track", ("Tracker", "track", "region", "log", "watch", "step", "follow", "sinks")),
    (
        "Read",
        (
            "load",
            "compare",
            "combine",
            "Recording",
            "Report",
            "ComparisonReport",
            "Combined",
            "Summary",
            "Region",
            "Metric",
            "Finding",
        ),
    ),
    (
        "Look at the machine",
        (
            "gpus",
            "memory",
            "reclaim",
            "experiment",
            "Device",
            "DeviceProcess",
            "Memory",
            "RamMemory",
            "GpuMemory",
            "Reclaimed",
            "ExperimentReport",
        ),
    ),
    (
        "Values in recordings",
        ("Sample", "Interval", "GpuInterval", "MetricRow", "RegionTotals", "Call", "News"),
    ),
    ("Errors", ("TrackerError", "UsageError", "RecordingError")),
    ("Of gpu-tracker 5", ("SubTracker", "sub_track", "SubTrackingAnalyzer", "TrackingComparison")),
)


_INTEGRATIONS = (
    "lightning.TrackerCallback",
    "transformers.TrackerCallback",
    "keras.TrackerCallback",
    "ray.watch_nodes",
    "ray.setup_worker",
    "dask.track_cluster",
    "dask.TrackWorkers",
)
_FULL_NAME = "    options:\n      show_root_full_path: true\n      members: false"


def render_names() -> str:
    """Every public name; mkdocstrings fills in what the code says about it."""
    public = {name for name in gpu_tracker.__all__ if not name.startswith("_")}
    grouped = [name for _, names in _GROUPS for name in names]
    if public != set(grouped) or len(grouped) != len(public):
        raise SystemExit(f"Not in the groups of docs/make_site.py: {public ^ set(grouped)}")
    parts = ["# Python", "", "`import gpu_tracker as gput` gives all of these. Nothing else is public."]
    for title, names in _GROUPS:
        parts += ["", f"## {title}", *(_refer(name) for name in names)]
    parts += ["", "## Integrations", "", "To be imported from their modules, which need the frameworks."]
    parts += [f"\n::: gpu_tracker.integrations.{name}\n{_FULL_NAME}" for name in _INTEGRATIONS]
    return "\n".join([*parts, ""])


def _refer(name: str) -> str:
    """To one name. The fields of values are said even without a word about them; elsewhere such names are inner ones."""
    lines = ["", f"::: gpu_tracker.{name}"]
    if not hasattr(getattr(gpu_tracker, name), "_fields"):
        lines += ["    options:", "      show_if_no_docstring: false"]
    return "\n".join(lines)


_TABLES = (
    (
        "Of a run",
        figures.RUN,
        "In `compare`, `ls`, `combine`, `--fail-if`, `--sort` and `--filter`; limits on a run are `peak_ram > 8GB`.",
    ),
    ("Of a region", figures.REGION, "In limits: `regions.NAME.time`."),
    ("Of a device", figures.DEVICE, "In `watch`, `query`, `gpus()` and the samples of a recording."),
    ("Of a running job", figures.JOB_NOW, "The fields of an `Interval`."),
    ("Of its devices", figures.GPU_NOW, "The fields of a `GpuInterval`."),
    (
        "So far",
        (*figures.JOB_SO_FAR, *figures.GPU_SO_FAR),
        "What sinks, Prometheus and OpenTelemetry get besides.",
    ),
)


def render_figures() -> str:
    """From the table that everything else is made from."""
    parts = [
        "# Figures",
        "",
        "How each is measured, and its limits: [What every number means](../numbers.md). Names in dashboards: [here](../dashboards.md#names).",
    ]
    for title, table, note in _TABLES:
        parts += ["", f"## {title}", "", note, "", *_render_table(table)]
    return "\n".join([*parts, ""])


def _render_table(table: tuple[figures.Figure, ...]) -> list[str]:
    """Without columns in which there is nothing."""
    columns = {
        "name": [f"`{row.name}`" for row in table],
        "in reports": [row.label for row in table],
        "unit": [row.unit for row in table],
        "meaning": [_escape(row.meaning) for row in table],
        "nvidia-smi": [", ".join(f"`{name}`" for name in row.smi) for row in table],
    }
    columns = {title: cells for title, cells in columns.items() if any(cells)}
    lines = [tuple(columns), ("---",) * len(columns), *zip(*columns.values(), strict=True)]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def render_examples() -> str:
    """Every program of examples/, as it is tested."""
    parts = ["# Examples", "", "Programs in `examples/` of a checkout. The tests run all of them."]
    for path in sorted((ROOT / "examples").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        summary = (ast.get_docstring(ast.parse(text)) or "").splitlines()[0]
        parts += ["", f"## {path.stem}", "", summary, "", "```python", text.rstrip(), "```"]
    return "\n".join([*parts, ""])
