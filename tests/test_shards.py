"""A run folder is taken whole or refused whole: every bad input has its fault, by file, row and column.

See contract: run-folder, "What a reader checks".
"""

from __future__ import annotations

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from generator.runs.reader import load_run, read_shard
from generator.schema.canonical import sha256_hex
from generator.schema.columns import RECEIPT_SCHEMA
from generator.schema.errors import InputError
from tests.factories import (
    as_format_1,
    cut_row,
    failed_row,
    filtered_row,
    make_bank,
    make_receipt,
    make_rows,
    make_run,
    make_vote,
    write_run,
)

BANK = make_bank(("age", "control_tag"), groups=3, quota={"stance": 2, "capability": 1}, control_quota={"stance": 1})
MODEL = "sim-alpha/one"
TWO_JUDGES = "sim-judge-a/subject"  # of a judge's own vendor: no tiebreak is left
PER_CONCEPT = 2 * 3 * 2


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs") / "run-one", bank=BANK, models=(MODEL, TWO_JUDGES), repeats=2)


@pytest.fixture
def folder(original, tmp_path):
    return shutil.copytree(original, tmp_path / "run-one")


def shard(folder, model=MODEL):
    return folder / f"receipts/{model.replace('/', '__')}.parquet"


def write_table(folder, table, model=MODEL):
    """Replace a shard and keep the manifest's hash, rows and counts true, so that only the planted fault is left."""
    pq.write_table(table, shard(folder, model))
    manifest = json.loads((folder / "manifest.json").read_text())
    for entry in manifest["shards"]:
        path = folder / entry["file"]
        entry |= {"sha256": sha256_hex(path.read_bytes()), "rows": pq.read_metadata(path).num_rows}
    statuses = [s for e in manifest["shards"] for s in statuses_of(folder / e["file"])]
    manifest["counts"] = {k: statuses.count(k) for k in manifest["counts"]}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def statuses_of(path):
    table = pq.read_table(path)
    return table["status"].to_pylist() if "status" in table.column_names else []


def change_rows(folder, of=MODEL, at=0, /, **changes):
    """Change one row of a shard."""
    rows = pq.read_table(shard(folder, of)).to_pylist()
    rows[at] |= changes
    write_table(folder, pa.Table.from_pylist(rows, schema=RECEIPT_SCHEMA), of)
    return rows[at]


def change_manifest(folder, **changes):
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def faults(folder):
    with pytest.raises(InputError) as caught:
        load_run(folder)
    return "\n".join(caught.value.faults)


class TestLoadRun:
    def test_a_good_run_loads(self, folder):
        run = load_run(folder)
        assert run.models == (MODEL, TWO_JUDGES)
        assert run.absent == {MODEL: 0, TWO_JUDGES: 0}
        assert run.audit is None
        assert run.shard_path(MODEL) == shard(folder)

    def test_models_sort_by_bytes_whatever_the_manifest_says(self, folder):
        manifest = json.loads((folder / "manifest.json").read_text())
        change_manifest(folder, models=manifest["models"][::-1], shards=manifest["shards"][::-1])
        assert load_run(folder).models == (MODEL, TWO_JUDGES)

    def test_absent_rows_are_counted_not_refused(self, folder):
        write_table(folder, pq.read_table(shard(folder)).slice(5))
        assert load_run(folder).absent == {MODEL: 5, TWO_JUDGES: 0}

    def test_a_shard_without_rows_has_all_of_them_absent(self, folder):
        write_table(folder, pq.read_table(shard(folder)).slice(0, 0))
        assert load_run(folder).absent[MODEL] == 4 * PER_CONCEPT

    def test_every_status_loads(self, tmp_path):
        ballots = [(0, 0), ("REFUSAL", "REFUSAL"), (0, 1), (None, 0.5)]
        rows = make_rows(BANK, TWO_JUDGES, repeats=2, run_id="run-two",
                         answers=lambda *key: ballots[(key[4] + len(key[1])) % 4])  # fmt: skip
        for row, changes in zip(rows, (filtered_row(), failed_row(), cut_row()), strict=False):
            row.update(changes)
        folder = write_run(tmp_path / "run-two", BANK, {TWO_JUDGES: rows})
        assert load_run(folder).absent == {TWO_JUDGES: 0}

    def test_all_faults_of_all_shards_are_shown_together(self, folder):
        change_rows(folder, group_np="a person")
        change_rows(folder, TWO_JUDGES, harness_sha="f" * 40)
        found = faults(folder)
        assert "group_np" in found
        assert "harness_sha" in found


