"""serve: the built site over real HTTP on this machine, as a static host would send it."""

from __future__ import annotations

import http.client
import re
import signal
import socket
import struct
import subprocess
import sys
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from generator.commands.serve import Server, make_server
from generator.schema.errors import InputError
from tests.serving import serving

ROOT = Path(__file__).parent.parent


@pytest.fixture
def dist(tmp_path):
    folder = tmp_path / "dist"
    (folder / "runs" / "a").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><p>front")
    (folder / "404.html").write_text("<!doctype html><p>not here")
    (folder / "runs" / "a" / "index.html").write_text("<!doctype html><p>run a")
    (folder / "module.mjs").write_text("export const a = 1;\n")
    (folder / "rows.parquet").write_bytes(b"PAR1")
    (tmp_path / "secret.txt").write_text("outside")
    return folder


@contextmanager
def served(folder):
    server = make_server(folder, 0)
    with serving(server):
        yield server


def request(server, path, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    with closing(connection):
        connection.request(method, path)
        answer = connection.getresponse()
        return answer, answer.read()


class TestServer:
    @pytest.mark.parametrize(
        ("path", "kind", "body"),
        [
            ("/", "text/html", b"<!doctype html><p>front"),
            ("/runs/a/index.html", "text/html", b"<!doctype html><p>run a"),
            ("/module.mjs", "text/javascript", b"export const a = 1;\n"),
            ("/rows.parquet", "application/vnd.apache.parquet", b"PAR1"),
        ],
    )
    def test_files_come_with_their_type(self, dist, path, kind, body):
        with served(dist) as server:
            answer, found = request(server, path)
        assert (answer.status, answer.headers["Content-Type"], found) == (200, kind, body)
        assert answer.headers["Cache-Control"] == "no-cache"

    @pytest.mark.parametrize("path", ["/nothing.html", "/runs/", "/../secret.txt", "/%2e%2e/secret.txt"])
    def test_anything_else_is_the_sites_own_404(self, dist, path):
        with served(dist) as server:
            answer, found = request(server, path)
        assert (answer.status, found) == (404, b"<!doctype html><p>not here")

    def test_head_sends_no_body(self, dist):
        with served(dist) as server:
            answer, found = request(server, "/nothing.html", "HEAD")
        assert (answer.status, found) == (404, b"")

    def test_it_listens_on_this_machine_alone(self, dist):
        with served(dist) as server:
            assert server.server_address[0] == "127.0.0.1"

    def test_a_folder_without_a_site_is_refused(self, tmp_path):
        with pytest.raises(InputError, match=r"no index.html there; run `aibiasbench publish"):
            make_server(tmp_path, 0)

    def test_a_taken_port_is_refused(self, dist):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            with pytest.raises(InputError, match=f"port {port} cannot be used"):
                make_server(dist, port)


def hang_up(server, path):
    """Ask for a file and reset the connection before it came, as a browser does that leaves the page."""
    client = socket.create_connection(("127.0.0.1", server.server_port), timeout=10)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
    client.recv(10)
    client.close()


class TestClientsThatLeave:
    @pytest.fixture
    def patient(self, monkeypatch):
        """Closing a server waits for its requests, so that all they print is there."""
        monkeypatch.setattr(Server, "daemon_threads", False)

    @pytest.mark.usefixtures("patient")
    def test_hanging_up_is_no_error(self, dist, capfd):
        (dist / "large.bin").write_bytes(bytes(64 << 20))
        with served(dist) as server:
            hang_up(server, "/large.bin")
        assert capfd.readouterr().err == ""

    @pytest.mark.usefixtures("patient")
    def test_a_fault_of_the_servers_own_is_still_told(self, capfd):
        class Broken(BaseHTTPRequestHandler):
            def do_GET(self):
                raise ValueError("planted")

        server = Server(("127.0.0.1", 0), Broken)
        with serving(server), pytest.raises(http.client.RemoteDisconnected):
            request(server, "/")
        assert "ValueError: planted" in capfd.readouterr().err


class TestCommand:
    def test_it_says_where_and_stops_on_interrupt(self, dist):
        call = [sys.executable, "-m", "generator", "serve", str(dist), "--port", "0"]
        with subprocess.Popen(call, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            line = process.stdout.readline()
            port = int(re.search(r"http://127\.0\.0\.1:(\d+)/", line)[1])
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", "/")
            assert connection.getresponse().read() == b"<!doctype html><p>front"
            connection.close()
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=20) == 0
            assert process.stderr.read() == ""
