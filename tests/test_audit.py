"""The audit's sheet hides what it must, and import refuses whatever was not asked for.

See contract: stages, "The review sheet".
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import subprocess
import sys
from dataclasses import astuple
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from generator.runs.reader import load_run, read_shard
from generator.schema.audit_draw import auditable, draw, stratum_name
from generator.schema.bank import Bank
from generator.schema.canonical import sha256_hex
from generator.schema.errors import InputError
from harness.audit.page import sheet_html
from harness.audit.sheet import (
    AUDIT,
    Item,
    checked_labels,
    draw_record,
    drawn_rubrics,
    items_of,
    labels_csv,
    open_judged,
    sheet_csv,
)
from harness.audit.simulated_reviewer import reviewed
from harness.commands.audit import command
from tests.factories import make_bank, make_rows, unit, write_run

ROOT = Path(__file__).parent.parent
MODELS = ("sim-alpha/one", "sim-beta/two")


def answers(model: str, concept: str, framing: str, group: str, repeat: int) -> list[float | str | None]:
    """Votes of every kind: refusals and errors among them, some contested."""
    at = unit(model, concept, framing, group, repeat)
    if at < 0.04:
        return ["REFUSAL", "REFUSAL"]
    if at < 0.06:
        return [0.0, None]
    return [0.0, 0.5, 1.0] if at < 0.08 else [at, at]


def judged_run(folder: Path, bank: Bank | None = None, hostile: str = "", **changes: Any) -> Path:
    """A judged run of two models; every response ends with `hostile`."""
    instrument = bank or make_bank(["age", "gender"], groups=3)
    shards = {m: make_rows(instrument, m, repeats=1, run_id=folder.name, answers=answers) for m in MODELS}
    for rows in shards.values():
        for row in rows:
            row["response"] += hostile
    return write_run(folder, instrument, shards, **changes)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return judged_run(tmp_path / "audited")


def invoke(*words: str | Path, code: int = 0) -> str:
    """Run `aibiasbench audit ...`; returns what it printed, or the error's message."""
    result = CliRunner().invoke(command, [str(word) for word in words])
    if isinstance(result.exception, InputError):
        assert code == result.exception.exit_code
        return str(result.exception)
    assert result.exit_code == code, result.output
    return result.output


class TestDraw:
    def test_the_sample_is_the_contracts_draw_over_scored_and_refused_rows(self, run: Path) -> None:
        loaded = load_run(run)
        strata: dict[str, list[str]] = {}
        for model in loaded.models:
            for row in read_shard(loaded, model).to_pylist():
                if auditable(row["status"], len(row["votes"])):
                    strata.setdefault(stratum_name(row["rubric"], row["final_label"]), []).append(row["receipt_id"])
        expected = draw(strata, asked=120, seed=loaded.manifest.seeds.audit)
        assert set(draw_record(open_judged(run), asked=120).rubrics) == expected.ids
        assert len(expected.ids) == 120

    def test_models_that_joined_later_stay_out_of_a_replay(self, tmp_path: Path) -> None:
        folder = judged_run(tmp_path / "r")
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["models"][1]["added"] = "2026-12-24"
        (folder / "manifest.json").write_text(json.dumps(manifest))
        judged = open_judged(folder)
        first = {r["receipt_id"] for r in read_shard(load_run(folder), MODELS[0]).to_pylist()}
        assert set(drawn_rubrics(judged, asked=100, day="2026-12-23")) <= first
        assert not set(draw_record(judged, asked=100).rubrics) <= first

    def test_a_shard_that_was_changed_is_refused(self, run: Path) -> None:
        path = run / "receipts" / "sim-beta__two.parquet"
        path.write_bytes(path.read_bytes() + b"x")
        with pytest.raises(InputError, match="not the shard that manifest"):
            draw_record(open_judged(run), asked=100)


def replace_shard(run: Path, table: pa.Table) -> Path:
    """Put a table in the place of the first shard; the manifest's hash fits."""
    path = run / "receipts" / "sim-alpha__one.parquet"
    pq.write_table(table, path)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["shards"][0]["sha256"] = sha256_hex(path.read_bytes())
    (run / "manifest.json").write_text(json.dumps(manifest))
    return path