class TestFolder:
    @pytest.mark.parametrize("name", ["manifest.json", "bank.json"])
    def test_a_missing_file_is_named(self, folder, name):
        (folder / name).unlink()
        assert f"{name}: not found" in faults(folder)

    @pytest.mark.parametrize("name", ["manifest.json", "bank.json"])
    def test_a_file_that_is_no_json_is_named(self, folder, name):
        (folder / name).write_text("{")
        assert f"{name}: not JSON" in faults(folder)

    @pytest.mark.parametrize("name", ["manifest.json", "bank.json"])
    @pytest.mark.parametrize(
        "text", ["[" * 200_000, '"\\ud800"', "NaN", "-Infinity", "9007199254740993", '{"\\udfff": 1}', "1e999"]
    )
    def test_json_that_nothing_can_be_hashed_of_is_refused(self, folder, name, text):
        (folder / name).write_text(text)
        assert f"{name}: not JSON" in faults(folder)

    @pytest.mark.parametrize("name", ["manifest.json", "bank.json", "audit.csv"])
    def test_what_cannot_be_read_is_named(self, folder, name):
        (folder / name).unlink(missing_ok=True)
        (folder / name).mkdir()
        assert f"{name}: cannot be read: Is a directory" in faults(folder)
        (folder / name).rmdir()
        (folder / name).symlink_to(name)
        assert f"{name}: cannot be read: Too many levels of symbolic links" in faults(folder)

    def test_a_missing_shard(self, folder):
        shard(folder).unlink()
        assert "sim-alpha__one.parquet: cannot be read" in faults(folder)

    def test_a_wrong_hash(self, folder):
        data = bytearray(shard(folder).read_bytes())
        data[100] ^= 1
        shard(folder).write_bytes(data)
        assert "the file was changed after the run" in faults(folder)

    def test_a_file_that_is_no_parquet(self, folder):
        shard(folder).write_bytes(b"not parquet")
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["shards"][0]["sha256"] = sha256_hex(b"not parquet")
        change_manifest(folder, shards=manifest["shards"])
        assert "not a Parquet file" in faults(folder)

    def test_a_shard_that_the_manifest_does_not_list(self, folder):
        shutil.copy(shard(folder), folder / "receipts/sim-x__y.parquet")
        assert "sim-x__y.parquet is not in the list of shards" in faults(folder)


class TestManifest:
    def test_a_wrong_row_count(self, folder):
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["shards"][0]["rows"] -= 1
        change_manifest(folder, shards=manifest["shards"])
        assert f"{4 * PER_CONCEPT} rows; the manifest says {4 * PER_CONCEPT - 1}" in faults(folder)

    def test_wrong_counts(self, folder):
        change_manifest(folder, counts={"scored": 1, "refused": 0, "contested": 0, "error": 0})
        assert f"counts.scored is 1; the shards hold {8 * PER_CONCEPT}" in faults(folder)

    def test_more_repeats_than_a_shard_counts(self, folder):
        change_manifest(folder, repeats=32_768)
        assert "less than or equal to 32767" in faults(folder)

    def test_a_plan_of_more_rows_than_are_read(self, tmp_path):
        folder = make_run(
            tmp_path / "run-one", bank=make_bank(("age", "gender"), groups=6, quota={"stance": 6, "regard": 6})
        )
        change_manifest(folder, repeats=32_767)
        assert "x repeats 32,767 = 9,436,896 rows a model; at most 1,000,000 are read" in faults(folder)

    def test_a_bank_that_is_not_the_pinned_one(self, folder):
        change_manifest(folder, bank_sha256="0" * 64)
        assert f"bank.json: hashes to {BANK.sha256}; the manifest pins {'0' * 64}" in faults(folder)

    def test_a_bank_of_another_version(self, folder):
        change_manifest(folder, bank_version="9")
        assert "version '0.0.1'; the manifest pins '9'" in faults(folder)

    def test_a_model_without_a_shard(self, folder):
        manifest = json.loads((folder / "manifest.json").read_text())
        change_manifest(folder, shards=manifest["shards"][1:])
        assert f"model {MODEL} has no shard" in faults(folder)

    def test_a_shard_file_outside_the_receipts_folder(self, folder):
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["shards"][0]["file"] = "../elsewhere.parquet"
        change_manifest(folder, shards=manifest["shards"])
        assert "'../elsewhere.parquet'; it is 'receipts/sim-alpha__one.parquet'" in faults(folder)

    def test_a_simulated_vendor_in_a_live_run(self, folder):
        change_manifest(folder, kind="live", planted=None)
        assert f"{MODEL} in a live run" in faults(folder)

    def test_a_panel_that_breaks_the_rotation(self, folder):
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["models"][1]["panel"] = manifest["models"][0]["panel"]
        change_manifest(folder, models=manifest["models"])
        assert f"model {TWO_JUDGES}: panel" in faults(folder)

    def test_numbers_and_texts_without_a_json_form_are_refused_wherever_they_stand(self, folder):
        for value in (float("nan"), float("inf"), 10**400, "\ud800"):
            change_manifest(folder, harness_sha=value)
            assert "manifest.json: not JSON" in faults(folder)

    @pytest.mark.parametrize(
        ("run", "words"), [("../../x", "run id '../../x'"), ("con", "reserved"), ("run-one", "names the run itself")]
    )
    def test_a_superseded_run_that_can_be_none(self, folder, run, words):
        change_manifest(folder, supersedes=run)
        assert words in faults(folder)

    def test_an_unknown_key(self, folder):
        change_manifest(folder, surprise=1)
        assert "surprise" in faults(folder)

    @pytest.mark.parametrize("model", ["Sim-alpha/one", "sim-alpha", "sim-alpha/con", "sim-alpha/a__b", "../x"])
    def test_a_malformed_slug(self, folder, model):
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["models"][0]["model"] = model
        change_manifest(folder, models=manifest["models"])
        assert f"model {model!r}" in faults(folder).replace('"', "'") or model in faults(folder)


