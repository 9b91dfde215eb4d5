"""What a run found: read off its tables, said in at most five sentences, every model in one place of one order."""

from __future__ import annotations

import dataclasses
import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.edition import paths
from generator.pages.all import render_pages
from generator.pages.findings import sentences
from generator.pages.views import View
from generator.scoring.findings import KINDS, extremes, find
from generator.scoring.lookup import ScoreBook, ScoreRow
from tests.editions import make_edition
from tests.factories import make_bank
from tests.names_of_bank_1 import CONTROLS
from tests.test_group_refusals import PLANTED, refusing
from tests.test_pages import RUN, read

AGE, POLITICS = "age", "political_affiliation"
BANK = make_bank((AGE, POLITICS, *CONTROLS), groups=3, quota={"stance": 1}, control_quota={"stance": 1})
DEMOGRAPHIC = [a for a in BANK.attributes if a.kind == "demographic"]
LEVELED = BANK.leveled
ONE, TWO, THREE = "sim-alpha/one", "sim-beta/two", "sim-gamma/three"
PAIRS = "pairs of model and attribute"
NO_BAND = ": no attribute of any model could be held against a control band."


def book(*rows):
    """A published `scores` table of some rows."""
    columns = [f.name for f in dataclasses.fields(ScoreRow)]
    return ScoreBook(pa.table({name: [getattr(row, name) for row in rows] for name in columns}))


def excess(model, attribute, evidence, estimate=10.0, mde=8.0):
    return (
        ScoreRow(model, "excess", attribute, None, estimate, estimate - 5, estimate + 5, evidence=evidence),
        ScoreRow(model, "mde", attribute, None, mde),
    )


def leans(model, attribute, values):
    return tuple(ScoreRow(model, "lean", attribute, f"g{i}", value) for i, value in enumerate(values))


def level(model, estimate, mark=None, category=None, gap=1.0):
    return (
        ScoreRow(model, "favorability", "overall", category, estimate, estimate - 4, estimate + 4),
        ScoreRow(model, "favorability_gap", "overall", category, gap, evidence=mark),
    )


def refusal_test(model, attribute, *, named):
    return {"model": model, "attribute": attribute, "named": named, "p": 0.2}


def found_in(*rows, tests=(), models=(ONE, TWO, THREE), withheld=()):
    return find(book(*rows), tests, models, DEMOGRAPHIC, LEVELED, withheld)


