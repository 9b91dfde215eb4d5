"""The built site over HTTP as a static host sends it: ranges, types, cross-origin reads of the data, its own 404 page.

Made for a look before uploading and for programs on this machine. What it promises beside the files: no symbolic link
leads out of the folder, only names of this machine are answered to, and a client that does nothing is let go.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import uvicorn
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.responses import PlainTextResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from generator.schema.errors import InputError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
IDLE = 10.0  # seconds in which a client has to send a request, or to take a part of its answer
TYPES = {
    ".mjs": "text/javascript; charset=utf-8",
    ".parquet": "application/vnd.apache.parquet",
    ".csv": "text/csv; charset=utf-8",
    ".md": "text/markdown; charset=utf-8",
}
# Published files of data: runs/RUN/data/ and the list of runs. Pages and scripts stay the site's own.
_DATA = re.compile(r"/(?:runs/[^/]+/)?data/.")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_HOST = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<name>[^:\[\]/@]+))(?::\d{1,5})?")


class SiteFiles(StaticFiles):
    """The files of a folder; whatever else is asked for gets the folder's own 404.html."""

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        """Return a file and its facts; one that cannot be looked up (a loop of links, say) is not there."""
        try:
            return super().lookup_path(path)
        except OSError:
            return "", None

    def file_response(
        self, full_path: Any, stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """Return a file with the type that a host sends for it."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        if known := TYPES.get(Path(full_path).suffix):
            response.headers["content-type"] = known
        return response


class Doorkeeper:
    """Answers before any file is looked up: foreign names of the host, impossible paths, requests that ask leave."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on with the headers that every answer has."""
        if scope["type"] != "http":
            return
        path, headers = scope["path"], Headers(scope=scope)
        open_to_all = _of_data(path)
        app: ASGIApp = self._app
        if (name := host_name(headers.get("host", ""))) is None or name not in self._hosts:
            app = PlainTextResponse("This server answers to names of its own machine only.\n", 400)
        elif _CONTROL.search(path):
            app = PlainTextResponse("No file has such a name.\n", 400)
        elif scope["method"] == "OPTIONS":
            allow = {"Access-Control-Allow-Methods": "GET, HEAD", "Access-Control-Allow-Headers": "Range"}
            app = Response(status_code=204, headers={"Allow": "GET, HEAD, OPTIONS", **(allow if open_to_all else {})})

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = MutableHeaders(scope=message)
                own["Cache-Control"] = "no-cache"
                if open_to_all:
                    own["Access-Control-Allow-Origin"] = "*"
                    own["Access-Control-Expose-Headers"] = "Accept-Ranges, Content-Length, Content-Range, ETag"
            await send(message)

        await app(scope, receive, send_with_headers)


def _of_data(path: str) -> bool:
    """Tell whether a decoded path names a data file as it stands: `data/../page.html` is a page, however it is sent."""
    return _DATA.match(path) is not None and not {"", ".", ".."} & set(path[1:].split("/")) and "\\" not in path


def host_name(header: str) -> str | None:
    """Return the name in a Host header, in lower case and without port and brackets; None where it is none."""
    found = _HOST.fullmatch(header)
    return (found["six"] or found["name"]).lower() if found else None


def site_app(folder: Path, hosts: frozenset[str] = frozenset(LOOPBACK)) -> ASGIApp:
    """Return the ASGI application that serves a folder to those who call it by one of `hosts`."""
    return Doorkeeper(ExceptionMiddleware(SiteFiles(directory=folder, html=True)), hosts)


class ImpatientProtocol(H11Protocol):
    """HTTP/1.1 that lets go of a client which neither finishes a request nor takes its answer."""

    _watch: asyncio.TimerHandle | None = None
    _seen: tuple[object, ...] = ()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to watch."""
        super().connection_made(transport)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """End to watch."""
        if self._watch is not None:
            self._watch.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Drop the connection when nothing has come of it since the last look.

        Bytes of a request that is not complete are no progress: a byte now and then would hold a place for ever.
        """
        waiting = self.cycle is None or self.cycle.response_complete
        now: tuple[object, ...] = (self.cycle, waiting, self.transport.get_write_buffer_size())
        if now == self._seen and (waiting or self.flow.write_paused):
            self.transport.abort()
            return
        self._seen = now
        self._watch = asyncio.get_running_loop().call_later(IDLE, self._look)


class SiteServer(uvicorn.Server):
    """A server of one folder, its port already taken; stops on SIGINT and SIGTERM, also where a shell ignores them."""

    def __init__(self, app: ASGIApp, listener: socket.socket) -> None:
        config = uvicorn.Config(
            app, http=ImpatientProtocol, ws="none", lifespan="off", log_config=None, log_level="error",
            access_log=False, proxy_headers=False, server_header=False, timeout_keep_alive=5,
            timeout_graceful_shutdown=1,
        )  # fmt: skip
        super().__init__(config)
        self._listener = listener
        self.stopped_by: signal.Signals | None = None

    @property
    def server_port(self) -> int:
        """The port that it listens on."""
        return int(self._listener.getsockname()[1])

    def serve_until_stopped(self) -> None:
        """Answer until a signal comes or `stop` is called."""
        with self._listener:
            self.run(sockets=[self._listener])

    def stop(self) -> None:
        """Let the server end; may be called from another thread."""
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take SIGINT and SIGTERM as the ordinary end, and give them back afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        wanted = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self._end) for number in wanted}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end(self, number: int, frame: object) -> None:
        del frame
        self.force_exit = self.should_exit  # at the second signal nothing more is waited for
        self.should_exit = True
        self.stopped_by = signal.Signals(number)


def make_server(folder: Path, port: int, host: str = LOOPBACK[0]) -> SiteServer:
    """Return a server of `folder`, listening; raises InputError without a site or when the port cannot be had."""
    if not (folder / "index.html").is_file():
        raise InputError(f"{folder}: no index.html there; run `aibiasbench publish --out {folder}` first")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.create_server(cast("tuple[str, int]", address[:2]), family=family, backlog=1024)
    except (OSError, UnicodeError) as error:
        said = getattr(error, "strerror", None) or "no such address"
        raise InputError(f"port {port} of {host} cannot be used ({said}); choose another with --port") from None
    return SiteServer(site_app(folder, frozenset((*LOOPBACK, host.lower()))), listener)