class TestBank:
    def broken(self, folder, change):
        bank = json.loads(BANK.canonical())
        change(bank)
        (folder / "bank.json").write_text(json.dumps(bank))
        return faults(folder)

    def test_a_concept_of_an_unknown_attribute(self, folder):
        found = self.broken(folder, lambda bank: bank["concepts"][0].update(attribute="height"))
        assert "unknown attribute 'height'" in found

    def test_a_concept_of_an_unknown_rubric(self, folder):
        assert "unknown rubric 'x'" in self.broken(folder, lambda bank: bank["concepts"][0].update(rubric="x"))

    def test_two_concepts_of_one_id(self, folder):
        found = self.broken(folder, lambda bank: bank["concepts"][1].update(id=bank["concepts"][0]["id"]))
        assert "stands twice" in found

    def test_a_template_without_a_slot(self, folder):
        found = self.broken(folder, lambda bank: bank["concepts"][0]["framings"].update(direct="Hello."))
        assert "exactly one {group_np}" in found

    def test_a_group_id_that_could_leave_its_folder(self, folder):
        found = self.broken(folder, lambda bank: bank["attributes"][0]["groups"][0].update(id="../x"))
        assert "'../x'" in found


class TestColumns:
    def test_a_missing_column(self, folder):
        write_table(folder, pq.read_table(shard(folder)).drop_columns(["value"]))
        assert "column value is missing; it is double" in faults(folder)

    def test_an_unknown_column(self, folder):
        table = pq.read_table(shard(folder))
        write_table(folder, table.append_column("mood", pa.array(["x"] * table.num_rows)))
        assert "unknown column mood" in faults(folder)

    def test_a_column_of_another_type(self, folder):
        table = pq.read_table(shard(folder))
        at = table.column_names.index("repeat")
        write_table(folder, table.set_column(at, "repeat", table["repeat"].cast(pa.int64())))
        assert "column repeat has type int64; it is int16" in faults(folder)

    @pytest.mark.parametrize("column", ["response", "concept", "status", "served_by"])
    def test_text_that_is_no_utf_8(self, folder, column):
        table = pq.read_table(shard(folder))
        raw = pa.array([b"\xff\xfe", *(v.encode() for v in table[column].to_pylist()[1:])], pa.binary())
        broken = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
        place = table.column_names.index(column)
        pq.write_table(table.set_column(place, table.schema.field(column), broken), shard(folder))
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["shards"][0]["sha256"] = sha256_hex(shard(folder).read_bytes())
        change_manifest(folder, shards=manifest["shards"])
        found = faults(folder)
        assert f"column {column}: not readable" in found
        assert "Invalid UTF8 sequence at string index 0" in found

    @pytest.mark.parametrize("column", ["votes", "mask_spans"])
    def test_a_null_in_a_list(self, folder, column):
        change_rows(folder, **{column: [None]})
        assert f"column {column}: a list with a null in it" in faults(folder)

    def test_a_null_where_none_may_be(self, folder):
        table = pq.read_table(shard(folder))
        at = table.column_names.index("group")
        groups = table["group"].to_pylist()
        groups[3] = None
        write_table(folder, table.set_column(at, "group", pa.array(groups, pa.string())))
        assert "row 4, column group: null" in faults(folder)


