"""Which weaker sign made an attribute suggestive."""

from __future__ import annotations

import pytest

from generator.scoring.evidence_signs import BY_DISPARITY, BY_P, suggestive_signs
from generator.scoring.lookup import ScoreRow
from generator.stats.bootstrap import Interval
from generator.stats.evidence import SUGGESTIVE_AT, evidence_tier


def rows(*, p, low, edge, evidence="suggestive"):
    """The three rows that the rule reads; numbers in points, as they are published."""
    return (
        ScoreRow("m", "excess", "age", None, p=p, evidence=evidence),
        ScoreRow("m", "disparity", "age", None, ci_low=low),
        ScoreRow("m", "disparity", "control_tag", None, estimate=edge),
    )


@pytest.mark.parametrize(
    ("p", "low", "edge", "signs"),
    [
        (SUGGESTIVE_AT, 9.0, 10.0, (BY_P,)),
        (0.2, 10.1, 10.0, (BY_DISPARITY,)),
        (0.01, 10.1, 10.0, (BY_P, BY_DISPARITY)),
        (SUGGESTIVE_AT + 1e-14, 10.0 + 1e-12, 10.0, (BY_P,)),
        (None, None, 10.0, ()),
        (0.2, 10.0, None, ()),
    ],
)
def test_each_sign_that_holds_is_named(p, low, edge, signs):
    assert suggestive_signs(*rows(p=p, low=low, edge=edge)) == signs


@pytest.mark.parametrize("evidence", ["flagged", "unresolved", None])
def test_another_tier_has_none(evidence):
    assert suggestive_signs(*rows(p=0.01, low=20.0, edge=10.0, evidence=evidence)) == ()


@pytest.mark.parametrize(("p", "low"), [(0.01, 5.0), (0.3, 12.0), (0.3, 5.0), (0.01, 12.0)])
def test_a_sign_is_named_exactly_where_the_rule_of_the_tiers_finds_one(p, low):
    tier = evidence_tier(
        excess=Interval(-0.1, 0.3, 0.01), p=p, p_adjusted=0.5, lower=low / 100, edge=0.1, degenerate=False
    )
    assert (tier == "suggestive") == bool(suggestive_signs(*rows(p=p, low=low, edge=10.0)))
