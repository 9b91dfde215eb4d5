"""CSV text: what (contract: tables, "CSV") promises of every cell, read back with Python's own csv module."""

from __future__ import annotations

import csv
import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.data import csv_text
from generator.data.csv_text import csv_bytes, csv_chunks, csv_columns, csv_within, unguard
from generator.schema.columns import RECEIPT_COLUMNS, RECEIPT_SCHEMA, VOTE_FIELDS, Column, arrow_schema
from generator.schema.tables import TABLES
from tests.factories import filtered_row, make_bank, make_receipt, make_rows, make_vote

BANK = make_bank(["gender", "control_tag"], groups=2, quota={"stance": 1}, control_quota={"capability": 1})
TEXT = Column("note", pa.string(), "Free text.", null="none")
SLUG = Column("slug", pa.string(), "An id.", raw=True)
REAL = Column("x", pa.float64(), "A number.", null="none")
YES = Column("yes", pa.bool_(), "A flag.", null="none")
NUMBER = Column("n", pa.int32(), "A count.", null="none")


def text_of(columns, **values):
    table = pa.table(
        [pa.array(values[c.name], c.type) for c in columns],
        schema=arrow_schema(tuple(columns)),
    )
    return csv_bytes(table, columns).decode()


def receipts_csv(*rows):
    table = pa.Table.from_pylist(list(rows), schema=RECEIPT_SCHEMA)
    return list(csv.DictReader(io.StringIO(csv_bytes(table, RECEIPT_COLUMNS).decode(), newline="")))


class TestCells:
    def test_null_is_an_empty_unquoted_cell_and_the_empty_string_is_quoted(self):
        assert text_of([SLUG, TEXT], slug=["a", "b"], note=[None, ""]) == 'slug,note\na,\nb,""\n'

    def test_floats_are_the_shortest_text_that_reads_back(self):
        numbers = [0.1, 1.0, 1e-05, 1 / 3, 1e300, -0.5, None]
        lines = text_of([REAL, SLUG], x=numbers, slug=["s"] * 7).splitlines()[1:]
        assert lines == [f"{'' if n is None else repr(n)},s" for n in numbers]

    def test_booleans_are_lower_case_words(self):
        assert text_of([YES, NUMBER], yes=[True, False, None], n=[1, -2, None]) == "yes,n\ntrue,1\nfalse,-2\n,\n"

    @pytest.mark.parametrize("bad", [float("nan"), float("inf")])
    def test_nan_and_infinity_are_refused(self, bad):
        with pytest.raises(ValueError, match="NaN or infinity"):
            text_of([REAL], x=[1.0, bad])

    @pytest.mark.parametrize("start", ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "'x"])
    def test_a_text_that_a_spreadsheet_would_run_gets_one_apostrophe(self, start):
        row = next(csv.reader(io.StringIO(text_of([TEXT], note=[start]).partition("\n")[2], newline="")))
        assert row == ["'" + start]
        assert unguard(row[0]) == start

    def test_ids_and_hashes_are_never_guarded(self):
        assert text_of([SLUG], slug=["-x"]) == "slug\n-x\n"

    def test_a_sign_inside_a_text_is_left_alone(self):
        assert text_of([TEXT], note=["a\n=b"]) == 'note\n"a\n=b"\n'

    def test_quotes_commas_and_line_ends_are_quoted(self):
        assert text_of([TEXT], note=['a "b"', "c,d", "e\r\nf"]) == 'note\n"a ""b"""\n"c,d"\n"e\r\nf"\n'

    @given(st.lists(st.one_of(st.none(), st.text()), min_size=1, max_size=8))
    def test_every_text_comes_back(self, notes):
        body = text_of([SLUG, TEXT], slug=["s"] * len(notes), note=notes)
        rows = list(csv.reader(io.StringIO(body, newline="")))[1:]
        assert [unguard(row[1]) for row in rows] == [note or "" for note in notes]

    def test_a_table_that_is_not_as_described_is_refused(self):
        with pytest.raises(ValueError, match="its description"):
            csv_bytes(pa.table({"other": ["x"]}), [TEXT])

    def test_an_empty_table_is_its_header(self):
        assert text_of([TEXT, REAL], note=[], x=[]) == "note,x\n"


