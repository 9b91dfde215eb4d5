"""Receipts: exactly the columns of the contract, the same bytes each time, and nothing half-written.

See contract: receipts, "Shards".
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from generator.schema.canonical import receipt_id, sha256_hex
from generator.schema.columns import RECEIPT_COLUMNS, RECEIPT_SCHEMA
from generator.schema.manifest import read_manifest
from generator.schema.verdict import Vote
from harness.calls.call import Answer
from harness.eval.questions import bank_prompts, planned_rows
from harness.judging.voting import Bench, Case
from harness.plan.records import PICO, RunPlan
from harness.simulated.planted_effects import planted_effects
from harness.stages.judge_stage import ROOT
from harness.stages.receipts import ReceiptsWriter, Till, harness_commit, receipt, replace_file, shard_bytes
from tests.factories import make_bank
from tests.plans import make_plan, simulated_data

SUBJECT = "sim-alpha/one"
BANK = make_bank(["age"], groups=2, quota={"stance": 1})
PLAN = make_plan(simulated_data(BANK, "sim-beta/two", SUBJECT, repeats=2))
SHA = "ab" * 20


def cases(model: str = SUBJECT, text: str = "A kind1 applicant, MIXED.", plan: RunPlan = PLAN) -> list[Case]:
    """Every planned row of a model, answered alike and judged alike."""
    bench = Bench(plan, BANK)
    answer = Answer(text, served_by="one@here", prompt_tokens=9, completion_tokens=4, cost=5)
    votes = [Vote(j, "primary", "MIXED", None, False, True, "so", None, "a" * 64) for j in ("x/a", "x/b")]
    listed = []
    for row in planned_rows(plan, model, bank_prompts(BANK)):
        case = bench.case(row, answer)
        listed.append(
            Case(
                case.row, case.rubric, case.panel, answer, case.spans, case.leak, case.shown, tuple(votes), ("k1", "k2")
            )
        )
    return listed


def write(folder: Path, plan: RunPlan = PLAN, **changes: Any) -> dict[str, Any]:
    """Write a whole run; returns the manifest."""
    planted = planted_effects(plan, BANK)
    writer = ReceiptsWriter(folder, plan, harness_sha=SHA, costs=changes.get("costs", {}), planted=planted)
    for model in sorted(plan.subject):
        writer.shard(model, cases(model, plan=plan))
    return writer.finish(BANK.snapshot(), subjects=PICO, judges=2 * PICO, partial=False)


class TestReceipt:
    def test_every_column_and_no_other(self) -> None:
        assert list(receipt(cases()[0], PLAN, harness_sha=SHA, cost=0.0)) == [c.name for c in RECEIPT_COLUMNS]

    def test_a_row_worked_by_hand(self) -> None:
        case = cases()[0]
        row = receipt(case, PLAN, harness_sha=SHA, cost=0.25)
        assert (
            row["prompt"]
            == "Case 0 of stance: what about a kind0 applicant who asks?\n\nAnswer briefly and finish with one word."
        )
        assert (row["swap_start"], row["swap_end"]) == (29, 46)
        assert row["prompt"][29:46] == row["group_np"] == "a kind0 applicant"
        assert row["receipt_id"] == receipt_id(
            run_id="test-run", bank_sha256=BANK.sha256, model=SUBJECT, concept="age_stance_0",
            framing="direct", group="g0", repeat=0,
        )  # fmt: skip
        assert row["mask_spans"] == [{"start": 0, "end": 17}]
        assert (row["final_label"], row["value"], row["status"]) == ("MIXED", 0.5, "scored")
        assert (row["served_by"], row["prompt_tokens"], row["completion_tokens"]) == ("one@here", 9, 4)
        assert row["cost_usd"] == 0.25

    def test_a_failed_call_leaves_its_columns_null(self) -> None:
        bench = Bench(PLAN, BANK)
        row = receipt(bench.case(cases()[0].row, "transport"), PLAN, harness_sha=SHA, cost=0.0)
        nulls = {k for k, v in row.items() if v is None}
        assert nulls == {
            "response", "finish_reason", "response_key", "served_by", "final_label", "value", "prompt_tokens",
            "completion_tokens", "reasoning_tokens", "filter_word",
        }  # fmt: skip
        assert (row["outcome"], row["failure"]) == ("failed", "transport")
        assert (row["status"], row["votes"], row["mask_spans"], row["mask_leak"]) == ("error", [], [], False)

    @pytest.mark.parametrize(
        ("answer", "outcome", "status"),
        [
            (Answer("Yes.", reasoning_tokens=7), ("answered", None, None), "error"),  # no judge was asked here
            (Answer("Yes, bec", "cut", "length"), ("answered", None, None), "error"),
            (Answer("", "cut_before_answer", "length"), ("cut_before_answer", None, None), "error"),
            (Answer("", "filtered", filter_word="refusal"), ("filtered", None, "refusal"), "refused"),
            (Answer("", "filtered", "content\n_filter"), ("filtered", None, "content _filter"), "refused"),
            (Answer("", "filtered", filter_word="P\x1b[2J" * 30), ("filtered", None, ("P [2J" * 30)[:80]), "refused"),
            (Answer("", "filtered", "\u202e", filter_word="\x00"), ("filtered", None, "filtered"), "refused"),
            (Answer(" ", "unusable", error="empty"), ("failed", "empty", None), "error"),
        ],
    )
    def test_what_became_of_the_question(self, answer: Answer, outcome: tuple[str | None, ...], status: str) -> None:
        row = receipt(Bench(PLAN, BANK).case(cases()[0].row, answer), PLAN, harness_sha=SHA, cost=0.0)
        assert tuple(row[k] for k in ("outcome", "failure", "filter_word")) == outcome
        assert (row["status"], row["votes"]) == (status, [])
        assert row["reasoning_tokens"] == answer.reasoning_tokens


class TestMaskLeak:
    @pytest.mark.parametrize(
        ("text", "spans", "leak"),
        [
            ("A kind1 applicant, MIXED.", 1, False),  # masked, so no longer there
            ("A kind1 applicant, or a k i n d 1 one.", 1, True),
            ("A k.i.n.d.0 applicant.", 0, True),
            ("An applicant of some kind.", 0, False),
        ],
    )
    def test_it_is_read_off_the_masked_answer(self, text: str, spans: int, leak: bool) -> None:
        case = Bench(PLAN, BANK).case(cases()[0].row, Answer(text))
        row = receipt(case, PLAN, harness_sha=SHA, cost=0.0)
        assert (len(row["mask_spans"]), row["mask_leak"]) == (spans, leak)


class TestTill:
    def test_a_shared_call_is_paid_once(self) -> None:
        till = Till({"a": PICO, "b": PICO // 2})
        assert [till.pay(["a", "b"]), till.pay(["a", "b"]), till.pay(["c"])] == [1.5, 0.0, 0.0]


class TestShardBytes:
    def rows(self) -> list[dict[str, Any]]:
        return [receipt(case, PLAN, harness_sha=SHA, cost=0.0) for case in cases()]

    def test_the_same_rows_give_the_same_bytes(self) -> None:
        assert shard_bytes(self.rows()) == shard_bytes(self.rows())

    def test_types_and_compression_are_those_of_the_contract(self) -> None:
        file = pq.ParquetFile(pa.BufferReader(shard_bytes(self.rows())))
        assert file.schema_arrow.equals(RECEIPT_SCHEMA)
        assert {file.metadata.row_group(0).column(i).compression for i in range(file.metadata.num_columns)} == {"ZSTD"}

    @pytest.mark.parametrize(("given", "named"), [("CC-BY-4.0", {"license": "CC-BY-4.0"}), ("", {})])
    def test_the_file_says_by_itself_what_it_is(self, given: str, named: dict[str, str]) -> None:
        rows = self.rows()
        found = pq.read_schema(pa.BufferReader(shard_bytes(rows, given))).metadata
        own = {key: rows[0][key] for key in ("run_id", "model", "bank_version", "bank_sha256")}
        title = f"Receipts of {rows[0]['model']}, run {rows[0]['run_id']}"
        assert {key.decode(): value.decode() for key, value in found.items()} == {
            "format": "2", "simulated": "true", "title": title, **own, **named,
        }  # fmt: skip

    def test_hostile_text_comes_back_as_it_was(self) -> None:
        row = {**self.rows()[0], "response": "\x07\x1b[31m\u202e<script>\u0000\U0001f469"}
        assert pq.read_table(pa.BufferReader(shard_bytes([row])))["response"][0].as_py() == row["response"]


class TestReceiptsWriter:
    def test_each_shard_names_the_license_of_the_plan(self, tmp_path: Path) -> None:
        plan = PLAN.model_copy(update={"data_license": "CC0-1.0"})
        write(tmp_path, plan)
        found = [pq.read_schema(path).metadata[b"license"] for path in (tmp_path / "receipts").glob("*.parquet")]
        assert found == [b"CC0-1.0"] * len(plan.subject)

    def test_rows_stand_in_the_order_of_the_contract(self, tmp_path: Path) -> None:
        write(tmp_path)
        table = pq.read_table(tmp_path / "receipts" / "sim-alpha__one.parquet")
        keys = list(
            zip(*(table[c].to_pylist() for c in ("attribute", "concept", "framing", "group", "repeat")), strict=True)
        )
        assert keys == sorted(keys)
        assert len(keys) == 1 * 2 * 2 * 2

    def test_the_manifest_says_what_is_there(self, tmp_path: Path) -> None:
        write(tmp_path)
        manifest = read_manifest(tmp_path / "manifest.json")
        assert [m.model for m in manifest.models] == ["sim-alpha/one", "sim-beta/two"]
        assert [(s.file, s.rows) for s in manifest.shards] == [
            ("receipts/sim-alpha__one.parquet", 8), ("receipts/sim-beta__two.parquet", 8),
        ]  # fmt: skip
        assert [s.sha256 for s in manifest.shards] == [
            sha256_hex((tmp_path / s.file).read_bytes()) for s in manifest.shards
        ]
        assert manifest.counts.model_dump() == {"scored": 16, "refused": 0, "contested": 0, "error": 0}
        assert manifest.spend.model_dump() == {"subjects_usd": 1.0, "judges_usd": 2.0, "total_usd": 3.0}
        assert (manifest.harness_sha, manifest.bank_sha256) == (SHA, BANK.sha256)
        assert manifest.models[0].params["simulated_seed"] == 1
        assert (tmp_path / "bank.json").read_bytes() == BANK.snapshot()

    def test_twice_gives_the_same_bytes(self, tmp_path: Path) -> None:
        for name in ("a", "b"):
            write(tmp_path / name)
        files = sorted(p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*") if p.is_file())
        assert len(files) == 4
        assert [(tmp_path / "a" / f).read_bytes() for f in files] == [(tmp_path / "b" / f).read_bytes() for f in files]

    def test_the_shard_of_a_model_that_left_the_plan_goes(self, tmp_path: Path) -> None:
        write(tmp_path)
        write(tmp_path, make_plan(simulated_data(BANK, SUBJECT, repeats=2)))
        assert [p.name for p in (tmp_path / "receipts").iterdir()] == ["sim-alpha__one.parquet"]

    def test_a_writer_that_dies_leaves_the_old_receipts_whole_and_the_next_one_clears_up(self, tmp_path: Path) -> None:
        write(tmp_path)
        before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
        ReceiptsWriter(tmp_path, PLAN, harness_sha=SHA, costs={}).shard(SUBJECT, cases(text="Other."))
        half = tmp_path / "receipts" / ".sim-alpha__one.parquet.part"
        assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file() and p != half} == before
        assert half.is_file()
        write(tmp_path)
        assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


class TestReplaceFile:
    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
    def test_a_full_disk_says_which_file_it_was_and_the_old_one_stays(self, tmp_path: Path) -> None:
        (tmp_path / "f.json").write_text("old")
        (tmp_path / ".f.json.part").symlink_to("/dev/full")
        with pytest.raises(OSError, match=r"No space left on device: '.*/f\.json'"):
            replace_file(tmp_path / "f.json", b"new")
        assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("f.json", "old")]

    def test_a_failed_write_keeps_the_old_file(self, tmp_path: Path) -> None:
        replace_file(tmp_path / "f", b"old")
        with pytest.raises(TypeError):
            replace_file(tmp_path / "f", "text")  # type: ignore[arg-type]
        assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("f", b"old")]


class TestHarnessCommit:
    def git(self, folder: Path, *words: str) -> str:
        who = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
        return subprocess.run(
            ["git", "-C", str(folder), *who, *words], check=True, capture_output=True, text=True
        ).stdout

    def repository(self, folder: Path) -> str:
        (folder / "harness").mkdir(parents=True)
        (folder / "harness" / "a.py").write_text("1\n")
        self.git(folder, "init", "-q")
        self.git(folder, "add", ".")
        self.git(folder, "commit", "-qm", "one")
        return self.git(folder, "rev-parse", "HEAD").strip()

    def test_a_clean_tree_is_its_commit(self, tmp_path: Path) -> None:
        head = self.repository(tmp_path / "r")
        (tmp_path / "r" / "notes.txt").write_text("not code\n")
        assert harness_commit(tmp_path / "r") == head

    def test_changed_code_is_dirty(self, tmp_path: Path) -> None:
        head = self.repository(tmp_path / "r")
        (tmp_path / "r" / "harness" / "a.py").write_text("2\n")
        assert harness_commit(tmp_path / "r") == f"{head}-dirty"

    def test_the_judge_stage_asks_about_this_repository(self) -> None:
        assert (ROOT / "harness").is_dir()
        assert (ROOT / "pyproject.toml").is_file()

    def test_outside_its_own_repository_it_is_unknown(self, tmp_path: Path) -> None:
        self.repository(tmp_path / "r")
        assert harness_commit(tmp_path / "r" / "harness") == "unknown"
        assert harness_commit(tmp_path) == "unknown"


class TestManifestText:
    def test_it_is_sorted_json_with_a_final_newline(self, tmp_path: Path) -> None:
        write(tmp_path)
        text = (tmp_path / "manifest.json").read_text()
        assert text == json.dumps(json.loads(text), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
