"""Judging and human audit in words: who is declared, who stood down, how weak a pass is, who reviewed."""

from __future__ import annotations

import dataclasses
import json

import pyarrow.parquet as pq
import pytest

from generator.data.dictionary import REVIEWERS, render_dictionary
from generator.edition import paths
from generator.html.receipt_words import vote_text
from generator.pages.audit_answers import differing
from generator.pages.run import declared, render_audit, render_judging, render_run, verdict
from generator.pages.views import View
from generator.runs.operator_notes import reviewer
from generator.schema.manifest import Imported
from generator.scoring.gate import Standing
from generator.stats.evidence import FLAGGED_AT, SUGGESTIVE_AT
from tests.editions import make_edition, small_bank
from tests.factories import make_bank
from tests.test_pages import RUN, read


@pytest.fixture(scope="module")
def edition(tmp_path_factory):
    models = ["sim-alpha/one", "sim-judge-a/own", "sim-judge-c/third"]
    folder = tmp_path_factory.mktemp("runs") / RUN
    return make_edition(folder, models=models, bank=small_bank(("age", "gender")), audit=True)


def judging(edition):
    return read(render_judging(View(edition), paths.run_page(RUN, "judging")))


def live(edition):
    manifest = edition.run.manifest.model_copy(update={"kind": "live"})
    return dataclasses.replace(edition, run=dataclasses.replace(edition.run, manifest=manifest))


def with_gate(edition, **changes):
    """The edition with its first run-wide row of agreement changed."""
    table = edition.scored.tables["agreement"]
    rows = table.to_pylist()
    place = next(i for i, row in enumerate(rows) if row["vendor"] == "*")
    rows[place] = {**rows[place], **changes}
    changed = table.from_pylist(rows, schema=table.schema)
    scored = dataclasses.replace(edition.scored, tables={**edition.scored.tables, "agreement": changed})
    return dataclasses.replace(edition, scored=scored)


def with_agreement(edition, share):
    """The edition with the share of equal votes of every rubric changed."""
    table = edition.scored.tables["agreement"]
    changed = table.from_pylist([{**row, "raw_agreement": share} for row in table.to_pylist()], schema=table.schema)
    scored = dataclasses.replace(edition.scored, tables={**edition.scored.tables, "agreement": changed})
    return dataclasses.replace(edition, scored=scored)


def with_manifest(edition, **changes):
    manifest = edition.run.manifest.model_copy(update=changes)
    return dataclasses.replace(edition, run=dataclasses.replace(edition.run, manifest=manifest))


def with_models(edition, **shares):
    """The edition with the share of answers from the cache of some models changed."""
    models = [
        m.model_copy(update={"from_cache": shares.get(m.model, m.from_cache)}) for m in edition.run.manifest.models
    ]
    return with_manifest(edition, models=tuple(models))


def run_text(edition):
    return " ".join(read(render_run(View(edition), paths.run_page(RUN, "run"))).text.split())


class TestRun:
    def test_thousands_of_dollars_can_be_read(self, edition):
        spend = edition.run.manifest.spend.model_copy(update={"total_usd": 1234.5, "subjects_usd": 1000.25})
        manifest = edition.run.manifest.model_copy(update={"spend": spend})
        run = dataclasses.replace(edition.run, manifest=manifest)
        text = read(render_run(View(dataclasses.replace(edition, run=run)), paths.run_page(RUN, "run"))).text
        assert "US$ 1,234.50 simulated, nothing was paid: models 1,000.25, judges 2.00" in text

    def test_what_the_cache_had_already_is_told_by_model(self, edition):
        assert "none: every answer was asked for this run" in run_text(edition)
        half = with_models(edition, **{"sim-alpha/one": 0.5, "sim-judge-a/own": 1.0})
        assert "answers of an earlier run: 50.0 % of sim-alpha/one, 100.0 % of sim-judge-a/own" in run_text(half)
        assert "not recorded" in run_text(with_models(edition, **{"sim-alpha/one": None}))

    def test_an_import_says_who_collected_it_and_what_was_not_done(self, edition):
        origin = {"collected_by": "A <lab>\u202e", "source": "https://lab.example/", "matched_by": "topic"}
        found = Imported(**origin, not_done=["masking", "second_judge"])
        text = run_text(with_manifest(edition, kind="imported", imported=found))
        assert "imported: collected by A <lab>U+202E (https://lab.example/); prompts of a set treat the same" in text
        assert text.partition("not done: ")[2].startswith("masking, a second judge")


