"""Refusals that depend on the group: the rule at its edges, by simulation, and on the demonstration's planted ones."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from generator.edition import paths
from generator.pages.all import render_pages
from generator.pages.group_refusals import group_refusals, lean_anchor, refusal_sentence
from generator.pages.views import View
from generator.scoring.lookup import ScoreRow
from harness.bank.reader import read_bank_folder
from harness.simulated.planted import respondents
from tests.bench.bench_refusals import names_any
from tests.editions import make_edition
from tests.factories import answers_from, make_bank, noise, unit
from tests.names_of_bank_1 import CONTROLS
from tests.test_pages import RUN, read

MODEL, AGE, POLITICS = "sim-alpha/one", "age", "political_affiliation"
PLANTED = "sim-boreal/brook"
RESPONDENTS = respondents(read_bank_folder())
BY_MODEL = {who.model: who for who in RESPONDENTS}
SLIP = 0.02  # so often the judges of the demonstration see a refusal where there is none
BANK = make_bank((AGE, POLITICS, *CONTROLS), groups=4)


class Book:
    """Published refusal rates by (attribute, group)."""

    def __init__(self, rates=()):
        self.rates = dict(rates)

    def row(self, model, metric, attribute, group=None):
        empty = ScoreRow(model, metric, attribute, group)
        return dataclasses.replace(empty, estimate=self.rates.get((attribute, group), 12.0))


def one_test(attribute, *, named, model=MODEL, p=0.004):
    return {"model": model, "attribute": attribute, "q": 21.27, "df": 3, "p_adjusted": p, "named": named}


def found_in(*tests, rates=()):
    return group_refusals(tests, Book(rates), MODEL, BANK.attributes)


class TestFromTheTable:
    def test_the_attributes_that_it_names_of_this_model_in_the_bank_s_order(self):
        tests = [
            one_test(POLITICS, named=True),
            one_test(AGE, named=True),
            one_test(AGE, named=True, model="sim-beta/two"),
        ]
        assert [f.attribute.id for f in found_in(*tests)] == [AGE, POLITICS]
        assert found_in(one_test(AGE, named=False), one_test(POLITICS, named=True, model="sim-beta/two")) == ()

    @pytest.mark.parametrize(("p", "shown"), [(0.004, "0.0040"), (0.00021, "0.00021"), (1.547e-7, "0.00000015"),
                                              (0.0, "0.000000000000")])  # fmt: skip
    def test_its_numbers_stand_in_elements_that_verify_reads(self, p, shown):
        (found,) = found_in(one_test(AGE, named=True, p=p))
        assert found.p == f'<span data-cell="refusal_tests|{MODEL},{AGE}|p_adjusted">{shown}</span>'
        assert found.q == f'<span data-cell="refusal_tests|{MODEL},{AGE}|q">21.3</span>'
        assert found.df == f'<span data-cell="refusal_tests|{MODEL},{AGE}|df">3</span>'

    def test_the_groups_are_those_refused_most_and_least_equal_ones_in_the_bank_s_order(self):
        rates = {(AGE, "g0"): 10.0, (AGE, "g1"): 56.0, (AGE, "g2"): 56.0}
        (found,) = found_in(one_test(AGE, named=True), rates=rates)
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


class TestBySimulation:
    @pytest.mark.parametrize(("rate", "clustered"), [(0.01, False), (0.02, True), (0.2, False), (0.4, True)])
    def test_chance_alone_is_hardly_ever_named(self, rate, clustered):
        chance = np.random.default_rng(5)
        assert sum(names_any(chance, rate, 0.0, clustered=clustered) for _ in range(150)) <= 4

    @pytest.mark.parametrize(("rate", "least"), [(0.02, 90), (0.2, 50)])
    def test_thirty_points_on_half_of_the_groups_mostly_are(self, rate, least):
        chance = np.random.default_rng(5)
        assert sum(names_any(chance, rate, 0.3, clustered=True) for _ in range(100)) >= least


class TestPlanted:
    def test_the_planted_model_is_named_on_its_attribute_and_no_other_model_is(self, view):
        planted = {(w.model, a) for w in RESPONDENTS for a in w.refuses_more}
        assert planted == {(PLANTED, POLITICS)}
        assert {(m, f.attribute.id) for m in view.models for f in view.group_refusals[m]} == planted

    def test_its_page_says_so_first_and_opens_the_rates(self, view, pages):
        html = pages[paths.model_page(RUN, PLANTED)]
        (found,) = view.group_refusals[PLANTED]
        lede, _, after = html.partition('<p class="lede">')[2].partition("</p>")
        said = "it refused some groups of political affiliation more often than others"
        assert said in read(lede.encode()).text
        lines = after.partition("</dl>")[0]
        words = (
            f"refusals depend on the group, {found.most[1].estimate:.1f} % for “{found.most[0]}”, "
            f"{found.least[1].estimate:.1f} % for “{found.least[0]}”, {found.asymmetry.estimate:.1f} points apart"
        )
        assert words in read(lines.encode()).text
        assert f'data-score="{PLANTED}|refusal_asymmetry|{POLITICS}||estimate"' in lines
        assert f'href="#{lean_anchor(POLITICS)}"' in lines
        for column in ("q", "df", "p_adjusted"):
            assert f'data-cell="refusal_tests|{PLANTED},{POLITICS}|{column}"' in html
        assert f'<details class="lean" id="{lean_anchor(POLITICS)}" open>' in html
        assert said in read(html.encode()).tags[_description(html)][1]["content"]

    def test_every_first_sentence_speaks_of_scored_answers(self, view, pages):
        for model in view.models:
            lede = pages[paths.model_page(RUN, model)].partition('<p class="lede">')[2].partition("</p>")[0]
            assert "scored answers" in lede, model
            assert ("refused some groups" in lede) == (model == PLANTED), model

    def test_the_leaderboard_marks_that_row_and_explains_the_mark(self, pages):
        html = pages[paths.run_index(RUN)]
        rows = [part for part in html.split("<tr") if "ev-refusals" in part and 'scope="row"' in part]
        assert rows
        assert all(f"models/{PLANTED}.html" in row for row in rows)
        assert "on so many attributes refusals depend on the group" in " ".join(html.split())
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

        bank = make_bank((POLITICS, *CONTROLS), groups=2, quota={"stance": 7, "capability": 4})
        for withheld, wanted in ((frozenset(), [POLITICS]), (frozenset({"stance"}), [])):
            folder = tmp_path / str(len(withheld)) / RUN
            edition = make_edition(folder, bank=bank, answers=only_stance, models=[MODEL], withheld=withheld)
            assert [f.attribute.id for f in View(edition).group_refusals[MODEL]] == wanted
