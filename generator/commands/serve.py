"""`aibiasbench serve [DIST]`: the built site on this machine, for a look before uploading.

See contract: stages, "Commands".
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from generator.machine.site_server import LOOPBACK, make_server


@click.command()
@click.argument("dist", default="dist", type=click.Path(path_type=Path))
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@click.option(
    "--host",
    default=LOOPBACK[0],
    show_default=True,
    help="Address to listen on; beyond this machine if it is not local.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the address as JSON, in one line.")
def command(dist: Path, port: int, host: str, *, as_json: bool) -> None:
    """Serve a built site at http://127.0.0.1:PORT/ until interrupted."""
    server = make_server(dist, port, host)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{server.server_port}/"
    told = json.dumps({"dist": str(dist), "url": address})
    print(told if as_json else f"Serving {dist} at {address} (Ctrl-C stops)", flush=True)
    server.serve_until_stopped()
    if not as_json:
        print("stopped")