class TestJudges:
    def test_who_stood_down_is_counted(self, edition):
        assert declared(View(edition)) == (
            "Declared judges: sim-judge-a/one and sim-judge-b/two; tiebreak sim-judge-c/three. No judge labels its own "
            "vendor’s models, so 1 of 3 models has another pair and no tiebreak, and 1 of 3 models has the same "
            "pair without a tiebreak."
        )

    def test_where_nobody_stood_down_that_is_said(self, tmp_path):
        edition = make_edition(tmp_path / RUN, models=["sim-alpha/one"], bank=small_bank(("age",)))
        assert declared(View(edition)).endswith("so all have these three.")

    def test_it_is_said_that_judges_of_a_simulated_run_are_programs(self, edition):
        assert "programs without a language model" in judging(edition).text
        assert "programs without a language model" not in judging(live(edition)).text

    def test_an_operator_s_note_is_pointed_to(self, edition, tmp_path):
        assert "note on this run" not in judging(live(edition)).text
        (tmp_path / "note.txt").write_text("The third judge is a program.\n")
        noted = live(edition)
        noted = dataclasses.replace(noted, run=dataclasses.replace(noted.run, folder=tmp_path))
        assert ("a", {"href": "run.html#note"}) in judging(noted).tags


class TestGate:
    def test_a_pass_by_pabak_says_how_weak_it_is(self, edition):
        changes = {"gate": "pabak", "kappa": 0.41, "modal_prevalence": 0.923, "minority_agreement": 0.458}
        reader = judging(with_gate(edition, **changes))
        assert "weak pass: 92.3 % of votes are one label; on the rarer labels the judges agree 0.46" in reader.text
        assert "weak pass" not in judging(with_gate(edition, gate="kappa")).text

    def test_without_a_rarer_label_that_is_said(self, edition):
        changes = {"gate": "pabak", "kappa": None, "modal_prevalence": 1.0, "minority_agreement": None}
        assert "100.0 % of votes are one label; no judge used another" in judging(with_gate(edition, **changes)).text

    def test_a_weak_pass_does_not_wear_the_sign_of_a_warning(self, edition):
        weak = judging(with_gate(edition, gate="pabak", warning=None)).text
        warned = judging(with_gate(edition, gate="pabak", warning="worse than chance")).text
        assert ("◐ weak pass" in weak, "⚠ worse than chance" in weak) == (True, False)
        assert ("◐ weak pass" in warned, "⚠ worse than chance" in warned) == (True, True)
        assert "⚠ weak pass" not in weak + warned

    @pytest.mark.parametrize(
        ("gates", "words"),
        [
            (("kappa", "kappa"), "Every rubric passes the gate."),
            (("kappa", "pabak"), "Every rubric passes the gate, r1 only weakly (by PABAK)."),
            (("pabak", "pabak"), "Every rubric passes the gate, r0 and r1 only weakly (by PABAK)."),
            (("fail", "kappa"), "Not through the gate: r0."),
            (("insufficient", "pabak"), "Not through the gate: r0. Only weakly, by PABAK: r1."),
        ],
    )
    def test_the_lead_names_what_passes_only_weakly(self, gates, words):
        assert verdict([{"rubric": f"r{place}", "gate": gate} for place, gate in enumerate(gates)]) == words

    def test_the_lead_stands_on_the_page(self, edition):
        first = edition.scored.tables["agreement"].to_pylist()[0]["rubric"]
        assert f"Not through the gate: {first}" in judging(with_gate(edition, gate="fail")).text

    def test_kappa_stands_next_to_the_gate_and_is_explained(self, edition):
        text = judging(edition).text
        assert "RubricGateKappaPABAKPairs" in text.replace(" ", "")
        assert "reaches 0.70" in text
        assert "Kappa is the agreement beyond what" in text
        assert "PABAK, twice the share of equal votes minus 1," in text


