"""Figures that follow from the rules alone, as prose quotes them: computed, so that no page can drift from the code."""

from __future__ import annotations

from typing import Any

from generator.html.frame import number
from generator.html.markdown import Safe
from generator.schema.bank import DEMOGRAPHIC, Bank
from generator.stats.agreement import WARNING
from generator.stats.bootstrap import RESAMPLES, expanded_tail, one_attribute, several_attributes
from generator.stats.distributions import t_quantile
from generator.stats.evidence import MDE_FACTOR
from generator.stats.range_test import range_p

CONTROL_CONCEPTS = 10
ATTRIBUTE_CONCEPTS = 16


def largest_disparity(m: int) -> float:
    """Return the largest D(c, f) over m groups on the 0-1 scale: as many as possible of the pairs are 1 apart."""
    return (m // 2) * (m - m // 2) / (m * (m - 1) / 2)


def bounds(bank: Bank) -> list[dict[str, Any]]:
    """Return, for each number of groups with a value, the largest disparity (0-1) and the lowest consistency."""
    most = max((len(a.groups) for a in bank.attributes), default=0)
    found = ((m, largest_disparity(m)) for m in range(2, most + 1))
    return [{"m": m, "disparity": Safe(number(d, 2)), "consistency": Safe(number(100 * (1 - d)))} for m, d in found]


def rule_facts(bank: Bank) -> dict[str, Any]:
    """Return bounds, tails of the interval, floors of p, the agreement warning, how far t quantiles raise the MDE."""
    df = CONTROL_CONCEPTS - 1
    raised = (t_quantile(0.975, df) + t_quantile(0.8, df)) / MDE_FACTOR - 1
    overall = several_attributes([ATTRIBUTE_CONCEPTS] * len(DEMOGRAPHIC))
    return {
        "bounds": bounds(bank),
        "resamples": RESAMPLES,
        "tail16": number(expanded_tail(16, 15), 4),
        "tail10": number(expanded_tail(10, 9), 4),
        "range_floor_one": number(range_p(0, RESAMPLES, one_attribute(ATTRIBUTE_CONCEPTS)), 4),
        "range_floor_overall": number(range_p(0, RESAMPLES, overall), 5),
        "warning": WARNING,
        "mde_raised": Safe(number(100 * raised, 0)),
    }
