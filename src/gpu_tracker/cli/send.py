"""Send recorded and running jobs to an OpenTelemetry collector."""

from __future__ import annotations

import time

from ..api.following import check_every
from ..core.errors import RecordingError, TrackerError, UsageError
from ..core.text import count_of
from ..core.values import NamedTuple
from ..recording.find import find_recordings, name_run
from ..recording.follow import follow_path
from ..sinks.otlp import OtlpSender
from ..sinks.reader import PublishedReader
from .ls import check_path
from .options import Parser, to_float
from .output import say
from .track import DEFAULT_DIRECTORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.published import Published

_EPILOG = """\
Finished runs are sent as they are, with the times of then; running ones are followed until they end.
OpenTelemetry's environment variables apply, such as OTEL_EXPORTER_OTLP_HEADERS for credentials.
"""


def main(arguments: list[str]) -> int:
    """Until all of them have ended."""
    options = make_parser().parse_args(arguments)
    every = check_every(to_float("--every", options.every))
    if not options.otlp.startswith(("http://", "https://")):
        raise UsageError(f"--otlp {options.otlp!r} is not a URL.", "Write it as http://localhost:4318.")
    paths = options.paths or [DEFAULT_DIRECTORY]
    for path in paths:
        check_path(path)
    found = dict.fromkeys(file for path in paths for file in find_recordings(path))
    sender = OtlpSender(options.otlp)
    try:
        sent = _send_all(sender, {path: PublishedReader(follow_path(path)) for path in found}, every)
    finally:
        sender.close()
    sentence = (
        f"{count_of(sent.n_intervals, 'interval')} of {count_of(sent.n_runs, 'run')} sent to {options.otlp}"
    )
    if sent.n_refused:
        raise TrackerError(f"{sentence}, but {count_of(sent.n_refused, 'point')} refused by the collector.")
    if sent.n_unread:
        raise RecordingError(f"{sentence}, but {count_of(sent.n_unread, 'recording')} could not be read.")
    say(f"{sentence}.")
    return 0


def make_parser() -> Parser:
    """Its options."""
    parser = Parser(prog="gpu-tracker send", description=__doc__)
    parser.epilog = _EPILOG
    parser.add_argument(
        "paths",
        metavar="RUN|DIR",
        nargs="*",
        help=f"recordings, or directories (default {DEFAULT_DIRECTORY})",
    )
    parser.add_argument(
        "--otlp",
        metavar="URL",
        required=True,
        help="where the collector takes OTLP over HTTP, mostly port 4318",
    )
    parser.add_argument(
        "--every", metavar="SECONDS", default="10", help="how often to send what is new (default 10)"
    )
    return parser


class _Sent(NamedTuple):
    """How much the collector got."""

    n_intervals: int
    n_runs: int
    """All of each, or what could be read of it."""
    n_unread: int
    n_refused: int


def _send_all(sender: OtlpSender, readers: dict[str, PublishedReader], every: float) -> _Sent:
    n_intervals = n_refused = n_unread = 0
    sent: set[str] = set()
    while True:
        for path, reader in list(readers.items()):
            try:
                published = reader.look()
            except RecordingError as error:
                say(str(error))
                n_unread += 1
                del readers[path]
                continue
            n_intervals += len(published)
            if reader.is_over:
                published += reader.take_rest()
                del readers[path]
            n_refused += _send(sender, name_run(path), reader, published)
            if published or reader.is_over:
                sent.add(path)
        if not readers:
            return _Sent(n_intervals, len(sent), n_unread, n_refused)
        if not any(reader.has_more for reader in readers.values()):
            time.sleep(every)


def _send(sender: OtlpSender, run: str, reader: PublishedReader, published: Sequence[Published]) -> int:
    """How many points the collector refused."""
    if not published or reader.header is None:
        return 0
    refused = sender.send(run, reader.header, published)
    for reason in dict.fromkeys(one.reason for one in refused):
        n_points = sum(one.n_points for one in refused if one.reason == reason)
        say(f"The collector refused {count_of(n_points, 'point')} of {run}: {reason or 'no reason given'}")
    return sum(one.n_points for one in refused)
