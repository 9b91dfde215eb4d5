"""The human audit of a run: its draw is found again, its models are known, its agreement is by rubric."""

from __future__ import annotations

import json

import pytest

from generator.runs.reader import load_run, read_shard
from generator.schema.audit_draw import auditable, draw, stratum_name
from generator.schema.errors import InputError
from generator.scoring.audit import find_draw, strata_of
from generator.scoring.run import score_run
from generator.stats.audit import Audited, summarise
from tests.factories import make_bank, make_run, unit

BANK = make_bank(("age", "gender"), groups=3, quota={"stance": 2, "capability": 2})
EARLY, LATE = "sim-beta/early", "sim-alpha/late"
SEED = 2


def answers(model, concept, framing, group, repeat):
    if unit(model, concept, framing, group, repeat, "refuses") < 0.1:
        return ("REFUSAL", "REFUSAL")
    value = unit(model, concept, framing, group, repeat)
    return (value, value)


@pytest.fixture
def folder(tmp_path):
    made = make_run(tmp_path / "audited", bank=BANK, models=(EARLY, LATE), answers=answers)
    manifest = json.loads((made / "manifest.json").read_text())
    for model in manifest["models"]:
        model["added"] = "2026-11-01" if model["model"] == EARLY else "2026-11-20"
    (made / "manifest.json").write_text(json.dumps(manifest))
    return made


def rows_of(folder, *models):
    """Rows that a draw may take."""
    run = load_run(folder)
    rows = [row for model in models for row in read_shard(run, model).to_pylist()]
    return [r for r in rows if auditable(r["status"], len(r["votes"]))]


def write_audit(folder, *models, asked=100, wrong=lambda _: False):
    """Draw from some models and label every row as the panel did, but for the `wrong` ones."""
    rows = {r["receipt_id"]: r for r in rows_of(folder, *models)}
    strata: dict[str, list[str]] = {}
    for receipt, row in rows.items():
        strata.setdefault(stratum_name(row["rubric"], row["final_label"]), []).append(receipt)
    drawn = draw(strata, asked=asked, seed=SEED)
    lines = ["receipt_id,label"]
    for receipt in sorted(drawn.ids):
        row = rows[receipt]
        label = (
            row["final_label"] if row["value"] is None or row["rubric"] != "capability" else round(100 * row["value"])
        )
        lines.append(f"{receipt},{'REFUSAL' if wrong(row) else label}")
    (folder / "audit.csv").write_text("\n".join(lines) + "\n")
    return drawn, rows


class TestFindDraw:
    @pytest.mark.parametrize(("drawn_from", "covered"), [((EARLY,), (EARLY,)), ((EARLY, LATE), (LATE, EARLY))])
    def test_the_models_it_was_drawn_from(self, folder, drawn_from, covered):
        drawn, _ = write_audit(folder, *drawn_from)
        scored = score_run(load_run(folder), resamples=50)
        assert scored.coverage.covered == covered
        assert set(scored.coverage.not_covered) == {EARLY, LATE} - set(covered)
        run = load_run(folder)
        strata = {m: strata_of(run, read_shard(run, m)) for m in run.models}
        assert find_draw(run, strata)[1] == drawn.sizes

    def test_ids_that_no_draw_gives_are_refused(self, folder):
        write_audit(folder, EARLY)
        lines = (folder / "audit.csv").read_text().splitlines()
        taken = {line.partition(",")[0] for line in lines}
        other = next(r for r in rows_of(folder, EARLY) if r["receipt_id"] not in taken and r["rubric"] == "stance")
        swapped = next(i for i, line in enumerate(lines) if line.endswith(("MIXED", "SUPPORT", "OPPOSE")))
        lines[swapped] = f"{other['receipt_id']},MIXED"
        (folder / "audit.csv").write_text("\n".join(lines) + "\n")
        with pytest.raises(InputError, match="are not the draw of audit seed 2"):
            score_run(load_run(folder), resamples=50)


class TestAuditTables:
    def test_full_agreement(self, folder):
        drawn, _ = write_audit(folder, EARLY)
        scored = score_run(load_run(folder), resamples=50)
        summary = {row["rubric"]: row for row in scored.tables["audit_summary"].to_pylist()}
        assert list(summary) == ["*", "capability", "stance"]
        assert summary["*"]["n"] == summary["*"]["n_agree"] == len(drawn.ids)
        assert summary["*"]["agreement"] == pytest.approx(1.0)
        assert len(scored.tables["human_audit"]) == len(drawn.ids)

    def test_rows_weigh_what_their_stratum_held_at_the_draw(self, folder):
        def wrong(row):
            return row["rubric"] == "stance" and row["repeat"] == 0 and row["final_label"] != "REFUSAL"

        drawn, rows = write_audit(folder, EARLY, LATE, wrong=wrong)
        scored = score_run(load_run(folder), resamples=50)
        strata = [
            Audited(name.partition("|")[0], drawn.sizes[name], len(ids), sum(not wrong(rows[i]) for i in ids))
            for name, ids in drawn.picked.items()
        ]
        summary = {row["rubric"]: row for row in scored.tables["audit_summary"].to_pylist()}
        expected = summarise([s for s in strata if s.rubric == "stance"])
        assert 0 < expected.agreement < 1
        assert (summary["stance"]["n"], summary["stance"]["n_agree"]) == (expected.n, expected.n_agree)
        for key, value in (("agreement", expected.agreement), ("ci_low", expected.low), ("ci_high", expected.high)):
            assert summary["stance"][key] == pytest.approx(value, abs=1e-12)
        assert summary["capability"]["agreement"] == pytest.approx(1.0)

    def test_without_an_audit_both_are_empty(self, folder):
        scored = score_run(load_run(folder), resamples=50)
        assert (len(scored.tables["human_audit"]), len(scored.tables["audit_summary"])) == (0, 0)
        assert scored.coverage is None
