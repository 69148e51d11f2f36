"""The web server around a site: tornado reads requests and writes answers, within limits."""

from __future__ import annotations

import asyncio
import socket
import sys
import traceback
from contextlib import AsyncExitStack
from typing import cast

from ...core.errors import TrackerError, UsageError
from ...core.system import resource
from ...core.version import DISTRIBUTION
from .access import Asked, Fetch
from .answers import EVENTS
from .token import forget_token

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tornado.http1connection import HTTP1Connection
    from tornado.httpserver import HTTPServer
    from tornado.httputil import HTTPServerRequest

    from .answers import Answer, Site

FIRST_PORT, _N_PORTS = 8765, 20
# Requests are small, and have no body.
_MOST_HEADER_BYTES, _MOST_BODY_BYTES = 2**14, 2**10
_IDLE_SECONDS = 60.0
# Whoever takes nothing for so long is not there.
_PATIENCE_SECONDS = 30.0
_PART_BYTES = 2**17
_MOST_REQUESTS = 200
_MOST_CONNECTIONS = 1000
_PAUSE_SECONDS = 0.1
_BACKLOG = 128
_REASONS = {
    200: "OK", 302: "Found", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
    422: "Unprocessable Content", 500: "Internal Server Error", 503: "Service Unavailable",
}  # fmt: skip
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def need_tornado() -> None:
    """Raise an error that says what to do if there is none."""
    from importlib.util import find_spec

    if find_spec("tornado") is None:
        raise TrackerError(
            "This needs tornado, which is not installed.",
            f"Install it with: pip install '{DISTRIBUTION}[web]'.",
        )


def bind(address: str, port: int | None, token_folder: str) -> socket.socket:
    """Listen at the port, or at the first free one. Where somebody else listens, our token is worth nothing any more."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    wanted = range(FIRST_PORT, FIRST_PORT + _N_PORTS) if port is None else [port]
    for number in wanted:
        try:
            listening = socket.create_server((address, number), family=family, backlog=_BACKLOG)
        except OSError as error:
            problem = error.strerror or str(error)
            forget_token(token_folder, number)
        else:
            listening.setblocking(False)
            _limit_patience(listening)
            return listening
    raise UsageError(
        f"Cannot listen at {address}, port {wanted[-1]}: {problem}.", "Choose another one with --port."
    )


def _limit_patience(listening: socket.socket) -> None:
    """Of every connection: the kernel would take megabytes for who reads nothing or little, and nobody could tell the two apart."""
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _PART_BYTES)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        milliseconds = int(1000 * _PATIENCE_SECONDS)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)


async def serve(site: Site, listening: socket.socket) -> None:
    """Answer until cancelled."""
    from tornado.httpserver import HTTPServer

    desk = _Desk(site)
    server = HTTPServer(
        desk.take,
        max_header_size=_MOST_HEADER_BYTES,
        max_body_size=_MOST_BODY_BYTES,
        idle_connection_timeout=_IDLE_SECONDS,
        body_timeout=_IDLE_SECONDS,
    )
    try:
        await _accept(server, listening)
    finally:
        listening.close()
        await server.close_all_connections()
        await desk.close()
        site.close()


async def _accept(server: HTTPServer, listening: socket.socket) -> None:
    """Take connections while there is room; the kernel lets some more wait.

    Tornado's own way would try again without a pause, and report each failure.
    """
    from tornado.iostream import IOStream

    most, streams = count_room(), list[IOStream]()
    while True:
        streams = [stream for stream in streams if not stream.closed()]
        accepted = await _accept_one(listening) if len(streams) < most else None
        if accepted is None:
            await asyncio.sleep(_PAUSE_SECONDS)
        else:
            connection, address = accepted
            streams.append(IOStream(connection))
            server.handle_stream(streams[-1], address)


async def _accept_one(listening: socket.socket) -> tuple[socket.socket, tuple[object, ...]] | None:
    """The next connection; None if no descriptor is free, or the other side has gone already."""
    try:
        return await asyncio.get_running_loop().sock_accept(listening)
    except OSError:
        return None


def count_room() -> int:
    """How many connections there may be at once: half of the descriptors stay for files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else min(_MOST_CONNECTIONS, max(1, soft // 2))


class _Desk:
    """Takes requests, each in a task of its own."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, request: HTTPServerRequest) -> None:
        """One request."""
        task = asyncio.create_task(self._handle(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        cast("HTTP1Connection", request.connection).set_close_callback(lambda: _cancel(task))

    async def close(self) -> None:
        """Answer nothing more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _handle(self, request: HTTPServerRequest) -> None:
        from tornado.iostream import StreamClosedError

        try:
            await _send(request, await self._answer(request))
        except StreamClosedError:
            pass  # gone
        except asyncio.TimeoutError:
            _hang_up(request)
        except Exception:  # noqa: BLE001
            traceback.print_exc(file=sys.stderr)  # a defect of ours; the others are served
            _hang_up(request)

    async def _answer(self, request: HTTPServerRequest) -> Answer:
        from .answers import TEXT, Answer

        if len(self._tasks) > _MOST_REQUESTS:
            return Answer(503, TEXT, b"Too many requests at once.\n")
        headers = request.headers
        return await self._site.answer(
            Asked(
                request.method or "",
                request.path,
                request.query,
                headers.get("Host", ""),
                headers.get("Origin"),
                Fetch(*(headers.get(f"Sec-Fetch-{name}", "") for name in ("Site", "Mode", "Dest"))),
            )
        )


async def _send(request: HTTPServerRequest, answer: Answer) -> None:
    """Each part only when the one before was taken, so that nothing piles up for who is slow."""
    from tornado.httputil import HTTPHeaders, ResponseStartLine

    connection, is_head = cast("HTTP1Connection", request.connection), request.method == "HEAD"
    headers = HTTPHeaders({**_HEADERS, "Content-Type": answer.kind, "Content-Security-Policy": answer.policy})
    if answer.location:
        headers["Location"] = answer.location
    if answer.status == 405:
        headers["Allow"] = "GET, HEAD"
    if answer.kind != EVENTS:
        headers["Content-Length"] = str(len(answer.body))
    start = ResponseStartLine("HTTP/1.1", answer.status, _REASONS[answer.status])
    async with AsyncExitStack() as leaving:
        if answer.events is not None:
            leaving.push_async_callback(answer.events.aclose)
        await asyncio.wait_for(connection.write_headers(start, headers), _PATIENCE_SECONDS)
        if not is_head:
            await _write(connection, answer.body)
        if answer.events is not None and not is_head:
            async for event in answer.events:
                await _write(connection, event)
                if connection.stream.closed():
                    return  # before Python 3.12, a write that ends at that moment hides the cancellation
    connection.finish()


async def _write(connection: HTTP1Connection, content: bytes) -> None:
    """In parts, so that who takes them slowly is not mistaken for who takes nothing."""
    for first in range(0, len(content), _PART_BYTES):
        await asyncio.wait_for(connection.write(content[first : first + _PART_BYTES]), _PATIENCE_SECONDS)


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()


def _hang_up(request: HTTPServerRequest) -> None:
    cast("HTTP1Connection", request.connection).stream.close()
