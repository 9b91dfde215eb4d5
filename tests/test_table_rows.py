"""What the data dictionary says of the rows of every table: which there are, and in which order.

Every set of rows is made again in plain loops over bank and receipts, by the words of that page.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product

import pytest

from generator.runs.reader import load_run, read_shard
from generator.schema.audit_draw import auditable, draw, stratum_name
from generator.schema.bank import load_bank
from generator.schema.columns import RECEIPT_COLUMNS
from generator.schema.table_rows import TABLE_ROWS
from generator.schema.tables import TABLES
from generator.scoring.run import score_run
from tests.editions import mixed
from tests.factories import make_bank, make_rows, write_run
from tests.names_of_bank_1 import CONTROLS, DEMOGRAPHIC

MODELS = ("sim-alpha/one", "sim-alpha/zwei", "sim-beta/two", "sim-gamma/four", "sim-judge-a/three")
VENDORS = ("*", "sim-alpha", "sim-beta", "sim-gamma", "sim-judge-a")
UNRANKED, NOT_ASKED = "sim-beta/two", "sim-alpha/zwei"
QUOTA = {"stance": 2, "allocation": 1, "refusal": 1, "regard": 1, "capability": 1}
WITHHELD = "stance"
TWO_SIDED = ("age_stance_0", "age_capability_0", "control_tag_stance_0")
FRAMINGS = ("direct", "professional")


def answers(model, concept, framing, group, repeat):
    """Mixed rows; one model refuses an attribute, and never has two valid votes on the rubric refusal."""
    if model == UNRANKED and "_refusal_" in concept:
        return (None, 0.5)
    if model == UNRANKED and concept.startswith("religion"):
        return ("REFUSAL", "REFUSAL")
    return mixed(model, concept, framing, group, repeat)


def audit_of(run):
    """The lines of an audit that agrees with every label."""
    rows = [row for m in run.models for row in read_shard(run, m).to_pylist()]
    labels, strata = {}, {}
    for row in rows:
        if auditable(row["status"], len(row["votes"])):
            strata.setdefault(stratum_name(row["rubric"], row["final_label"]), []).append(row["receipt_id"])
            score = row["value"] is not None and row["rubric"] == "capability"
            labels[row["receipt_id"]] = str(round(100 * row["value"])) if score else row["final_label"]
    drawn = draw(strata, asked=100, seed=run.manifest.seeds.audit)
    return "receipt_id,label\n" + "".join(f"{i},{labels[i]}\n" for i in sorted(drawn.ids))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    data = make_bank(groups=3, quota=QUOTA, control_quota=QUOTA).model_dump(mode="json")
    for concept in data["concepts"]:
        concept["two_sided"] = concept["id"] in TWO_SIDED or concept["category"] == "regard"
    bank = load_bank(data, "rows")
    shards = {m: make_rows(bank, m, run_id="rows", repeats=2, answers=answers) for m in MODELS}
    shards[NOT_ASKED] = [row for row in shards[NOT_ASKED] if row["attribute"] == "age" and row["group"] != "g1"]
    folder = write_run(tmp_path_factory.mktemp("runs") / "rows", bank, shards)
    (folder / "audit.csv").write_text(audit_of(load_run(folder)))
    return load_run(folder)


@pytest.fixture(scope="module")
def tables(run):
    return score_run(run, resamples=50).tables


@pytest.fixture(scope="module")
def without(run):
    return score_run(run, withheld=frozenset({WITHHELD}), resamples=50).tables


def keys(table, *columns):
    return list(zip(*(table[c].to_pylist() for c in columns), strict=True))


def cells_of(bank):
    """(attribute, concept, framing, group) of every cell of a bank."""
    return [(c.attribute, c.id, f, g.id) for c in bank.concepts for f in FRAMINGS for g in bank.groups_of(c.attribute)]


def test_every_table_has_its_line_and_every_column_of_its_order():
    assert set(TABLE_ROWS) == {*TABLES, "receipts", "bootstrap_weights"}
    for name, item in TABLE_ROWS.items():
        known = {c.name for c in TABLES.get(name, RECEIPT_COLUMNS)}
        assert set(item.order) <= known, name


def place(value, *, null_first):
    """Where a value stands: text by its bytes, numbers by size, null at one end."""
    if value is None:
        return (0 if null_first else 2,)
    return 1, value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize("name", list(TABLES))
def test_every_table_is_sorted_as_the_dictionary_says(name, tables):
    found = keys(tables[name], *TABLE_ROWS[name].order)
    places = [[place(v, null_first=name != "tiers") for v in key] for key in found]
    assert places == sorted(places)
    assert len(set(found)) == len(found) > 1


def test_receipts_are_sorted_and_absent_rows_are_not_there(run):
    rows = keys(read_shard(run, NOT_ASKED), *TABLE_ROWS["receipts"].order)
    planned = [(*cell, k) for cell in cells_of(run.bank) for k in range(2)]
    assert rows == sorted(r for r in planned if r[0] == "age" and r[3] != "g1")
    assert {r[1] for r in rows} & set(TWO_SIDED)


def test_cells_hold_every_cell_of_the_bank_asked_or_not(run, tables):
    found = keys(tables["cells"], "model", "attribute", "concept", "framing", "group")
    assert Counter(found) == Counter((m, *cell) for m in MODELS for cell in cells_of(run.bank))
    rows = [r for r in tables["cells"].to_pylist() if r["model"] == NOT_ASKED]
    counts = [[r[f"n_{status}"] for status in ("scored", "refused", "contested", "error")] for r in rows]
    asked = [r["attribute"] == "age" and r["group"] != "g1" for r in rows]
    assert [sum(found) == 2 * was for found, was in zip(counts, asked, strict=True)] == [True] * len(rows)


def test_disparities_hold_every_concept_and_framing_but_two_sided_ones(run, tables):
    found = keys(tables["disparities"], "model", "attribute", "concept", "framing")
    single = {cell[:3] for cell in cells_of(run.bank) if not run.bank.concept[cell[1]].two_sided}
    assert Counter(found) == Counter((m, *pair) for m in MODELS for pair in single)
    empty = [r for r in tables["disparities"].to_pylist() if r["model"] == NOT_ASKED and r["attribute"] == "gender"]
    assert {(r["n_groups"], r["disparity"]) for r in empty} == {(0, None)}


def test_a_withheld_category_is_in_neither(run, tables, without):
    for name in ("cells", "disparities"):
        left = [k for k in keys(tables[name], "model", "concept") if run.bank.concept[k[1]].category != WITHHELD]
        assert keys(without[name], "model", "concept") == left
    for name in ("agreement", "human_audit", "audit_summary"):
        assert without[name].equals(tables[name])


def test_role_reversal_has_no_row_where_all_two_sided_concepts_are_withheld(run, tables):
    def places(found):
        return {r["attribute"] for r in found["scores"].to_pylist() if r["metric"] == "role_reversal"}

    assert places(tables) == {*DEMOGRAPHIC, *CONTROLS}
    left = score_run(run, withheld=frozenset({"stance", "regard"}), resamples=20).tables
    assert places(left) == {c.rpartition("_capability")[0] for c in TWO_SIDED if "_capability" in c}


def test_agreement_holds_every_rubric_and_vendor_even_without_a_pair(tables):
    found = keys(tables["agreement"], "rubric", "vendor")
    assert Counter(found) == Counter(product(set(QUOTA) - {"regard"}, VENDORS))
    row = next(r for r in tables["agreement"].to_pylist() if (r["rubric"], r["vendor"]) == ("refusal", "sim-beta"))
    assert (row["n_pairs"], row["kappa"]) == (0, None)


def test_tiers_and_comparisons(tables):
    ranked = {*MODELS} - {UNRANKED, NOT_ASKED}
    rows = tables["tiers"].to_pylist()
    assert sorted(r["model"] for r in rows) == list(MODELS)
    assert {r["model"] for r in rows if r["rank"]} == ranked
    lacking = {a: {NOT_ASKED} for a in DEMOGRAPHIC if a != "age"}  # which was asked some of age
    lacking["religion"] |= {UNRANKED}
    valued = {a: {*MODELS} - lacking.get(a, set()) for a in DEMOGRAPHIC}
    wanted = [
        (*pair, a) for a, models in {**valued, "overall": ranked}.items() for pair in combinations(sorted(models), 2)
    ]
    assert keys(tables["comparisons"], "model_a", "model_b", "attribute") == sorted(wanted)


def test_refusal_tests_hold_every_model_and_demographic_attribute(tables, without):
    for found in (tables, without):
        assert keys(found["refusal_tests"], "model", "attribute") == list(product(MODELS, sorted(DEMOGRAPHIC)))
    counted = {(r["model"], r["attribute"]): r["n_concepts"] for r in without["refusal_tests"].to_pylist()}
    assert set(counted.values()) <= {0, 1, 2, 3, 4}  # of six concepts, one of a withheld pair and one two-sided are out


def test_audit_tables(run, tables):
    assert {k for (k,) in keys(tables["human_audit"], "receipt_id")} == {receipt for receipt, _ in run.audit}
    assert [k for (k,) in keys(tables["audit_summary"], "rubric")] == ["*", *sorted(QUOTA)]


def test_without_an_audit_both_are_empty(run, tmp_path):
    bank = make_bank(("age",), groups=2, quota={"stance": 1})
    rows = {MODELS[0]: make_rows(bank, MODELS[0], run_id="plain", repeats=1)}
    scored = score_run(load_run(write_run(tmp_path / "plain", bank, rows)), resamples=20)
    assert (scored.tables["human_audit"].num_rows, scored.tables["audit_summary"].num_rows) == (0, 0)


def test_weights_have_a_column_for_every_concept_but_two_sided_ones(run):
    weights = score_run(run, withheld=frozenset({WITHHELD}), resamples=50).weights
    single = Counter(c.attribute for c in run.bank.concepts if not c.two_sided)
    assert {a: w.shape for a, w in weights.items()} == {a: (50, single[a]) for a in (*DEMOGRAPHIC, *CONTROLS)}