class TestBadShards:
    """A shard whose hash fits and whose content does not is one line, and no sheet is made of it."""

    def table(self, run: Path) -> pa.Table:
        return pq.read_table(run / "receipts" / "sim-alpha__one.parquet")

    @pytest.mark.parametrize(
        ("column", "value", "message"),
        [
            ("rubric", "nonsense", "rubric 'nonsense' is not in the bank"),
            ("rubric", None, "column rubric holds"),
            ("receipt_id", 5, "column receipt_id is int64; it is string"),
            ("votes", "none", "column votes is string; it is list"),
            ("mask_spans", [{"start": None, "end": 3}], "column mask_spans holds a span without start or end"),
        ],
    )
    def test_a_column_that_is_none_of_receipts(self, run: Path, column: str, value: Any, message: str) -> None:
        table = self.table(run)
        kind = table.schema.field(column).type if value is None or column == "mask_spans" else None
        changed = table.set_column(
            table.column_names.index(column), column, pa.array([value] * table.num_rows, kind or None)
        )
        path = replace_shard(run, changed)
        said = invoke("sample", run, code=2)
        assert said.startswith(f"{path}: {message}")
        assert "\n" not in said
        assert not (run / AUDIT).exists()

    @pytest.mark.parametrize("column", ["rubric", "response", "status"])
    def test_text_that_is_not_utf_8(self, run: Path, column: str) -> None:
        table = self.table(run)
        values = [(value or "").encode() for value in table[column].to_pylist()]
        raw = pa.array([b"\xff\xfe", *values[1:]], pa.binary())
        broken = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
        field = table.schema.field(column)
        path = replace_shard(run, table.set_column(table.column_names.index(column), field, broken))
        said = invoke("sample", run, code=2)
        assert said.startswith(f"{path}: column {column}: not readable")
        assert "\n" not in said
        assert not (run / AUDIT).exists()

    def test_a_missing_column(self, run: Path) -> None:
        path = replace_shard(run, self.table(run).drop_columns(["prompt"]))
        said = invoke("sample", run, code=2)
        assert said.startswith(f"{path}: ")
        assert "prompt" in said
        assert "\n" not in said

    def test_no_parquet_at_all(self, run: Path) -> None:
        path = replace_shard(run, self.table(run))
        path.write_bytes(b"PAR1 is how it begins")
        manifest = json.loads((run / "manifest.json").read_text())
        manifest["shards"][0]["sha256"] = sha256_hex(path.read_bytes())
        (run / "manifest.json").write_text(json.dumps(manifest))
        assert invoke("sample", run, code=2).startswith(f"{path}: not a Parquet file that can be read")


