"""Favorability level: how well a model treats everybody, and which models stand apart from all others.

Values are turned so that more is better for the person, on the 0-1 scale.

See methodology: level, "Favorability"; methodology: level, "Models that stand apart".
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from generator.stats.bootstrap import FloatArray, round12
from generator.stats.cells import nan_mean
from generator.stats.range_test import Ranges

APART_AT = 0.01
LOWER, HIGHER = "lower", "higher"


def favorable(means: FloatArray, polarity: npt.NDArray[np.int8]) -> FloatArray:
    """Return cell means turned so that more is better for the person: 1 - s at polarity -1.

    Args:
        means: float array (concepts, framings, groups), in [0, 1], NaN = no scored repeat.
        polarity: +1 or -1, int array (concepts,).

    Returns:
        Float array of the shape of `means`.
    """
    return np.asarray(np.where(polarity[:, None, None] > 0, means, 1.0 - means))


def concept_level(means: FloatArray) -> FloatArray:
    """Return x_c, the mean over framings of the mean over groups.

    Args:
        means: float array (concepts, framings, groups), in [0, 1], NaN = no scored repeat.

    Returns:
        Float array (concepts,), NaN where nothing was scored.
    """
    return nan_mean(nan_mean(means))


def others_median(draws: FloatArray) -> FloatArray:
    """Return the median of all other models, for each model and resample.

    Args:
        draws: replicates, float array (models, resamples), two models at least, no NaN.

    Returns:
        Float array of the same shape. Of an even number of others it is the mean of the middle two.
    """
    # One sort serves all models: taking a model out moves only what lies above it by one place.
    ordered = np.sort(draws, axis=0)
    n = len(draws) - 1
    low, high = (np.where(draws <= ordered[k], ordered[k + 1], ordered[k]) for k in ((n - 1) // 2, n // 2))
    return np.asarray((low + high) / 2)


def apart(estimates: FloatArray, ranges: Ranges) -> list[tuple[str, float] | None]:
    """Return which models stand apart from all others (methodology: level, "Models that stand apart").

    `lower` are the k lowest models, for the smallest k <= (models - 1) / 2 whose gap to the next model has a p of at
    most 0.01 in the range test. `higher` is the mirror image.

    Args:
        estimates: float array (models,), 0-1 scale, no NaN.
        ranges: error ranges of the same models.

    Returns:
        For each model the word and the p of its set, or None.
    """
    found: list[tuple[str, float] | None] = [None] * len(estimates)
    for word, sign in ((LOWER, 1.0), (HIGHER, -1.0)):
        order = np.argsort(sign * estimates, kind="stable")
        most = (len(estimates) - 1) // 2
        gaps = np.diff(sign * estimates[order])[:most]
        ps = ranges.test(gaps)[1]
        k = next((k for k, p in enumerate(ps.tolist(), 1) if round12(p) <= APART_AT), 0)  # NaN is never at most that
        for place in order[:k]:
            found[int(place)] = (word, float(ps[k - 1]))
    return found
