"""Both formats of a run folder are read, format 2 is held to its rules, and any other format is refused by name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from generator.runs.reader import load_run, read_shard, read_written
from generator.schema.canonical import sha256_hex
from generator.schema.columns import (
    FORMATS,
    RECEIPT_COLUMNS,
    RECEIPT_SCHEMA,
    VOTE_FIELDS,
    as_latest,
    receipt_columns,
    vote_fields,
)
from generator.schema.errors import InputError
from generator.schema.manifest import load_manifest
from generator.schema.verdict import VOTE_ERRORS
from generator.scoring.run import score_run
from tests.factories import (
    IMPORT,
    NOT_IMPORTED,
    as_format_1,
    as_imported,
    cut_row,
    failed_row,
    filtered_row,
    make_bank,
    make_run,
)

BANK = make_bank(("age",), groups=2, quota={"stance": 1, "capability": 1})
MODEL = "sim-alpha/one"
LOCAL = Path("content/runs/local-models")
NEW = {"outcome", "failure", "filter_word", "reasoning_tokens"}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "run-one", bank=BANK, models=(MODEL,), repeats=1)


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return shutil.copytree(original, tmp_path / "run-one")


def manifest_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return found


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    (folder / "manifest.json").write_text(json.dumps(manifest))


def rewrite(folder: Path, table: pa.Table) -> None:
    """Replace the shard, hash and counts with it."""
    manifest = manifest_of(folder)
    path = folder / manifest["shards"][0]["file"]
    pq.write_table(table, path)
    manifest["shards"][0] |= {"sha256": sha256_hex(path.read_bytes()), "rows": table.num_rows}
    statuses = table["status"].to_pylist()
    write_manifest(folder, manifest | {"counts": {k: statuses.count(k) for k in manifest["counts"]}})


def change(folder: Path, at: int = 0, **changes: Any) -> None:
    """Change one row."""
    rows = pq.read_table(folder / "receipts/sim-alpha__one.parquet").to_pylist()
    rows[at] |= changes
    rewrite(folder, pa.Table.from_pylist(rows, schema=RECEIPT_SCHEMA))


def change_vote(folder: Path, **changes: Any) -> None:
    """Change the first vote of the first row."""
    votes = pq.read_table(folder / "receipts/sim-alpha__one.parquet")["votes"][0].as_py()
    change(folder, votes=[votes[0] | changes, *votes[1:]])


def faults(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_run(folder)
    return "\n".join(caught.value.faults)


class TestColumns:
    def test_format_1_lacks_what_format_2_added(self) -> None:
        old, new = receipt_columns(1), receipt_columns(2)
        assert [c.name for c in old] == [c.name for c in new if c.name not in NEW]
        assert {c.name for c in vote_fields(new[[c.name for c in new].index("votes")].type)} - {
            c.name for c in vote_fields(next(c.type for c in old if c.name == "votes"))
        } == {"unwrapped", "evidence_cut"}

    def test_each_new_column_stands_right_after_its_neighbor(self) -> None:
        names = [c.name for c in RECEIPT_COLUMNS]
        at = names.index("served_by")
        assert names[at + 1 : at + 4] == ["outcome", "failure", "filter_word"]
        assert names[names.index("completion_tokens") + 1] == "reasoning_tokens"
        votes = [c.name for c in VOTE_FIELDS]
        assert votes[votes.index("error") + 1 :] == ["unwrapped", "evidence_cut", "key"]

    def test_only_imported_runs_may_lack_the_prompt_in_format_2_and_none_in_format_1(self) -> None:
        lacking = {c.name for c in RECEIPT_COLUMNS if c.imported}
        assert lacking == {
            "group_np", "prompt", "prompt_sha256", "swap_start", "swap_end", "mask_spans", "mask_leak",
        }  # fmt: skip
        assert not any(c.null for c in receipt_columns(1) if c.name in lacking)

    def test_a_slice_of_old_votes_keeps_its_own(self) -> None:
        rows = pq.read_table(LOCAL / "receipts/google__gemma-3-270m.parquet").slice(3, 5)
        found = as_latest(rows.combine_chunks())
        assert [[v["judge"] for v in votes] for votes in found["votes"].to_pylist()] == [
            [v["judge"] for v in votes] for votes in rows["votes"].to_pylist()
        ]
        assert found.schema.types == RECEIPT_SCHEMA.types


class TestFormat1:
    def test_the_committed_run_is_read(self) -> None:
        run = load_run(LOCAL)
        assert (run.manifest.format, run.manifest.planted, run.manifest.imported) == (1, None, None)
        assert {m.from_cache for m in run.manifest.models} == {None}
        for model in run.models:
            assert read_written(run, model).column_names == [c.name for c in receipt_columns(1)]
            table = read_shard(run, model)
            assert table.column_names == RECEIPT_SCHEMA.names
            assert all(table[name].null_count == table.num_rows for name in NEW)
            assert {v["evidence_cut"] for votes in table["votes"].to_pylist() for v in votes} <= {None}

    def test_some_columns_of_it_alone(self) -> None:
        run = load_run(LOCAL)
        table = read_shard(run, run.models[0], ["reasoning_tokens"])
        assert table["reasoning_tokens"].to_pylist() == [None] * 148
        assert read_shard(run, run.models[0], ["status", "outcome"]).column_names == ["status", "outcome"]

    def test_a_run_of_format_2_written_as_format_1_says_the_same(self, folder: Path) -> None:
        before = read_shard(load_run(folder), MODEL)
        after = read_shard(load_run(as_format_1(folder)), MODEL)
        for name in set(RECEIPT_SCHEMA.names) - NEW - {"votes"}:
            assert after[name].to_pylist() == before[name].to_pylist()

    def test_it_has_no_column_of_format_2(self, folder: Path) -> None:
        as_format_1(folder)
        table = pq.read_table(folder / "receipts/sim-alpha__one.parquet")
        rewrite(folder, table.append_column("outcome", pa.array(["answered"] * table.num_rows)))
        assert "unknown column outcome" in faults(folder)

    def test_it_has_no_key_of_format_2(self, folder: Path) -> None:
        as_format_1(folder)
        write_manifest(folder, manifest_of(folder) | {"planted": []})
        assert "planted: format 1 has no such key" in faults(folder)


class TestFormatNumber:
    @pytest.mark.parametrize("number", [3, 0, "2", 2.0, True, None, [2]])
    def test_any_other_is_refused_by_name(self, folder: Path, number: Any) -> None:
        write_manifest(folder, manifest_of(folder) | {"format": number})
        assert f"format {number} is not known to this release (it knows 1 and 2)" in faults(folder)

    def test_these_are_known(self) -> None:
        assert FORMATS == (1, 2)

    def test_a_shard_of_another_format_than_the_manifest_is_refused(self, folder: Path) -> None:
        table = pq.read_table(folder / "receipts/sim-alpha__one.parquet")
        rewrite(folder, table.replace_schema_metadata({"format": "3"}))
        assert "metadata: format is '3'; the manifest is of format 2" in faults(folder)
        rewrite(folder, table.replace_schema_metadata(None))
        assert "metadata: format is '1'; the manifest is of format 2" in faults(folder)

    @pytest.mark.parametrize("key", ["imported", "planted"])
    def test_format_2_needs_all_its_keys(self, folder: Path, key: str) -> None:
        manifest = manifest_of(folder)
        del manifest[key]
        write_manifest(folder, manifest)
        assert f"{key}: missing; format 2 needs it" in faults(folder)

    @pytest.mark.parametrize("key", ["successor_of", "from_cache"])
    def test_and_those_of_its_models(self, folder: Path, key: str) -> None:
        manifest = manifest_of(folder)
        del manifest["models"][0][key]
        write_manifest(folder, manifest)
        assert f"models.0: {key}: missing; format 2 needs it" in faults(folder)


class TestKinds:
    def data(self, folder: Path, **changes: Any) -> dict[str, Any]:
        return manifest_of(folder) | changes

    def refused(self, data: dict[str, Any]) -> str:
        with pytest.raises(InputError) as caught:
            load_manifest(data, "m.json")
        return "\n".join(caught.value.faults)

    def test_what_is_imported_says_where_from_and_nothing_else_does(self, folder: Path) -> None:
        assert "imported: must be null in a run of kind simulated" in self.refused(self.data(folder, imported=IMPORT))
        found = self.refused(self.data(folder, kind="imported", planted=None))
        assert "imported: must not be null in a run of kind imported" in found

    def test_only_a_simulated_run_has_planted_effects(self, folder: Path) -> None:
        assert "planted: must be null in a run of kind live" in self.refused(self.data(folder, kind="live"))
        assert "planted: must not be null in a run of kind simulated" in self.refused(self.data(folder, planted=None))

    def test_the_share_from_the_cache_is_known_but_where_answers_are_imported(self, folder: Path) -> None:
        data = self.data(folder)
        data["models"][0]["from_cache"] = None
        assert f"model {MODEL}: from_cache is null" in self.refused(data)
        data["models"][0]["from_cache"] = 1.01
        assert "models.0.from_cache" in self.refused(data)
        data = self.data(folder, kind="imported", planted=None, imported=IMPORT)
        assert "from_cache must be null in a run of kind imported" in self.refused(data)

    @pytest.mark.parametrize("change", [{"matched_by": "luck"}, {"not_done": ["judging"]}])
    def test_closed_lists_of_an_import(self, folder: Path, change: dict[str, Any]) -> None:
        assert next(iter(change)) in self.refused(self.data(folder, kind="imported", imported=IMPORT | change))

    def test_an_address_among_the_parameters_is_refused(self, folder: Path) -> None:
        data = self.data(folder)
        data["models"][0]["params"]["base_url"] = "http://10.0.0.7:8000/v1"
        assert "params hold base_url" in self.refused(data)

    @pytest.mark.parametrize(
        ("before", "fault"), [(MODEL, "names the model itself"), ("Vendor/One", "use vendor/name"), ("one", "vendor/")]
    )
    def test_a_successor_follows_another_model(self, folder: Path, before: str, fault: str) -> None:
        data = self.data(folder)
        data["models"][0]["successor_of"] = before
        assert f"model {MODEL}: successor_of: " in self.refused(data)
        assert fault in self.refused(data)


class TestOutcomes:
    @pytest.mark.parametrize("changes", [filtered_row(), filtered_row("refusal"), failed_row("cut"), cut_row()])
    def test_every_outcome_loads(self, folder: Path, changes: dict[str, Any]) -> None:
        change(folder, **changes)
        assert read_shard(load_run(folder), MODEL)["outcome"][0].as_py() == changes["outcome"]

    @pytest.mark.parametrize(
        ("row", "broken", "column"),
        [
            ({}, {"outcome": "lost"}, "outcome"),
            ({}, {"failure": "transport"}, "failure"),
            ({}, {"filter_word": "refusal"}, "filter_word"),
            ({}, {"votes": []}, "votes"),
            ({}, {"response": None, "finish_reason": None, "mask_spans": []}, "response"),
            (failed_row(), {"failure": None}, "failure"),
            (failed_row(), {"failure": "HTTP status 500: the vendor's words"}, "failure"),
            (failed_row(), {"response": "Yes.", "finish_reason": "stop"}, "response"),
            (failed_row(), {"status": "refused", "final_label": "REFUSAL"}, "status"),
            (filtered_row(), {"filter_word": None}, "filter_word"),
            (filtered_row(), {"filter_word": "x" * 81}, "filter_word"),
            (filtered_row(), {"filter_word": "policy\x1b[2J"}, "filter_word"),
            (filtered_row(), {"filter_word": ""}, "filter_word"),
            (filtered_row(), {"final_label": None}, "final_label"),
            (filtered_row(), {"status": "error", "final_label": None}, "status"),
            (filtered_row(), {"response": None, "finish_reason": None}, "response"),
            (cut_row(), {"status": "refused", "final_label": "REFUSAL"}, "status"),
            (cut_row(), {"failure": "cut"}, "failure"),
            (cut_row(), {"response": None, "finish_reason": None}, "response"),
        ],
    )
    def test_what_contradicts_the_outcome_is_named(
        self, folder: Path, row: dict[str, Any], broken: dict[str, Any], column: str
    ) -> None:
        change(folder, **{**row, **broken})
        assert f"row 1 ({row_id(folder)}), column {column}: " in faults(folder)

    @pytest.mark.parametrize("row", [failed_row(), filtered_row(), cut_row()])
    def test_nobody_votes_where_there_is_nothing_to_judge(self, folder: Path, row: dict[str, Any]) -> None:
        votes = pq.read_table(folder / "receipts/sim-alpha__one.parquet")["votes"][0].as_py()
        change(folder, **{**row, "votes": votes})
        assert "it has no votes" in faults(folder)

    def test_negative_reasoning_tokens(self, folder: Path) -> None:
        change(folder, reasoning_tokens=-1)
        assert "column reasoning_tokens: saw -1, allowed from 0" in faults(folder)

    def test_the_codes_of_filtered_and_cut_votes_are_known(self) -> None:
        assert {"filtered", "cut"} <= set(VOTE_ERRORS)


def row_id(folder: Path) -> str:
    return str(pq.read_table(folder / "receipts/sim-alpha__one.parquet")["receipt_id"][0].as_py())


class TestVotes:
    @pytest.mark.parametrize("text", ["fence", "fence;thought", "thought;number_form", "stop_token;tool_call"])
    def test_what_was_taken_off_a_reply(self, folder: Path, text: str) -> None:
        change_vote(folder, unwrapped=text, evidence_cut=True)
        vote = read_shard(load_run(folder), MODEL)["votes"][0].as_py()[0]
        assert (vote["unwrapped"], vote["evidence_cut"]) == (text, True)

    @pytest.mark.parametrize("text", ["", "fences", "thought;fence", "fence;fence", "fence; thought", "fence;"])
    def test_a_list_that_is_not_the_closed_one(self, folder: Path, text: str) -> None:
        change_vote(folder, unwrapped=text)
        assert f"column votes: unwrapped ['{text}', 'None']" in faults(folder)

    def test_whether_evidence_was_cut_is_said_of_valid_votes_and_no_other(self, folder: Path) -> None:
        change_vote(folder, evidence_cut=None)
        assert "column votes: evidence_cut [None, False]" in faults(folder)


class TestImported:
    @pytest.fixture
    def imported(self, tmp_path: Path) -> Path:
        return as_imported(make_run(tmp_path / "imported-run", bank=BANK, models=("alpha/one",), repeats=1))

    def test_it_may_lack_the_texts_the_mask_and_the_keys(self, tmp_path: Path) -> None:
        folder = make_run(tmp_path / "imported-run", bank=BANK, models=("alpha/one",), repeats=1)
        run = load_run(as_imported(folder, lacking=lambda _: NOT_IMPORTED))
        assert run.absent == {"alpha/one": 0}
        table = read_shard(run, "alpha/one")
        assert all(table[name].null_count == table.num_rows for name in NOT_IMPORTED)

    def test_its_rows_are_scored_as_answers_and_what_is_not_known_has_no_rate(self, tmp_path: Path) -> None:
        folder = make_run(tmp_path / "imported-run", bank=BANK, models=("alpha/one",), repeats=1)
        whole = score_run(load_run(as_imported(folder)), resamples=20).tables["scores"]
        run = load_run(as_imported(folder, lacking=lambda _: NOT_IMPORTED))
        scores = score_run(run, resamples=20).tables["scores"]
        unknown = ("mask_leakage", "truncated_rate")
        told, found = ([r for r in table.to_pylist() if r["metric"] not in unknown] for table in (whole, scores))
        assert found == told
        rates = [row for row in scores.to_pylist() if row["metric"] in unknown and row["attribute"] == "age"]
        assert [(row["estimate"], row["n_rows"]) for row in rates] == [(None, 0), (None, 0)]

    @pytest.mark.parametrize("judges", [("judge-a/x",), ("judge-a/x", "judge-b/x"), ("alpha/judge", "alpha/second")])
    def test_its_judges_are_those_of_the_source(self, tmp_path: Path, judges: tuple[str, ...]) -> None:
        folder = make_run(tmp_path / "imported-run", bank=BANK, models=("alpha/one",), repeats=1)
        run = load_run(as_imported(folder, judges=judges))
        assert run.manifest.model("alpha/one").panel.all == judges
        found = score_run(run, resamples=20).tables
        assert [row["judge"] for row in found["judges"].to_pylist()] == sorted(judges)
        pairs = {row["n_pairs"] > 0 for row in found["agreement"].to_pylist()}
        assert pairs == {len(judges) == 2}

    def test_the_only_judge_decides_and_its_error_is_one_of_the_row(self, tmp_path: Path) -> None:
        folder = as_imported(
            make_run(tmp_path / "imported-run", bank=BANK, models=("alpha/one",), repeats=1), judges=("judge-a/x",)
        )
        rows = pq.read_table(folder / "receipts/alpha__one.parquet").to_pylist()
        label = rows[0]["final_label"]
        rows[0] |= {"final_label": None, "value": None, "status": "error"}
        rewrite(folder, pa.Table.from_pylist(rows, schema=RECEIPT_SCHEMA))
        assert f"column final_label: saw None; the votes give {label}" in faults(folder)
        silent = dict.fromkeys(("label", "score", "refusal", "verdict_matches_prose", "evidence", "evidence_cut"))
        rows[0]["votes"][0] |= {**silent, "error": "not_json"}
        rewrite(folder, pa.Table.from_pylist(rows, schema=RECEIPT_SCHEMA))
        assert load_run(folder).manifest.counts.error == 1

    def test_a_second_vote_needs_a_second_judge(self, tmp_path: Path) -> None:
        folder = as_imported(
            make_run(tmp_path / "imported-run", bank=BANK, models=("alpha/one",), repeats=1), judges=("judge-a/x",)
        )
        rows = pq.read_table(folder / "receipts/alpha__one.parquet").to_pylist()
        rows[0]["votes"] *= 2
        rewrite(folder, pa.Table.from_pylist(rows, schema=RECEIPT_SCHEMA))
        assert "the panel in order is judge-a/x (primary)" in faults(folder)

    @pytest.mark.parametrize("column", ["prompt", "group_np", "mask_spans", "mask_leak", "swap_start"])
    def test_no_other_run_may(self, folder: Path, column: str) -> None:
        change(folder, **{column: None})
        assert f"column {column}: null; every row of a run that is not imported needs a value" in faults(folder)

    def test_a_prompt_of_another_wording_is_right_where_only_the_topic_matches(self, imported: Path) -> None:
        rows = pq.read_table(imported / "receipts/alpha__one.parquet").to_pylist()
        text = "What of them?"
        rows[0] |= {"prompt": text, "prompt_sha256": sha256_hex(text), "swap_start": None, "swap_end": None}
        rewrite(imported, pa.Table.from_pylist(rows, schema=RECEIPT_SCHEMA))
        assert "column prompt: saw 'What of them?'" in faults(imported)
        manifest = manifest_of(imported)
        manifest["imported"]["matched_by"] = "topic"
        write_manifest(imported, manifest)
        assert load_run(imported).manifest.imported is not None
        rows[0]["prompt_sha256"] = "0" * 64
        rewrite(imported, pa.Table.from_pylist(rows, schema=RECEIPT_SCHEMA))
        assert "column prompt_sha256: saw '0000" in faults(imported)
