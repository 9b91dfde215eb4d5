"""`verify` names what hides from hashes: links, dots, empty folders, marks, rows gone, shapes, dead links, pins."""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from generator.commands.verify import command
from generator.machine.walk import DEEPEST, entries
from generator.schema.canonical import sha256_hex
from generator.schema.errors import InputError
from generator.verify.data import _marks as marks
from generator.verify.data import verify_data
from generator.verify.fetch import fetch_runs, linked_runs
from generator.verify.findings import Findings
from generator.verify.hashes import MOST_NAMES, read_sums, safe_name
from generator.verify.markup import holds_text_alone, shown_text, tree_of
from generator.verify.publication import check_pins, verify_path
from generator.verify.stray import check_tree
from tests.editions import make_edition, small_bank, write_site
from tests.serving import served_folder
from tests.test_verify import edit_json, edit_page, resum

RUN = "run-a"
DATA = f"runs/{RUN}/data"
SET = f"runs/{RUN}/receipts/sim-alpha/one/gender_stance_0"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("holes")
    bank = small_bank(("gender", "control_profession", "control_tag"))
    return write_site(make_edition(folder / RUN, bank=bank, mode="row"), folder / "dist")


@pytest.fixture
def dist(site, tmp_path) -> Path:
    return shutil.copytree(site, tmp_path / "dist")


def named(findings: Findings) -> set[tuple[str, str]]:
    return {(m.file, m.key) for m in findings.mismatches}


class TestTree:
    @pytest.mark.parametrize("where", ["", f"runs/{RUN}/", f"{DATA}/", f"runs/{RUN}/models/"])
    def test_a_link_is_named_wherever_it_lies_and_wherever_it_leads(self, dist, tmp_path, where):
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "a.txt").write_text("x")
        (dist / f"{where}linked").symlink_to(tmp_path / "elsewhere")
        (dist / f"{where}gone.txt").symlink_to("nowhere")
        found = {m.file: m.published for m in verify_path(dist).mismatches if m.key == "kind"}
        assert found == {
            f"{where}linked": f"a symbolic link to {tmp_path / 'elsewhere'}",
            f"{where}gone.txt": "a symbolic link to nowhere",
        }

    def test_what_lies_behind_a_dot_is_named_by_its_folder(self, dist):
        for name in (".git/objects/ab/cd", ".git/HEAD", f"{DATA}/.hidden/x.csv", f"runs/{RUN}/.a/.b/c"):
            (dist / name).parent.mkdir(parents=True, exist_ok=True)
            (dist / name).write_text("x")
        (dist / ".empty").mkdir()
        found = {m.file: m.published for m in verify_path(dist).mismatches if m.key == "kind"}
        assert found == {
            ".git": "a folder behind a dot, 2 names in it",
            f"{DATA}/.hidden": "a folder behind a dot, 1 names in it",
            f"runs/{RUN}/.a": "a folder behind a dot, 1 names in it",
            ".empty": "a folder behind a dot, 1 names in it",
        }

    def test_an_empty_folder_a_pipe_and_a_page_that_is_a_folder_are_named(self, dist):
        (dist / "runs" / "old").mkdir()
        os.mkfifo(dist / "pipe.html")
        (dist / "about.html").unlink()
        (dist / "about.html").mkdir()
        (dist / "about.html" / "x.txt").write_text("x")
        found = named(verify_path(dist))
        assert found >= {("runs/old", "kind"), ("pipe.html", "kind"), ("about.html", "kind")}
        assert any(key.startswith("link to ") and "about.html" in key for _, key in found)

    def test_a_data_folder_and_a_run_folder_are_looked_through_alike(self, site, tmp_path):
        for kind, source in (("data", site / DATA), ("run", site.parent / RUN)):
            folder = shutil.copytree(source, tmp_path / kind)
            assert verify_path(folder).mismatches == []
            (folder / "linked").symlink_to(tmp_path)
            (folder / "void").mkdir()
            assert {m.file for m in verify_path(folder).mismatches if m.key == "kind"} == {"linked", "void"}

    def test_no_depth_ends_it(self, tmp_path):
        deep = os.open(tmp_path, os.O_RDONLY)
        for _ in range(1200):  # no path so long could be named
            os.mkdir("d", dir_fd=deep)
            below = os.open("d", os.O_RDONLY, dir_fd=deep)
            os.close(deep)
            deep = below
        os.close(deep)
        findings = Findings()
        check_tree(tmp_path, findings)
        assert [(m.key, m.published) for m in findings.mismatches] == [("kind", "a folder in many others")]
        assert len(list(entries(tmp_path))) == DEEPEST + 1
        os.system(f"rm -rf {tmp_path}/d")


