"""A report as one page that needs nothing else: answers first, then findings, charts and tables."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from hashlib import sha256

from ...core.model import RAM
from ..energy_lines import format_energy
from ..report import describe_ending
from ..sizing_lines import format_next_time
from . import fragments
from .drawing import draw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..build import Report
    from ..contract import View

_ASSETS = os.path.join(os.path.dirname(__file__), "assets")
_MOST_FINDINGS = 5
_MOST_PEAKS = 5


def to_html(report: Report, _view: View | None = None) -> str:
    """The whole page."""
    data, packed = draw(report)
    return assemble(title_run(report), _body(report, data), data, packed)


def assemble(title: str, body: str, data: dict[str, Any], packed: str) -> str:
    """A page from its parts. Only this script runs in it, and it can fetch nothing."""
    script = "".join(_read_asset(name) for name in ("uplot.min.js", "page.js"))
    style = "".join(_read_asset(name) for name in ("uplot.min.css", "page.css"))
    digest = b64encode(sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f"<title>{fragments.text(title)}</title><style>{style}</style></head><body>{body}"
        f'<script type="application/json" id="data">{_to_script(data)}</script>'
        f'<script type="text/plain" id="columns">{packed}</script>'
        f"<script>{script}</script></body></html>\n"
    )


def _to_script(data: dict[str, Any]) -> str:
    """JSON that cannot end its script element."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _read_asset(name: str) -> str:
    with open(os.path.join(_ASSETS, name), encoding="utf-8") as file:
        return file.read()


def title_run(report: Report) -> str:
    """The name of a run, or its command."""
    identity = report.header.identity
    return identity.name or " ".join(report.header.command) or f"process {report.header.pid}"


def _body(report: Report, data: dict[str, Any]) -> str:
    sections = [
        _head(report),
        "<main>",
        fragments.tiles(report.summary),
        section("What was found", _findings(report)),
        section("Over time", _charts(report, data)),
        section(
            "Regions", fragments.regions(report.regions, report.summary.seconds) if report.regions else ""
        ),
        section("Metrics", fragments.metrics(report.metrics) if report.metrics else ""),
        section("Devices", _devices(report)),
        section("How sure is each figure", _facts(report)),
        section("Notes", fragments.notes(report.notes)),
        "</main>",
        _foot(report),
    ]
    return "".join(sections)


def section(title: str, content: str) -> str:
    """A part of the page; nothing without content."""
    return f"<section><h2>{title}</h2>{content}</section>" if content else ""


def _head(report: Report) -> str:
    header = report.header
    command = " ".join(header.command)
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
    named = f'<p class="command">{fragments.text(command)}</p>' if header.identity.name else ""
    return (
        f"<header><h1>{fragments.text(title_run(report))}</h1>{named}<p>{fragments.text(line)}</p></header>"
    )


def _findings(report: Report) -> str:
    shown, rest = report.findings[:_MOST_FINDINGS], report.findings[_MOST_FINDINGS:]
    more = f"<details><summary>{len(rest)} more</summary>{fragments.findings(rest)}</details>" if rest else ""
    return (
        fragments.findings(shown) + more + _lines([*format_next_time(report.sizing), *_list_energy(report)])
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
        '<div id="range" role="status" aria-live="polite"></div><div id="charts"></div>'
        "<noscript><p>The charts need JavaScript; this page fetches nothing.</p></noscript>"
    )


def _peaks(report: Report) -> str:
    """Who held the peaks: of the whole job, then of each device."""
    return "".join(
        fragments.explain_peak(moment, _name_subject(report, moment.subject))
        for moment in sorted(report.peaks, key=lambda moment: moment.subject != RAM)[:_MOST_PEAKS]
    )


def _name_subject(report: Report, subject: str) -> str:
    ordinals = {gpu.gpu.uuid: gpu.gpu.ordinal for gpu in report.summary.gpus}
    return f"GPU {ordinals[subject]}" if subject in ordinals else "RAM" if subject == RAM else subject


def _devices(report: Report) -> str:
    gpus = report.summary.gpus
    return fragments.frameworks(report.frameworks) + (fragments.devices(gpus) if gpus else "")


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