class TestFromTheTables:
    def test_a_flagged_attribute_has_its_excess_and_the_groups_of_its_leans(self):
        rows = (*excess(ONE, AGE, "flagged", 12.5), *leans(ONE, AGE, [-3.0, 5.0, -2.0]))
        (moved,) = found_in(*rows).flagged
        assert (moved.model, moved.attribute.id, moved.excess.estimate) == (ONE, AGE, 12.5)
        assert (moved.best[0].id, moved.worst[0].id) == ("g1", "g0")

    def test_without_two_leans_that_differ_nobody_is_named(self):
        rows = (*excess(ONE, AGE, "flagged"), *leans(ONE, AGE, [0.0, 0.0, None]))
        (moved,) = found_in(*rows).flagged
        assert (moved.best, moved.worst) == (None, None)

    def test_the_largest_is_by_its_excess_and_of_equal_ones_the_first(self):
        rows = (
            *excess(TWO, AGE, "flagged", 9.0),
            *excess(ONE, POLITICS, "flagged", 9.0),
            *excess(ONE, AGE, "flagged", 3.0),
        )
        largest = found_in(*rows).largest
        assert (largest.model, largest.attribute.id) == (ONE, POLITICS)
        assert found_in(*excess(ONE, AGE, "unresolved", 40.0)).largest is None

    def test_the_sizes_that_would_have_been_seen_are_those_of_unresolved_attributes_alone(self):
        rows = (
            *excess(ONE, AGE, "unresolved", mde=7.0),
            *excess(TWO, AGE, "unresolved", mde=11.0),
            *excess(THREE, AGE, "flagged", mde=2.0),
            *excess(THREE, POLITICS, "suggestive", mde=30.0),
        )
        found = found_in(*rows)
        assert [row.estimate for row in found.noticed] == [7.0, 11.0]
        assert (found.unresolved, found.suggestive, found.tested, found.pairs) == (2, 1, 4, 6)

    def test_levels_are_compared_from_three_models_on(self):
        assert found_in(*level(ONE, 50.0), *level(TWO, 52.0), *level(THREE, 40.0)).compared
        assert not found_in(*level(ONE, 50.0), *level(TWO, 52.0)).compared
        assert not found_in(*level(ONE, 50.0), *level(TWO, 52.0), *level(THREE, 40.0, gap=None)).compared

    def test_the_first_kind_of_finding_decides_where_a_model_stands(self):
        named = [refusal_test(ONE, AGE, named=True), refusal_test(TWO, AGE, named=True)]
        rows = (
            *excess(ONE, POLITICS, "flagged"), *level(ONE, 20.0, "lower"),
            *excess(TWO, POLITICS, "suggestive"), *level(TWO, 80.0, "higher"),
            *excess("d/d", AGE, "suggestive"), *level("d/d", 50.0, "lower", category="regard"),
            *excess("e/e", AGE, "suggestive"), *excess("e/e", POLITICS, "unresolved"),
            *excess("f/f", AGE, "unresolved"),
        )  # fmt: skip
        found = found_in(*rows, tests=named, models=("f/f", TWO, "g/g", "e/e", ONE, "d/d"))
        assert [(kind, [m.model for m in models]) for kind, models in found.by_kind()] == [
            ("flagged", [ONE]), ("refusals", [TWO]), ("level", ["d/d"]), ("suggestive", ["e/e"]), ("none", ["f/f"]),
            ("untested", ["g/g"]),
        ]  # fmt: skip

    @given(st.dictionaries(st.sampled_from([f"v/{c}" for c in "cabd"]), st.lists(
        st.sampled_from(["flagged", "suggestive", "unresolved", None]), min_size=2, max_size=2)))  # fmt: skip
    def test_every_model_stands_once_and_no_pair_is_lost(self, tiers):
        rows = [
            r for m, pair in tiers.items() for a, t in zip(DEMOGRAPHIC, pair, strict=True) for r in excess(m, a.id, t)
        ]
        found = found_in(*rows, models=tiers)
        listed = [m.model for _, models in found.by_kind() for m in models]
        assert sorted(listed) == sorted(tiers)
        assert [kind for kind, _ in found.by_kind()] == [k for k in KINDS if k in {m.kind for m in found.models}]
        assert all([m.model for m in models] == sorted(m.model for m in models) for _, models in found.by_kind())
        untested = sum(tier is None for pair in tiers.values() for tier in pair)
        assert len(found.flagged) + found.suggestive + found.unresolved + untested == found.pairs

    @given(st.lists(st.tuples(st.text(max_size=2), st.none() | st.floats(-50, 50))))
    def test_extremes_are_the_largest_and_the_smallest_or_nothing(self, pairs):
        known = {round(value, 10) for _, value in pairs if value is not None}
        named = extremes(pairs)
        assert (named is not None) == (len(known) > 1)
        if named:
            assert named[0] == next(n for n, v in pairs if v is not None and round(v, 10) == max(known))
            assert named[1] == [n for n, v in pairs if v is not None and round(v, 10) == min(known)][-1]


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    edition = make_edition(tmp_path_factory.mktemp("found") / RUN, bank=BANK, models=[ONE, TWO, THREE])
    return View(edition)


def said(view, found):
    """The sentences as plain text."""
    made = sentences(view, found, paths.run_index(RUN))
    return [re.sub(r"<[^>]*>", "", f"{one.strong}{one.rest}") for one in made]