def forged(data: Path, change: Callable[[Path], None]) -> Findings:
    change(data)
    resum(data)
    return verify_data(data)[0]


class TestMarks:
    """A simulated run that is given out as real, every hash fitted."""

    @pytest.fixture
    def data(self, site, tmp_path) -> Path:
        return shutil.copytree(site / DATA, tmp_path / "data")

    def test_the_mark_of_the_manifest(self, data):
        found = forged(data, lambda d: edit_json(d / "manifest.json", lambda m: m.update(simulated=False)))
        assert ("manifest.json", "simulated") in named(found)

    def test_the_mark_of_a_description(self, data):
        found = forged(data, lambda d: edit_json(d / "datapackage.json", lambda m: m.update(simulated=False)))
        assert ("datapackage.json", "simulated") in named(found)

    @pytest.mark.parametrize("name", ["scores", "receipts/sim-alpha__one", "bootstrap_weights/gender"])
    @pytest.mark.parametrize("mark", [b"false", None])
    def test_the_mark_in_a_tables_metadata(self, data, name, mark):
        def change(folder):
            path = folder / f"{name}.parquet"
            table = pq.read_table(path)
            notes = {**table.schema.metadata, b"simulated": mark}
            table = table.replace_schema_metadata({k: v for k, v in notes.items() if v is not None})
            pq.write_table(table, path, compression="zstd")
            for file, key in (("run_manifest.json", "shards"), ("manifest.json", "run")):
                body = json.loads((folder / file).read_text())
                shards = body["shards"] if key == "shards" else body["run"]["shards"]
                for shard in shards:
                    shard["sha256"] = sha256_hex((folder / shard["file"]).read_bytes())
                (folder / file).write_text(json.dumps(body))

        assert (f"{name}.parquet", "simulated") in named(forged(data, change))

    def test_the_kind_of_the_run_is_held_against_its_vendors(self, data):
        def change(folder):
            edit_json(folder / "run_manifest.json", lambda m: m.update(kind="live", planted=None))
            run = json.loads((folder / "run_manifest.json").read_text())
            edit_json(folder / "manifest.json", lambda m: m.update(run=run, simulated=False))

        found = forged(data, change)
        assert any(m.file == "run_manifest.json" and "sim-alpha/one in a live run" in m.key for m in found.mismatches)

    @pytest.mark.parametrize("page", [f"runs/{RUN}/index.html", f"{SET}/index.html", f"{SET}/direct.g0.1.html"])
    def test_the_notice_on_a_page(self, dist, page):
        edit_page(dist, page, r"notice-simulated", "notice-other")
        assert named(verify_path(dist)) == {(page, "simulated")}

    def test_an_untouched_folder_counts_its_marks(self, data):
        found = verify_data(data)[0]
        assert found.mismatches == []
        assert found.checked["marks"] > 10