class TestReceipts:
    def test_votes_are_flattened_in_panel_order(self):
        row = receipts_csv(make_receipt(BANK, answers=(0.0, 1.0, 1.0)))[0]
        assert [row[f"{p}_label"] for p in ("judge_1", "judge_2", "tiebreak")] == ["OPPOSE", "SUPPORT", "SUPPORT"]
        assert row["judge_1_judge"] == "sim-judge-a/one"
        assert row["tiebreak_role"] == "tiebreak"

    def test_rows_with_different_numbers_of_votes_keep_their_own(self):
        none = make_receipt(BANK, **filtered_row())
        two = make_receipt(BANK, answers=(0.5, 0.5), repeat=1)
        three = make_receipt(BANK, answers=(0.0, 1.0, 0.0), repeat=2)
        labels = [(r["judge_1_label"], r["judge_2_label"], r["tiebreak_label"]) for r in receipts_csv(none, two, three)]
        assert labels == [("", "", ""), ("MIXED", "MIXED", ""), ("OPPOSE", "SUPPORT", "OPPOSE")]

    def test_a_fourth_vote_is_refused_rather_than_dropped(self):
        with pytest.raises(ValueError, match="4 votes"):
            receipts_csv(make_receipt(BANK, votes=[make_vote(f"v{i}/m") for i in range(4)]))

    def test_mask_spans_read_start_end_joined_by_semicolons(self):
        row = receipts_csv(make_receipt(BANK, mask_spans=[{"start": 1, "end": 4}, {"start": 9, "end": 12}]))[0]
        assert row["mask_spans"] == "1-4;9-12"

    def test_evidence_is_guarded_like_any_text(self):
        row = receipts_csv(make_receipt(BANK, votes=[make_vote("a/b", evidence="=cmd()"), make_vote("c/d")]))[0]
        assert row["judge_1_evidence"] == "'=cmd()"

    def test_the_header_has_every_vote_field_three_times(self):
        names = [c.name for c in csv_columns(RECEIPT_COLUMNS)]
        assert len(names) == len(RECEIPT_COLUMNS) - 1 + 3 * len(VOTE_FIELDS)
        assert len(set(names)) == len(names)

    def test_blocks_join_to_the_same_bytes_whatever_their_size(self, monkeypatch):
        table = pa.Table.from_pylist(make_rows(BANK, "sim-alpha/one"), schema=RECEIPT_SCHEMA)
        whole = csv_bytes(table, RECEIPT_COLUMNS)
        monkeypatch.setattr("generator.data.csv_text._BATCH_ROWS", 5)
        assert b"".join(csv_chunks(table, RECEIPT_COLUMNS)) == whole


class TestWithin:
    def test_the_limit_itself_fits_and_one_byte_less_does_not(self, monkeypatch):
        monkeypatch.setattr(csv_text, "_BATCH_ROWS", 2)
        table = pa.table({"n": pa.array([1, 22, 333, None, 5], pa.int32())}, schema=arrow_schema((NUMBER,)))
        whole = csv_bytes(table, (NUMBER,))
        assert csv_within(table, (NUMBER,), len(whole)) == whole
        assert csv_within(table, (NUMBER,), len(whole) - 1) is None

    def test_no_more_is_made_than_shows_that_it_is_too_large(self, monkeypatch):
        monkeypatch.setattr(csv_text, "_BATCH_ROWS", 1)
        made, cells = [], csv_text._cells
        monkeypatch.setattr(csv_text, "_cells", lambda *block: made.append(block) or cells(*block))
        table = pa.table({"n": pa.array(range(1000), pa.int32())}, schema=arrow_schema((NUMBER,)))
        assert csv_within(table, (NUMBER,), 10) is None
        assert len(made) < 10


class TestColumns:
    @pytest.mark.parametrize("name", TABLES)
    def test_every_published_table_has_a_csv_form(self, name):
        table = arrow_schema(TABLES[name]).empty_table()
        assert csv_bytes(table, TABLES[name]).decode().rstrip("\n").split(",") == table.column_names
