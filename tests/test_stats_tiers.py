"""Tiers by their founder."""

from __future__ import annotations

import math

import pytest

from generator.stats.bootstrap import NO_INTERVAL, Interval
from generator.stats.tiers import OverallConsistency, tiers, too_many_errors


def standing(model, estimate, low, high):
    return OverallConsistency(model, estimate, Interval(low, high, 0.01))


def places(*standings):
    return [(p.standing.model, p.rank, p.tier, p.founder) for p in tiers(standings)]


class TestTiers:
    def test_a_tier_starts_only_below_its_founders_lower_end(self):
        # b's interval overlaps a's; c overlaps b's but ends below a's lower end: a new tier, founded by c.
        found = places(
            standing("v/c", 0.7, 0.6, 0.79), standing("v/a", 0.9, 0.8, 0.95), standing("v/b", 0.85, 0.7, 0.9)
        )
        assert found == [("v/a", 1, 1, "v/a"), ("v/b", 2, 1, "v/a"), ("v/c", 3, 2, "v/c")]

    def test_touching_intervals_do_not_part(self):
        assert places(standing("v/a", 0.9, 0.8, 0.95), standing("v/b", 0.7, 0.6, 0.8))[1][2] == 1

    def test_equal_after_rounding_is_touching(self):
        assert places(standing("v/a", 0.9, 0.8, 0.95), standing("v/b", 0.7, 0.6, 0.8 - 1e-14))[1][2] == 1

    def test_ties_go_by_slug(self):
        found = places(standing("v/b", 0.9, 0.8, 0.95), standing("v/a", 0.9 + 1e-15, 0.8, 0.95))
        assert [model for model, *_ in found] == ["v/a", "v/b"]

    def test_a_model_without_an_estimate_is_listed_last_and_unranked(self):
        found = places(OverallConsistency("v/a", math.nan, NO_INTERVAL), standing("v/b", 0.9, 0.8, 0.95))
        assert found == [("v/b", 1, 1, "v/b"), ("v/a", None, None, None)]

    def test_a_model_without_an_interval_founds_nothing_new(self):
        found = places(standing("v/a", 0.9, 0.8, 0.95), OverallConsistency("v/b", 0.2, NO_INTERVAL))
        assert found[1][2] == 1

    def test_a_model_that_gets_no_rank_is_listed_last_and_founds_nothing(self):
        standings = [standing("v/a", 0.9, 0.8, 0.95), standing("v/b", 0.7, 0.6, 0.75)]
        found = [(p.standing.model, p.rank, p.tier) for p in tiers(standings, unranked=frozenset({"v/a"}))]
        assert found == [("v/b", 1, 1), ("v/a", None, None)]


class TestTooManyErrors:
    @pytest.mark.parametrize(
        ("errors", "planned", "many"), [(10, 100, False), (11, 100, True), (0, 100, False), (100, 100, True)]
    )
    def test_above_ten_per_cent_of_the_planned_rows(self, errors, planned, many):
        assert too_many_errors(errors, planned) is many