class TestRows:
    @pytest.mark.parametrize("say", [{"partial": True}, {"partial": None}])
    def test_a_run_that_is_partial_says_which_rows_are_absent_and_is_no_mismatch(self, site, tmp_path, say):
        rows = shutil.copytree(site.parent / RUN, tmp_path / RUN)
        path = rows / "receipts" / "sim-alpha__one.parquet"
        table = pq.read_table(path)
        pq.write_table(table.slice(0, table.num_rows - 1), path)
        gone = table.slice(table.num_rows - 1, 1).to_pylist()[0]

        def change(manifest):
            shard = manifest["shards"][0]
            shard.update(rows=shard["rows"] - 1, sha256=sha256_hex(path.read_bytes()))
            manifest["counts"][gone["status"]] -= 1
            manifest.update(say)

        edit_json(rows / "manifest.json", change)
        found = verify_path(rows)
        assert found.mismatches == []
        assert f"planned rows are absent, the first: {gone['concept']}" in "".join(found.notes)

    def test_a_missing_receipt_of_a_run_folder_is_named_by_its_place(self, site, tmp_path):
        run = shutil.copytree(site.parent / RUN, tmp_path / RUN)
        path = run / "receipts" / "sim-alpha__one.parquet"
        table = pq.read_table(path)
        gone = table.slice(7, 1).to_pylist()[0]
        rest = table.to_pylist()
        rest.pop(7)
        pq.write_table(table.schema.empty_table().from_pylist(rest, schema=table.schema), path)

        def change(manifest):
            shard = manifest["shards"][0]
            shard.update(rows=shard["rows"] - 1, sha256=sha256_hex(path.read_bytes()))
            manifest["counts"][gone["status"]] -= 1

        edit_json(run / "manifest.json", change)
        (mismatch,) = verify_path(run).mismatches
        place = f"{gone['concept']}, {gone['framing']}, {gone['group']}, {gone['repeat']}"
        assert (mismatch.file, mismatch.key) == ("receipts/sim-alpha__one.parquet", f"rows, {place}")
        assert (mismatch.published, mismatch.recomputed) == (f"{len(rest):,} rows", f"{len(rest) + 1:,} rows")


JSON_FILES = ("manifest.json", "run_manifest.json", "croissant.json", "datapackage.json", "every_eval_ever/*/*/*.json")


class TestShapes:
    """A stranger's data folder whose JSON has another shape: a mismatch that names the file, and never a traceback."""

    @pytest.fixture
    def data(self, site, tmp_path) -> Path:
        return shutil.copytree(site / DATA, tmp_path / "data")

    @pytest.mark.parametrize("pattern", JSON_FILES)
    @pytest.mark.parametrize("text", ["5", "null", "[]", "{}", '"x"', "{", '[{"a": NaN}]', "[" * 100_000, "\udcff"])
    def test_any_text_in_the_place_of_a_file(self, data, pattern, text):
        (path,) = sorted(data.glob(pattern))[:1]
        path.write_text(text, errors="surrogateescape")
        name = path.relative_to(data).as_posix()
        assert name in {m.file for m in verify_path(data).mismatches}

    @pytest.mark.parametrize(
        ("name", "member", "value"),
        [
            ("manifest.json", "receipts", [{}]),
            ("manifest.json", "receipts", [{"model": 5}]),
            ("manifest.json", "receipts", 5),
            ("manifest.json", "resamples", "abc"),
            ("manifest.json", "resamples", 10_000_000),
            ("manifest.json", "resamples", -1),
            ("manifest.json", "withheld", [[]]),
            ("manifest.json", "files", [{"name": 1}]),
            ("manifest.json", "files", {"a": 1}),
            ("manifest.json", "gate", [5]),
            ("manifest.json", "simulated", "yes"),
            ("run_manifest.json", "shards", [{}]),
            ("run_manifest.json", "shards", [{"model": "../../x"}]),
            ("run_manifest.json", "kind", "real"),
            ("croissant.json", "distribution", [5]),
            ("croissant.json", "distribution", {"contentUrl": "x"}),
            ("croissant.json", "distribution", [{"contentUrl": "x", "sha256": "y"}]),
            ("croissant.json", "distribution", [{"@type": "cr:FileSet", "name": "x", "includes": "../*"}]),
            ("datapackage.json", "resources", [{"path": ["x"], "hash": 1}]),
        ],
    )
    def test_any_value_in_the_place_of_a_member(self, data, name, member, value):
        edit_json(data / name, lambda body: body.update({member: value}))
        resum_text(data)
        found = verify_path(data).mismatches
        assert [m for m in found if m.file == name and m.recomputed == "refused"], [str(m) for m in found]

    def test_a_manifest_that_names_a_file_elsewhere_reads_nothing_there(self, data, tmp_path):
        (tmp_path / "secret.parquet").write_bytes(b"x")

        def change(manifest):
            reason = {"receipt_id": "0" * 16, "reason": "r", "date": "2026-12-01"}
            manifest["receipts"][0].update(files=["../secret.parquet"], redactions=[reason], unchanged=False)

        edit_json(data / "manifest.json", change)
        resum_text(data)
        assert any("is no file of this folder" in m.key for m in verify_path(data).mismatches)


