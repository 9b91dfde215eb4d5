"""Which pairs of models are compared on what, who is of a family, and what that leaves without a p."""

from __future__ import annotations

import math

import numpy as np
import pytest

from generator.scoring.comparisons import MOST_BY_ATTRIBUTE, Compared, Disparities, compare
from generator.stats.bootstrap import Resamples, Sample, concept_counts
from generator.stats.range_test import range_p
from tests.names_of_bank_1 import DEMOGRAPHIC

B, N = 200, 6
RESAMPLES = {a: Resamples.of(concept_counts("0" * 64, a, N, B)) for a in DEMOGRAPHIC}


def disparities(values):
    values = np.array(values, np.float64)
    known = values[~np.isnan(values)]
    return Disparities(float(known.mean()) if len(known) else math.nan, values)


def model(slug, seed, **changes):
    """A model with random D(c), but for some attributes; overall only where it has a value on every attribute."""
    rng = np.random.default_rng(seed)
    found = {a: disparities(changes.get(a, rng.beta(2, 12, N))) for a in DEMOGRAPHIC}
    estimates = [f.estimate for f in found.values()]
    draws = [r.sums(np.nan_to_num(found[a].by_concept)[None])[0] / N for a, r in RESAMPLES.items()]
    overall = None if np.isnan(estimates).any() else (float(np.mean(estimates)), np.mean(draws, axis=0))
    return Compared(slug, found, overall)


def rows(models, resamples=RESAMPLES):
    """{(a, b, attribute): (difference, low, p_within, p_all)}, None for what is not there."""
    found = {}
    for one in compare(models, resamples, DEMOGRAPHIC):
        numbers = np.stack([one.found.difference, one.found.low, one.p_within, one.p_all]).T.tolist()
        for a, b, own in zip(one.found.first.tolist(), one.found.second.tolist(), numbers, strict=True):
            key = (one.found.models[a], one.found.models[b], one.attribute)
            found[key] = tuple(None if math.isnan(x) else x for x in own)
    return found


THIN = [0.1, 0.2, math.nan, 0.1, 0.3, 0.2]


class TestFamilies:
    def test_a_model_without_a_value_on_one_concept_has_no_p_there_nor_overall_and_keeps_the_rest(self):
        found = rows([model("v/a", 1), model("v/b", 2), model("v/thin", 3, age=THIN)])
        for other in ("v/a", "v/b"):
            for attribute in ("age", "overall"):
                difference, low, *ps = found[other, "v/thin", attribute]
                assert None not in (difference, low)
                assert ps == [None, None]
            assert None not in found[other, "v/thin", "gender"]
        assert None not in found["v/a", "v/b", "age"]
        assert found["v/a", "v/b", "overall"][2] is not None

    def test_a_thin_model_widens_nobody_s_range(self):
        two = [model("v/a", 1), model("v/b", 2)]
        thin = model("v/thin", 3, **{a: [math.nan, 0.9, math.nan, 0.0, math.nan, 0.0] for a in DEMOGRAPHIC})
        alone, beside = rows(two), rows([*two, thin])
        assert {k: v for k, v in beside.items() if "v/thin" not in k} == alone

    def test_a_concept_on_which_no_model_has_a_value_is_not_of_the_family(self):
        found = rows([model("v/a", 1, age=THIN), model("v/b", 2, age=[x / 2 for x in THIN])])
        assert None not in found["v/a", "v/b", "age"]

    def test_a_family_of_one_concept_has_no_p_and_spoils_the_overall_one(self):
        only = [0.1] + [math.nan] * 5
        found = rows([model("v/a", 1, age=only), model("v/b", 2, age=only)])
        assert found["v/a", "v/b", "age"][1:] == (None, None, None)
        assert found["v/a", "v/b", "overall"][2] is None
        assert None not in found["v/a", "v/b", "gender"]

    def test_a_model_without_any_value_on_an_attribute_has_no_row_there_and_none_overall(self):
        found = rows([model("v/a", 1), model("v/b", 2), model("v/none", 3, age=[math.nan] * N)])
        assert {attribute for a, b, attribute in found if b == "v/none"} == {*DEMOGRAPHIC} - {"age"}

    def test_over_all_attributes_the_smallest_family_counts(self):
        # Two models that nothing separates but noise of 1e-3: the largest difference has no hit in any resample.
        few = [0.5, math.nan, math.nan, math.nan, 0.5, 0.5]
        found = rows([model("v/a", 1, gender=[0.9] * N, age=few), model("v/b", 1, gender=[0.1] * N, age=few)])
        assert found["v/a", "v/b", "gender"][2] == pytest.approx(range_p(0, B, Sample(6, 5)))
        assert found["v/a", "v/b", "gender"][3] == pytest.approx(range_p(0, B, Sample(3, 2)))


class TestRows:
    def test_no_row_below_two_models(self):
        assert rows([model("v/a", 1)]) == {}

    def test_a_bank_without_all_seven_attributes_has_no_overall_row(self):
        resamples = {a: r for a, r in RESAMPLES.items() if a != "age"}
        found = rows([model("v/a", 1), model("v/b", 2)], resamples)
        assert {attribute for *_, attribute in found} == {*DEMOGRAPHIC} - {"age"}

    @pytest.mark.parametrize(("more", "attributes"), [(0, {*DEMOGRAPHIC, "overall"}), (1, {"overall"})])
    def test_above_two_hundred_models_only_overall_is_tabled(self, more, attributes):
        n = MOST_BY_ATTRIBUTE + more
        values = np.random.default_rng(1).beta(2, 12, (n, len(DEMOGRAPHIC), N))
        models = [model(f"v/{i:03d}", 1, **dict(zip(DEMOGRAPHIC, own, strict=True))) for i, own in enumerate(values)]
        small = {a: Resamples.of(concept_counts("0" * 64, a, N, 20)) for a in DEMOGRAPHIC}
        models = [Compared(m.model, m.attributes, (m.overall[0], m.overall[1][:20])) for m in models]
        found = compare(models, small, DEMOGRAPHIC)
        assert {one.attribute for one in found} == attributes
        assert all(len(one.p_within) == n * (n - 1) // 2 for one in found)