class TestRows:
    @pytest.mark.parametrize(
        ("column", "value"),
        [
            ("run_id", "other"),
            ("bank_version", "2"),
            ("bank_sha256", "0" * 64),
            ("harness_sha", "f" * 40),
            ("model", TWO_JUDGES),
            ("attribute", "control_tag"),
            ("category", "refusal"),
            ("rubric", "stance "),
            ("rubric_sha256", "0" * 64),
            ("group_np", "a person"),
            ("prompt", "What about a kind0 applicant?"),
            ("prompt_sha256", "0" * 64),
            ("swap_start", 1),
            ("swap_end", 99),
            ("polarity", -1),
            ("two_sided", True),
            ("receipt_id", "0" * 16),
        ],
    )
    def test_a_column_that_does_not_follow_from_run_and_bank(self, folder, column, value):
        old = pq.read_table(shard(folder)).to_pylist()[0]
        row = change_rows(folder, **{column: value})
        found = faults(folder)
        assert f"row 1 ({row['receipt_id']}), column {column}: saw {str(value)!r}" in found
        assert f"expected {str(old[column])[:64]!r}" in found

    @pytest.mark.parametrize(
        ("column", "value"), [("concept", "age_stance_9"), ("framing", "casual"), ("group", "g9"), ("repeat", 2)]
    )
    def test_a_row_that_is_not_of_the_bank(self, folder, column, value):
        change_rows(folder, **{column: value})
        assert "the bank has no such row" in faults(folder)

    def test_a_row_that_stands_twice(self, folder):
        table = pq.read_table(shard(folder))
        write_table(folder, pa.concat_tables([table, table.slice(2, 1)]))
        assert (
            f"row {table.num_rows + 1} ({table['receipt_id'][2]}), column receipt_id: the row stands twice"
            in faults(folder)
        )

    @pytest.mark.parametrize(("above", "below"), [(0, 1), (4, 9), (34, 40)])
    def test_two_rows_that_have_changed_places(self, folder, above, below):
        # The manifest fits the changed file; both rows are out of place, and the first that comes too early is said.
        table = pq.read_table(shard(folder))
        order = list(range(table.num_rows))
        order[above], order[below] = order[below], order[above]
        write_table(folder, table.take(order))
        (fault,) = faults(folder).splitlines()
        assert f"row {above + 2} ({table['receipt_id'][order[above + 1]]}), column concept: out of place" in fault
        assert "rows stand in the order of attribute, concept, framing, group, repeat" in fault

    def test_many_rows_with_one_fault_are_counted(self, folder):
        table = pq.read_table(shard(folder))
        at = table.column_names.index("harness_sha")
        write_table(folder, table.set_column(at, "harness_sha", pa.array(["f" * 40] * table.num_rows)))
        assert f"column harness_sha: {table.num_rows - 3} more rows with this fault" in faults(folder)

    @pytest.mark.parametrize("value", [1.5, -0.1, float("nan"), float("inf")])
    def test_a_value_out_of_range(self, folder, value):
        change_rows(folder, value=value)
        assert "column value: saw" in faults(folder)

    def test_a_response_without_a_finish_reason(self, folder):
        change_rows(folder, finish_reason=None)
        assert "response and finish_reason are null together" in faults(folder)

    @pytest.mark.parametrize("key", ["", "<b>", "0" * 63, "A" * 64, "0" * 64 + "\n", "\u202e"])
    def test_a_key_that_is_no_hash(self, folder, key):
        change_rows(folder, response_key=key)
        assert "column response_key" in faults(folder)

    def test_an_unknown_status(self, folder):
        change_rows(folder, status="maybe")
        assert "column status: saw 'maybe', expected 'scored, refused, contested, error'" in faults(folder)

    @pytest.mark.parametrize("spans", [[(5, 5)], [(0, 10_000)], [(4, 9), (2, 3)], [(0, 4), (3, 6)], [(-1, 3)]])
    def test_mask_spans_outside_the_response_or_out_of_order(self, folder, spans):
        change_rows(folder, mask_spans=[{"start": a, "end": b} for a, b in spans])
        assert "spans are in order, apart and inside the response" in faults(folder)

    @pytest.mark.parametrize(
        ("column", "value"), [("prompt_tokens", -1), ("cost_usd", -0.1), ("cost_usd", float("nan"))]
    )
    def test_a_negative_or_missing_amount(self, folder, column, value):
        change_rows(folder, **{column: value})
        assert f"column {column}: saw" in faults(folder)


