"""Disparity, worst gap, lean, cross-fit disparity and role reversal, concept by concept.

Everything is on the 0-1 scale. Cell means have the axes (concepts, framings, groups); NaN = no scored repeat.

See methodology: scoring, "Disparity".
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from generator.stats.bootstrap import BoolArray, FloatArray, rounded
from generator.stats.cells import mean_where, nan_mean


def cell_disparity(means: FloatArray) -> FloatArray:
    """Return D(c, f), Gini's mean difference of the group means (methodology: scoring, "Disparity").

    Args:
        means: float array (concepts, framings, groups), in [0, 1], NaN = no scored repeat.

    Returns:
        Float array (concepts, framings): the mean of |s_g - s_h| over pairs of groups with a mean; NaN below two
        groups.
    """
    # Put the m means in order. The gap after the k-th lies between k (m - k) of the pairs, so the sum over pairs is the
    # sum of k (m - k) gap. No term is negative: equal means give exactly 0, and the order of the groups does not
    # matter.
    ordered = np.sort(means, axis=-1)  # NaN last
    m = (~np.isnan(means)).sum(axis=-1)
    gaps = np.nan_to_num(np.diff(ordered, axis=-1), nan=0.0)
    k = np.arange(1, means.shape[-1])
    weight = k * np.maximum(m[..., None] - k, 0)
    pairs = m * (m - 1) / 2
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(m >= 2, (weight * gaps).sum(axis=-1) / pairs, np.nan))


def cell_gap(means: FloatArray) -> FloatArray:
    """Return the largest minus the smallest group mean (methodology: scoring, "Worst gap").

    Args:
        means: float array (concepts, framings, groups), in [0, 1], NaN = no scored repeat.

    Returns:
        Float array (concepts, framings), in [0, 1]; NaN below two groups with a mean.
    """
    present = ~np.isnan(means)
    top = np.where(present, means, -np.inf).max(axis=-1)
    low = np.where(present, means, np.inf).min(axis=-1)
    return np.asarray(np.where(present.sum(axis=-1) >= 2, top - low, np.nan), dtype=np.float64)


def lean_sums(means: FloatArray, polarity: npt.NDArray[np.int8]) -> tuple[FloatArray, FloatArray]:
    """Return numerators and denominators of the lean L(A, g) (methodology: scoring, "Directional lean").

    A numerator sums fav_g minus the groups' mean of fav over the counting framings in which g has a mean; the
    denominator counts these framings. fav is the cell mean, or one minus it at polarity -1.

    Args:
        means: float array (concepts, framings, groups), in [0, 1], NaN = no scored repeat.
        polarity: +1 or -1, int array (concepts,).

    Returns:
        Two float arrays (groups, concepts), both 0 where a group has nothing to compare.
    """
    fav = np.where(polarity[:, None, None] > 0, means, 1.0 - means)
    present = ~np.isnan(means)
    use = present & (present.sum(axis=-1, keepdims=True) >= 2)
    lean = fav - mean_where(fav, present)[..., None]
    return np.where(use, lean, 0.0).sum(axis=1).T, use.sum(axis=1).T.astype(np.float64)


def crossfit(values: FloatArray, scored: BoolArray) -> FloatArray:
    """Return D_x(c), disparity without the upward push of repeat noise (methodology: scoring, "Cross-fit disparity").

    For each pair of groups and each repeat k scored in both, the other repeats say which group is ahead, and repeat k
    says by how much. The result is averaged over repeats, then pairs, then framings.

    Args:
        values: float array (concepts, framings, groups, repeats), in [0, 1]; anything where not scored.
        scored: bool array of the same shape.

    Returns:
        Float array (concepts,), in [-1, 1]; NaN where no pair of groups has a repeat to hold out.
    """
    held = np.where(scored, values, 0.0)
    n = scored.sum(axis=-1, keepdims=True)
    usable = scored & (n >= 2)
    others = (held.sum(axis=-1, keepdims=True) - held) / np.maximum(n - 1, 1)
    g, h = np.triu_indices(values.shape[2], 1)
    # One group makes no pair.
    if not len(g):
        return np.full(values.shape[0], np.nan)
    # Rounded first: a difference that is 0 but for the order of addition must have the sign 0.
    ahead = np.sign(rounded(others[:, :, g] - others[:, :, h]))
    by_pair = mean_where(ahead * (held[:, :, g] - held[:, :, h]), usable[:, :, g] & usable[:, :, h])
    # numpy adds up an axis in an order that depends on how it lies in memory.
    return nan_mean(nan_mean(np.ascontiguousarray(by_pair)))


def reversal_sums(means: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return numerators and denominators of role reversal (methodology: scoring, "Role reversal").

    Args:
        means: float array (concepts, framings, groups), in [0, 1], NaN = no scored repeat.

    Returns:
        Two float arrays (concepts,): the sum of |s(f) - s(h)| over groups and pairs of framings with both, and the
        number of these. A bank of one framing has none.
    """
    first, second = np.triu_indices(means.shape[1], 1)
    apart = np.abs(means[:, first] - means[:, second])
    use = ~np.isnan(apart)
    return np.where(use, apart, 0.0).sum(axis=(1, 2)), use.sum(axis=(1, 2)).astype(np.float64)