# Files of the program may grow to so many bytes and no further: a disk that runs full within a file.
SMALL_DISK = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))
from generator.cli import main
main()
"""


class TestFullDisk:
    def sample(self, run: Path, most: int) -> subprocess.CompletedProcess[str]:
        call = [sys.executable, "-c", SMALL_DISK.format(most=most), "audit", "sample", str(run), "--replace"]
        return subprocess.run(call, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)

    def test_nothing_is_half_written(self, run: Path, tmp_path: Path) -> None:
        whole = judged_run(tmp_path / "whole" / run.name)
        invoke("sample", whole)
        sizes = {path.name: path.stat().st_size for path in (whole / AUDIT).iterdir()}
        assert sorted(sizes, key=sizes.__getitem__) == ["draw.json", "sheet.csv", "sheet.html"]
        for most in (sizes["sheet.html"] - 1, sizes["sheet.csv"] - 1, sizes["draw.json"] - 1):
            done = self.sample(run, most)
            assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
            assert "File too large" in done.stderr
            assert list((run / AUDIT).iterdir()) == []
        assert self.sample(run, sizes["sheet.html"]).returncode == 0
        assert {path.name: path.read_bytes() for path in (run / AUDIT).iterdir()} == {
            path.name: path.read_bytes() for path in (whole / AUDIT).iterdir()
        }

    def test_an_earlier_sheet_stays_whole(self, run: Path) -> None:
        invoke("sample", run)
        before = {path.name: path.read_bytes() for path in (run / AUDIT).iterdir()}
        assert self.sample(run, 1000).returncode == 2
        assert {path.name: path.read_bytes() for path in (run / AUDIT).iterdir()} == before


class TestItems:
    def test_prompt_and_response_are_masked_as_for_judges_and_scrubbed(self, tmp_path: Path) -> None:
        folder = judged_run(tmp_path / "r", hostile=" KIND2s, kind0!")
        judged = open_judged(folder)
        for item in items_of(judged, draw_record(judged, asked=100)):
            assert "kind" not in (item.prompt + item.response).lower()
            assert "[PERSON]" in item.prompt
            assert item.response.endswith(" [PERSON], [PERSON]!")

    def test_the_order_is_shuffled_and_repeatable(self, run: Path) -> None:
        judged = open_judged(run)
        record = draw_record(judged, asked=100)
        ids = [item.receipt_id for item in items_of(judged, record)]
        assert ids == [item.receipt_id for item in items_of(judged, record)]
        assert ids != sorted(ids)
        rubrics = [record.rubrics[i] for i in ids]
        assert sum(a != b for a, b in pairwise(rubrics)) > 30


class TestSheet:
    def test_neither_form_names_a_model_a_vote_or_a_label_given(self, run: Path) -> None:
        judged = open_judged(run)
        record = draw_record(judged, asked=100)
        items = items_of(judged, record)
        for text in (sheet_csv(items, judged.bank), sheet_html(items, judged, record)):
            assert re.findall(r"sim-(?:alpha|beta|judge)|says so|votes|final", text) == []

    def test_the_csv_keeps_a_spreadsheet_from_running_a_cell(self, run: Path) -> None:
        judged = open_judged(run)
        items = items_of(judged, draw_record(judged, asked=100))
        items[0] = type(items[0])(items[0].receipt_id, items[0].rubric, "+1", "=1+1")
        row = next(csv.DictReader(io.StringIO(sheet_csv(items, judged.bank))))
        assert (row["prompt"], row["response"], row["label"]) == ("'+1", "'=1+1", "")

    def test_no_id_on_the_sheet_is_a_number_to_a_spreadsheet(self, run: Path) -> None:
        judged = open_judged(run)
        item = items_of(judged, draw_record(judged, asked=100))[0]
        for name in ("5816270921604169", "12345678901234e5", "0000000000000001"):
            row = next(csv.DictReader(io.StringIO(sheet_csv([type(item)(name, *astuple(item)[1:])], judged.bank))))
            assert row["receipt_id"] == f"r{name}"
            with pytest.raises(ValueError, match="could not convert"):
                float(row["receipt_id"])

    def test_hostile_text_cannot_leave_its_data(self, tmp_path: Path) -> None:
        attack = "</script><script>alert(1)</script><!-- &amp; \u2028"
        judged = open_judged(judged_run(tmp_path / "r", hostile=attack))
        record = draw_record(judged, asked=100)
        page = sheet_html(items_of(judged, record), judged, record)
        assert "alert(1)</script>" not in page
        assert page.count("</script>") == 2
        data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])  # type: ignore[index]
        assert all(item["response"].endswith(attack) for item in data["items"])

    def test_the_page_allows_its_own_style_and_script_and_no_other(self, run: Path) -> None:
        judged = open_judged(run)
        record = draw_record(judged, asked=100)
        page = sheet_html(items_of(judged, record), judged, record)
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]  # type: ignore[index]
        parts = [re.search(rf"<{tag}>(.*?)</{tag}>", page, re.S)[1] for tag in ("style", "script")]  # type: ignore[index]
        hashes = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in parts]
        assert policy == f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'"
        assert re.findall(r"""(?:src|href)=["'][^"']""", page) == []


class TestCheckedLabels:
    @pytest.fixture
    def drawn(self, run: Path, tmp_path: Path) -> tuple[Any, Any, Path, dict[str, str]]:
        judged = open_judged(run)
        record = draw_record(judged, asked=100)
        labels = reviewed(items_of(judged, record), judged.bank, 1)
        return record, judged.bank, tmp_path / "labels.csv", labels

    def read(self, drawn: tuple[Any, Any, Path, dict[str, str]], text: str) -> dict[str, str]:
        record, bank, path, _ = drawn
        path.write_text(text)
        return checked_labels(path, record, bank)

    def test_what_the_reviewer_gave_comes_back(self, drawn: Any) -> None:
        assert self.read(drawn, labels_csv(drawn[3])) == drawn[3]

    def test_a_spreadsheets_habits_are_borne(self, drawn: Any) -> None:
        lines = ["\ufeffnote;label;receipt_id", *(f"x;{label.lower()} ;{i}" for i, label in drawn[3].items())]
        assert self.read(drawn, "\r\n".join(lines)) == drawn[3]

    def test_ids_come_back_as_on_the_sheet_or_bare_and_blank_rows_are_passed_over(self, drawn: Any) -> None:
        pairs = enumerate(drawn[3].items())
        lines = [
            "receipt_id,label",
            *(f"{'r' if n % 2 else ''}{i},{label}" for n, (i, label) in pairs),
            ",",
            " , ",
            "",
            ",",
        ]
        assert self.read(drawn, "\n".join(lines)) == drawn[3]

    @pytest.mark.parametrize("row", [",OPPOSE", "r,OPPOSE"])
    def test_a_label_without_an_id_is_no_blank_row(self, drawn: Any, row: str) -> None:
        with pytest.raises(InputError, match="line 102: receipt id '' was not drawn"):
            self.read(drawn, f"{labels_csv(drawn[3])}{row}\n")

    def test_every_fault_is_named_with_its_line(self, drawn: Any) -> None:
        record, _, path, labels = drawn
        stance = next(i for i, r in record.rubrics.items() if r == "stance")
        score = next(i for i, r in record.rubrics.items() if r == "capability")
        twice, absent = [i for i in sorted(labels) if i not in (stance, score)][:2]
        rows = {**labels, stance: "MAYBE", score: "101"}
        del rows[absent]
        text = labels_csv(rows) + f"{twice},{rows[twice]}\n{'0' * 16},MIXED\n1.2E+15,MIXED\n"
        with pytest.raises(InputError) as caught:
            self.read(drawn, text)
        line = {i: n for n, i in enumerate(sorted(rows), start=2)}
        number = "use a whole number 0 to 100, or REFUSAL"
        spreadsheet = "did a spreadsheet turn it into a number? Keep the column as text"
        assert set(caught.value.faults) == {
            f"{path}: {fault}"
            for fault in (
                f"line {line[stance]}: {stance}: label 'MAYBE' of rubric stance: use OPPOSE, MIXED, SUPPORT, REFUSAL",
                f"line {line[score]}: {score}: label '101' of rubric capability: {number}",
                f"line 101: {twice} is labeled twice, first in line {line[twice]}; keep one",
                f"line 102: receipt id '{'0' * 16}' was not drawn; it belongs to another run or draw",
                f"line 103: receipt id '1.2E+15' was not drawn; {spreadsheet}",
                f"no row for {absent} ({record.rubrics[absent]}), which was drawn; label all rows",
            )
        }

    def test_an_empty_label_is_no_label(self, drawn: Any) -> None:
        record, _, _, labels = drawn
        stance = next(i for i, r in record.rubrics.items() if r == "stance")
        with pytest.raises(InputError, match=f"{stance}: no label; use OPPOSE, MIXED, SUPPORT, REFUSAL"):
            self.read(drawn, labels_csv({**labels, stance: ""}))
        score = next(i for i, r in record.rubrics.items() if r == "capability")
        with pytest.raises(InputError, match=f"{score}: no label; use a whole number 0 to 100, or REFUSAL"):
            self.read(drawn, labels_csv({**labels, score: ""}))

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("id,label\n", "line 1: no column 'receipt_id'; the header must name receipt_id and label"),
            ("", "line 1: no column 'receipt_id'"),
            ("receipt_id,label\n" + "x" * 200_000, "not CSV"),
        ],
    )
    def test_what_is_no_label_file_is_refused(self, drawn: Any, text: str, message: str) -> None:
        with pytest.raises(InputError, match=re.escape(message)):
            self.read(drawn, text)

    def test_a_file_that_is_not_there_or_not_text_is_refused(self, drawn: Any) -> None:
        record, bank, path, _ = drawn
        with pytest.raises(InputError, match="cannot be read: No such file"):
            checked_labels(path, record, bank)
        path.write_bytes(b"receipt_id,label\n\xff")
        with pytest.raises(InputError, match="not UTF-8 at byte 17"):
            checked_labels(path, record, bank)


