"""serve: the built site over real HTTP on this machine, as a static host would send it."""

from __future__ import annotations

import http.client
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from generator.commands.serve import make_server
from generator.schema.errors import InputError

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
    with make_server(folder, 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def request(server, path, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request(method, path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


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