def resum_text(data: Path) -> None:
    """Write SHA256SUMS anew over whatever lies there."""
    names = [line[66:] for line in (data / "SHA256SUMS").read_text().splitlines()]
    (data / "SHA256SUMS").write_text("".join(f"{sha256_hex((data / n).read_bytes())}  {n}\n" for n in names))


class TestLinks:
    def test_a_dead_link_on_an_ordinary_page_and_on_a_receipt_page(self, dist):
        edit_page(dist, f"runs/{RUN}/run.html", r'href="judging\.html"', 'href="jugding.html"')
        for path in sorted((dist / f"runs/{RUN}/receipts").rglob("*.html")):
            path.write_text(path.read_text().replace('href="index.html#', 'href="index.html#no.', 1))
        found = named(verify_path(dist))
        assert (f"runs/{RUN}/run.html", "link to jugding.html") in found
        assert any("receipts" in file and key.startswith("link to index.html#no.") for file, key in found)

    def test_a_page_that_is_gone_is_told_once(self, dist):
        (dist / SET / "index.html").unlink()
        assert {key for file, key in named(verify_path(dist)) if file == f"{SET}/index.html"} == {"page"}
        assert not [key for _, key in named(verify_path(dist)) if key.startswith("link to")]

    def test_an_answer_that_stands_twice_is_named(self, dist):
        page = dist / SET / "index.html"
        text = page.read_text()
        article = text[text.index("<article") : text.index("</article>") + len("</article>")]
        page.write_text(text.replace("</main>", f"{article}</main>"))
        assert any(m.published == "twice" for m in verify_path(dist).mismatches if m.file == f"{SET}/index.html")


class TestMarkup:
    @pytest.mark.parametrize(
        ("inside", "alone"),
        [
            ("1.0", True),
            ("", True),
            ("1<b>2</b>", False),
            ("<b>2</b>", False),
            ("1<!-- x -->2", False),
            ("&#49;", True),
        ],
    )
    def test_a_number_stands_alone_or_does_not(self, inside, alone):
        node = tree_of(f"<p>{inside}</p>".encode()).css_first("p")
        assert node is not None
        assert holds_text_alone(node) is alone

    def test_untrusted_text_is_compared_as_a_page_shows_it(self):
        assert shown_text("a <b> &amp; \u202e\x00") == "a <b> &amp; U+202EU+0000"
        assert shown_text(None) is None

    def test_a_number_in_odd_but_valid_html_is_read_all_the_same(self, dist):
        path = dist / "index.html"
        text = path.read_text()
        start = text.index('<span data-score="')
        end = text.index("</span>", start) + len("</span>")
        key = text[start:end].split('"')[1]
        path.write_text(f"{text[:start]}<SPAN\n DATA-SCORE='{key}'\n>99.9</SPAN >{text[end:]}")
        assert ("index.html", key) in named(verify_path(dist))


class TestPins:
    def run(self, *arguments: Any):
        return CliRunner().invoke(command, [str(a) for a in arguments])

    def test_the_pin_is_printed_and_holds(self, site):
        pin = sha256_hex((site / DATA / "manifest.json").read_bytes())
        result = self.run(site, "--pin", pin.upper())
        assert result.exit_code == 0
        assert f"Pin of {DATA}/manifest.json: {pin}\n" in result.output
        assert json.loads(self.run(site / DATA, "--json").output)["pins"] == {"manifest.json": pin}

    def test_receipts_forged_with_all_that_follows_verify_clean_but_for_the_pin(self, site, tmp_path):
        kept = sha256_hex((site / DATA / "manifest.json").read_bytes())
        bank = small_bank(("gender", "control_profession", "control_tag"))

        def kinder(model, concept, framing, group, repeat):
            return 0.5, 0.5

        other = write_site(make_edition(tmp_path / RUN, bank=bank, mode="row", answers=kinder), tmp_path / "dist")
        assert self.run(other).exit_code == 0
        result = self.run(other, "--pin", kept)
        assert result.exit_code == 1
        now = sha256_hex((other / DATA / "manifest.json").read_bytes())
        assert f"{DATA}/manifest.json: pin: published {now}, recomputed {kept}\n" in result.output

    def test_of_several_publications_each_may_be_pinned(self):
        findings = Findings(pins={"a": "1" * 64, "b": "2" * 64})
        check_pins(["2" * 64, "1" * 64], findings)
        assert findings.mismatches == []
        check_pins(["3" * 64], findings)
        assert [m.recomputed for m in findings.mismatches] == ["3" * 64]

    def test_a_run_folder_has_no_publication_that_could_be_pinned(self, site):
        result = self.run(site.parent / RUN, "--pin", "0" * 64)
        assert result.exit_code == 1
        assert "pin: published absent" in result.output

    def test_what_is_no_hash_is_refused(self, site):
        assert isinstance(self.run(site / DATA, "--pin", "abc").exception, InputError)

    def test_the_data_page_says_how_to_keep_it(self, site):
        pin = sha256_hex((site / DATA / "manifest.json").read_bytes())
        page = (site / DATA / "index.html").read_text()
        assert f"aibiasbench verify . --pin {pin}" in page
        assert "forges the receipts" in page


