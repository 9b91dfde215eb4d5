"""Which two models differ: states of pairs, matrices, the page side by side."""

from __future__ import annotations

import dataclasses
import re

import pytest

from generator.edition import paths
from generator.pages import pairs
from generator.pages.all import render_pages
from generator.pages.pairs import blocks, side_query, state
from generator.pages.planted import confusion
from generator.pages.views import View
from generator.schema.tables import OVERALL
from tests.editions import make_edition
from tests.factories import answers_from, make_bank, noise
from tests.test_pages import RUN, read

MODELS = ["sim-alpha/one", "sim-beta/two", "sim-delta/four"]
QUOTA = {"stance": 4, "capability": 4}


def uneven(model, concept, framing, group, repeat):
    """One model treats the groups of every attribute very differently; the others only vary."""
    if model == MODELS[1] and not concept.startswith("control"):
        return answers_from(1.0 if group == "g0" else 0.0)
    return answers_from(0.5 + 0.1 * noise(model, concept, framing, group, repeat))


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    bank = make_bank(groups=3, quota=QUOTA, control_quota=QUOTA)
    return View(make_edition(tmp_path_factory.mktemp("runs") / RUN, bank=bank, answers=uneven, models=MODELS))


@pytest.fixture(scope="module")
def pages(view):
    return {page: html.decode() for page, html in render_pages(view.edition)}


def row(difference, within, every=None, attribute="age"):
    return {"difference": difference, "p_within": within, "p_all": every, "attribute": attribute}


class TestState:
    @pytest.mark.parametrize(
        ("found", "turned", "wanted"),
        [
            (None, False, "none"),
            (row(3.0, None), False, "none"),
            (row(3.0, 0.0501, 0.2), False, "same"),
            (row(3.0, 0.05, 0.2), False, "more-here"),
            (row(3.0, 0.05, 0.2), True, "less-here"),
            (row(-3.0, 0.01, 0.05), False, "less"),
            (row(-3.0, 0.01, 0.05), True, "more"),
            (row(3.0, 0.01, None, OVERALL), False, "more"),
            (row(3.0, 0.01, None), False, "more-here"),
        ],
    )
    def test_it_is_seen_from_the_row(self, found, turned, wanted):
        assert state(found, turned=turned) == wanted


class TestMatrix:
    def test_a_pair_reads_the_other_way_from_the_other_side(self, view):
        opposite = {"more": "less", "less": "more", "more-here": "less-here", "less-here": "more-here"}
        (block,) = blocks(view)
        assert [m.attribute for m in block.matrices] == [OVERALL, *(a.id for a in view.demographic)]
        for matrix in block.matrices:
            states = [row for _, row in matrix.rows]
            for i, line in enumerate(states):
                for j, one in enumerate(line):
                    assert (one is None) == (i == j)
                    assert i == j or states[j][i] == opposite.get(one, one)

    def test_the_uneven_model_is_less_consistent_than_both_others_everywhere(self, view):
        (block,) = blocks(view)
        for matrix in block.matrices:
            states = dict(matrix.rows)[MODELS[1]]
            assert {one for one in states if one} <= {"less", "less-here"}, matrix.attribute

    def test_above_the_most_models_each_is_held_against_those_of_its_tier(self, view, monkeypatch):
        monkeypatch.setattr(pairs, "MOST_MODELS", 2)
        tiers = {}
        for line in view.tiers:
            tiers.setdefault(line["tier"], []).append(line["model"])
        wanted = [(f"Tier {n}", tuple(models)) for n, models in sorted(tiers.items()) if len(models) > 1]
        assert [(block.heading, block.models) for block in blocks(view)] == wanted


class TestPages:
    def test_the_lede_counts_the_pairs_that_differ(self, view, pages):
        rows = [r for r in view.comparisons if r["attribute"] == OVERALL]
        differ = sum(r["p_within"] <= 0.05 for r in rows)
        assert differ == 2
        assert f"{differ} of 3 pairs of models differ" in read(pages[paths.run_page(RUN, "pairs")].encode()).text

    def test_a_cell_leads_to_the_two_side_by_side(self, pages):
        html = pages[paths.run_page(RUN, "pairs")]
        links = re.findall(r'href="(side\.html[^"]+)"', html)
        assert "side.html?a=sim-alpha/one&amp;b=sim-beta/two" in links
        assert len(links) == 6

    def test_every_shape_is_explained(self, pages):
        html = pages[paths.run_page(RUN, "pairs")]
        used = {name for name in pairs.SHAPES if f'class="p-{name}"' in html}
        assert {"more", "less"} <= used
        assert all(read(words.encode()).text in read(html.encode()).text for _, words in pairs.SHAPES.values())

    def test_without_a_script_each_model_s_pages_are_linked(self, pages):
        html = pages[paths.run_page(RUN, "side")]
        assert '<form id="choose" class="choose" hidden>' in html
        for model in MODELS:
            name = model.rpartition("/")[2]
            assert f'href="models/{model}.html#lean"' in html
            assert f'href="models/{model}/numbers.html"' in html, name

    def test_a_query_is_safe_in_an_address(self):
        assert side_query("v/a b", "v/c&d") == "?a=v/a%20b&b=v/c%26d"

    def test_the_model_s_comparison_leads_there(self, pages):
        html = pages[paths.model_page(RUN, MODELS[0])]
        assert 'href="../../side.html?a=sim-alpha/one&amp;b=sim-beta/two"' in html


def effect(who, name, text, size, **where):
    """One planted effect as a manifest has it."""
    role = "judge" if "judge" in who else "subject"
    return {"who": who, "role": role, "effect": name, "attribute": None, "group": None, "category": None, "size": size,
            "unit": "of the scale", "text": text} | where  # fmt: skip


PLANTED = [
    effect(MODELS[1], "group_effect", "Favors g0.", 1.0, attribute="age", group="g0"),
    effect(MODELS[0], "group_effect", "Favors g1.", 0.1, attribute="gender", group="g1"),
    effect(MODELS[0], "noise", "Varies.", 0.1),
    effect("sim-judge/x", "slips", "Slips.", 0.02),
]


class TestPlanted:
    def test_planted_stands_beside_found(self, tmp_path):
        bank = make_bank(groups=3, quota=QUOTA, control_quota=QUOTA)
        changes = {"planted": PLANTED}
        edition = make_edition(tmp_path / RUN, bank=bank, answers=uneven, models=MODELS, **changes)
        shown = View(edition)
        text = read(dict(render_pages(edition))[paths.run_page(RUN, "planted")]).text
        excess = shown.book.row(MODELS[1], "excess", "age").estimate
        assert shown.evidence(MODELS[1], "age") == "flagged"
        assert f"flagged: excess {excess:.1f} points, best for “Group 0”" in text
        assert "Favors g1." in text
        assert "3 effects were planted" in text
        assert "Of 2 that a finding can show, 1 were found as planted." in text
        assert "sim-judge/x: Slips. 0.02 of the scale" in text
        flagged = sum(shown.evidence(m, a.id) == "flagged" for m in MODELS for a in shown.demographic)
        (_, with_effect), (_, without) = confusion(shown)
        assert dict(with_effect) == {"flagged": 1, "suggestive": 0, "unresolved": 1, "not tested": 0}
        assert dict(without)["flagged"] == flagged - 1

    def test_a_run_that_says_nothing_of_it_has_no_such_page(self, view, pages):
        assert dataclasses.replace(view.edition).run.manifest.planted in (None, ())
        assert paths.run_page(RUN, "planted") not in pages