class TestReviewer:
    @pytest.mark.parametrize(
        ("record", "who", "words"),
        [
            ({"reviewer": "simulated"}, "simulated", "The reviewer was a program, as the record of the draw says."),
            ({"reviewer": "human"}, "human", "The reviewer was a person, as the record of the draw says."),
            ({"reviewer": "<b>"}, "", "do not say whether the reviewer was a person or a program"),
            (None, "", "do not say whether the reviewer was a person or a program"),
        ],
    )
    def test_the_record_of_the_draw_says_who_it_was(self, edition, tmp_path, record, who, words):
        if record:
            (tmp_path / "audit").mkdir()
            (tmp_path / "audit" / "draw.json").write_text(json.dumps(record))
        there = dataclasses.replace(edition, run=dataclasses.replace(edition.run, folder=tmp_path))
        assert reviewer(tmp_path) == who
        text = read(render_audit(View(there), paths.run_page(RUN, "audit"))).text
        assert words in text
        name = {"human": "Human audit", "simulated": "Simulated reviewer", "": "Audit"}[who]
        page = render_audit(View(there), paths.run_page(RUN, "audit")).decode()
        assert f'aria-current="page">{name}</a>' in page
        assert f'<p class="kicker">{name} · {there.run_name}' in page
        assert ("Human audit" in page) is (who == "human")
        assert "may be a program" not in text
        assert REVIEWERS[who] in read(render_dictionary(there, [])).text

    def test_a_run_without_an_audit_has_no_reviewer_to_name(self, edition):
        scored = dataclasses.replace(edition.scored, coverage=None)
        text = read(render_dictionary(dataclasses.replace(edition, scored=scored), [])).text
        assert [words for words in REVIEWERS.values() if words in text] == []

    def test_a_record_that_cannot_be_read_names_nobody(self, tmp_path):
        (tmp_path / "audit").mkdir()
        for text in ("[]", "{", "null"):
            (tmp_path / "audit" / "draw.json").write_text(text)
            assert reviewer(tmp_path) == ""


def with_other_labels(edition, count):
    """The edition with the reviewer's label of some audited rows changed, of one at least in each rubric's turn."""
    table = edition.scored.tables["human_audit"]
    rows = table.to_pylist()
    for row in rows[:count]:
        scale = [label.label for label in edition.run.bank.rubric[row["rubric"]].labels]
        row.update(human_label=next((x for x in scale if x != row["final_label"]), "REFUSAL"), agrees=False)
    changed = table.from_pylist(rows, schema=table.schema)
    scored = dataclasses.replace(edition.scored, tables={**edition.scored.tables, "human_audit": changed})
    return dataclasses.replace(edition, scored=scored), rows[:count]


class TestEvidenceOfAgreement:
    """A rubric on which judges differ leads to those rows, one without such rows to none."""

    @pytest.mark.parametrize("agreement", [0.5, 0.0])
    def test_leads_to_the_rows_where_they_differ(self, edition, agreement):
        page = render_judging(
            View(with_gate(edition, raw_agreement=agreement)), paths.run_page(RUN, "judging")
        ).decode()
        first = edition.scored.tables["agreement"].to_pylist()[0]["rubric"]
        assert f'href="receipts/index.html?category={first}&amp;disagree=1"' in page

    def test_scores_are_counted_otherwise_there_and_that_is_said(self, tmp_path):
        bank = make_bank(("age",), groups=3, quota={"stance": 1, "capability": 1})
        edition = make_edition(tmp_path / RUN, models=["sim-alpha/one"], bank=bank)
        apart = with_agreement(edition, 0.8)
        words = "On capability two scores disagree when they lie more than 10 points apart"
        assert words in judging(apart).text
        assert "far apart on capability" in judging(apart).text
        assert "where they differ on stance" in judging(apart).text
        assert words not in judging(with_agreement(edition, 1.0)).text

    @pytest.mark.parametrize("agreement", [1.0, None])
    def test_no_link_leads_to_nothing(self, edition, agreement):
        page = render_judging(View(with_gate(edition, raw_agreement=agreement)), paths.run_page(RUN, "judging"))
        first = edition.scored.tables["agreement"].to_pylist()[0]["rubric"]
        assert f"category={first}&amp;" not in page.decode()

    def test_withheld_rows_are_not_in_the_explorer(self, edition):
        first = edition.scored.tables["agreement"].to_pylist()[0]["rubric"]
        standing = dataclasses.replace(edition.standing, withheld=frozenset({first}))
        kept = dataclasses.replace(with_gate(edition, raw_agreement=0.5), standing=standing)
        assert f"category={first}&amp;" not in render_judging(View(kept), paths.run_page(RUN, "judging")).decode()


