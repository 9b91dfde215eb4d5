"""A model's page in words: which way an attribute goes, what a negative excess means, how small a p can get."""

from __future__ import annotations

import dataclasses
import re

import pyarrow as pa
import pytest

from generator.edition import paths
from generator.pages.all import render_pages
from generator.pages.attribute import least_p_adjusted
from generator.pages.model import least_p, summary
from generator.pages.model_found import noticed, quotable
from generator.pages.model_level import label_steps, levels
from generator.pages.pair_card import median_concept, pair_cards
from generator.pages.views import ConceptResult, View
from generator.schema.bank import load_bank
from generator.scoring.findings import Apart
from generator.stats.bootstrap import one_attribute, several_attributes
from generator.stats.evidence import tail_p
from generator.stats.range_test import range_p
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
        opened = re.search(r'<details class="lean"[^>]* open>.*?</details>', html, re.DOTALL)
        assert words in read(opened[0].encode()).text
        assert "Above 0: treated better than the groups’ average." in text(pages, paths.model_page(RUN, MODEL))

    def test_the_first_sentence_names_whom_few_findings_favor(self, view):
        assert "age (treated best: Group 0, worst: Group 1)" in summary(view, MODEL)

    def test_an_unresolved_attribute_names_nobody(self, view, pages):
        assert view.evidence(MODEL, "religion") == "unresolved"
        html = pages[paths.model_page(RUN, MODEL)]
        for start in ('<details class="lean" id="lean-religion"', '<div class="inside" id="religion">'):
            found = read(html.partition(start)[2].partition("</details>")[0].encode()).text
            assert "No direction can be read: the attribute is unresolved" in found
            assert "treated best" not in found.lower()

    def test_of_equal_leans_both_places_name_the_same_group(self, tmp_path):
        data = make_bank(groups=3, quota=QUOTA, control_quota=QUOTA).model_dump(mode="json")
        for attribute in data["attributes"]:
            for place, group in enumerate(attribute["groups"]):
                group["label"] = f"Label {9 - place}"  # against the order of the alphabet

        def two_alike(model, concept, framing, group, repeat):
            return biased(model, concept, framing, "g0" if group == "g0" else "g1", repeat)

        tied = View(
            make_edition(tmp_path / RUN, bank=load_bank(data, "tied"), answers=two_alike, models=[MODEL, OTHER])
        )
        assert "age (treated best: Label 9, worst: Label 7)" in summary(tied, MODEL)
        html = dict(render_pages(tied.edition))[paths.model_page(RUN, MODEL)]
        assert re.search(r"treated best Label 9 .*?, worst Label 7 ", read(html).text)

    def test_a_lean_of_zero_has_no_sign(self, pages):
        assert "+0.0" not in text(pages, paths.model_page(RUN, OTHER))


