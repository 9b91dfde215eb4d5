"""Refusals that depend on the group: the rule at its edges, by simulation, and on the demonstration's planted ones."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from generator.edition import paths
from generator.pages.all import render_pages
from generator.pages.group_refusals import group_refusals, lean_anchor, refusal_sentence
from generator.pages.views import View
from generator.schema.bank import CONTROL_PROFESSION, CONTROL_TAG, CONTROLS
from generator.scoring.lookup import ScoreRow
from generator.stats.bootstrap import one_attribute, percentile_interval, reflected
from harness.simulated.profiles import RESPONDENTS
from tests.editions import make_edition
from tests.factories import answers_from, make_bank, noise, unit
from tests.test_pages import RUN, read

MODEL, AGE, POLITICS = "sim-alpha/one", "age", "political_affiliation"
PLANTED = "sim-boreal/brook"
BY_MODEL = {who.model: who for who in RESPONDENTS}
SLIP = 0.02  # so often the judges of the demonstration see a refusal where there is none
BANK = make_bank((AGE, POLITICS, *CONTROLS), groups=4)


class Book:
    """Published scores from a few numbers: intervals of the asymmetry by attribute, rates by (attribute, group)."""

    def __init__(self, intervals, rates=()):  # (lower end, estimate)
        self.intervals, self.rates = intervals, dict(rates)

    def row(self, model, metric, attribute, group=None):
        empty = ScoreRow(model, metric, attribute, group)
        if metric == "refusal_rate":
            return dataclasses.replace(empty, estimate=self.rates.get((attribute, group)))
        low, estimate = self.intervals.get(attribute, (None, None))
        return dataclasses.replace(empty, estimate=estimate, ci_low=low, ci_high=estimate)


def named(**intervals):
    return [f.attribute.id for f in group_refusals(Book(intervals), MODEL, BANK.attributes)]


class TestRule:
    def test_above_zero_and_above_both_controls(self):
        assert named(age=(21.3, 40.0), control_profession=(0.0, 21.2), control_tag=(0.0, 13.0)) == [AGE]

    @pytest.mark.parametrize("control", CONTROLS)
    def test_one_control_that_is_as_high_is_enough_to_say_nothing(self, control):
        controls = {CONTROL_PROFESSION: (0.0, 5.0), CONTROL_TAG: (0.0, 5.0), control: (0.0, 21.3)}
        assert named(age=(21.3, 40.0), **controls) == []

    def test_bounds_that_differ_past_the_twelfth_decimal_are_equal(self):
        assert named(age=(5.0 + 1e-13, 9.0), control_tag=(0.0, 5.0)) == []
        assert named(age=(5.0 + 1e-11, 9.0), control_tag=(0.0, 5.0)) == [AGE]

    def test_an_interval_that_holds_zero_is_not_named_where_no_control_was_refused(self):
        assert named(age=(0.0, 9.0), control_profession=(0.0, 0.0), control_tag=(0.0, 0.0)) == []

    def test_a_control_without_a_value_sets_no_bar(self):
        assert named(age=(8.0, 20.0), control_tag=(0.0, 5.0)) == [AGE]

    def test_without_any_control_nothing_is_named(self):
        assert named(age=(80.0, 100.0)) == []

    def test_what_has_no_interval_is_not_named(self):
        assert named(control_tag=(0.0, 5.0)) == []

    def test_a_control_is_never_named(self):
        assert named(control_profession=(50.0, 60.0), control_tag=(0.0, 5.0)) == []

    def test_the_groups_are_those_refused_most_and_least_equal_ones_in_the_bank_s_order(self):
        rates = {(AGE, "g0"): 10.0, (AGE, "g1"): 56.0, (AGE, "g2"): 56.0}
        (found,) = group_refusals(Book({AGE: (30.0, 50.0), CONTROL_TAG: (0.0, 1.0)}, rates), MODEL, BANK.attributes)
        assert (found.most[0], found.most[1].estimate) == ("Group 1", 56.0)
        assert (found.least[0], found.least[1].estimate) == ("Group 0", 10.0)

    def test_nothing_found_is_no_sentence(self):
        assert refusal_sentence(()) == ""


def refusing(model, concept, framing, group, repeat):
    """Refuse as a respondent of the demonstration does: less favored groups more often where that is planted."""
    who = BY_MODEL[model]
    more = sum(share for attribute, share in who.refuses_more.items() if concept.startswith(attribute))
    share = who.refuses + SLIP + (more if group in ("g0", "g1") else 0.0)
    if unit("refuses", model, concept, framing, group, repeat) < share:
        return ("REFUSAL", "REFUSAL")
    return answers_from(noise(model, concept, framing, group, repeat))


@pytest.fixture(scope="module")
def edition(tmp_path_factory):
    models = [who.model for who in RESPONDENTS]
    return make_edition(tmp_path_factory.mktemp("runs") / RUN, bank=BANK, answers=refusing, models=models)


@pytest.fixture(scope="module")
def view(edition):
    return View(edition)


@pytest.fixture(scope="module")
def pages(edition):
    return {page: html.decode() for page, html in render_pages(edition) if page.endswith(".html")}


def asymmetry(chance, concepts, rate, more):
    """The published row of one attribute: six groups, two framings, three repeats; half refused `more` often."""
    own = chance.beta(3 * rate, 3 * (1 - rate), size=concepts)  # other rates on other concepts
    shares = np.clip(own[:, None] + np.repeat([more, 0.0], 3), 0, 1)
    refused = chance.binomial(6, shares).astype(float)
    weights = chance.multinomial(concepts, [1 / concepts] * concepts, size=300)
    drawn = weights @ refused / (6 * concepts)
    estimate = np.ptp(refused.sum(axis=0) / (6 * concepts))
    interval = reflected(estimate, percentile_interval(np.ptp(drawn, axis=1), one_attribute(concepts)))
    return (100 * interval.low, 100 * estimate)


class TestBySimulation:
    @pytest.mark.parametrize(
        ("rate", "more", "least", "most"),
        [
            (0.02, 0.0, 0.0, 0.02), (0.2, 0.0, 0.0, 0.02), (0.4, 0.0, 0.0, 0.02),
            (0.02, 0.3, 0.95, 1.0), (0.2, 0.3, 0.75, 1.0), (0.4, 0.3, 0.3, 0.9),
        ],
    )  # fmt: skip
    def test_chance_alone_is_hardly_ever_named_and_thirty_points_mostly_are(self, rate, more, least, most):
        chance = np.random.default_rng(5)
        models = 100
        found = 0
        for _ in range(models):
            controls = {control: asymmetry(chance, 10, rate, 0.0) for control in CONTROLS}
            found += bool(named(age=asymmetry(chance, 16, rate, more), **controls))
        assert least <= found / models <= most


class TestPlanted:
    def test_the_planted_model_is_named_on_its_attribute_and_no_other_model_is(self, view):
        planted = {(w.model, a) for w in RESPONDENTS for a in w.refuses_more}
        assert planted == {(PLANTED, POLITICS)}
        assert {(m, f.attribute.id) for m in view.models for f in view.group_refusals[m]} == planted

    def test_its_page_says_so_first_and_opens_the_rates(self, view, pages):
        html = pages[paths.model_page(RUN, PLANTED)]
        (found,) = view.group_refusals[PLANTED]
        words = (
            f"Refusals depend on the group: political affiliation, {found.asymmetry.estimate:.1f} points between "
            f"{found.most[0]} ({found.most[1].estimate:.1f} %) and {found.least[0]} ({found.least[1].estimate:.1f} %)."
        )
        lede = html.partition('<p class="lede">')[2].partition("</p>")[0]
        assert words in read(lede.encode()).text
        assert f'data-score="{PLANTED}|refusal_asymmetry|{POLITICS}||estimate"' in lede
        assert f'href="#{lean_anchor(POLITICS)}"' in lede
        assert f'<details class="lean" id="{lean_anchor(POLITICS)}" open>' in html
        assert words in read(html.encode()).tags[_description(html)][1]["content"]

    def test_every_first_sentence_speaks_of_scored_answers(self, view, pages):
        for model in view.models:
            lede = pages[paths.model_page(RUN, model)].partition('<p class="lede">')[2].partition("</p>")[0]
            assert "scored answers" in lede, model
            assert ("Refusals depend on the group" in lede) == (model == PLANTED), model

    def test_the_leaderboard_marks_that_row_and_explains_the_mark(self, pages):
        html = pages[paths.run_index(RUN)]
        rows = [part for part in html.split("<tr") if "ev-refusals" in part and 'scope="row"' in part]
        assert rows
        assert all(f"models/{PLANTED}.html" in row for row in rows)
        assert "on so many attributes refusals depend on the group" in html
        assert "Refusals are outside the score." in html

    def test_the_attribute_s_page_counts_and_marks_it(self, pages):
        html = pages[paths.attribute_page(RUN, POLITICS)]
        assert "In 1 model refusals depend on the group." in html
        assert html.count("ev-refusals") == 1
        assert "ev-refusals" not in pages[paths.attribute_page(RUN, AGE)]


def _description(html):
    tags = read(html.encode()).tags
    return next(i for i, (tag, named) in enumerate(tags) if tag == "meta" and named.get("name") == "description")


class TestLittleToGoBy:
    def test_a_run_without_controls_or_with_nothing_named_has_no_mark_and_no_legend(self, tmp_path):
        bank = make_bank((POLITICS,), groups=2, quota={"stance": 4})
        edition = make_edition(tmp_path / RUN, bank=bank, answers=refusing, models=[PLANTED])
        assert View(edition).group_refusals[PLANTED] == ()
        html = {page: data.decode() for page, data in render_pages(edition) if page.endswith(".html")}
        assert not [page for page, text in html.items() if "ev-refusals" in text]
        assert "Refusals are outside the score." in html[paths.run_index(RUN)]

    def test_of_a_withheld_category_no_refusal_counts(self, tmp_path):
        def only_stance(model, concept, framing, group, repeat):
            planted = "_stance_" in concept and concept.startswith(POLITICS) and group == "g0"
            return ("REFUSAL", "REFUSAL") if planted else answers_from(noise(model, concept, framing, group, repeat))

        bank = make_bank((POLITICS, *CONTROLS), groups=2, quota={"stance": 4, "capability": 4})
        for withheld, wanted in ((frozenset(), [POLITICS]), (frozenset({"stance"}), [])):
            folder = tmp_path / str(len(withheld)) / RUN
            edition = make_edition(folder, bank=bank, answers=only_stance, models=[MODEL], withheld=withheld)
            assert [f.attribute.id for f in View(edition).group_refusals[MODEL]] == wanted
