"""Who may ask for what. Pure.

The secret is the first part of every path. It stays there by itself, since all links are relative, and a page of another site
that makes the browser ask us does not know it. Host, and what the browser says about where a request comes from, are
checked as well: a name that somebody points at this machine, to read our answers as his own, is none of ours.
"""

from __future__ import annotations

import re
from hmac import compare_digest
from ipaddress import ip_address

from ...core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:@/\\,\[\]]+)(?::[0-9]{1,5})?")
METHODS = ("GET", "HEAD")


class Fetch(NamedTuple):
    """What browsers say about a request, in headers that no page can set; other programs say nothing."""

    site: str = ""
    mode: str = ""
    destination: str = ""


class Asked(NamedTuple):
    """A request, as far as it matters."""

    method: str
    path: str
    query: str = ""
    host: str = ""
    origin: str | None = None
    fetch: Fetch = Fetch()


class Door(NamedTuple):
    """What a request must know."""

    token: str
    hosts: frozenset[str] = frozenset()
    """Names by which browsers may reach us, besides those of the loopback."""


class Refusal(NamedTuple):
    """Why there is no answer."""

    status: int
    sentence: str


def admit(door: Door, asked: Asked) -> str | Refusal:
    """The name of the page that is asked for, or why not."""
    host = parse_host(asked.host)
    if host is None or not (is_loopback(host) or host in door.hosts):
        return Refusal(
            403, "This host name is not allowed. Start the server with --allow-host NAME to allow it."
        )
    is_foreign = asked.origin is not None and not _is_same_origin(asked.origin, asked.host)
    if is_foreign or _is_cross_site(asked.fetch):
        return Refusal(403, "Requests from other sites are refused.")
    start, given, rest = _split(asked.path)
    if start or not compare_digest(given.encode("utf-8", "replace"), door.token.encode()):
        return Refusal(403, "The address lacks the right token. Use the one that the server printed.")
    if asked.method not in METHODS:
        return Refusal(405, "This server only shows.")
    return rest


def parse_host(text: str) -> str | None:
    """The name in a Host header, without its port, in lower case; None if it is not valid."""
    found = _HOST.fullmatch(text)
    return found[1].lower().rstrip(".") or None if found else None


def is_loopback(host: str) -> bool:
    """Whether it can be nothing but this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def parse_hosts(names: Iterable[str]) -> frozenset[str]:
    """Names that the user allows. ValueError, with one sentence, if one is not valid."""
    found = set()
    for name in names:
        host = parse_host(f"[{name}]" if name.count(":") > 1 and "[" not in name else name)
        if host is None:
            raise ValueError(f"{name!r} is not a valid host name.")
        found.add(host)
    return frozenset(found)


def _split(path: str) -> tuple[str, str, str]:
    """What is before the first slash (nothing, if it is a path), the token, and the rest."""
    start, _, rest = path.partition("/")
    given, slash, page = rest.partition("/")
    return start, given, page if slash else "/"


def _is_cross_site(fetch: Fetch) -> bool:
    """A link in a mail or on another page may be followed; nothing else may come from there.

    The same site is not enough: on this machine, other ports are other people's.
    """
    is_followed_link = (fetch.mode, fetch.destination) == ("navigate", "document")
    return fetch.site in ("cross-site", "same-site") and not is_followed_link


def _is_same_origin(origin: str, host: str) -> bool:
    """A proxy may have changed the scheme, but not the name."""
    return origin.partition("://")[2].lower() == host.lower()
