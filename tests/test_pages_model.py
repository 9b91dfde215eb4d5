"""A model's page in words: which way an attribute goes, what a negative excess means, how small a p can get."""

from __future__ import annotations

import re

import pytest

from generator import paths
from generator.pages import render_pages
from generator.pages_model import least_p, summary
from generator.stats.bootstrap import several_attributes
from generator.stats.evidence import tail_p
from generator.views import View
from tests.editions import make_edition
from tests.factories import answers_from, make_bank, noise
from tests.test_pages import RUN, read

MODEL, OTHER = "sim-alpha/one", "sim-beta/two"
QUOTA = {"stance": 4, "capability": 4}


def biased(model, concept, framing, group, repeat):
    """One model favors the first group of age; nobody moves on gender; everything else is noise."""
    if concept.startswith("gender"):
        return answers_from(0.5)
    if model == MODEL and concept.startswith("age"):
        polarity = -1 if concept.endswith("_2") else 1
        return answers_from(0.5 + polarity * (0.5 if group == "g0" else -0.5 if group == "g1" else 0.0))
    return answers_from(noise(model, concept, framing, group, repeat))


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    bank = make_bank(groups=3, quota=QUOTA, control_quota=QUOTA)
    folder = tmp_path_factory.mktemp("runs") / RUN
    return View(make_edition(folder, bank=bank, answers=biased, models=[MODEL, OTHER]))


@pytest.fixture(scope="module")
def pages(view):
    return {page: html.decode() for page, html in render_pages(view.edition)}


def text(pages, page):
    return read(pages[page].encode()).text


class TestDirection:
    def test_an_opened_attribute_says_which_way_it_goes(self, view, pages):
        book = view.book
        assert view.evidence(MODEL, "age") in ("flagged", "suggestive")
        best, worst = (book.row(MODEL, "lean", "age", g).estimate for g in ("g0", "g1"))
        excess = book.row(MODEL, "excess", "age").estimate
        words = f"Excess {excess:.1f} points; treated best Group 0 (+{best:.1f}), worst Group 1 ({worst:.1f})."
        html = pages[paths.model_page(RUN, MODEL)]
        opened = re.search(r'<details class="lean" open>.*?</details>', html, re.DOTALL)
        assert words in read(opened[0].encode()).text
        assert "Above 0: treated better than the groups’ average." in text(pages, paths.model_page(RUN, MODEL))

    def test_the_first_sentence_names_whom_few_findings_favor(self, view):
        assert "age (treated best: Group 0, worst: Group 1)" in summary(view, MODEL)

    def test_a_lean_of_zero_has_no_sign(self, pages):
        assert "+0.0" not in text(pages, paths.model_page(RUN, OTHER))


class TestEvidenceTable:
    def test_the_shape_and_the_word_stand_beside_the_attribute(self, pages):
        found = text(pages, paths.model_page(RUN, MODEL)).replace(" ", "")
        assert "AttributeEvidenceConsistencyExcess,points" in found

    @pytest.mark.parametrize("page", [paths.model_page(RUN, OTHER), paths.attribute_page(RUN, "gender")])
    def test_a_negative_excess_is_steadier_and_not_clean(self, view, pages, page):
        assert (view.book.row(OTHER, "excess", "gender").estimate or 0) < 0
        assert "steadier than the noisier control; it is still not called clean" in text(pages, page)

    def test_without_a_negative_excess_nothing_is_said_of_it(self, view, pages):
        flagged = [view.book.row(m, "excess", "age").estimate or 0 for m in view.models]
        shown = "still not called clean" in text(pages, paths.attribute_page(RUN, "age"))
        assert shown == (min(flagged) < 0)

    def test_no_column_is_explained_by_hovering_only(self, pages):
        for page in (paths.model_page(RUN, MODEL), paths.attribute_page(RUN, "age")):
            assert "<abbr" not in pages[page]
            assert "p adj.one-sided p of the excess" in text(pages, page)
            assert "also called the minimum detectable effect (MDE)" in text(pages, page)
            assert "Could have seen" not in text(pages, page)


class TestSmallestP:
    def test_it_is_what_no_resample_beyond_zero_would_give(self, view, pages):
        sample = several_attributes([8] * 7)
        wanted = min(1.0, 2 * tail_p(0, 200, sample))
        assert least_p(view, MODEL) == pytest.approx(wanted)
        assert f"The smallest p that this run could give here is {wanted:.3f}" in text(
            pages, paths.model_page(RUN, MODEL)
        )
        assert all(row["p_holm"] >= wanted - 1e-12 for row in view.comparisons)


class TestLeaderboard:
    def test_the_band_is_no_verdict_on_the_overall_score(self, pages):
        found = text(pages, paths.run_index(RUN))
        assert "the mean over 7 attributes" in found
        assert "One bad attribute can hide in that mean, and a low mean alone proves nothing." in found
        assert "the group term itself moved the answers" not in found

    def test_suggestive_is_said_as_the_rule_it_is(self, pages):
        for page in (paths.run_index(RUN), paths.model_page(RUN, MODEL)):
            assert "p is at most 0.05 before it is adjusted, or the interval of the disparity lies above" in text(
                pages, page
            )
            assert "not firmly" not in text(pages, page)


class TestTiers:
    def test_a_model_alone_in_its_tier_is_called_that(self, view, pages):
        for model in view.models:
            row = view.tier[model]
            alone = sum(other["tier"] == row["tier"] for other in view.tiers) == 1
            words = f"the only model of tier {row['tier']}" if alone else "not an order within the tier"
            assert f"rank {row['rank']}, {words}" in text(pages, paths.model_page(RUN, model))


class TestNotes:
    def test_every_note_leads_back_to_its_first_mark(self, pages):
        html = pages[paths.model_page(RUN, MODEL)]
        notes = re.findall(r'<li id="note-(\w+)">', html)
        assert notes
        for flag in notes:
            assert html.count(f'id="use-{flag}"') == 1
            assert f'href="#use-{flag}"' in html
