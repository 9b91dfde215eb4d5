"""Differences of models: every two of them, paired resample by resample, each with an interval of its own.

See methodology: evidence, "Comparing two models".
"""

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
    """What a comparison needs of a model.

    `disparity` is the estimate, `draws` its replicates (resamples,), both on the 0-1 scale and with NaN for no value.
    `n_concepts` counts the concepts with a value, one number for each attribute that the disparity averages.
    """

    model: str
    disparity: float
    draws: FloatArray
    n_concepts: tuple[int, ...]


@dataclass(frozen=True)
class Pairs:
    """All pairs of models, by slug.

    `first` and `second` are places in `models`, int arrays (pairs,), first < second. `difference` is the consistency of
    the first minus that of the second, with interval `low` to `high`: float arrays (pairs,), 0-1 scale, NaN = no value.
    """

    models: tuple[str, ...]
    first: IntArray
    second: IntArray
    difference: FloatArray
    low: FloatArray
    high: FloatArray


def pairs(contenders: Sequence[Contender]) -> Pairs:
    """Compare every two models (methodology: evidence, "Comparing two models").

    An interval belongs to its two models alone: it does not widen with the number of pairs. Its sample takes the
    smaller number of concepts of the two, attribute by attribute.

    Args:
        contenders: the models in any order, replicates of the same resamples, counts of the same attributes.

    Returns:
        The pairs with slugs in byte order.
    """
    ordered = sorted(contenders, key=lambda c: c.model.encode())
    first, second = np.triu_indices(len(ordered), 1)
    disparity = np.array([c.disparity for c in ordered], np.float64)
    draws = np.array([c.draws for c in ordered])
    tails = _tails(ordered, first, second)
    # triu_indices lists the pairs of model 0, then those of model 1, ...: model i's block starts at starts[i].
    starts = np.cumsum([0, *range(len(ordered) - 1, 0, -1)])

    def against(i: int) -> tuple[FloatArray, FloatArray]:
        return _against(draws[i], draws[i + 1 :], tails[starts[i] : starts[i + 1]])

    # Threads are of use here because numpy releases the interpreter's lock while it subtracts and sorts.
    with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as pool:
        found = list(pool.map(against, range(len(ordered) - 1)))
    low, high = (np.concatenate([np.empty(0), *(part[end] for part in found)]) for end in (0, 1))
    return Pairs(
        models=tuple(c.model for c in ordered),
        first=first,
        second=second,
        # Consistency is 1 - D, so the order turns around: CS_x - CS_y = D_y - D_x.
        difference=disparity[second] - disparity[first],
        low=low,
        high=high,
    )


def _tails(ordered: Sequence[Contender], first: IntArray, second: IntArray) -> FloatArray:
    """Return the tail probability of each pair's interval: float array (pairs,)."""
    if not len(first):
        return np.empty(0)
    ns = np.array([c.n_concepts for c in ordered], np.int64)
    least = np.minimum(ns[first], ns[second])
    n, df = least.min(axis=1), (least - 1).sum(axis=1)
    # Few different samples occur among thousands of pairs, and each needs a t quantile by bisection.
    keys, places = np.unique(np.stack([n, df], axis=1), axis=0, return_inverse=True)
    return np.array([Sample(*key).tail for key in keys.tolist()], np.float64)[places.ravel()]


def _against(model: FloatArray, others: FloatArray, tails: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the interval ends of one model's differences from others, a block of models at a time.

    Args:
        model: replicates (resamples,).
        others: replicates of the other models, float array (models, resamples).
        tails: float array (models,).
    """
    n = len(others)
    low, high = np.empty(n), np.empty(n)
    buffer = np.empty((_BLOCK, others.shape[-1]))
    # Few calls on whole blocks: between calls the threads wait for each other.
    for start in range(0, n, _BLOCK):
        part = slice(start, min(start + _BLOCK, n))
        differences = np.subtract(others[part], model, out=buffer[: part.stop - start])
        ends = tail_ends(differences, tails[part], few_ties=True)
        low[part], high[part] = ends.low, ends.high
    return low, high
