"""Leaderboard tiers: models that the data cannot tell apart from a tier's founder share its tier.

See methodology: tiers, "The rule".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from generator.stats.bootstrap import Interval, round12

MOST_ERRORS = 0.10  # of the planned rows of a model that is ranked in a live run


def too_many_errors(errors: int, planned: int) -> bool:
    """Tell whether a model of a live run has too many planned rows in error to be ranked.

    See methodology: tiers, "The rule".

    Args:
        errors: rows in error.
        planned: planned rows, absent ones among them.
    """
    return errors > MOST_ERRORS * planned


@dataclass(frozen=True)
class OverallConsistency:
    """A model's overall consistency with its interval, 0-1 scale; NaN where the model lacks an attribute."""

    model: str
    estimate: float
    interval: Interval


@dataclass(frozen=True)
class Placed:
    """A model's place on the leaderboard.

    `rank`, `tier` and `founder` (slug of the tier's first model) are None for a model that is not ranked.
    """

    standing: OverallConsistency
    rank: int | None
    tier: int | None
    founder: str | None


def tiers(standings: Sequence[OverallConsistency], *, unranked: frozenset[str] = frozenset()) -> list[Placed]:
    """Rank models and group them into tiers (methodology: tiers, "The rule").

    A new tier starts only when a model's upper end is below the lower end of the current tier's founder.

    Args:
        standings: the models in any order.
        unranked: slugs of models that get no rank whatever their score.

    Returns:
        Models by overall consistency, highest first, ties by slug; then those without a rank, by slug.
    """
    by_slug = sorted(standings, key=lambda s: s.model.encode())
    out = {s.model for s in by_slug if math.isnan(s.estimate) or s.model in unranked}
    ranked = sorted((s for s in by_slug if s.model not in out), key=lambda s: -round12(s.estimate))
    placed: list[Placed] = []
    tier, founder = 0, None
    for rank, standing in enumerate(ranked, 1):
        # A NaN end fails the comparison: a model without an interval opens no tier, and nobody opens one below such a
        # founder.
        if founder is None or round12(standing.interval.high) < round12(founder.interval.low):
            tier, founder = tier + 1, standing
        placed.append(Placed(standing, rank, tier, founder.model))
    return placed + [Placed(s, None, None, None) for s in by_slug if s.model in out]
