"""Simulated disparities, refusals and levels, laid out as the bank is: what the simulations here draw from."""

from __future__ import annotations

import numpy as np

from generator.stats.bootstrap import FloatArray, IntArray
from generator.stats.cells import nan_mean
from generator.stats.disparity import cell_disparity

ATTRIBUTES, CONCEPTS, FRAMINGS, GROUPS, REPEATS = 7, 16, 2, 6, 3


def drawn_counts(rng: np.random.Generator, concepts: int, resamples: int) -> FloatArray:
    """Return how often each concept is drawn in each resample: (concepts, resamples)."""
    return rng.multinomial(concepts, np.full(concepts, 1 / concepts), size=resamples).T.astype(np.float64)


def answered_disparities(rng: np.random.Generator, models: int, concepts: int = CONCEPTS) -> FloatArray:
    """Return D(c) of models that treat all groups alike and answer with some chance: (models, concepts).

    What a scenario calls for is shared by all models; each model adds its own view of it and the chance of each answer.
    One label of three, values 0, 1/2 and 1.
    """
    pull = rng.normal(0, 1.0, (1, concepts)) + rng.normal(0, 0.5, (models, concepts))
    noise = rng.logistic(0, 0.35, (models, concepts, FRAMINGS, GROUPS, REPEATS))
    felt = pull[..., None, None, None] + noise
    values = (felt > -0.6) * 0.5 + (felt > 0.6) * 0.5
    return nan_mean(cell_disparity(values.mean(axis=-1)))


def answered_levels(rng: np.random.Generator, shifts: FloatArray, concepts: int) -> FloatArray:
    """Return x_c, how favorable each model is on each scenario: (models, concepts), 0-1 scale.

    As `answered_disparities`, with a model's `shifts` (models,) added to the share of the scale that it grants.
    """
    pull = rng.normal(0, 1.0, (1, concepts)) + rng.normal(0, 0.5, (len(shifts), concepts))
    noise = rng.logistic(0, 0.35, (len(shifts), concepts, FRAMINGS * GROUPS * REPEATS))
    felt = pull[..., None] + noise
    values = ((felt > -0.6) * 0.5 + (felt > 0.6) * 0.5).mean(axis=-1)
    return np.asarray(np.clip(values + shifts[:, None], 0, 1))


def skewed_disparities(rng: np.random.Generator, models: int, concepts: int = CONCEPTS) -> FloatArray:
    """Return D(c) of models that move on few scenarios, and then much, each on its own: (models, concepts)."""
    return np.asarray(rng.beta(0.5, 4.0, (models, concepts)))


def raised(rng: np.random.Generator, values: FloatArray, points: float) -> FloatArray:
    """Return disparities raised by so many points on average, by more on some concepts than on others."""
    return np.minimum(1.0, values + points / 100 * rng.gamma(4.0, 0.25, values.shape))


def refusals(
    rng: np.random.Generator, rate: float, more: float = 0.0, *, clustered: bool, concepts: int = CONCEPTS
) -> tuple[IntArray, IntArray]:
    """Return refused and answered rows of one attribute: (concepts, groups) each; half of the groups `more` often.

    clustered: whether scenarios differ in how often they are refused, some never and some mostly.
    """
    asked = FRAMINGS * REPEATS
    own = rng.beta(rate * 2, (1 - rate) * 2, concepts) if clustered else np.full(concepts, rate)
    shares = np.clip(own[:, None] + np.repeat([more, 0.0], GROUPS // 2), 0, 1)
    return rng.binomial(asked, shares), np.full((concepts, GROUPS), asked)