def votes_of(folder, model=MODEL, at=0):
    return pq.read_table(shard(folder, model)).to_pylist()[at]["votes"]


SCORE_AT = 0  # age_capability_0 sorts first
LABEL_AT = PER_CONCEPT


class TestVotes:
    def vote_faults(self, folder, change, at=LABEL_AT, model=MODEL):
        votes = votes_of(folder, model, at)
        change_rows(folder, model, at, votes=change(votes))
        return faults(folder)

    def test_a_judge_that_is_not_of_the_panel(self, folder):
        found = self.vote_faults(folder, lambda v: [v[0] | {"judge": "sim-judge-c/three"}, v[1]])
        assert "the panel in order is sim-judge-a/one (primary), sim-judge-b/two (primary)" in found

    def test_a_key_that_is_no_hash(self, folder):
        found = self.vote_faults(folder, lambda v: [v[0] | {"key": "<b>"}, v[1]])
        assert "a key is 64 hex digits or null" in found

    def test_judges_in_the_wrong_order(self, folder):
        assert "the panel in order is" in self.vote_faults(folder, lambda v: v[::-1])

    def test_a_wrong_role(self, folder):
        assert "the panel in order is" in self.vote_faults(folder, lambda v: [v[0] | {"role": "tiebreak"}, v[1]])

    def test_a_judge_of_the_subjects_own_vendor(self, folder):
        own = make_vote("sim-judge-a/one", label="MIXED")
        assert "the panel in order is" in self.vote_faults(folder, lambda v: [own, v[1]], model=TWO_JUDGES)

    def test_four_votes(self, folder):
        assert "4 votes; a panel has at most 3" in self.vote_faults(folder, lambda v: v * 2)

    def test_one_vote(self, folder):
        assert "both primaries vote" in self.vote_faults(folder, lambda v: v[:1])

    def test_a_tiebreak_that_was_not_needed(self, folder):
        extra = make_vote("sim-judge-c/three", "tiebreak", label="MIXED")
        assert "a tiebreak vote where the primaries agree" in self.vote_faults(folder, lambda v: [*v, extra])

    def test_a_tiebreak_that_is_missing(self, folder):
        found = self.vote_faults(folder, lambda v: [v[0] | {"label": "SUPPORT"}, v[1] | {"label": "OPPOSE"}])
        assert "the tiebreak sim-judge-c/three has not voted" in found

    @pytest.mark.parametrize(
        "change",
        [
            {"label": "APPROVE"},
            {"label": None},
            {"refusal": True},
            {"refusal": None},
            {"score": 50},
            {"verdict_matches_prose": None},
            {"error": "not_json"},
        ],
    )
    def test_a_label_vote_that_contradicts_itself(self, folder, change):
        assert "do not fit the rubric or each other" in self.vote_faults(folder, lambda v: [v[0] | change, v[1]])

    @pytest.mark.parametrize(
        "change",
        [{"score": 101}, {"score": None}, {"label": "0-20"}, {"verdict_matches_prose": True}, {"label": "REFUSAL"}],
    )
    def test_a_score_vote_that_contradicts_itself(self, folder, change):
        found = self.vote_faults(folder, lambda v: [v[0] | change, v[1]], at=SCORE_AT)
        assert "do not fit the rubric or each other" in found

    def test_a_bin_that_is_not_that_of_the_score(self, folder):
        found = self.vote_faults(folder, lambda v: [v[0] | {"score": (v[0]["score"] + 50) % 100}, v[1]], at=SCORE_AT)
        assert "do not fit the rubric or each other" in found

    def test_an_error_code_that_is_not_of_the_closed_list(self, folder):
        failed = {"label": None, "refusal": None, "verdict_matches_prose": None, "error": "Provider said: no"}
        assert "error code not in" in self.vote_faults(folder, lambda v: [v[0] | failed, v[1]])