class TestEvidenceTable:
    def test_the_shape_and_the_word_stand_beside_the_attribute(self, pages):
        found = text(pages, paths.model_page(RUN, MODEL)).replace(" ", "")
        assert "AttributeExcess,pointsEvidencepadj.Flaggedhalfthetimefrom,pointsConsistency" in found

    @pytest.mark.parametrize("page", [paths.model_page(RUN, OTHER), paths.attribute_page(RUN, "gender")])
    def test_a_negative_excess_is_steadier_and_not_clean(self, view, pages, page):
        assert (view.book.row(OTHER, "excess", "gender").estimate or 0) < 0
        assert "steadier than that control; it is still not called clean" in text(pages, page)

    def test_without_a_negative_excess_nothing_is_said_of_it(self, view, pages):
        flagged = [view.book.row(m, "excess", "age").estimate or 0 for m in view.models]
        shown = "still not called clean" in text(pages, paths.attribute_page(RUN, "age"))
        assert shown == (min(flagged) < 0)

    def test_the_excess_is_a_number_with_a_sign_and_never_moves_by_less_than_nothing(self, pages):
        html = pages[paths.model_page(RUN, OTHER)].partition('<div class="inside" id="gender">')[2]
        found = read(html.partition("</details>")[0].encode()).text
        assert re.search(r"The excess over the noisier control is -\d+\.\d points \(95 % interval", found)
        assert "the scored answers move less than for that control." in found
        assert "points more" not in found

    def test_the_words_of_an_interval_are_said_once(self, pages):
        for page in (paths.model_page(RUN, MODEL), paths.model_page(RUN, OTHER)):
            assert "95 % interval 95 % interval" not in text(pages, page)

    def test_a_p_is_not_for_comparing_models(self, view, pages):
        html = pages[paths.attribute_page(RUN, "age")]
        assert "do not compare it between models" in html
        wanted = tail_p(0, 200, one_attribute(8))
        assert least_p_adjusted(view, "age") == pytest.approx(wanted)
        assert f"It has a floor here of {wanted:.3f}," in html
        assert all(view.book.row(m, "excess", a.id).p_adjusted >= wanted for m in view.models for a in view.demographic)
        assert '<th scope="col" class="n">p adj.</th>' in html

    def test_a_control_s_page_has_no_p(self, pages):
        assert "p adj." not in pages[paths.attribute_page(RUN, "control_tag")]

    def test_no_column_is_explained_by_hovering_only(self, pages):
        for page in (paths.model_page(RUN, MODEL), paths.attribute_page(RUN, "age")):
            assert "<abbr" not in pages[page]
            assert "p adj.one-sided p of the excess" in text(pages, page)
            assert "also called the minimum detectable effect (MDE)" in text(pages, page)
            assert "Could have seen" not in text(pages, page)


class TestSmallestP:
    def test_it_is_what_no_resample_beyond_zero_would_give(self, view, pages):
        sample = several_attributes([8] * 7)
        wanted = range_p(0, 200, sample)
        assert least_p(view, MODEL) == pytest.approx(wanted)
        assert f"The smallest p that this run could give here is {wanted:.4f}" in text(
            pages, paths.model_page(RUN, MODEL)
        )
        overall = [row["p_within"] for row in view.comparisons if row["attribute"] == "overall"]
        assert overall
        assert all(p >= wanted - 1e-12 for p in overall)

    def test_an_interval_and_an_adjusted_p_may_disagree(self, pages):
        assert "an interval can leave out 0 while p is large" in text(pages, paths.model_page(RUN, MODEL))


class TestSuggestive:
    def test_the_sign_that_held_is_said_with_its_numbers(self, tmp_path):
        def slight(model, concept, framing, group, repeat):
            shift = 0.5 if concept.startswith("age") and group == "g0" else 0.0
            return answers_from(min(1.0, 0.6 * noise(model, concept, framing, group, repeat) + shift))

        bank = make_bank(groups=3, quota=QUOTA, control_quota=QUOTA)
        view = View(make_edition(tmp_path / RUN, bank=bank, answers=slight, models=[MODEL]))
        # A flag in the table becomes a suggestive of the weaker rule: the words do not depend on the draws.
        rows = [r | {"evidence": "suggestive"} if r["metric"] == "excess" else r for r in _scores(view)]
        shown = _with_scores(view, rows)
        html = dict(render_pages(shown))[paths.model_page(RUN, MODEL)].decode()
        excess = View(shown).book.row(MODEL, "excess", "age")
        found = read(html.partition('<div class="inside" id="age">')[2].partition("</details>")[0].encode()).text
        assert excess.p <= 0.05
        assert f"Suggestive because p is {excess.p:.3f} before it is adjusted" in found
        assert "p before adjustment" in read(html.encode()).text


def _scores(view):
    return view.edition.scored.tables["scores"].to_pylist()


def _with_scores(view, rows):
    table = pa.Table.from_pylist(rows, schema=view.edition.scored.tables["scores"].schema)
    scored = dataclasses.replace(view.edition.scored, tables={**view.edition.scored.tables, "scores": table})
    return dataclasses.replace(view.edition, scored=scored)


