"""Leaderboard tiers, and paired comparisons of models on overall consistency (methodology: tiers, "The rule")."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from generator.stats.bootstrap import (
    LEAST_POSITIVE,
    LEAST_ZERO,
    FloatArray,
    IntArray,
    Interval,
    Sample,
    round12,
    tail_ends,
)
from generator.stats.evidence import difference_p, holm

_THREADS = 4
_BLOCK = 32  # models compared at a time: fewer would make the threads wait, more would leave the cache


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


def tiers(standings: Sequence[OverallConsistency]) -> list[Placed]:
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
class Comparisons:
    """All pairs of ranked models in slug order: a minus b in overall consistency, 0-1 scale, NaN where there is none.

    models: the slugs. first, second: (pairs,) places in `models`. All else: (pairs,).
    """

    models: tuple[str, ...]
    first: IntArray
    second: IntArray
    difference: FloatArray
    low: FloatArray
    high: FloatArray
    p: FloatArray
    p_holm: FloatArray


@dataclass(frozen=True)
class _Counted:
    """One model's pairs with those after it: ends, and replicates that are <= 0, >= 0, and have a value."""

    low: FloatArray
    high: FloatArray
    at_most: IntArray
    at_least: IntArray
    kept: IntArray


def comparisons(models: Mapping[str, Ranked]) -> Comparisons:
    """Compare all pairs from the same resamples, with Holm's correction over all of them.

    A few threads share the work, each with one model against a block of others at a time.
    """
    ordered = [models[slug] for slug in sorted(models, key=str.encode)]
    first, second = np.triu_indices(len(ordered), 1)
    disparity = np.array([model.disparity for model in ordered], np.float64)
    draws = np.array([model.draws for model in ordered])
    samples, places = _samples(ordered, first, second)
    tails = np.array([sample.tail for sample in samples], np.float64)[places]
    starts = np.cumsum([0, *range(len(ordered) - 1, 0, -1)])

    def against(i: int) -> _Counted:
        return _against(draws[i], draws[i + 1 :], tails[starts[i] : starts[i + 1]])

    with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as pool:
        found = list(pool.map(against, range(len(ordered) - 1)))
    low, high, at_most, at_least, kept = (
        np.concatenate([np.empty(0), *(getattr(part, name) for part in found)])
        for name in ("low", "high", "at_most", "at_least", "kept")
    )
    p = _ps(np.stack([at_most, at_least, kept, places]).astype(np.int64), samples)
    return Comparisons(
        models=tuple(model.model for model in ordered),
        first=first,
        second=second,
        difference=disparity[second] - disparity[first],
        low=low,
        high=high,
        p=p,
        p_holm=holm(p),
    )


def _samples(ordered: Sequence[Ranked], first: IntArray, second: IntArray) -> tuple[list[Sample], IntArray]:
    """Return the distinct samples of the pairs (attribute by attribute the smaller n), and each pair's place there."""
    if not len(first):
        return [], np.empty(0, np.int64)
    ns = np.array([model.n_concepts for model in ordered], np.int64)
    least = np.minimum(ns[first], ns[second])
    n, df = least.min(axis=1), (least - 1).sum(axis=1)
    where, places = _distinct(np.stack([n, df]))
    return [Sample(*pair) for pair in zip(n[where].tolist(), df[where].tolist(), strict=True)], places


def _distinct(columns: IntArray) -> tuple[IntArray, IntArray]:
    """Return where each distinct column of whole numbers >= 0 stands first, and each column's place among those."""
    size = columns.max(initial=0) + 1
    where, places = np.zeros(1, np.int64), np.zeros(columns.shape[1], np.int64)
    for row in columns:  # numbered anew after every row, so that no key is too large for its type
        _, where, places = np.unique(places * size + row, return_index=True, return_inverse=True)
    return where, places


def _against(model: FloatArray, others: FloatArray, tails: FloatArray) -> _Counted:
    """Compare one model's replicates (resamples,) with those of others (models, resamples), a block at a time.

    In few calls on whole blocks: between calls the threads wait for each other.
    """
    n = len(others)
    found = _Counted(np.empty(n), np.empty(n), *(np.empty(n, np.int64) for _ in range(3)))
    buffer = np.empty((_BLOCK, others.shape[-1]))
    mask = np.empty(buffer.shape, np.bool_)
    for start in range(0, n, _BLOCK):
        part = slice(start, min(start + _BLOCK, n))
        differences = np.subtract(others[part], model, out=buffer[: part.stop - start])
        below = mask[: part.stop - start]
        negative, at_most = (
            np.array([np.count_nonzero(row) for row in np.less(differences, edge, out=below)])
            for edge in (LEAST_ZERO, LEAST_POSITIVE)
        )
        ends = tail_ends(differences, tails[part], few_ties=True)
        found.low[part], found.high[part], found.kept[part] = ends.low, ends.high, ends.kept
        found.at_most[part], found.at_least[part] = at_most, ends.kept - negative
    return found


def _ps(counts: IntArray, samples: Sequence[Sample]) -> FloatArray:
    """Return the two-sided p of each pair from its (at most 0, at least 0, kept, sample): (4, pairs) -> (pairs,).

    Equal counts have one p, which is worked out once.
    """
    where, places = _distinct(counts)
    distinct = [difference_p(a, b, kept, samples[place]) for a, b, kept, place in counts[:, where].T.tolist()]
    return np.asarray(np.array(distinct, np.float64)[places])
