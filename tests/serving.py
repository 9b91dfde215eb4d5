"""Real HTTP servers on loopback for the tests: a thread each, quiet, closed at the end."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any


class Server(ThreadingHTTPServer):
    """A threaded server to which a client that hangs up is no error: browsers leave a page before its files came."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report what went wrong in a request, unless the other side is gone."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class QuietFiles(SimpleHTTPRequestHandler):
    """Sends the files of a folder as any plain host would, and says nothing."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""


@contextmanager
def serving(server: Server) -> Iterator[str]:
    """Let a server answer until the block ends; yields its address, without a slash at the end."""
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def served_folder(folder: Path, handler: type[SimpleHTTPRequestHandler] = QuietFiles) -> Iterator[str]:
    """Serve a folder on a free port; yields its address, without a slash at the end."""
    with serving(Server(("127.0.0.1", 0), functools.partial(handler, directory=str(folder)))) as address:
        yield address
