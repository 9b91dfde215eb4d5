"""Tables and logs made to harm: an import writes a run that every command reads, or says in a line what is wrong.

See contract: stages, "Import".
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.importing import tables, zip_entries
from tests.test_import_files import (
    HEADER,
    INSPECT,
    PLAIN,
    archive,
    importing,
    lines,
    named,
    refused,
    sample,
    two_rows,
)

WORD = PLAIN.replace('"topic"', '"word"').replace("response =", 'prompt = "prompt"\nresponse =')


def with_column(column: str) -> str:
    return PLAIN.replace("response =", f'{column} = "{column}"\nresponse =')


class TestControls:
    @pytest.mark.parametrize("column", ["noun", "topic"])
    @pytest.mark.parametrize("sign", ["\x1b", "\u202e", "\x1f"])
    def test_in_what_becomes_the_bank(self, tmp_path: Path, column: str, sign: str) -> None:
        rows = [{**row, column: f"a{sign}b"} for row in two_rows()]
        said = refused(tmp_path, with_column(column), lines(tmp_path, rows))
        assert f"concepts.0.noun: control character U+{ord(sign):04X}" in said

    def test_in_the_label_of_an_attribute(self, tmp_path: Path) -> None:
        given = PLAIN.replace('attribute = { value = "age" }', 'attribute = "attribute"')
        rows = [{**row, "attribute": "a\x1bge"} for row in two_rows()]
        assert "attributes.0.label: control character U+001B" in refused(tmp_path, given, lines(tmp_path, rows))

    def test_in_a_template(self, tmp_path: Path) -> None:
        rows = [{**row, "prompt": f"Is the {row['group']} one\x1f right?"} for row in two_rows()]
        assert "framings.single: control character U+001F" in refused(tmp_path, WORD, lines(tmp_path, rows))

    def test_nor_does_a_check_pass_what_could_not_be_read(self, tmp_path: Path) -> None:
        rows = [{**row, "noun": "a\x1b"} for row in two_rows()]
        done = importing(tmp_path, with_column("noun"), lines(tmp_path, rows), tmp_path / "t.jsonl", name="--check")
        assert done.returncode == 2


class TestNumbers:
    @pytest.mark.parametrize("first", [0, -(10**18)])
    @pytest.mark.parametrize("repeat", [32_767, 2**31 - 1])
    def test_a_repeat_that_no_receipt_holds(self, tmp_path: Path, first: int, repeat: int) -> None:
        given = PLAIN.replace("response =", f'repeat = {{ column = "repeat", first = {first} }}\nresponse =')
        said = refused(tmp_path, given, lines(tmp_path, [{**row, "repeat": repeat} for row in two_rows()]))
        assert f"repeats are whole numbers from {first} to {first + 32_766}" in said

    def test_a_plan_that_no_shard_holds(self, tmp_path: Path) -> None:
        rows = [{**row, "concept": f"c{i}", "repeat": 32_766} for i in range(20) for row in two_rows()]
        said = refused(tmp_path, with_column("repeat"), lines(tmp_path, rows))
        assert said.startswith("error: the plan of this import: ")
        assert "1,310,680" in said

    def test_costs_that_come_to_no_number(self, tmp_path: Path) -> None:
        rows = [{**row, "cost_usd": "1e308"} for row in two_rows()]
        assert "is no amount from 0 to 2,147,483,647" in refused(
            tmp_path, with_column("cost_usd"), lines(tmp_path, rows)
        )


PARQUET: dict[str, pa.Array] = {
    "a time of the year 146 million": pa.array([2**62] * 2, pa.timestamp("ms")),
    "a zone that is none": pa.array([1, 1], pa.timestamp("us", tz="Foo/Bar")),
    "a day of the year 5.9 million": pa.array([2**31 - 1] * 2, pa.date32()),
    "a length of ages": pa.array([2**62] * 2, pa.duration("s")),
    "a name twice in a struct": pa.StructArray.from_arrays([pa.array([1, 2])] * 2, names=["a", "a"]),
}


class TestParquet:
    @pytest.mark.parametrize("values", PARQUET.values(), ids=PARQUET)
    def test_a_value_that_python_has_not(self, tmp_path: Path, values: pa.Array) -> None:
        table = pa.Table.from_pylist(two_rows()).append_column("topic", values)
        pq.write_table(table, tmp_path / "t.parquet")
        said = refused(tmp_path, with_column("topic"), tmp_path / "t.parquet")
        assert said.startswith("error: t.parquet: from row 1 on, column topic: a value that cannot be read: ")
        assert said.count("\n") == 1

    def test_a_pipe_is_not_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "t.parquet")
        assert "t.parquet: not a file of bytes" in refused(tmp_path, PLAIN, tmp_path / "t.parquet")


class TestJson:
    def test_values_without_number(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tables, "MOST_VALUES", 1000)
        said = refused(tmp_path, PLAIN, lines(tmp_path, ['{"a": [' + "[]," * 999 + "[]]}"]))
        assert "t.jsonl: line 1: up to 2,001 values in one JSON text; at most 1,000 are read" in said

    @pytest.mark.parametrize("kind", ["inspect", "promptfoo"])
    def test_a_document_without_end(self, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tables, "MOST_DOCUMENT", 100)
        (tmp_path / "log.json").write_text(json.dumps({"a": "x" * 100}))
        given = PLAIN.replace("[columns]", f'[source]\nformat = "{kind}"\n[columns]')
        assert "log.json: more than 100 bytes; " in refused(tmp_path, given, tmp_path / "log.json")

    @pytest.mark.parametrize("results", [5, {"a": 1}, "text", [5, None]])
    def test_components_of_another_kind(self, tmp_path: Path, results: Any) -> None:
        result = {"gradingResult": {"componentResults": results}}
        (tmp_path / "r.json").write_text(json.dumps({"results": {"version": 3, "results": [result]}}))
        given = PLAIN.replace("[columns]", '[source]\nformat = "promptfoo"\n[columns]')
        assert "no row has a column 'label'" in refused(tmp_path, given, tmp_path / "r.json")


class TestArchives:
    def test_one_that_grows_a_hundredfold(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(zip_entries, "FREE", 1 << 20)
        entries = [("header.json", HEADER), ("samples/a.json", b" " * (2 << 20))]
        monkeypatch.setattr(zip_entries, "GROWTH", 1)
        assert "bytes once unpacked" in refused(tmp_path, INSPECT, archive(tmp_path / "t.eval", entries))

    def test_an_honest_one_is_read(self, tmp_path: Path) -> None:
        entries = [("header.json", HEADER), named(sample()), named(sample("young"))]
        assert importing(tmp_path, INSPECT, archive(tmp_path / "t.eval", entries)).returncode == 0


def test_a_folder_of_receipts_that_is_a_link_is_left_alone(tmp_path: Path) -> None:
    table = lines(tmp_path, two_rows())
    assert importing(tmp_path, PLAIN, table).returncode == 0
    kept, receipts = tmp_path / "kept", tmp_path / "runs" / "run" / "receipts"
    receipts.rename(kept)
    (kept / "other.parquet").write_bytes(b"somebody's own")
    receipts.symlink_to(kept)
    done = importing(tmp_path, PLAIN, table, "--replace")
    assert (done.returncode, (kept / "other.parquet").read_bytes()) == (2, b"somebody's own")
    assert "receipts: a link" in done.stderr


@pytest.mark.parametrize("version", ["", "<script>", "../x", "a b", "1}, note={", "v" * 41])
def test_a_version_is_a_word(tmp_path: Path, version: str) -> None:
    given = PLAIN.replace("[run]", f'[run]\nversion = "{version}"')
    assert "run.version" in refused(tmp_path, given, lines(tmp_path, two_rows()))
