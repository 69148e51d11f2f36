"""A report as one page that needs nothing else: answers first, then findings, charts and tables."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from functools import cache
from hashlib import sha256

from ...analysis.peaks import name_moment
from ...core.model import RAM
from ...core.text import join_command, neutralize, shorten_middle
from ...core.values import NamedTuple
from ..energy_lines import format_energy
from ..report import describe_ending, find_title
from ..sizing_lines import format_next_time
from . import fragments
from .drawing import draw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ...core.model import PeakMoment
    from ..build import Report
    from ..contract import View

_ASSETS = os.path.join(os.path.dirname(__file__), "assets")
_MOST_FINDINGS = 5
_MOST_PEAKS = 5
_NAME_CELLS = 80


class Page(NamedTuple):
    """What differs between pages."""

    title: str
    body: str
    data: dict[str, Any]
    """What to draw."""
    packed: str
    """The columns of it."""


def to_html(report: Report, _view: View | None = None) -> str:
    """The whole page."""
    return assemble(make_page(report))


def make_page(report: Report) -> Page:
    """The parts of it."""
    data, packed = draw(report)
    return Page(name_run(report), _body(report, data), data, packed)


def to_frame(page: Page) -> str:
    """The same for a page that is open already, as JSON."""
    return json.dumps(
        {"title": neutralize(page.title), "body": page.body, "data": page.data, "columns": page.packed},
        separators=(",", ":"),
        allow_nan=False,
    )


def make_policy(*, is_live: bool = False) -> str:
    """Only the one script runs, and it can fetch nothing, or only news from where the page is from."""
    digest = b64encode(sha256(_read_script().encode()).digest()).decode()
    news = " connect-src 'self';" if is_live else ""
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}';{news} base-uri 'none'"
    )


def assemble(page: Page, news: str = "") -> str:
    """A page from its parts. With an address of news it follows a run."""
    style = "".join(_read_asset(name) for name in ("uplot.min.css", "page.css"))
    follows = f' data-news="{fragments.text(news)}"' if news else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{make_policy(is_live=bool(news))}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f"<title>{fragments.text(page.title)}</title><style>{style}</style></head>"
        f'<body{follows}><div id="page">{page.body}</div>'
        f'<script type="application/json" id="data">{_to_script(page.data)}</script>'
        f'<script type="text/plain" id="columns">{page.packed}</script>'
        f"<script>{_read_script()}</script></body></html>\n"
    )


def _to_script(data: dict[str, Any]) -> str:
    """JSON that cannot end its script element."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


@cache
def _read_script() -> str:
    return "".join(_read_asset(name) for name in ("uplot.min.js", "page.js"))


@cache
def _read_asset(name: str) -> str:
    with open(os.path.join(_ASSETS, name), encoding="utf-8") as file:
        return file.read()


def name_run(report: Report) -> str:
    """The name of a run, or its command; its begin and its end if that is long."""
    return shorten_middle(find_title(report), _NAME_CELLS)


def _body(report: Report, data: dict[str, Any]) -> str:
    sections = [
        _head(report),
        "<main>",
        fragments.tiles(report),
        section("What was found" if report.findings else "Summary", _findings(report)),
        section("Over time", _charts(report, data)),
        section("Regions", _regions(report)),
        section("Metrics", fragments.metrics(report.metrics) if report.metrics else ""),
        section("Devices", _devices(report)),
        section("How sure is each figure", _facts(report)),
        section("Notes", fragments.notes(report.notes)),
        "</main>",
        _foot(report),
    ]
    return "".join(sections)


def _regions(report: Report) -> str:
    if not report.regions:
        return ""
    return fragments.regions(report.regions, report.summary.seconds, report.outside_seconds)


def section(title: str, content: str) -> str:
    """A part of the page; nothing without content."""
    return f'<section data-key="{title}"><h2>{title}</h2>{content}</section>' if content else ""


def _head(report: Report) -> str:
    header = report.header
    command = join_command(header.command)
    labels = " · ".join(f"{name}={value}" for name, value in header.identity.labels)
    line = " · ".join(
        filter(
            None,
            (
                header.identity.node or header.host,
                f"started {header.started_at[:19].replace('T', ' ')}",
                describe_ending(report.ending, report.exit_code),
                labels,
            ),
        )
    )
    name, title = header.identity.name, fragments.shorten_text(find_title(report))
    named = f'<p class="command">{fragments.shorten_text(command)}</p>' if name else ""
    whole = fragments.unfold(name or "", "name") + fragments.unfold(command, "command")
    return f"<header><h1>{title}</h1>{named}<p>{fragments.text(line)}</p>{whole}</header>"


def _findings(report: Report) -> str:
    shown, rest = report.findings[:_MOST_FINDINGS], report.findings[_MOST_FINDINGS:]
    more = f"<details><summary>{len(rest)} more</summary>{fragments.findings(rest)}</details>" if rest else ""
    return (
        fragments.findings(shown)
        + more
        + _lines(
            [
                *format_next_time(report.sizing, report.machine, report.header.identity.ranks),
                *_list_energy(report),
            ]
        )
    )


def _list_energy(report: Report) -> list[str]:
    return [f"{label}: {words}" for label, words in format_energy(report.energy, report.carbon)]


def _lines(lines: list[str]) -> str:
    return "".join(f'<p class="next">{fragments.text(line)}</p>' for line in lines)


def _charts(report: Report, data: dict[str, Any]) -> str:
    if not data["charts"]:
        return ""
    return chart_frame() + _peaks(report)


def chart_frame() -> str:
    """Where the script draws."""
    return (
        '<div id="range" role="status" aria-live="polite" tabindex="0"></div><div id="charts"></div>'
        "<noscript><p>The charts need JavaScript; this page fetches nothing.</p></noscript>"
    )


def _peaks(report: Report) -> str:
    """Who held the peaks: of the whole job, then of each device."""
    return "".join(
        fragments.explain_peak(moment, _name_moment(report, moment))
        for moment in sorted(report.peaks, key=lambda moment: moment.subject != RAM)[:_MOST_PEAKS]
    )


def _name_moment(report: Report, moment: PeakMoment) -> str:
    peaks = {gpu.gpu.uuid: gpu.job_bytes.combined for gpu in report.summary.gpus}
    peaks[RAM] = report.summary.ram.combined.total_bytes
    return f"{_name_subject(report, moment.subject)}: {name_moment(moment, peaks.get(moment.subject))}"


def _name_subject(report: Report, subject: str) -> str:
    labels = {gpu.gpu.uuid: gpu.gpu.label for gpu in report.summary.gpus}
    return f"GPU {labels[subject]}" if subject in labels else "RAM" if subject == RAM else subject


def _devices(report: Report) -> str:
    gpus = report.summary.gpus
    return fragments.frameworks(report.frameworks) + (
        fragments.devices(gpus, report.summary.seconds) if gpus else ""
    )


def _facts(report: Report) -> str:
    rows = _escape(
        (name, value, fragments.basis(how)) for name, value, how in fragments.facts(report.summary)
    )
    return fragments.table(("figure", "value", "how sure"), rows, is_html=True)


def _escape(rows: Iterable[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    return [(fragments.text(name), fragments.text(value), how) for name, value, how in rows]


def _foot(report: Report) -> str:
    cost = ""
    if report.tracker_cpu_seconds is not None:
        cost = f"; its own cost was {report.tracker_cpu_seconds:.2f} s of CPU, excluded from every figure"
    version = fragments.text(report.header.tracker_version)
    return f"<footer><p>Measured by gpu_tracker {version}{cost}.</p></footer>"