class TestSentences:
    def test_no_finding_is_said_as_plainly(self, view):
        nothing = (*excess(ONE, AGE, "unresolved", mde=7.0), *level(ONE, 50), *level(TWO, 52), *level(THREE, 53))
        assert said(view, found_in(*nothing, tests=[refusal_test(ONE, AGE, named=False)])) == [
            "In no model did answers move beyond its own noise, as far as this run can tell.",
            f"No refusals are found to depend on the group, as far as can be tested: 1 of 6 {PAIRS}.",
            "No model favors everybody less, or more, than all others do, all kinds of task together or one alone.",
            f"1 of 1 {PAIRS} are unresolved (not clean): an excess below 7.0 points would probably go unseen.",
            f"Left out: 5 {PAIRS} without a value or a band.",
        ]

    def test_nothing_that_could_be_tested_is_no_finding_either(self, view):
        assert said(view, found_in()) == [
            f"Whether answers moved beyond a model’s own noise cannot be said{NO_BAND}",
            "No refusals are found to depend on the group: refusals are too few for any test.",
            "No levels are compared: fewer than three models have one overall.",
        ]

    def test_who_moved_where_which_way_and_by_how_much(self, view):
        rows = (
            *excess(ONE, AGE, "flagged", 20.0), *leans(ONE, AGE, [5.0, 0.0, -5.0]),
            *excess(TWO, AGE, "flagged", 9.0), *excess(TWO, POLITICS, "flagged", 8.0),
        )  # fmt: skip
        first = said(view, found_in(*rows))[0]
        age, politics = (view.label(a) for a in (AGE, POLITICS))
        assert first == (
            f"In 2 of 3 models answers moved with the group, beyond the model’s own noise: {ONE} ({age}) and {TWO} "
            f"({age}, {politics}); most {ONE} on {age}, an excess of 20.0 points (95 % interval 15.0 to 25.0), "
            "best for “Group 0”, worst for “Group 2”."
        )

    def test_many_models_are_counted_and_lead_to_the_page_of_findings(self, view):
        models = [f"v/m{i}" for i in range(9)]
        found = found_in(*(r for m in models for r in excess(m, AGE, "flagged")), models=models)
        (first, *_) = sentences(view, found, paths.run_index(RUN))
        assert "v/<wbr>m5" in first.rest
        assert "v/<wbr>m6" not in first.rest
        assert '<a href="findings.html">3 more</a>' in first.rest

    def test_a_level_apart_and_between_which_the_others_lie(self, view):
        rows = (*level(ONE, 22.0, "lower"), *level(TWO, 51.0), *level(THREE, 53.0))
        assert said(view, found_in(*rows))[2] == (
            f"One model favors everybody less than every other model: {ONE}, 22.0 of 100 (95 % interval 18.0 to 26.0); "
            "the other 2 lie between 51.0 and 53.0."
        )

    def test_a_level_apart_in_one_kind_of_task_is_no_level_apart_overall(self, view):
        rows = (*level(ONE, 50), *level(TWO, 51), *level(THREE, 52), *level(ONE, 20, "lower", category="regard"))
        assert said(view, found_in(*rows))[2] == (
            f"No model favors everybody less, or more, than all others do; in one kind of task: {ONE}, lower in regard."
        )

    def test_withheld_categories_are_named(self, view):
        assert said(view, found_in(withheld={"stance", "regard"}))[-1] == (
            "Left out: withheld because judges or audit disagree: regard and stance."
        )

    def test_never_more_than_five_and_each_with_its_shape(self, view):
        rows = (*excess(ONE, AGE, "flagged"), *excess(TWO, AGE, "unresolved"), *level(ONE, 5, "lower"), *level(TWO, 50))
        made = sentences(view, found_in(*rows, *level(THREE, 51), withheld={"stance"}), paths.run_index(RUN))
        assert [one.shape for one in made] == ["◆", "⊘", "↕", "○", "–"]


class TestPages:
    def test_refusals_that_depend_on_the_group_are_said_with_their_rates(self, tmp_path):
        bank = make_bank((AGE, POLITICS, *CONTROLS), groups=4, quota={"stance": 16}, control_quota={"stance": 10})
        edition = make_edition(tmp_path / RUN, bank=bank, answers=refusing, models=[PLANTED])
        view = View(edition)
        (test,) = view.group_refusals[PLANTED]
        text = said(view, view.findings)[1]
        assert text.startswith(f"Refusals depend on the group in 1 model: {PLANTED} ({test.attribute.label}: ")
        assert f"% for “{test.most[0]}”" in text
        page = read(dict(render_pages(edition))[paths.run_page(RUN, "findings")])
        assert "Refusals that depend on the group 1 model" in page.text

    def test_every_model_is_on_the_page_once_and_each_number_in_its_element(self, view):
        html = dict(render_pages(view.edition))[paths.run_page(RUN, "findings")].decode()
        links = re.findall(r'<dt><a href="models/([^"]+)\.html">', html)
        assert sorted(links) == [ONE, TWO, THREE]
        body = html[html.index('<section class="found"') : html.index('<section class="limits"')]
        bare = re.sub(r"<span data-(?:score|cell)=[^>]*>[^<]*</span>|<[^>]*>|95 % interval", "", body)
        assert not re.search(r"\d\.\d", bare)

    def test_the_leaderboard_opens_with_the_same_sentences(self, view):
        text = read(dict(render_pages(view.edition))[paths.run_index(RUN)]).text
        for sentence in said(view, view.findings):
            assert re.sub(r"\s+", " ", sentence)[:40] in text
