"""What a run may be published as, by (contract: publication, "Gate"), live and simulated, preview and withheld."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest

from generator.runs.reader import load_run
from generator.schema.columns import arrow_schema
from generator.schema.errors import CheckError
from generator.schema.tables import TABLES
from generator.scoring.gate import standing_of
from generator.scoring.reasons import RubricReason, in_words
from generator.scoring.run import score_run
from tests.factories import make_bank, make_run

BANK = make_bank(("age", "gender"), groups=2, quota={"stance": 2, "allocation": 2})


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    run = load_run(make_run(tmp_path_factory.mktemp("s") / "standing", bank=BANK, models=("sim-alpha/one",)))
    return run, score_run(run, resamples=50)


def changed(table, name, **values):
    """A table with some columns of the rubric `stance` (vendor `*`) replaced."""
    rows = [
        {**row, **values} if row["rubric"] == "stance" and row.get("vendor", "*") == "*" else row
        for row in table.to_pylist()
    ]
    return pa.Table.from_pylist(rows, schema=arrow_schema(TABLES[name]))


def audit_table(scored, **stance):
    """An audit that covers both rubrics well, unless told otherwise for stance."""
    good = {"n": 60, "n_agree": 58, "n_effective": 50.0, "agreement": 0.96, "ci_low": 0.9, "ci_high": 0.99}
    run = {k: scored.tables["scores"][k][0].as_py() for k in ("kind", "bank_version", "bank_sha256", "harness_sha")}
    rows = [{"rubric": r, **good, **(stance if r == "stance" else {}), **run} for r in ("*", "allocation", "stance")]
    return pa.Table.from_pylist(rows, schema=arrow_schema(TABLES["audit_summary"]))


@pytest.fixture
def live(simulated):
    """A live run that passes everything; returns (run, scored)."""
    run, scored = simulated
    manifest = run.manifest.model_copy(update={"kind": "live"})
    audit = tuple((f"{i:016x}", "MIXED") for i in range(120))
    ranked = [{**row, "rank": 1, "tier": 1} for row in scored.tables["tiers"].to_pylist()]
    tiers = pa.Table.from_pylist(ranked, schema=scored.tables["tiers"].schema)
    tables = {**scored.tables, "audit_summary": audit_table(scored), "tiers": tiers}
    return dataclasses.replace(run, manifest=manifest, audit=audit), dataclasses.replace(scored, tables=tables)


def failing_gate(scored, **values):
    table = changed(scored.tables["agreement"], "agreement", **{"gate": "fail", "kappa": 0.4, **values})
    return dataclasses.replace(scored, tables={**scored.tables, "agreement": table})


def standing(run, scored, *, preview=False, withhold=False):
    return standing_of(run, scored, preview=preview, withhold=withhold)


class TestLive:
    def test_a_run_that_passes_is_published(self, live):
        found = standing(*live)
        assert (found.state, found.reasons, found.withheld) == ("published", (), frozenset())

    def test_a_preview_is_not_forced_on_a_run_that_passes(self, live):
        assert standing(*live, preview=True).state == "published"

    def test_a_failing_gate_blocks_and_says_what_to_do(self, live):
        run, scored = live
        with pytest.raises(CheckError, match=r"agreement gate, rubric stance: kappa 0\.400 is below 0\.70") as caught:
            standing(run, failing_gate(scored))
        assert "--withhold to leave the failing categories out" in str(caught.value)
        assert caught.value.exit_code == 1

    def test_an_undefined_kappa_is_said_in_words(self, live):
        run, scored = live
        with pytest.raises(CheckError, match="kappa undefined"):
            standing(run, failing_gate(scored, kappa=None))

    def test_too_few_pairs_block_alike(self, live):
        run, scored = live
        with pytest.raises(CheckError, match="12 on-scale pairs of 24, at least 30 and half are needed"):
            standing(run, failing_gate(scored, gate="insufficient", n_on_scale=12, n_pairs=24))

    def test_large_counts_have_thousands_separators(self, live):
        run, scored = live
        run = dataclasses.replace(run, absent={"sim-alpha/one": 4752})
        found = standing(run, failing_gate(scored, gate="insufficient", n_on_scale=1200, n_pairs=2640), preview=True)
        assert tuple(map(in_words, found.reasons)) == (
            "4,752 planned rows are absent (sim-alpha/one 4,752)",
            "agreement gate, rubric stance: 1,200 on-scale pairs of 2,640, at least 30 and half are needed",
        )

    def test_a_missing_audit_blocks(self, live):
        run, scored = live
        with pytest.raises(CheckError, match="the human audit is missing"):
            standing(dataclasses.replace(run, audit=None), scored)

    def test_an_audit_under_a_hundred_rows_blocks(self, live):
        run, scored = live
        with pytest.raises(CheckError, match="the human audit has 99 rows; at least 100 are needed"):
            standing(dataclasses.replace(run, audit=run.audit[:99]), scored)

    @pytest.mark.parametrize(
        ("stance", "words"),
        [
            (
                {"n": 0, "agreement": None, "ci_high": None, "n_effective": None, "ci_low": None},
                "covers no row of rubric stance",
            ),
            ({"agreement": 0.69, "ci_high": 0.9}, "diverges on rubric stance: agreement 0.690, upper end 0.900"),
            ({"agreement": 0.75, "ci_high": 0.79}, "diverges on rubric stance: agreement 0.750, upper end 0.790"),
        ],
    )
    def test_an_audit_that_misses_or_contradicts_a_rubric_blocks(self, live, stance, words):
        run, scored = live
        tables = {**scored.tables, "audit_summary": audit_table(scored, **stance)}
        scored = dataclasses.replace(scored, tables=tables)
        with pytest.raises(CheckError, match=words):
            standing(run, scored)
        assert standing(run, scored, withhold=True).withheld == {"stance"}

    def test_absent_rows_block_and_cannot_be_withheld(self, live):
        run, scored = live
        run = dataclasses.replace(run, absent={"sim-alpha/one": 7})
        for withhold in (False, True):
            with pytest.raises(CheckError, match=r"7 planned rows are absent \(sim-alpha/one 7\)") as caught:
                standing(run, scored, withhold=withhold)
            assert "--withhold" not in str(caught.value)

    def test_a_preview_carries_every_reason(self, live):
        run, scored = live
        found = standing(dataclasses.replace(run, audit=None), failing_gate(scored), preview=True)
        assert found.state == "preview"
        assert len(found.reasons) == 2

    def test_withhold_leaves_the_failing_category_out(self, live):
        run, scored = live
        found = standing(run, failing_gate(scored), withhold=True)
        assert (found.state, found.withheld) == ("withheld", {"stance"})

    def test_withhold_without_a_failing_category_publishes(self, live):
        assert standing(*live, withhold=True).state == "published"

    def test_withholding_everything_leaves_nothing(self, live):
        run, scored = live
        rows = [{**r, "gate": "fail"} if r["vendor"] == "*" else r for r in scored.tables["agreement"].to_pylist()]
        table = pa.Table.from_pylist(rows, schema=arrow_schema(TABLES["agreement"]))
        with pytest.raises(CheckError, match="nothing is left to publish"):
            standing(run, dataclasses.replace(scored, tables={**scored.tables, "agreement": table}), withhold=True)


class TestSimulated:
    def test_is_published_whatever_its_gate_says_and_shows_it(self, simulated):
        run, scored = simulated
        found = standing(run, failing_gate(scored))
        assert found.state == "published"
        assert "stance" in {reason.rubric for reason in found.reasons if isinstance(reason, RubricReason)}
