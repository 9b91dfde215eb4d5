"""`aibiasbench serve [DIST]`: the built site on this machine, for a look before uploading."""

from __future__ import annotations

import functools
import http.server
import sys
from pathlib import Path
from typing import Any

import click

from generator.schema.errors import InputError


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files of the site as a static host would send them; an unknown address gets 404.html."""

    extensions_map = {  # noqa: RUF012 - the base class reads it as a class attribute
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".parquet": "application/vnd.apache.parquet",
        ".csv": "text/csv; charset=utf-8",
        ".md": "text/markdown; charset=utf-8",
    }

    def end_headers(self) -> None:
        """Keep browsers from showing an older build."""
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send the site's own 404 page, as a host would."""
        page = Path(self.directory, "404.html")
        if code != http.HTTPStatus.NOT_FOUND or not page.is_file():
            super().send_error(code, message, explain)
            return
        data = page.read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def list_directory(self, path: object) -> None:
        """Never list a folder: static hosts do not, so a missing index.html should show."""
        del path
        self.send_error(http.HTTPStatus.NOT_FOUND)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Stay quiet: the terminal shows the address and nothing else."""


class Server(http.server.ThreadingHTTPServer):
    """A threaded server to which a client that hangs up is no error: browsers leave a page before its files came."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report what went wrong in a request, unless the other side is gone."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def make_server(folder: Path, port: int) -> Server:
    """Return a server of `folder` on 127.0.0.1; raises InputError when there is no site or the port is taken."""
    if not (folder / "index.html").is_file():
        raise InputError(f"{folder}: no index.html there; run `aibiasbench publish --out {folder}` first")
    try:
        return Server(("127.0.0.1", port), functools.partial(Handler, directory=str(folder)))
    except OSError as error:
        raise InputError(f"port {port} cannot be used ({error.strerror}); choose another with --port") from None


@click.command()
@click.argument("dist", default="dist", type=click.Path(path_type=Path))
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
def command(dist: Path, port: int) -> None:
    """Serve a built site at http://127.0.0.1:PORT/ until interrupted."""
    with make_server(dist, port) as server:
        print(f"Serving {dist} at http://127.0.0.1:{server.server_port}/ (Ctrl-C stops)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("stopped")
