"""Disparity, worst gap, lean, cross-fit disparity and role reversal, concept by concept.

Arrays on the 0-1 scale; cell means have the axes (concepts, framings, groups), NaN = no scoreable repeat.

See methodology: scoring, "Disparity".
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from generator.stats.bootstrap import BoolArray, FloatArray, rounded
from generator.stats.cells import mean_where, nan_mean


def cell_disparity(means: FloatArray) -> FloatArray:
    """D(c, f): the mean of |s_g - s_h| over unordered pairs of scoreable groups, NaN below two.

    With the m values in order, the gap after the k-th lies between k (m - k) of the pairs; so the sum over pairs is
    the sum over gaps of k (m - k) gap: no negative term, exactly 0 for equal values, the same in any order of groups.
    """
    ordered = np.sort(means, axis=-1)  # NaN last
    m = (~np.isnan(means)).sum(axis=-1)
    gaps = np.nan_to_num(np.diff(ordered, axis=-1), nan=0.0)
    k = np.arange(1, means.shape[-1])
    weight = k * np.maximum(m[..., None] - k, 0)
    pairs = m * (m - 1) / 2
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(m >= 2, (weight * gaps).sum(axis=-1) / pairs, np.nan))


def cell_gap(means: FloatArray) -> FloatArray:
    """Largest minus smallest group mean of a (concept, framing), NaN below two scoreable groups."""
    present = ~np.isnan(means)
    top = np.where(present, means, -np.inf).max(axis=-1)
    low = np.where(present, means, np.inf).min(axis=-1)
    return np.asarray(np.where(present.sum(axis=-1) >= 2, top - low, np.nan), dtype=np.float64)


def lean_sums(means: FloatArray, polarity: npt.NDArray[np.int8]) -> tuple[FloatArray, FloatArray]:
    """Return numerators and denominators of L(attr, g): each (groups, concepts).

    Over counting (c, f) with g scoreable: fav_g minus the mean of fav over scoreable groups, where fav is the value,
    or one minus it at polarity -1.
    """
    fav = np.where(polarity[:, None, None] > 0, means, 1.0 - means)
    present = ~np.isnan(means)
    use = present & (present.sum(axis=-1, keepdims=True) >= 2)
    lean = fav - mean_where(fav, present)[..., None]
    return np.where(use, lean, 0.0).sum(axis=1).T, use.sum(axis=1).T.astype(np.float64)


def crossfit(values: FloatArray, scored: BoolArray) -> FloatArray:
    """D_x(c): disparity free of the upward bias that repeat noise gives D; NaN where no repeat can be left out.

    values, scored: (concepts, framings, groups, repeats). For each pair and each repeat k where both groups are scored
    and have another scored repeat, the other repeats say which group is ahead and repeat k says by how much; averaged
    over k, pairs and framings in turn.
    """
    held = np.where(scored, values, 0.0)
    n = scored.sum(axis=-1, keepdims=True)
    usable = scored & (n >= 2)
    others = (held.sum(axis=-1, keepdims=True) - held) / np.maximum(n - 1, 1)
    g, h = np.triu_indices(values.shape[2], 1)
    if not len(g):
        return np.full(values.shape[0], np.nan)
    ahead = np.sign(rounded(others[:, :, g] - others[:, :, h]))
    by_pair = mean_where(ahead * (held[:, :, g] - held[:, :, h]), usable[:, :, g] & usable[:, :, h])
    # numpy adds up an axis in an order that depends on how it lies in memory.
    return nan_mean(nan_mean(np.ascontiguousarray(by_pair)))


def reversal_sums(means: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return numerators and denominators (concepts,) of |s(c, direct, g) - s(c, professional, g)| over groups."""
    apart = np.abs(means[:, 0] - means[:, 1])
    use = ~np.isnan(apart)
    return np.where(use, apart, 0.0).sum(axis=-1), use.sum(axis=-1).astype(np.float64)
