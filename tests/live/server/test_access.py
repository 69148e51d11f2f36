"""Who may ask for what."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_tracker.live.server.access import (
    Asked,
    Door,
    Fetch,
    Refusal,
    admit,
    is_loopback,
    parse_host,
    parse_hosts,
)

DOOR = Door("secret", frozenset({"hub.example.org"}))


def ask(path: str = "/secret/run", **fields: Any) -> str | Refusal:
    """What becomes of a request that is fine but for this."""
    return admit(DOOR, Asked(**{"method": "GET", "path": path, "host": "localhost:8765", **fields}))


@pytest.mark.parametrize(
    ("path", "page"), [("/secret/", ""), ("/secret/run", "run"), ("/secret/a/b", "a/b"), ("/secret", "/")]
)
def test_the_token_opens_every_page(path: str, page: str) -> None:
    """What follows it is the page; without a slash there is none."""
    assert ask(path) == page


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "",
        "secret/run",
        "/wrong/run",
        "/secretx/",
        "/Secret/",
        "//secret/",
        "http://x/secret/",
        "/%73ecret/",
        "/é/",
    ],
)
def test_without_the_token_nothing_is_said(path: str) -> None:
    """Whatever else is in the path."""
    answer = ask(path)
    assert isinstance(answer, Refusal)
    assert (answer.status, "token" in answer.sentence) == (403, True)


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:1",
        "localhost.",
        "a.localhost:80",
        "127.0.0.1:8765",
        "127.8.8.8",
        "[::1]:9",
        "hub.example.org:443",
    ],
)
def test_names_of_this_machine_are_allowed(host: str) -> None:
    """On any port, since a tunnel has its own; and those that the user allows."""
    assert ask(host=host) == "run"


@pytest.mark.parametrize(
    "host",
    [
        *("", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "notlocalhost", "10.0.0.1"),
        *(
            "localhost@evil.example",
            "evil.example, localhost",
            "localhost:port",
            "[::2]",
            "[localhost]",
            "a b",
            ".",
        ),
        *("0.0.0.0", "hub.example.org.evil.example"),
    ],
)
def test_other_names_are_refused(host: str) -> None:
    """Somebody may have pointed his name at this machine."""
    answer = ask(host=host)
    assert isinstance(answer, Refusal)
    assert (answer.status, "--allow-host" in answer.sentence) == (403, True)


def test_other_sites_are_refused() -> None:
    """A page may only come from where it asks, whatever a proxy has made of the scheme."""
    assert ask(origin="http://localhost:8765") == ask(origin="https://LOCALHOST:8765") == "run"
    for origin in (
        "http://evil.example",
        "null",
        "",
        "http://localhost:8766",
        "http://localhost",
        "localhost:8765",
    ):
        assert ask(origin=origin) == Refusal(403, "Requests from other sites are refused.")


@pytest.mark.parametrize(
    ("fetch", "is_refused"),
    [
        (Fetch(), False),
        (Fetch("same-origin", "cors", "empty"), False),
        (Fetch("none", "navigate", "document"), False),
        (Fetch("cross-site", "navigate", "document"), False),
        (Fetch("cross-site", "navigate", "iframe"), True),
        (Fetch("cross-site", "no-cors", "image"), True),
        (Fetch("cross-site", "no-cors", "document"), True),
        (Fetch("cross-site"), True),
        (Fetch("same-site", "navigate", "document"), False),
        (Fetch("same-site", "cors", "empty"), True),
    ],
)
@pytest.mark.parametrize("page", ["", "run", "news", "metrics"])
def test_other_sites_may_only_link_to_us(fetch: Fetch, is_refused: bool, page: str) -> None:
    """What they embed is refused, also where the browser sends no origin."""
    refusal = Refusal(403, "Requests from other sites are refused.")
    assert ask(f"/secret/{page}", fetch=fetch) == (refusal if is_refused else page)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "get", ""])
def test_nothing_can_be_changed(method: str) -> None:
    """There are only GET and HEAD."""
    answer = ask(method=method)
    assert isinstance(answer, Refusal)
    assert answer.status == 405
    assert ask(method="HEAD") == "run"


def test_hosts_that_the_user_allows() -> None:
    """Names and addresses, with or without a port."""
    assert parse_hosts(["Hub.example.org", "10.0.0.1:80", "::1", "[::2]"]) == {
        *("hub.example.org", "10.0.0.1", "[::1]", "[::2]")
    }
    with pytest.raises(ValueError, match="'a b' is not a valid host name"):
        parse_hosts(["a b"])


def test_a_host_without_its_port() -> None:
    """None if it is not valid."""
    assert [parse_host(text) for text in ("A:1", "[::1]:1", "a:b", "")] == ["a", "[::1]", None, None]
    assert [is_loopback(host) for host in ("localhost", "[::1]", "127.1.1.1", "a")] == [
        True,
        True,
        True,
        False,
    ]
