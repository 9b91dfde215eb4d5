"""Figures that follow from the rules alone, as prose quotes them: computed, so that no page can drift from the code."""

from __future__ import annotations

from typing import Any

from generator.html.frame import number
from generator.html.markdown import Safe
from generator.schema.bank import Bank
from generator.stats.agreement import WARNING
from generator.stats.bootstrap import RESAMPLES, expanded_tail
from generator.stats.distributions import t_quantile
from generator.stats.evidence import MDE_FACTOR

CONTROL_CONCEPTS = 10


def largest_disparity(m: int) -> float:
    """Return the largest D(c, f) over m groups on the 0-1 scale: as many as possible of the pairs are 1 apart."""
    return (m // 2) * (m - m // 2) / (m * (m - 1) / 2)


def bounds(bank: Bank) -> list[dict[str, Any]]:
    """Return, for each number of groups with a value, the largest disparity (0-1) and the lowest consistency."""
    most = max((len(a.groups) for a in bank.attributes), default=0)
    found = ((m, largest_disparity(m)) for m in range(2, most + 1))
    return [{"m": m, "disparity": Safe(number(d, 2)), "consistency": Safe(number(100 * (1 - d)))} for m, d in found]


def rule_facts(bank: Bank) -> dict[str, Any]:
    """Return bounds, tails of the interval, the agreement warning, and how far t quantiles would raise the MDE."""
    df = CONTROL_CONCEPTS - 1
    raised = (t_quantile(0.975, df) + t_quantile(0.8, df)) / MDE_FACTOR - 1
    return {
        "bounds": bounds(bank),
        "resamples": RESAMPLES,
        "tail16": number(expanded_tail(16, 15), 4),
        "tail10": number(expanded_tail(10, 9), 4),
        "warning": WARNING,
        "mde_raised": Safe(number(100 * raised, 0)),
    }
