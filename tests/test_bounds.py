"""What is read of a file has an end: rows, bytes and values of Parquet, bytes of everything else."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from generator.runs.operator_notes import read_note
from generator.runs.reader import load_run, read_audit
from generator.schema import bounded_files
from generator.schema.canonical import sha256_hex
from generator.schema.errors import InputError
from generator.schema.json_files import read_json
from generator.schema.parquet_files import SHARD, TABLE, read_parquet
from generator.schema.parquet_pages import DATA, DICTIONARY, Chunk, PageError, pages_of, read_footer
from tests.factories import make_bank, make_run

ROOT = Path(__file__).parent.parent
MB = 1_000_000
EIGHT = "x" * (8 * MB)
GIGABYTE = 1 << 30


def packed(table, **options):
    sink = io.BytesIO()
    pq.write_table(table, sink, **{"compression": "zstd", **options})
    return sink.getvalue()


def one_text(rows, text=EIGHT):
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]))


def fault(data, bounds=SHARD):
    with pytest.raises(InputError) as caught:
        read_parquet(data, "a.parquet", bounds=bounds)
    (line,) = caught.value.faults
    assert "\n" not in line
    return line


class TestParquet:
    def test_what_lies_within_the_bounds_is_read_as_arrow_reads_it(self):
        table = pa.table(
            {
                "text": [None if i % 5 == 0 else f"text {i % 7}" for i in range(900)],
                "number": list(range(900)),
                "votes": [[{"judge": "a", "score": i}, {"judge": None, "score": None}] for i in range(900)],
            }
        )
        for version in ("1.0", "2.0"):
            data = packed(table, data_page_version=version, row_group_size=400)
            assert read_parquet(data, "a").equals(table)
            assert read_parquet(data, "a", ["number"]).equals(table.select(["number"]))

    def test_one_text_in_a_thousand_rows_of_a_small_file(self):
        data = packed(pa.table({"response": one_text(1000)}))
        assert len(data) < 30_000
        assert "holds more than 268,435,456 bytes of values once unpacked" in fault(data)

    def test_the_same_text_within_a_list_of_structs(self):
        votes = pa.array([[{"evidence": EIGHT}]] * 40)
        assert "bytes of values once unpacked" in fault(packed(pa.table({"votes": votes})))

    def test_equal_texts_written_out_one_by_one(self):
        data = packed(pa.table({"response": [EIGHT] * 40}), use_dictionary=False)
        assert "unpacks to 320,000" in fault(data)

    def test_a_text_is_counted_for_each_row_that_names_it(self):
        # 5 rows of 1,000 letters and 4 bytes of offset each: 5,020 bytes, of which the file holds the text once.
        data = packed(pa.table({"response": one_text(5, "y" * 1000)}))
        assert read_parquet(data, "a", bounds=replace(SHARD, unpacked=5020)).num_rows == 5
        assert "more than 5,019 bytes" in fault(data, replace(SHARD, unpacked=5019))

    def test_rows_and_bytes_of_the_file(self):
        data = packed(pa.table({"n": list(range(11))}))
        assert "11 rows; at most 10 are read" in fault(data, replace(SHARD, rows=10))
        assert f"{len(data):,} bytes; at most 100 are read" in fault(data, replace(SHARD, file=100))

    def test_values_that_are_built_on_the_one_before(self):
        # Each text repeats the whole of the one before it: 90 kB of file for 100 texts of 800 kB.
        table = pa.table({"response": [f"{'x' * 800_000}{i}" for i in range(100)]})
        data = packed(table, use_dictionary=False, column_encoding={"response": "DELTA_BYTE_ARRAY"})
        assert "column response: encoding 7, whose size in memory has no bound" in fault(data)

    def test_a_footer_that_states_small_sizes_is_not_believed(self):
        """The footer says that the pages hold nothing; the page headers say what they hold."""
        table = pa.table({"response": ["z" * 300 * MB]})
        data = packed(table, use_dictionary=False)
        true = pq.read_metadata(io.BytesIO(data)).row_group(0).column(0).total_uncompressed_size
        lie = data.replace(_varint(2 * true), b"\x82" + b"\x80" * (len(_varint(2 * true)) - 2) + b"\x00")
        told = pq.read_metadata(io.BytesIO(lie)).row_group(0).column(0).total_uncompressed_size
        assert told < 10
        assert "unpacks to 300,000" in fault(lie)

    @pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1PAR1", b"not parquet at all", b"PAR1\xff\xff\xff\x7fPAR1"])
    def test_what_is_no_parquet_is_named(self, data):
        assert fault(data).startswith("a.parquet: not a Parquet file that can be read: ")

    def test_every_cut_and_every_changed_byte_is_read_or_refused(self):
        table = pa.table({"text": ["a", "b", "a", None], "votes": [[{"e": "x"}], [], None, [{"e": None}]]})
        data = packed(table)
        for place in range(len(data)):
            for change in (data[:place], data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :]):
                with contextlib.suppress(InputError):
                    read_parquet(change, "a.parquet")


def _varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


class TestPages:
    def pages(self, data):
        chunk = pq.read_metadata(io.BytesIO(data)).row_group(0).column(0)
        (own,) = read_footer(memoryview(data)).chunks
        return list(pages_of(memoryview(data), own)), chunk

    @pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"data_page_version": "2.0"}])
    def test_sizes_are_those_of_the_footer(self, options):
        table = pa.table({"n": [i % 90 for i in range(100_000)]})
        pages, chunk = self.pages(packed(table, data_page_size=1, **options))
        assert sum(page.values for page in pages if page.kind != DICTIONARY) == 100_000
        assert len(pages) > 1
        headers = chunk.total_compressed_size - sum(page.packed for page in pages)
        assert sum(page.unpacked for page in pages) + headers == chunk.total_uncompressed_size
        assert 0 < headers < 200 * len(pages)

    def test_kinds(self):
        pages, _ = self.pages(packed(pa.table({"n": ["a", "b", "a"]})))
        assert [(page.kind, page.values) for page in pages] == [(DICTIONARY, 2), (DATA, 3)]

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (b"\x15\x00\x15\x02\x15\x02", "end within"),
            (b"\x15\x00\x15\x02\x15\x09\x00", "below 0"),
            (b"\x15\x00\x15\x02\x00", "a number is missing"),
            (b"\x15\x00\x15\x02\x15\x7e\x00", "longer than its column"),
            (b"\x15" + b"\xff" * 30, "does not end"),
            (b"\x1c" * 30, "too deep"),
            (b"\x19\xf5\xff\xff\x03", "longer than the file"),
            (b"\x1e" * 30, "unknown kind 14"),
        ],
    )
    def test_bytes_that_are_no_header(self, data, message):
        with pytest.raises(PageError, match=message):
            list(pages_of(memoryview(data), Chunk("a", 1, 0, 1, 0, len(data))))

    def test_a_column_outside_the_file(self):
        with pytest.raises(PageError, match="outside the file"):
            list(pages_of(memoryview(b"abc"), Chunk("a", 1, 0, 1, 1, 3)))

    def test_the_footer_is_read_as_arrow_reads_it(self):
        table = pa.table({"a": ["x"] * 9, "b": [[{"c": 1, "d": "y"}]] * 9, "e": pa.array([b"123"] * 9, pa.binary(3))})
        data = packed(table, row_group_size=4)
        meta, footer = pq.read_metadata(io.BytesIO(data)), read_footer(memoryview(data))
        assert footer.rows == 9
        theirs = [meta.row_group(g).column(c) for g in range(3) for c in range(4)]
        assert [(c.path, c.values, c.size) for c in footer.chunks] == [
            (c.path_in_schema, c.num_values, c.total_compressed_size) for c in theirs
        ]
        assert [c.length for c in footer.chunks] == [0, 0, 0, 3] * 3


class TestOtherFiles:
    @pytest.fixture
    def sparse(self, tmp_path):
        """A file that says it is huge and takes no room on the disk."""

        def make(name):
            path = tmp_path / name
            with path.open("wb") as file:
                file.truncate(3 << 30)
            return path

        return make

    def test_json(self, sparse):
        with pytest.raises(InputError, match="3,221,225,472 bytes; at most 16,777,216 are read"):
            read_json(sparse("manifest.json"), "")

    def test_audit_labels(self, sparse):
        with pytest.raises(InputError, match="at most 4,194,304 are read"):
            read_audit(sparse("audit.csv"))

    def test_note(self, sparse):
        with pytest.raises(InputError, match=r"note\.txt: 3,221,225,472 bytes; at most 1,048,576 are read"):
            read_note(sparse("note.txt").parent)

    def test_a_note_that_is_not_utf8(self, tmp_path):
        (tmp_path / "note.txt").write_bytes(b"caf\xe9")
        with pytest.raises(InputError, match=r"note\.txt: not UTF-8 at byte 3; save it as UTF-8"):
            read_note(tmp_path)

    def test_a_note_of_several_paragraphs(self, tmp_path):
        (tmp_path / "note.txt").write_bytes(b"One\r\nline.\r\n\r\nTwo.\n\n\n")
        assert read_note(tmp_path) == ("One line.", "Two.")
        assert read_note(tmp_path / "nowhere") == ()

    def test_the_bound_itself_is_read(self, tmp_path):
        (tmp_path / "a").write_bytes(b"12345")
        assert bounded_files.read_bytes(tmp_path / "a", 5) == b"12345"
        with pytest.raises(InputError, match="5 bytes; at most 4"):
            bounded_files.read_bytes(tmp_path / "a", 4)

    def test_a_pipe_is_not_waited_for(self, tmp_path):
        os.mkfifo(tmp_path / "manifest.json")
        with pytest.raises(InputError, match="a folder, pipe or device"):
            read_json(tmp_path / "manifest.json", "")


BANK = make_bank(("age", "control_tag"), groups=3, quota={"stance": 2}, control_quota={"stance": 1})
# Address space that numpy, Arrow and their threads' stacks take before the first byte of data is read.
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_DATA, ({bytes}, {bytes}))
from generator.cli import main
main()
"""