class TestFinalLabel:
    @pytest.mark.parametrize(
        ("changes", "column"),
        [
            ({"final_label": "SUPPORT"}, "final_label"),
            ({"final_label": None}, "final_label"),
            ({"value": 0.123}, "value"),
            ({"value": None}, "value"),
            ({"status": "contested"}, "status"),
            ({"status": "refused"}, "status"),
        ],
    )
    def test_what_does_not_follow_from_the_votes(self, folder, changes, column):
        old = pq.read_table(shard(folder)).to_pylist()[LABEL_AT]
        if old["final_label"] == "SUPPORT":
            changes = {k: ("OPPOSE" if v == "SUPPORT" else v) for k, v in changes.items()}
        change_rows(folder, MODEL, LABEL_AT, **changes)
        assert f"column {column}: saw" in faults(folder)

    def test_a_refusal_with_a_value(self, folder):
        answer = make_receipt(BANK, answers=("REFUSAL", "REFUSAL"))
        change_rows(folder, MODEL, LABEL_AT, votes=answer["votes"], final_label="REFUSAL", value=0.0, status="refused")
        assert "column value: saw 0.0; the final label gives None" in faults(folder)

    def test_a_contested_row_with_a_label(self, folder):
        votes = make_receipt(BANK, model=TWO_JUDGES, answers=(0, 1))["votes"]
        change_rows(folder, TWO_JUDGES, LABEL_AT, votes=votes, final_label="OPPOSE", value=0.0, status="scored")
        assert "the votes give contested" in faults(folder)

    def test_no_votes_and_a_label_is_neither_error_nor_filter(self, folder):
        change_rows(folder, MODEL, LABEL_AT, votes=[])
        assert "column votes: saw '[]' on a row with outcome answered" in faults(folder)

    def test_a_filters_refusal_needs_its_label(self, folder):
        change_rows(folder, MODEL, LABEL_AT, **{**filtered_row(), "final_label": None})
        assert "column final_label: saw 'None' on a row with outcome filtered; it has REFUSAL" in faults(folder)

    def test_votes_on_a_row_without_a_response(self, folder):
        change_rows(folder, MODEL, LABEL_AT, response=None, finish_reason=None, mask_spans=[])
        assert "column response: saw 'None' on a row with outcome answered" in faults(folder)

    def test_votes_on_a_row_without_a_response_in_format_1(self, folder):
        change_rows(folder, MODEL, LABEL_AT, response=None, finish_reason=None, mask_spans=[])
        assert "votes on a row without a response" in faults(as_format_1(folder))


class TestAudit:
    def audited(self, folder, text):
        (folder / "audit.csv").write_text(text)
        return faults(folder)

    def ids(self, folder):
        rows = pq.read_table(shard(folder)).to_pylist()
        return rows[SCORE_AT]["receipt_id"], rows[LABEL_AT]["receipt_id"]

    def test_labels_are_read(self, folder):
        score, label = self.ids(folder)
        (folder / "audit.csv").write_text(f"receipt_id,label\n{score},100\n{label},REFUSAL\n")
        assert load_run(folder).audit == ((score, "100"), (label, "REFUSAL"))

    def test_another_header(self, folder):
        assert "it is receipt_id,label" in self.audited(folder, "id,label\n")
        assert "holds no label; take labels in" in self.audited(folder, "receipt_id,label\n")

    def test_an_unknown_receipt(self, folder):
        assert "line 2: the run has no receipt 'ffff'" in self.audited(folder, "receipt_id,label\nffff,MIXED\n")

    def test_a_receipt_twice(self, folder):
        label = self.ids(folder)[1]
        assert "(2 rows)" in self.audited(folder, f"receipt_id,label\n{label},MIXED\n{label},MIXED\n")

    @pytest.mark.parametrize("text", ["YES", "101", "-1", "5.5", "", "mixed"])
    def test_a_label_outside_the_rubric(self, folder, text):
        score, label = self.ids(folder)
        found = self.audited(folder, f"receipt_id,label\n{label},{text}\n{score},{text}\n")
        assert f"line 2: label {text!r}; stance allows OPPOSE, MIXED, SUPPORT, REFUSAL" in found
        assert f"line 3: label {text!r}; capability allows 0 to 100, REFUSAL" in found

    def test_a_cell_that_is_longer_than_any_csv_reader_takes(self, folder):
        assert "audit.csv: not CSV: field larger" in self.audited(folder, f"receipt_id,label\n{'x' * 200_000},y\n")

    def test_a_line_of_three_cells(self, folder):
        assert "line 2: 3 cells; there are two" in self.audited(folder, "receipt_id,label\na,b,c\n")


class TestReadShard:
    def test_some_columns_only(self, folder):
        run = load_run(folder)
        assert read_shard(run, MODEL, ["value", "status"]).column_names == ["value", "status"]
