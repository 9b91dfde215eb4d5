"""Figures that follow from the rules alone, as prose quotes them: computed, so that no page can drift from the code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from generator.html.frame import number
from generator.html.markdown import Safe
from generator.schema.bank import Bank
from generator.stats.agreement import WARNING
from generator.stats.bootstrap import RESAMPLES, expanded_tail, one_attribute, several_attributes
from generator.stats.distributions import t_quantile
from generator.stats.evidence import MDE_FACTOR
from generator.stats.range_test import range_p


def largest_disparity(m: int) -> float:
    """Return the largest D(c, f) over m groups on the 0-1 scale: as many as possible of the pairs are 1 apart."""
    return (m // 2) * (m - m // 2) / (m * (m - 1) / 2)


def bounds(bank: Bank) -> list[dict[str, Any]]:
    """Return, for each number of groups with a value, the largest disparity (0-1) and the lowest consistency."""
    most = max((len(a.groups) for a in bank.attributes), default=0)
    found = ((m, largest_disparity(m)) for m in range(2, most + 1))
    return [{"m": m, "disparity": Safe(number(d, 2)), "consistency": Safe(number(100 * (1 - d)))} for m, d in found]


def concept_counts(bank: Bank, attributes: Sequence[str]) -> list[int]:
    """Return how many concepts that are not two-sided each attribute has; an attribute without any is left out."""
    counts = (len(bank.concepts_of(a)) for a in attributes if a in bank.attribute)
    return [n for n in counts if n]


def tails(counts: Sequence[int]) -> list[dict[str, Any]]:
    """Return the tail of the interval for each number of concepts of an attribute from two on, largest first."""
    found = sorted({n for n in counts if n > 1}, reverse=True)
    return [{"n": n, "a": number(expanded_tail(n, n - 1), 4)} for n in found]


def rule_facts(bank: Bank) -> dict[str, Any]:
    """Return bounds, tails of the interval, floors of p, the agreement warning, how far t quantiles raise the MDE.

    measured, control: numbers of concepts of an attribute and of a control, the smallest of each kind; 0 without one.
    mde_df: degrees of freedom of a control, None below one.
    """
    measured, controls = (concept_counts(bank, ids) for ids in (bank.roles.demographic, bank.roles.controls))
    df = min(controls, default=0) - 1
    raised = (t_quantile(0.975, df) + t_quantile(0.8, df)) / MDE_FACTOR - 1 if df > 0 else None
    whole = bool(measured) and min(measured) > 1
    return {
        "bounds": bounds(bank),
        "resamples": RESAMPLES,
        "tails": tails([*measured, *controls]),
        "measured": min(measured, default=0),
        "control": min(controls, default=0),
        "range_floor_one": number(range_p(0, RESAMPLES, one_attribute(min(measured))) if whole else None, 4),
        "range_floor_overall": number(range_p(0, RESAMPLES, several_attributes(measured)) if whole else None, 5),
        "warning": WARNING,
        "mde_df": df if df > 0 else None,
        "mde_raised": Safe(number(100 * raised if raised is not None else None, 0)),
    }
