"""Leaderboard tiers, and paired comparisons of models on overall consistency (SPEC 4 and 5)."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from generator.stats.bootstrap import (
    FloatArray,
    Interval,
    Sample,
    round12,
    scaled,
    scaled_intervals,
    several_attributes,
)
from generator.stats.evidence import difference_p, holm

_THREADS = 4
_BLOCK = 32  # models compared at a time: a few megabytes of replicates


@dataclass(frozen=True)
class Standing:
    """A model's overall consistency on the 0-1 scale, NaN where it lacks an attribute."""

    model: str
    estimate: float
    interval: Interval


@dataclass(frozen=True)
class Placed:
    """A model's place: None where it is not ranked."""

    standing: Standing
    rank: int | None
    tier: int | None
    founder: str | None


def tiers(standings: Sequence[Standing]) -> list[Placed]:
    """Return the models by overall consistency, ties by slug, unranked ones last by slug.

    A new tier starts only when a model's upper end is below the lower end of the current tier's first model.
    """
    by_slug = sorted(standings, key=lambda s: s.model.encode())
    ranked = sorted((s for s in by_slug if not math.isnan(s.estimate)), key=lambda s: -round12(s.estimate))
    placed: list[Placed] = []
    tier, founder = 0, None
    for rank, standing in enumerate(ranked, 1):
        if founder is None or round12(standing.interval.high) < round12(founder.interval.low):
            tier, founder = tier + 1, standing
        placed.append(Placed(standing, rank, tier, founder.model))
    return placed + [Placed(s, None, None, None) for s in by_slug if math.isnan(s.estimate)]


@dataclass(frozen=True)
class Ranked:
    """What comparisons need of a model: overall disparity, its replicates (resamples,), and concepts by attribute."""

    model: str
    disparity: float
    draws: FloatArray
    n_concepts: tuple[int, ...]


@dataclass(frozen=True)
class Comparison:
    """a minus b in overall consistency, 0-1 scale."""

    model_a: str
    model_b: str
    difference: float
    interval: Interval
    p: float
    p_holm: float


def comparisons(models: Mapping[str, Ranked]) -> list[Comparison]:
    """Return all pairs in slug order, from the same resamples, with Holm's correction over all of them.

    A few threads share the work, each with one model against a block of others at a time.
    """
    ordered = [models[slug] for slug in sorted(models, key=str.encode)]
    tasks = [
        (model, ordered[start : start + _BLOCK])
        for i, model in enumerate(ordered)
        for start in range(i + 1, len(ordered), _BLOCK)
    ]
    with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as pool:
        found = [pair for pairs in pool.map(lambda task: _against(*task), tasks) for pair in pairs]
    adjusted = holm(np.array([pair.p for pair in found], np.float64)).tolist()
    return [dataclasses.replace(pair, p_holm=p) for pair, p in zip(found, adjusted, strict=True)]


def _against(model: Ranked, others: Sequence[Ranked]) -> list[Comparison]:
    """Compare one model with others; Holm's p is still to come."""
    draws = scaled(np.stack([other.draws for other in others]) - model.draws)
    samples = [_sample(model, other) for other in others]
    kept = (~np.isnan(draws)).sum(axis=1).tolist()
    at_most, at_least = (draws <= 0).sum(axis=1).tolist(), (draws >= 0).sum(axis=1).tolist()
    ps = map(difference_p, at_most, at_least, kept, samples)
    return [
        Comparison(model.model, other.model, other.disparity - model.disparity, interval, p, math.nan)
        for other, interval, p in zip(others, scaled_intervals(draws, samples), ps, strict=True)
    ]


def _sample(a: Ranked, b: Ranked) -> Sample:
    return several_attributes([min(n, m) for n, m in zip(a.n_concepts, b.n_concepts, strict=True)])
