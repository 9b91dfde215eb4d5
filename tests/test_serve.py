"""serve: the built site over real HTTP on this machine, as a static host would send it."""

from __future__ import annotations

import http.client
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from generator.machine import site_server
from generator.machine.site_server import host_name, make_server
from generator.schema.errors import InputError

ROOT = Path(__file__).parent.parent
PAGE, MISSING = b"<!doctype html><p>front", b"<!doctype html><p>not here"
TEN = b"0123456789"


@pytest.fixture
def dist(tmp_path):
    folder = tmp_path / "dist"
    (folder / "runs" / "a" / "data").mkdir(parents=True)
    (folder / "index.html").write_bytes(PAGE)
    (folder / "404.html").write_bytes(MISSING)
    (folder / "runs" / "a" / "index.html").write_text("<!doctype html><p>run a")
    (folder / "runs" / "a" / "data" / "digits.csv").write_bytes(TEN)
    (folder / "module.mjs").write_text("export const a = 1;\n")
    (folder / "rows.parquet").write_bytes(b"PAR1")
    (tmp_path / "secret.txt").write_text("outside")
    return folder


@contextmanager
def served(folder):
    server = make_server(folder, 0)
    thread = Thread(target=server.serve_until_stopped, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(20)
        assert not thread.is_alive()


def request(server, path, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    with closing(connection):
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer, answer.read()


class TestFiles:
    @pytest.mark.parametrize(
        ("path", "kind", "body"),
        [
            ("/", "text/html; charset=utf-8", PAGE),
            ("/runs/a/index.html", "text/html; charset=utf-8", b"<!doctype html><p>run a"),
            ("/runs/a/", "text/html; charset=utf-8", b"<!doctype html><p>run a"),
            ("/module.mjs", "text/javascript; charset=utf-8", b"export const a = 1;\n"),
            ("/rows.parquet", "application/vnd.apache.parquet", b"PAR1"),
            ("/runs/a/data/digits.csv", "text/csv; charset=utf-8", TEN),
        ],
    )
    def test_files_come_with_their_type(self, dist, path, kind, body):
        with served(dist) as server:
            answer, found = request(server, path)
        assert (answer.status, answer.headers["Content-Type"], found) == (200, kind, body)
        assert answer.headers["Cache-Control"] == "no-cache"

    @pytest.mark.parametrize(
        "path", ["/nothing.html", "/runs/", "/../secret.txt", "/%2e%2e/secret.txt", "//etc/passwd", "/" + "x" * 5000]
    )
    def test_anything_else_is_the_sites_own_404(self, dist, path):
        with served(dist) as server:
            answer, found = request(server, path)
        assert (answer.status, found) == (404, MISSING)

    @pytest.mark.parametrize("path", ["/%00", "/index.html%00", "/a%0ab", "/%7f"])
    def test_a_path_that_no_file_has_is_refused(self, dist, path):
        with served(dist) as server:
            assert request(server, path)[0].status == 400
            assert request(server, "/")[0].status == 200

    def test_head_sends_no_body(self, dist):
        with served(dist) as server:
            answer, found = request(server, "/nothing.html", "HEAD")
        assert (answer.status, found) == (404, b"")

    def test_a_folder_without_a_404_page(self, dist):
        (dist / "404.html").unlink()
        with served(dist) as server:
            assert request(server, "/nothing")[0].status == 404

    def test_nothing_is_taken_in(self, dist):
        with served(dist) as server:
            assert request(server, "/", "POST")[0].status == 405

    def test_no_link_leads_out(self, dist, tmp_path):
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "index.html").write_text("outside")
        (dist / "link.txt").symlink_to(tmp_path / "secret.txt")
        (dist / "folder").symlink_to(tmp_path / "other")
        (dist / "loop").symlink_to("loop")
        (dist / "within.html").symlink_to("index.html")
        with served(dist) as server:
            for path in ("/link.txt", "/folder/", "/folder/index.html", "/loop"):
                answer, found = request(server, path)
                assert (answer.status, found) == (404, MISSING), path
            assert request(server, "/within.html")[1] == PAGE

    def test_a_folder_that_is_itself_a_link_is_served(self, dist, tmp_path):
        (tmp_path / "alias").symlink_to(dist)
        with served(tmp_path / "alias") as server:
            assert request(server, "/")[1] == PAGE

    def test_a_file_that_was_not_changed_is_not_sent_again(self, dist):
        with served(dist) as server:
            tag = request(server, "/")[0].headers["ETag"]
            answer, found = request(server, "/", If_None_Match=tag)
        assert (answer.status, found) == (304, b"")


class TestRanges:
    @pytest.mark.parametrize(
        ("asked", "said", "body"),
        [
            ("bytes=0-3", "bytes 0-3/10", b"0123"),
            ("bytes=7-", "bytes 7-9/10", b"789"),
            ("bytes=-2", "bytes 8-9/10", b"89"),
            ("bytes=4-400", "bytes 4-9/10", b"456789"),
        ],
    )
    def test_a_part_is_sent_alone(self, dist, asked, said, body):
        with served(dist) as server:
            answer, found = request(server, "/runs/a/data/digits.csv", Range=asked)
        assert (answer.status, answer.headers["Content-Range"], found) == (206, said, body)
        assert answer.headers["Accept-Ranges"] == "bytes"

    def test_a_part_that_is_not_there(self, dist):
        with served(dist) as server:
            answer, _ = request(server, "/runs/a/data/digits.csv", Range="bytes=10-")
        assert (answer.status, answer.headers["Content-Range"]) == (416, "bytes */10")

    def test_two_parts(self, dist):
        with served(dist) as server:
            answer, found = request(server, "/runs/a/data/digits.csv", Range="bytes=0-1,8-9")
        assert answer.status == 206
        assert answer.headers["Content-Type"].startswith("multipart/byteranges")
        assert re.findall(rb"\r\n\r\n(\d+)\r\n", found) == [b"01", b"89"]


class TestParquetReaders:
    """Programs that read Parquet over HTTP: the footer first, then the columns that they were asked for."""

    @pytest.fixture
    def table(self, dist):
        table = pa.table({"id": list(range(50_000)), "text": [f"row {i % 97}" for i in range(50_000)]})
        pq.write_table(table, dist / "runs" / "a" / "data" / "scores.parquet", row_group_size=5_000)
        return table

    def test_polars(self, dist, table):
        with served(dist) as server:
            rows = polars.scan_parquet(f"http://127.0.0.1:{server.server_port}/runs/a/data/scores.parquet")
            found = rows.filter(polars.col("id") > 49_990).select("text").collect()["text"].to_list()
        assert found == table["text"].to_pylist()[49_991:]

    @pytest.mark.usefixtures("table")
    def test_duckdb(self, dist):
        with duckdb.connect() as connection:
            try:
                connection.execute("LOAD httpfs")
            except duckdb.Error:
                pytest.skip("DuckDB's httpfs extension is not installed here (INSTALL httpfs)")
            with served(dist) as server:
                url = f"http://127.0.0.1:{server.server_port}/runs/a/data/scores.parquet"
                found = connection.execute(f"SELECT sum(id) FROM '{url}' WHERE text = 'row 5'").fetchone()
        assert found == (sum(i for i in range(50_000) if i % 97 == 5),)


class TestOrigins:
    @pytest.mark.parametrize("path", ["/runs/a/data/digits.csv", "/runs/a/data/nothing.csv", "/data/runs.json"])
    def test_data_may_be_read_from_any_page(self, dist, path):
        with served(dist) as server:
            answer, _ = request(server, path, Origin="https://example.org")
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert "Content-Range" in answer.headers["Access-Control-Expose-Headers"]

    @pytest.mark.parametrize(
        "path",
        [
            "/",
            "/runs/a/index.html",
            "/module.mjs",
            "/data.html",
            "/runs/a/data",
            "/x/data/y",
            "/data/..%2findex.html",
            "/runs/a/data/..%2f..%2f..%2findex.html",
            "/data/%2e%2e/index.html",
            "/data//x",
        ],
    )
    def test_nothing_else_may(self, dist, path):
        with served(dist) as server:
            for method in ("GET", "OPTIONS"):
                answer, _ = request(server, path, method, Origin="https://example.org")
                assert answer.headers["Access-Control-Allow-Origin"] is None

    def test_a_page_that_asks_for_ranges_first_gets_leave(self, dist):
        with served(dist) as server:
            answer, _ = request(
                server, "/runs/a/data/digits.csv", "OPTIONS", Origin="https://example.org",
                Access_Control_Request_Method="GET", Access_Control_Request_Headers="range",
            )  # fmt: skip
        assert (answer.status, answer.headers["Access-Control-Allow-Headers"]) == (204, "Range")
        assert "GET" in answer.headers["Access-Control-Allow-Methods"]


class TestHosts:
    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8000", "LOCALHOST", "[::1]:80"])
    def test_names_of_this_machine(self, dist, host):
        with served(dist) as server:
            assert request(server, "/", Host=host)[0].status == 200

    @pytest.mark.parametrize(
        "host", ["example.org", "127.0.0.1.example.org", "", "localhost@example.org", "[::1", "a b"]
    )
    def test_any_other_is_refused(self, dist, host):
        with served(dist) as server:
            answer, found = request(server, "/", Host=host)
        assert answer.status == 400
        assert PAGE not in found

    def test_the_name_that_it_was_told(self, dist):
        server = make_server(dist, 0, "127.0.0.2")
        thread = Thread(target=server.serve_until_stopped, daemon=True)
        thread.start()
        try:
            connection = http.client.HTTPConnection("127.0.0.2", server.server_port, timeout=10)
            with closing(connection):
                connection.request("GET", "/")
                assert connection.getresponse().status == 200
        finally:
            server.stop()
            thread.join(20)

    @pytest.mark.parametrize(
        ("header", "name"),
        [("A.b:1", "a.b"), ("[::1]", "::1"), ("::1", None), ("a:b", None), ("a:1:2", None), ("", None), (":80", None)],
    )
    def test_the_name_in_a_header(self, header, name):
        assert host_name(header) == name


class TestOpening:
    def test_it_listens_on_this_machine_alone(self, dist):
        with closing(make_server(dist, 0)._listener) as listener:
            assert listener.getsockname()[0] == "127.0.0.1"

    def test_a_folder_without_a_site_is_refused(self, tmp_path):
        with pytest.raises(InputError, match=r"no index.html there; run `aibiasbench publish"):
            make_server(tmp_path, 0)

    def test_a_taken_port_is_refused(self, dist):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            with pytest.raises(InputError, match=f"port {port} of 127.0.0.1 cannot be used"):
                make_server(dist, port)

    @pytest.mark.parametrize("host", ["no such name", "a" * 300, "203.0.113.1"])
    def test_an_address_that_is_not_ours_is_refused(self, dist, host):
        with pytest.raises(InputError, match="cannot be used"):
            make_server(dist, 0, host)


def hang_up(server, path):
    """Ask for a file and reset the connection before it came, as a browser does that leaves the page."""
    client = socket.create_connection(("127.0.0.1", server.server_port), timeout=10)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    client.recv(10)
    client.close()


def dropped(client):
    """Wait until the other side has let go."""
    client.settimeout(20)
    try:
        while client.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    return True


def dribble(client):
    """Send a request line that never ends, a byte now and then."""
    for _ in range(200):
        client.sendall(b"G")
        time.sleep(0.1)


class TestClients:
    @pytest.fixture
    def impatient(self, monkeypatch):
        monkeypatch.setattr(site_server, "IDLE", 0.3)

    def test_hanging_up_is_no_error(self, dist, capfd):
        (dist / "large.bin").write_bytes(bytes(64 << 20))
        with served(dist) as server:
            hang_up(server, "/large.bin")
            assert request(server, "/")[1] == PAGE
        assert capfd.readouterr().err == ""

    def test_two_hundred_at_once_are_all_answered(self, dist):
        with served(dist) as server, ThreadPoolExecutor(200) as pool:
            found = list(pool.map(lambda _: request(server, "/runs/a/data/digits.csv")[1], range(200)))
        assert found == [TEN] * 200

    def test_they_are_answered_beside_three_hundred_that_say_nothing(self, dist):
        with served(dist) as server:
            idle = [socket.create_connection(("127.0.0.1", server.server_port), timeout=10) for _ in range(300)]
            try:
                assert all(request(server, "/")[1] == PAGE for _ in range(20))
            finally:
                for client in idle:
                    client.close()

    @pytest.mark.usefixtures("impatient")
    @pytest.mark.parametrize(
        "sent", [b"", b"GET / HTTP/1.1\r\nHost: local", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"]
    )
    def test_one_that_says_nothing_more_is_let_go(self, dist, sent):
        with (
            served(dist) as server,
            socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as client,
        ):
            client.sendall(sent)
            assert dropped(client)

    @pytest.mark.usefixtures("impatient")
    def test_a_byte_now_and_then_does_not_hold_a_place(self, dist):
        with (
            served(dist) as server,
            socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as client,
            pytest.raises(ConnectionError),
        ):
            dribble(client)

    @pytest.mark.usefixtures("impatient")
    def test_one_that_does_not_take_its_answer_is_let_go(self, dist):
        (dist / "large.bin").write_bytes(bytes(64 << 20))
        with served(dist) as server, socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", server.server_port))
            client.sendall(b"GET /large.bin HTTP/1.1\r\nHost: localhost\r\n\r\n")
            for _ in range(200):
                if not server.server_state.connections and server.server_state.total_requests:
                    break
                time.sleep(0.1)
            assert not server.server_state.connections

    @pytest.mark.parametrize("line", [b"\x00" * 100, b"GET", b"GET / HTTP/9.9\r\n\r\n", b"A" * 200_000])
    def test_what_is_no_http_is_refused_and_the_next_is_answered(self, dist, line, capfd):
        with served(dist) as server:
            with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as client:
                client.sendall(line)
                client.shutdown(socket.SHUT_WR)
                assert dropped(client)
            assert request(server, "/")[1] == PAGE
        assert "Traceback" not in capfd.readouterr().err


class TestCommand:
    @pytest.mark.parametrize("ignored", [False, True], ids=["in front", "in the background"])
    @pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
    def test_it_says_where_and_stops_on_a_signal(self, dist, stop, ignored):
        """A shell starts background jobs with SIGINT ignored, and what ignores it would never stop by it."""
        call = [sys.executable, "-m", "generator", "serve", str(dist), "--port", "0"]
        before = signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.default_int_handler)
        try:
            process = subprocess.Popen(call, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        finally:
            signal.signal(signal.SIGINT, before)
        try:
            line = process.stdout.readline()
            port = int(re.search(r"http://127\.0\.0\.1:(\d+)/", line)[1])
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            with closing(connection):
                connection.request("GET", "/")
                assert connection.getresponse().read() == PAGE
            process.send_signal(stop)
            said, errors = process.communicate(timeout=20)
            assert (process.returncode, said, errors) == (0, "stopped\n", "")
        finally:
            process.kill()
            process.communicate(timeout=20)

    def test_a_site_that_is_not_there_is_bad_input(self, tmp_path):
        call = [sys.executable, "-m", "generator", "serve", str(tmp_path)]
        done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
