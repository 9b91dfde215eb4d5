"""Leaderboard tiers (methodology: tiers, "The rule")."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from generator.stats.bootstrap import Interval, round12

MOST_ERRORS = 0.10  # of the planned rows of a model that is ranked in a live run


def too_many_errors(errors: int, planned: int) -> bool:
    """Tell whether a live model has too many planned rows in error to be ranked (methodology: tiers, "The rule")."""
    return errors > MOST_ERRORS * planned


@dataclass(frozen=True)
class OverallConsistency:
    """A model's overall consistency on the 0-1 scale, NaN where it lacks an attribute."""

    model: str
    estimate: float
    interval: Interval


@dataclass(frozen=True)
class Placed:
    """A model's place: None where it is not ranked."""

    standing: OverallConsistency
    rank: int | None
    tier: int | None
    founder: str | None


def tiers(standings: Sequence[OverallConsistency], *, unranked: frozenset[str] = frozenset()) -> list[Placed]:
    """Return the models by overall consistency, ties by slug, unranked ones last by slug.

    `unranked` are models that get no rank whatever their score. A new tier starts only when a model's upper end is
    below the lower end of the current tier's first model.
    """
    by_slug = sorted(standings, key=lambda s: s.model.encode())
    out = {s.model for s in by_slug if math.isnan(s.estimate) or s.model in unranked}
    ranked = sorted((s for s in by_slug if s.model not in out), key=lambda s: -round12(s.estimate))
    placed: list[Placed] = []
    tier, founder = 0, None
    for rank, standing in enumerate(ranked, 1):
        if founder is None or round12(standing.interval.high) < round12(founder.interval.low):
            tier, founder = tier + 1, standing
        placed.append(Placed(standing, rank, tier, founder.model))
    return placed + [Placed(s, None, None, None) for s in by_slug if s.model in out]
