"""Paired differences of models: every two of them, resample by resample, with an interval that no other pair widens."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from generator.stats.bootstrap import FloatArray, IntArray, Sample, tail_ends

_THREADS = 4
_BLOCK = 32  # models compared at a time: fewer would make the threads wait, more would leave the cache


@dataclass(frozen=True)
class Contender:
    """What a comparison needs of a model: its disparity, its replicates (resamples,), and concepts by attribute."""

    model: str
    disparity: float
    draws: FloatArray
    n_concepts: tuple[int, ...]


@dataclass(frozen=True)
class Pairs:
    """All pairs of models in slug order: a minus b in consistency, 0-1 scale, NaN where there is none.

    models: the slugs. first, second: (pairs,) places in `models`. difference, low, high: (pairs,).
    """

    models: tuple[str, ...]
    first: IntArray
    second: IntArray
    difference: FloatArray
    low: FloatArray
    high: FloatArray


def pairs(contenders: Sequence[Contender]) -> Pairs:
    """Return the difference of every two models with its expanded percentile interval.

    Its sample takes the smaller n of the two, attribute by attribute. A few threads share the work, each with one model
    against a block of others at a time.
    """
    ordered = sorted(contenders, key=lambda c: c.model.encode())
    first, second = np.triu_indices(len(ordered), 1)
    disparity = np.array([c.disparity for c in ordered], np.float64)
    draws = np.array([c.draws for c in ordered])
    tails = _tails(ordered, first, second)
    starts = np.cumsum([0, *range(len(ordered) - 1, 0, -1)])

    def against(i: int) -> tuple[FloatArray, FloatArray]:
        return _against(draws[i], draws[i + 1 :], tails[starts[i] : starts[i + 1]])

    with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as pool:
        found = list(pool.map(against, range(len(ordered) - 1)))
    low, high = (np.concatenate([np.empty(0), *(part[end] for part in found)]) for end in (0, 1))
    return Pairs(
        models=tuple(c.model for c in ordered),
        first=first,
        second=second,
        difference=disparity[second] - disparity[first],
        low=low,
        high=high,
    )


def _tails(ordered: Sequence[Contender], first: IntArray, second: IntArray) -> FloatArray:
    """Return the tail probability of each pair's interval: (pairs,)."""
    if not len(first):
        return np.empty(0)
    ns = np.array([c.n_concepts for c in ordered], np.int64)
    least = np.minimum(ns[first], ns[second])
    n, df = least.min(axis=1), (least - 1).sum(axis=1)
    keys, places = np.unique(np.stack([n, df], axis=1), axis=0, return_inverse=True)
    return np.array([Sample(*key).tail for key in keys.tolist()], np.float64)[places.ravel()]


def _against(model: FloatArray, others: FloatArray, tails: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compare one model's replicates (resamples,) with those of others (models, resamples), a block at a time.

    In few calls on whole blocks: between calls the threads wait for each other.
    """
    n = len(others)
    low, high = np.empty(n), np.empty(n)
    buffer = np.empty((_BLOCK, others.shape[-1]))
    for start in range(0, n, _BLOCK):
        part = slice(start, min(start + _BLOCK, n))
        differences = np.subtract(others[part], model, out=buffer[: part.stop - start])
        ends = tail_ends(differences, tails[part], few_ties=True)
        low[part], high[part] = ends.low, ends.high
    return low, high