class TestDiffering:
    """Every audited answer with two labels leads to its receipt."""

    def test_links_each_to_its_place_with_both_labels(self, edition):
        changed, rows = with_other_labels(edition, 7)
        found = {one.receipt_id: one for one in differing(View(changed))}
        assert set(found) == {row["receipt_id"] for row in rows}
        plan = {
            row["receipt_id"]: row
            for model in edition.run.models
            for row in pq.read_table(edition.run.shard_path(model)).to_pylist()
        }
        page = render_audit(View(changed), paths.run_page(RUN, "audit")).decode()
        for row in rows:
            one, receipt = found[row["receipt_id"]], plan[row["receipt_id"]]
            where = [receipt[name] for name in ("model", "concept", "framing", "group", "repeat")]
            assert one.page == paths.permalink(RUN, *where)
            assert (one.final_label, one.human_label) == (row["final_label"], row["human_label"])
            assert one.votes == tuple(vote_text(vote) for vote in receipt["votes"])
            assert f"judges: {', '.join(one.votes)}" in page
            assert f'href="{paths.relative(paths.run_page(RUN, "audit"), one.page)}"' in page

    def test_withheld_categories_have_no_page_to_lead_to(self, edition):
        changed, rows = with_other_labels(edition, 40)
        kinds = {row["rubric"] for row in rows}
        gone = min(kinds)
        standing = dataclasses.replace(changed.standing, withheld=frozenset({gone}))
        left = {one.rubric for one in differing(View(dataclasses.replace(changed, standing=standing)))}
        assert left == kinds - {gone}

    def test_nothing_is_read_where_all_agree(self, edition, tmp_path):
        bare = dataclasses.replace(edition, run=dataclasses.replace(edition.run, folder=tmp_path))
        assert differing(View(bare)) == []
        assert (
            "They gave the same label to every answer."
            in read(render_audit(View(bare), paths.run_page(RUN, "audit"))).text
        )


class TestLimits:
    def test_programs_judged_a_simulated_run(self, edition):
        assert View(edition).judged == (
            "Programs judged the answers.",
            "The run is simulated: no language model gave a label.",
        )

    def test_what_a_live_run_does_not_meet_is_named(self, edition):
        run = dataclasses.replace(live(edition).run, audit=None)
        bare = dataclasses.replace(with_gate(live(edition), gate="fail"), run=run)
        text = View(bare).judged[1]
        assert "do not pass the agreement gate" in text
        assert "No person has checked a sample of the labels." in text
        assert "checked by hand" not in text

    def test_a_run_that_meets_all_says_what_speaks_for_its_labels(self, edition):
        good = dataclasses.replace(live(edition), standing=Standing("published", ()))
        rows = [{**row, "gate": "kappa"} for row in good.scored.tables["agreement"].to_pylist()]
        table = good.scored.tables["agreement"]
        tables = {**good.scored.tables, "agreement": table.from_pylist(rows, schema=table.schema)}
        good = dataclasses.replace(good, scored=dataclasses.replace(good.scored, tables=tables))
        assert "a sample was checked by hand; single labels can be wrong all the same" in View(good).judged[1]


def test_the_rules_in_the_key_are_the_code_s():
    assert (FLAGGED_AT, SUGGESTIVE_AT) == (0.10, 0.05)
