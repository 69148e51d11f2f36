"""What the site has besides the pages in docs/: the front page, the reference, examples, changes. A hook of mkdocs, for `make docs`.

Everything is made from the code when the site is built, and nothing is kept: README.md is the front page, each command has a page
made from its parser, public names come from their docstrings, figures from their table.
"""

from __future__ import annotations

import argparse
import ast
import re
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

import gpu_tracker
from gpu_tracker.cli.describe import Command, Option, describe_all
from gpu_tracker.cli.topics import TOPICS, explain_topic
from gpu_tracker.core import figures

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
    return [{command.name or "-e": f"{_COMMANDS}/{_name_page(command)}"} for command in _list_pages()]


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made."""
    pages = {
        **{page: (ROOT / name).read_text(encoding="utf-8") for name, page in _PAGES.items()},
        **{f"{_COMMANDS}/{_name_page(command)}": render_command(command) for command in _list_pages()},
        "reference/topics.md": render_topics(),
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


def on_post_page(output: str, **_: Any) -> str:
    """The theme's search has no name for those who cannot see it."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')


# ---- Links.


def link(markdown: str, up: str) -> str:
    """Names of files become links to their pages, except in blocks of code."""
    markdown = markdown.replace("```ipython\n", "```python\n")  # the highlighter does not know the other
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
        f"| [`gpu-tracker {command.name}`](commands/{_name_page(command)}) | {_escape(command.summary)} |"
        for command in _list_pages()
    ]
    return "\n".join(
        [
            "# Reference",
            "",
            "* [Python](python.md): every public name",
            "* [Figures](figures.md): their names, labels and units",
            "* [Topics](topics.md): limits, filters, formats and what else several commands share",
            "* [Findings](../findings.md): every rule that judges a run",
            "* [Recording format](../recording-format.md): every field",
            "* [Commands](../commands.md): how they work together, formats, keys; or one by one:",
            "",
            "| command | meaning |",
            "|---|---|",
            *rows,
            "",
        ]
    )


def _list_pages() -> list[Command]:
    """Commands with a page of their own; their actions are on it."""
    return [command for command in describe_all() if len(command.words) < 2]


def _name_page(command: Command) -> str:
    return f"{command.name or 'compatible'}.md"


def render_command(command: Command) -> str:
    """A page from the parser."""
    actions = [one for one in describe_all() if len(one.words) > 1 and one.words[:1] == command.words]
    parts = [f"# gpu-tracker {command.name}", "", *_render_parts(command)]
    for action in actions:
        parts += [f"## gpu-tracker {action.name}", "", *_render_parts(action)]
    return "\n".join(parts)


def _render_parts(command: Command) -> list[str]:
    examples = [f"# {meaning}\n{line}" if meaning else line for line, meaning in command.examples]
    options = [
        option for option in (*command.places, *command.options) if option.meaning != argparse.SUPPRESS
    ]
    rows = [f"| {_name_option(option)} | {_escape(option.meaning)} |" for option in options]
    notes = ["```text", command.notes.strip("\n"), "```", ""] if command.notes.strip() else []
    return [
        *(_escape(command.summary), "", "```sh", *examples, "```", ""),
        *("```text", command.usage, "```", "", "| option | meaning |", "|---|---|", *rows, "", *notes),
    ]


def _name_option(option: Option) -> str:
    value = option.placeholder or ("{" + ",".join(option.values) + "}" if option.values else "")
    words = option.flags or (value,)
    text = ", ".join(f"`{word}`" for word in words)
    return (text + (f" `{value}`" if option.flags and option.takes_value else "")).replace("|", "\\|")


def _escape(text: str) -> str:
    return re.sub(r"([*_<|])", r"\\\1", " ".join(text.split()))


def render_topics() -> str:
    """What `gpu-tracker help TOPIC` says."""
    parts = [
        "# Topics",
        "",
        "What `gpu-tracker help` explains beside the commands, from the tables of the code.",
    ]
    for topic in TOPICS:
        parts += ["", f"## {topic}", "", "```text", explain_topic(topic).strip("\n"), "```"]
    return "\n".join([*parts, ""])


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