class TestLeaderboard:
    def test_what_the_programs_recompute_is_said_and_what_verify_does(self, pages):
        found = text(pages, paths.run_index(RUN))
        assert (
            "four short programs that recompute disparity, consistency with its interval, worst gap, lean and" in found
        )
        assert "aibiasbench verify recomputes the rest." in found
        assert "recompute every score" not in found

    def test_the_ends_of_the_band_are_consistencies_and_estimates(self, pages):
        found = text(pages, paths.run_index(RUN))
        assert re.search(r"it reaches from a consistency of \d+\.\d to one of \d+\.\d\.", found)
        assert "Real effects of the controls are in it, too, and both ends are estimates" in found
        assert "real effects of the controls are in it, too, and its ends are estimates." in text(
            pages, paths.model_page(RUN, MODEL)
        )

    def test_a_line_between_tiers_is_no_difference_of_neighbors(self, view, pages):
        assert max(row["tier"] for row in view.tiers) == 2
        assert "Between tiers, too, neighbors may not differ" in text(pages, paths.run_index(RUN))
        assert f'<a href="models/{view.tiers[0]["model"]}.html#compare">' in pages[paths.run_index(RUN)]

    def test_the_band_is_no_verdict_on_the_overall_score(self, pages):
        found = text(pages, paths.run_index(RUN))
        assert "100 less the mean disparity over 7 attributes" in found
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


def part(pages, page, start, end="</section>"):
    return read(pages[page].partition(start)[2].partition(end)[0].encode()).text


class TestQuotable:
    """One sentence that may be printed alone."""

    def test_a_finding_is_said_with_what_stays_open(self, view, pages):
        found = view.findings.of(MODEL)
        clear = dataclasses.replace(found, flagged=found.suggestive, suggestive=())
        assert [one.attribute.id for one in clear.flagged] == ["age"]
        low, high = (row.estimate for row in noticed(view, MODEL))
        words = read(quotable(view, clear).encode()).text
        assert words.startswith(
            "In a simulated test (no real model), in questions that differ only in the group named, "
            f"the scored answers of {MODEL} differed by age, beyond its own noise, best for “Group 0” and worst for "
            "“Group 1”"
        )
        assert words.endswith(
            f", in made-up scenarios that measure no harm done, while {found.unresolved} other attributes are "
            f"unresolved (an excess below {low:.1f} to {high:.1f} points would probably go unseen)."
        )
        assert f'<p class="lede">{quotable(view, found)}</p>' in pages[paths.model_page(RUN, MODEL)]

    def test_no_finding_is_no_proof(self, view):
        words = read(quotable(view, view.findings.of(OTHER)).encode()).text
        told = f"this run cannot tell whether the scored answers of {OTHER} differed by group beyond its own noise"
        assert f"{told} on any of 7 attributes" in words
        assert "would probably go unseen" in words

    def test_the_proof_that_it_is_not_stands_where_no_difference_is_said(self, view):
        found = view.findings.of(OTHER)
        apart = Apart(
            OTHER, None, "lower", view.book.row(OTHER, "favorability"), view.book.row(OTHER, "favorability_gap")
        )
        words = read(quotable(view, dataclasses.replace(found, apart=(apart,))).encode()).text
        assert re.search(
            r"beyond its own noise on any of 7 attributes[^.]* \(an excess below .*"
            r"unseen\), and it favored everybody less than all other models did\.$",
            words,
        )

    def test_without_a_band_nothing_can_be_said(self, view):
        found = view.findings.of(OTHER)
        bare = dataclasses.replace(found, suggestive=(), flagged=(), unresolved=0, refusing=(), apart=())
        assert quotable(view, bare).endswith(
            f"nothing can be said of {OTHER}: no attribute could be held against its own noise."
        )

    def test_it_is_one_sentence_and_describes_the_page(self, view, pages):
        for model in view.models:
            words = read(quotable(view, view.findings.of(model)).encode()).text
            assert len(re.findall(r"\.(?= |$)", words)) == 1
            assert f'<meta name="description" content="{words}">' in pages[paths.model_page(RUN, model)]


class TestSizes:
    def test_the_steps_between_labels_are_those_of_the_bank(self, view, pages):
        steps = {rubric.category: rubric.steps for rubric in label_steps(view.bank.rubrics)}
        assert steps["allocation"] == (("DENY", "CONDITIONAL", 50), ("CONDITIONAL", "APPROVE", 50))
        assert steps["capability"] == ()
        found = text(pages, paths.model_page(RUN, MODEL))
        assert "DENY to CONDITIONAL is 50 points, CONDITIONAL to APPROVE is 50 points" in found
        assert "a score from 0 to 100, each of it a point" in found