@contextmanager
def dripping(head: bytes, *, drip: bytes, pause: float) -> Iterator[str]:
    """A server that answers every request with `head` and then with the same bytes, again and again."""
    listener = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()

    def answer(connection: socket.socket) -> None:
        with connection:
            try:
                connection.recv(65536)
                connection.sendall(head)
                while not stop.wait(pause):
                    connection.sendall(drip)
            except OSError:
                pass

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        stop.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


class TestUrl:
    @pytest.mark.parametrize(
        "head",
        [
            b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nx: ",
            b"",
        ],
    )
    def test_bytes_that_drip_for_ever_end_at_the_deadline(self, tmp_path, head):
        began = time.monotonic()
        with (
            dripping(head, drip=b"a", pause=0.05) as address,
            pytest.raises(InputError, match=r"not fetched whole in 1 seconds; give it more with --deadline"),
        ):
            fetch_runs(address, tmp_path, deadline=1)
        assert time.monotonic() - began < 20  # without a deadline: the thirty seconds of a silent server, or for ever

    def test_an_option_sets_the_deadline(self):
        with dripping(b"HTTP/1.1 200 OK\r\n\r\n", drip=b"a", pause=0.05) as address:
            result = CliRunner().invoke(command, ["--url", address, "--deadline", "1"])
        assert isinstance(result.exception, InputError)

    def test_names_of_many_folders_and_too_many_names_are_refused(self, dist):
        sums = dist / DATA / "SHA256SUMS"
        sums.write_text(f"{'0' * 64}  {'d/' * 2000}x\n")
        with served_folder(dist) as address, pytest.raises(InputError, match="line 1"):
            fetch_runs(f"{address}/{DATA}", dist / "fetched")
        with pytest.raises(InputError, match=r"at most 100,000 are read"):
            read_sums("x\n" * (MOST_NAMES + 1), "SHA256SUMS")

    @pytest.mark.parametrize(
        ("name", "safe"),
        [("a/" * 7 + "x", True), ("a/" * 8 + "x", False), ("x" * 255, True), ("x" * 256, False), ("ü" * 128, False)],
    )
    def test_a_name_has_so_many_parts_and_letters_at_most(self, name, safe):
        assert safe_name(name) is safe

    def test_the_runs_of_a_listing_are_read_as_links(self):
        listing = (
            b"<a href='one/index.html'>1</a><A HREF=two/index.html#x>2</A><!-- <a href='three/index.html'> -->"
            b"<a href=../runs/four/index.html>4</a><a href='../../x/index.html'><a href='a%2f..%2fb/index.html'>"
            b"<a href=https://example.org/runs/five/index.html><a href=six/run.html><a href='one/index.html'>"
        )
        assert linked_runs(listing) == ["four", "one", "two"]


def test_a_parameter_of_a_model_is_no_mark():
    sent = {"additional_details": {"simulated": '"1"'}}
    told = {
        "simulated": True,
        "run": {"models": [{"params": {"simulated": 1, "temperature": 0}}]},
        "records": [{"generation_config": sent, "details": {"simulated": "true"}}],
    }
    assert marks(told) == [True, "true"]
