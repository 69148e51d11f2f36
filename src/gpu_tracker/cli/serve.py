"""Show recorded and running jobs in a browser."""

from __future__ import annotations

import asyncio
import os
import sys

from ..core.errors import UsageError
from .options import Parser, add_rules
from .track import DEFAULT_DIRECTORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_EPILOG = """\
The printed address contains a secret: only those who have it can see the runs. By default only this machine can connect;
from elsewhere, use a tunnel:
  ssh -L 8765:localhost:8765 HOST
The server changes nothing. Ctrl-C stops it.
"""
_HIGHEST_PORT = 65535


def main(arguments: list[str]) -> int:
    """The address goes to standard output."""
    options = make_parser().parse_args(arguments)
    from ..api.reporting import read_changes
    from ..live.server.access import Door, is_loopback, parse_hosts
    from ..live.server.answers import Show, Site
    from ..live.server.shell import bind, need_tornado, serve
    from ..live.server.token import find_folder, find_token, hold_token
    from ..reports.choices import Choices

    need_tornado()
    directory = options.directory or DEFAULT_DIRECTORY
    if not os.path.isdir(directory) and (options.directory or os.path.exists(directory)):
        raise UsageError(f"{directory} is not a directory.")
    try:
        hosts = parse_hosts([*options.allow_host, options.host])
    except ValueError as error:
        raise UsageError(str(error)) from None
    changes, folder = read_changes(options.rules), find_folder()
    listening = bind(options.host, _parse_port(options.port), folder)
    port = listening.getsockname()[1]
    door = Door(find_token(folder, port, is_new=options.new_token), hosts)
    hold_token(folder, port)  # as long as this process lives
    site = Site(Show(directory, Choices(changes), compare, make_scraper()), door)
    where = f"[{options.host}]" if ":" in options.host else options.host
    print(f"http://{where}:{port}/{door.token}/", flush=True)
    if not is_loopback(options.host.lower()):
        print(
            "gpu-tracker: others on the network can read along: the connection is not encrypted.",
            file=sys.stderr,
        )
    try:
        asyncio.run(serve(site, listening))
    except KeyboardInterrupt:
        pass  # the normal end
    return 0


def make_parser() -> Parser:
    """Its options."""
    parser = Parser(prog="gpu-tracker serve", description=__doc__)
    parser.epilog = _EPILOG
    parser.add_argument(
        "directory", metavar="DIR", nargs="?", help=f"directory of recordings (default {DEFAULT_DIRECTORY})"
    )
    parser.add_argument("--port", metavar="N", help="port to listen on (default: 8765, or the next free one)")
    parser.add_argument(
        "--host", metavar="ADDRESS", default="127.0.0.1", help="address to listen on (default 127.0.0.1)"
    )
    parser.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="host name by which browsers may reach the server, such as that of a proxy (repeatable)",
    )
    parser.add_argument(
        "--new-token",
        action="store_true",
        help="make a new secret; addresses given out before stop working",
    )
    add_rules(parser)
    return parser


def _parse_port(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) > _HIGHEST_PORT:
        raise UsageError(f"--port: {text!r} is not a port.")
    return int(text)


def make_scraper() -> Callable[[Mapping[str, str]], bytes]:
    """What turns runs that go on, by name and path, into text for Prometheus."""
    from ..sinks.prometheus import exposition
    from ..sinks.running import RunningRuns

    running = RunningRuns()
    return lambda paths: exposition(running.look(paths))


def compare(named: Sequence[tuple[str, str]]) -> str:
    """The page of several runs, by name and path."""
    from ..api.comparisons import list_runs, load_groups
    from ..api.pictures import draw_runs
    from ..reports.contract import render

    groups = [(name, [path]) for name, path in named]
    comparison = load_groups(groups)
    return str(render(comparison._replace(charts=draw_runs(list_runs(comparison, groups))), "html"))