def with_response(folder, text, rows=None):
    """Put one text in the response of every row of the first model's shard; the manifest's hash fits."""
    path = folder / "receipts/sim-alpha__one.parquet"
    table = pq.read_table(path)
    place = table.column_names.index("response")
    table = table.set_column(place, "response", one_text(table.num_rows, text))
    if rows:
        table = pa.concat_tables([table] * rows)
    pq.write_table(table, path, compression="zstd", store_schema=False)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["shards"][0] |= {"sha256": sha256_hex(path.read_bytes()), "rows": table.num_rows}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return path


class TestRun:
    def test_a_shard_above_the_bound_is_a_fault_of_its_file(self, tmp_path):
        folder = make_run(tmp_path / "run-one", bank=BANK, repeats=2)
        path = with_response(folder, EIGHT)
        assert path.stat().st_size < 60_000
        with pytest.raises(InputError) as caught:
            load_run(folder)
        assert caught.value.faults == (
            f"{path}: holds more than 268,435,456 bytes of values once unpacked, the most that is read",
        )

    @pytest.mark.parametrize("verb", [["score"], ["verify"], ["audit", "sample"]])
    def test_commands_refuse_it_in_one_line_within_a_gigabyte(self, tmp_path, verb):
        folder = make_run(tmp_path / "run-one", bank=BANK, repeats=2)
        path = with_response(folder, EIGHT, rows=30)
        program = LIMITED.format(bytes=GIGABYTE)
        call = [sys.executable, "-c", program, *verb, str(folder)]
        done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, timeout=60, env=os.environ)
        # verify goes on to the other files and reports what it found; the others refuse the input.
        expected = 1 if verb == ["verify"] else 2
        assert done.returncode == expected, done.stderr
        assert "Traceback" not in done.stderr
        assert path.name in f"{done.stdout}{done.stderr}"
        if expected == 2:
            assert done.stderr.startswith(f"error: {path}: ")
            assert done.stderr.count("\n") == 1


class TestDocument:
    def test_the_bounds_are_those_of_the_contract(self):
        text = (ROOT / "docs/contract/receipts.md").read_text().partition("## Bounds")[2].partition("\n## ")[0]
        words = " ".join(text.split())
        for row in (
            f"| bytes of the file | {SHARD.file:,} (256 MiB) |",
            f"| rows | {SHARD.rows:,} |",
            f"a text that many rows share counts once | {SHARD.distinct:,} |",
            f"counts for each row that holds it | {SHARD.unpacked:,} |",
            f"{TABLE.file >> 30} GiB of file and of pages, {TABLE.rows:,} rows, {TABLE.unpacked >> 30} GiB of values",
            f"{bounded_files.JSON >> 20} MiB of JSON or of a filled-in review sheet",
            f"{bounded_files.TOML >> 20} MiB of TOML or of `audit.csv`, {bounded_files.NOTE >> 20} MiB of `note.txt`",
        ):
            assert row in words
        assert TABLE.file == TABLE.distinct
        assert bounded_files.JSON == bounded_files.REVIEW_SHEET
        assert bounded_files.TOML == bounded_files.AUDIT_LABELS
