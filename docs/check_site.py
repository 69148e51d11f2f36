"""Check a built site: python docs/check_site.py DIRECTORY. Every link and anchor in it exists, and nothing is loaded from elsewhere."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {
    ("link", "href"),
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("object", "data"),
}
_FETCHED_BY_STYLES = re.compile(r"""(?:url\(|@import\s+)["']?((?:https?:)?//[^"')\s]+)""")


class _Page(HTMLParser):
    """What a page refers to, and what it can be referred to by."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors = {"", "__top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Of one element."""
        for name, value in attrs:
            if name == "id" or (tag, name) == ("a", "name"):
                self.anchors.add(value or "")
            elif (tag, name) in _LOADED:
                self.loaded.append(value or "")
            elif (tag, name) == ("a", "href"):
                self.links.append(value or "")


def check(site: Path) -> list[str]:
    """A line for everything that is wrong."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    wrong = [
        f"{path.relative_to(site)}: {line}"
        for path, page in pages.items()
        for line in _check_page(path, page, pages)
    ]
    for path in sorted(site.rglob("*.css")):
        foreign = _FETCHED_BY_STYLES.findall(path.read_text(encoding="utf-8"))
        wrong += [f"{path.relative_to(site)}: loads {url}" for url in foreign]
    return wrong


def _check_page(path: Path, page: _Page, pages: dict[Path, _Page]) -> list[str]:
    wrong = []
    for url in page.loaded:
        parts = urlsplit(url)
        if parts.scheme == "data":
            continue
        if parts.scheme or parts.netloc:
            wrong.append(f"loads {url}")
        elif not (path.parent / unquote(parts.path)).exists() and path.name != "404.html":
            wrong.append(f"misses {url}")
    for url in page.links:
        parts = urlsplit(url)
        if parts.scheme or parts.netloc or path.name == "404.html":
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if target.is_dir():
            target /= "index.html"
        known = pages.get(target)
        if known is None and not target.exists():
            wrong.append(f"dead link {url}")
        elif known is not None and unquote(parts.fragment) not in known.anchors:
            wrong.append(f"no such anchor {url}")
    return wrong


def main(directory: str) -> int:
    """The exit code."""
    site = Path(directory).resolve()
    wrong = check(site)
    print(
        "\n".join(wrong)
        or f"{len(list(site.rglob('*.html')))} pages: no dead link, nothing loaded from elsewhere"
    )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