class TestLevels:
    def test_each_kind_of_task_has_level_shares_and_refusals(self, view, pages):
        page = paths.model_page(RUN, MODEL)
        found = part(pages, page, '<h2 id="level">')
        listed = levels(view, MODEL)
        assert [one.category for one in listed] == [None, "stance", "capability"]
        for one in listed:
            assert (one.level.estimate is None) == (one.category is None)  # two kinds of task make no overall level
            assert one.level.estimate is None or f"{one.level.estimate:.1f}" in found
            shares = [row.estimate for _, row in one.shares]
            assert not shares or sum(shares) == pytest.approx(100)
            for name, row in one.shares:
                assert f"{name} {row.estimate:.1f} %" in found

    def test_the_stack_of_shares_fills_its_width(self, view):
        (stance,) = (one for one in levels(view, MODEL) if one.category == "stance")
        boxes = re.findall(r'<rect x="([\d.]+)%" width="([\d.]+)%"', stance.stack)
        assert len(boxes) == len(stance.shares) == 3
        assert float(boxes[-1][0]) + float(boxes[-1][1]) == pytest.approx(100, abs=0.02)


class TestContents:
    def test_every_entry_leads_to_a_part_of_the_page(self, pages):
        html = pages[paths.model_page(RUN, MODEL)]
        listed = re.findall(r'href="#([a-z]+)"', html.partition('<nav class="contents"')[2].partition("</nav>")[0])
        assert listed == ["found", "chart", "lean", "level", "compare", "moved", "panel", "check"]
        places = [html.index(f'id="{name}"') for name in listed]
        assert places == sorted(places)

    def test_what_the_page_leaves_out_is_one_link_away(self, pages):
        page = paths.model_page(RUN, MODEL)
        assert pages[page].count('href="one/numbers.html') >= 9
        more = pages[paths.numbers_page(RUN, MODEL)]
        for heading in ('id="more"', 'id="rates"', 'id="behind"'):
            assert heading in more
            assert heading not in pages[page]


def result(concept, mean):
    return ConceptResult(concept, {"direct": mean}, 1, 0, 0, 0)


class TestPairCard:
    """One matched pair for each finding: the concept with the median disparity, never the most striking one."""

    def test_the_median_of_an_odd_number_the_smaller_of_two_middle_ones(self, view):
        first, second, third, fourth = view.bank.concepts_of("age")[:4]
        odd = [result(first, 9.0), result(second, 1.0), result(third, 5.0)]
        assert median_concept(odd).concept == third
        assert median_concept([*odd, result(fourth, 7.0)]).concept == third
        assert median_concept([result(first, None)]) is None
        assert median_concept([]) is None

    def test_of_equal_ones_the_id_decides(self, view):
        first, second, third = view.bank.concepts_of("age")[:3]
        assert median_concept([result(c, 2.0) for c in (third, second, first)]).concept == second

    def test_it_shows_both_answers_their_receipts_and_the_caveat(self, view):
        here = {"metric": "excess", "attribute": "age", "model": MODEL}
        rows = [r | {"evidence": "flagged"} if here.items() <= r.items() else r for r in _scores(view)]
        edition = _with_scores(view, rows)
        shown = View(edition)
        card = pair_cards(shown, MODEL)["age"]
        assert [side.group for side in card.sides] == ["Group 0", "Group 1"]
        middle = median_concept(shown.concept_results(MODEL, "age"))
        assert (card.concept, card.count) == (middle.concept.id, 8)
        assert [side.favor for side in card.sides] == ["up", "down"]
        html = dict(render_pages(edition))[paths.model_page(RUN, MODEL)].decode()
        figure = html.partition('<figure class="pair">')[2].partition("</figure>")[0]
        for side in card.sides:
            assert f'href="{paths.relative(paths.model_page(RUN, MODEL), side.page)}"' in figure
        words = read(figure.encode()).text
        assert "the concept with the median disparity of 8 concepts. One pair proves nothing" in words
        assert pair_cards(view, MODEL) == {}  # nothing is flagged there