class TestCommands:
    def test_sample_review_import(self, run: Path, tmp_path: Path) -> None:
        assert "120 rows drawn" in invoke("sample", run, "--size", "120")
        assert sorted(p.name for p in (run / AUDIT).iterdir()) == ["draw.json", "sheet.csv", "sheet.html"]
        invoke("review", run, tmp_path / "labels.csv")
        assert "120 labels of a simulated reviewer imported" in invoke("import", run, tmp_path / "labels.csv")
        loaded = load_run(run)
        assert loaded.audit is not None
        assert len(loaded.audit) == 120

    def test_sampling_twice_gives_the_same_bytes(self, run: Path) -> None:
        invoke("sample", run)
        first = {p.name: p.read_bytes() for p in (run / AUDIT).iterdir()}
        invoke("sample", run)
        assert {p.name: p.read_bytes() for p in (run / AUDIT).iterdir()} == first

    def test_imported_labels_are_not_lost_by_accident(self, run: Path, tmp_path: Path) -> None:
        invoke("sample", run)
        invoke("review", run, tmp_path / "labels.csv")
        invoke("import", run, tmp_path / "labels.csv")
        assert "--replace draws again and removes them" in invoke("sample", run, code=2)
        assert (run / "audit.csv").exists()
        invoke("sample", run, "--replace")
        assert not (run / "audit.csv").exists()

    def test_a_refused_import_writes_nothing(self, run: Path, tmp_path: Path) -> None:
        invoke("sample", run)
        (tmp_path / "labels.csv").write_text("receipt_id,label\n")
        assert "and 130 more faults" in invoke("import", run, tmp_path / "labels.csv", code=2)
        assert not (run / "audit.csv").exists()

    def test_import_before_sample_is_refused(self, run: Path, tmp_path: Path) -> None:
        assert "draw the sample first: aibiasbench audit sample" in invoke("import", run, tmp_path / "l.csv", code=2)

    def test_labels_of_receipts_judged_anew_since_are_refused(self, run: Path, tmp_path: Path) -> None:
        invoke("sample", run)
        invoke("review", run, tmp_path / "labels.csv")
        bank = make_bank(["age", "gender"], groups=3)
        rows = {m: make_rows(bank, m, repeats=1, run_id=run.name) for m in MODELS}
        write_run(run, bank, rows)
        assert "the receipts changed since this sample was drawn" in invoke(
            "import", run, tmp_path / "labels.csv", code=2
        )

    def test_the_simulated_reviewer_keeps_off_live_runs(self, tmp_path: Path) -> None:
        run = judged_run(tmp_path / "r", kind="live")
        invoke("sample", run)
        assert "a live run; its audit needs a person" in invoke("review", run, tmp_path / "labels.csv", code=2)

    def test_a_run_that_was_not_judged_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "r").mkdir()
        assert "judge stage has finished?" in invoke("sample", tmp_path / "r", code=2)


class TestReviewed:
    def test_the_reviewer_reads_what_the_prose_says(self) -> None:
        bank = make_bank(["age"])
        items = [Item(f"{i:016x}", "stance", "P", f"{i} I would argue for this.") for i in range(500)]
        labels = list(reviewed(items, bank, 1).values())
        assert 0.9 < labels.count("SUPPORT") / 500 < 1

    def test_scores_are_numbers_near_the_line(self) -> None:
        bank = make_bank(["age"])
        item = Item("0" * 16, "capability", "P", "Good.\nSCORE: 64")
        assert abs(int(reviewed([item], bank, 1)["0" * 16]) - 64) <= 7

    def test_refusals_are_refusals(self) -> None:
        bank = make_bank(["age"])
        item = Item("0" * 16, "capability", "P", "I won't be giving a judgement here.")
        assert reviewed([item], bank, 1) == {"0" * 16: "REFUSAL"}
