"""The change of a ratio between two runs that draw the same concepts, and the test for many changes at once.

Both runs have the same bank, so they share the resamples: a replicate of the change is the difference of two. In the
test, the largest error M of a family takes the place of the range (Romano and Wolf 2005, single step): a change that
hardly any M reaches is more than chance makes of the largest of all changes.

See methodology: change, "Change between two runs".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from generator.stats.bootstrap import FloatArray, Resamples, Sample, one_attribute, ratio, rounded, several_attributes
from generator.stats.evidence import MDE_FACTOR, standard_error
from generator.stats.range_test import Ranges


@dataclass(frozen=True)
class Change:
    """A number in two runs, over the concepts on which both have a value; all on the 0-1 scale.

    `draws`: replicates of new - old, float array (resamples,), NaN = no value. `n` are the concepts behind each of its
    parts: one number of concepts, or one for each attribute or category that it averages.
    """

    old: float
    new: float
    draws: FloatArray
    n: tuple[int, ...]

    @property
    def difference(self) -> float:
        """New minus old; NaN where there is no concept with a value in both."""
        return self.new - self.old

    @property
    def sample(self) -> Sample:
        """What the interval rests on: the smallest n, the sum of n - 1."""
        return one_attribute(self.n[0]) if len(self.n) == 1 else several_attributes(self.n)


def paired(old: tuple[FloatArray, FloatArray], new: tuple[FloatArray, FloatArray], resamples: Resamples) -> Change:
    """Return the change of one ratio.

    Args:
        old: numerators and denominators by concept, two float arrays (concepts,), 0 where a concept has no value.
        new: likewise, the same concepts in the same order.
        resamples: resamples of these concepts.
    """
    both = (old[1] > 0) & (new[1] > 0)
    rows = np.array([np.where(both, values, 0.0) for values in (*old, *new)])
    sums = resamples.sums(rows)
    before, after = ratio(sums[0], sums[1]), ratio(sums[2], sums[3])
    totals = rows.sum(axis=1)
    estimates = ratio(totals[[0, 2]], totals[[1, 3]])
    return Change(float(estimates[0]), float(estimates[1]), after - before, (int(both.sum()),))


def mean_of(parts: Sequence[Change]) -> Change:
    """Return the change of the mean of several numbers, resample by resample.

    Args:
        parts: one for each attribute or category, at least one.
    """
    return Change(
        float(np.mean([part.old for part in parts])),
        float(np.mean([part.new for part in parts])),
        np.asarray(np.mean([part.draws for part in parts], axis=0)),
        tuple(part.n[0] for part in parts),
    )


def largest_errors(changes: Sequence[Change]) -> Ranges:
    """Return M, the largest error over a family of changes, resample by resample, ready for the test.

    Args:
        changes: the family, at least one; each with a value. The test rests on the smallest n and the smallest df.

    Returns:
        `values`: max |draw - estimate| over the family, rounded to 12 decimals; NaN where one has no replicate.
    """
    errors = [np.abs(change.draws - change.difference) for change in changes]
    samples = [change.sample for change in changes]
    return Ranges(
        rounded(np.max(errors, axis=0)),
        Sample(min(sample.n for sample in samples), min(sample.df for sample in samples)),
    )


def unseen(change: Change) -> float:
    """Return the size below which a change would probably go unseen, on the 0-1 scale.

    That is (z.975 + z.80) sqrt(n / (n - 1)) times the standard error: of changes this large, the unadjusted interval
    leaves 0 out in 80 of 100 runs. NaN below two concepts.
    """
    n = change.sample.n
    return MDE_FACTOR * math.sqrt(n / (n - 1)) * standard_error(change.draws) if n >= 2 else math.nan
