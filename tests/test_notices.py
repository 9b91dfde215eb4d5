"""Banners: whose figures a page shows, and in plain words why a preview is no result."""

from __future__ import annotations

import dataclasses

import pytest

from generator.edition.banners import checks_failed, mark_of, notices, preview_words
from generator.edition.edition import Edition
from generator.runs.reader import load_run
from generator.schema.tables import RUN_WIDE
from generator.scoring.gate import Standing
from generator.scoring.reasons import AuditMissing, AuditTooSmall, TooFewPairs
from generator.scoring.run import score_run
from tests.editions import SITE, mixed, small_bank
from tests.factories import make_rows, write_run

RUN, MODEL = "test-run", "sim-alpha/one"
PREVIEW = Standing("preview", (TooFewPairs(rubric="stance", n_on_scale=3, n_pairs=9), AuditMissing()))


@pytest.fixture(scope="module")
def part(tmp_path_factory):
    """A run of which only age was asked, shown as a preview of a live one."""
    bank = small_bank()
    rows = [r for r in make_rows(bank, MODEL, repeats=2, run_id=RUN, answers=mixed) if r["attribute"] == "age"]
    run = load_run(write_run(tmp_path_factory.mktemp("runs") / RUN, bank, {MODEL: rows}))
    simulated = Edition(SITE, run, score_run(run, resamples=20), PREVIEW)
    live = run.manifest.model_copy(update={"kind": "live"})
    return dataclasses.replace(simulated, run=dataclasses.replace(run, manifest=live)), simulated, rows


class TestPreview:
    def test_it_opens_with_how_much_was_asked_and_what_failed(self, part):
        live, _, rows = part
        failed = sum(row["status"] == "error" for row in rows)
        planned = 9 * 3 * 2 * 2 * 2
        wanted = f"Asked: 3 of 27 concepts, {len(rows)} of {planned} planned answers"
        wanted += f", {failed} of which ended in an error." if failed else "."
        gate = [r["gate"] for r in live.scored.tables["agreement"].to_pylist() if r["vendor"] == RUN_WIDE]
        failing = sum(g not in ("kappa", "pabak") for g in gate)
        words = preview_words(live)
        assert words.startswith(wanted)
        assert f"agreement gate on {failing} of {len(gate)} rubrics." in words
        assert words.endswith("No person has checked a sample of the labels.")

    def test_the_reasons_follow(self, part):
        (notice,) = notices(part[0], f"runs/{RUN}/index.html")
        assert notice.heading == "Preview with real models, not a result"
        assert notice.lines[1:] == (
            "agreement gate, rubric stance: 3 on-scale pairs of 9, at least 30 and half are needed",
            "the human audit is missing (audit.csv)",
        )

    def test_an_audit_that_does_not_suffice_is_called_that(self, part):
        live = part[0]
        run = dataclasses.replace(live.run, audit=(("0" * 16, "MIXED"),))
        standing = Standing("preview", (AuditTooSmall(rows=1),))
        found = checks_failed(dataclasses.replace(live, run=run, standing=standing))
        assert found[-1] == "The check of a sample of the labels by hand does not suffice."


class TestSource:
    def test_the_mark_is_the_run_s(self, part):
        live, simulated, _ = part
        assert (mark_of(live), mark_of(simulated), mark_of(None)) == ("preview", "simulated", "")
        assert mark_of(dataclasses.replace(live, standing=Standing("published", ()))) == ""

    def test_a_page_of_the_root_says_whose_figures_it_quotes(self, part):
        live, simulated, _ = part
        (found,) = notices(simulated, "methodology/limits.html", "figures")
        assert found.heading == "Figures on this page come from run test-run, which is simulated"
        assert found.href == f"../runs/{RUN}/index.html"
        (found,) = notices(live, "about.html", "figures")
        assert found.heading.endswith("which is a preview and not a result")

    def test_figures_of_a_publication_need_no_banner_and_pages_without_figures_none(self, part):
        live, simulated, _ = part
        assert notices(dataclasses.replace(live, standing=Standing("published", ())), "about.html", "figures") == ()
        assert notices(simulated, "runs/index.html", "none") == ()
