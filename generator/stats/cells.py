"""A model's rows as arrays, and the cell means s(c, f, g) that every score starts from.

Row arrays have the axes (concepts, framings, groups, repeats), each in the byte order of its ids. Cell arrays lack the
last axis. A planned row that is not there has the status ABSENT, so every array is full.

See methodology: scoring, "Cell means".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from generator.stats.bootstrap import BoolArray, FloatArray, IntArray

SCORED, REFUSED, CONTESTED, ERROR, ABSENT = range(5)


@dataclass(frozen=True)
class Rows:
    """The rows of one model on one attribute, or on several attributes with as many groups.

    All fields but `polarity` have the axes (concepts, framings, groups, repeats).

    Attributes:
        values: the final value, float in [0, 1]; NaN unless scored.
        status: int, SCORED to ABSENT.
        label: code of the final label, int; -1 = none.
        polarity: +1 or -1, int (concepts,); see methodology: scoring, "Directional lean".
        answered: whether there is a response.
        cut: whether the response ended at the length limit.
        leaked: whether a term of the attribute was left after masking.
        finish_known, mask_known: whether it is known how the response ended, and whether a term was left: not always of
            imported answers.
        filtered: whether the vendor's filter refused.
        verdict_votes: primary votes that say whether verdict and prose of the judge agree, int.
        mismatches: primary votes that say they do not, int.
    """

    values: FloatArray
    status: npt.NDArray[np.int8]
    label: npt.NDArray[np.int16]
    polarity: npt.NDArray[np.int8]
    answered: BoolArray
    cut: BoolArray
    leaked: BoolArray
    finish_known: BoolArray
    mask_known: BoolArray
    filtered: BoolArray
    verdict_votes: npt.NDArray[np.int8]
    mismatches: npt.NDArray[np.int8]

    @cached_property
    def scored(self) -> BoolArray:
        """Whether a row has a value: bool array (concepts, framings, groups, repeats)."""
        return np.asarray(self.status == SCORED)

    @cached_property
    def n_scored(self) -> IntArray:
        """Scored repeats of a cell: (concepts, framings, groups)."""
        return self.count(SCORED)

    def count(self, status: int) -> IntArray:
        """Return how many repeats of each cell have a status: int array (concepts, framings, groups).

        Args:
            status: SCORED, REFUSED, CONTESTED, ERROR or ABSENT.
        """
        return np.asarray((self.status == status).sum(axis=-1, dtype=np.int64))

    @cached_property
    def n_refused(self) -> IntArray:
        """Refused repeats of a cell: (concepts, framings, groups)."""
        return self.count(REFUSED)

    @cached_property
    def n_contested(self) -> IntArray:
        """Contested repeats of a cell: (concepts, framings, groups)."""
        return self.count(CONTESTED)

    @cached_property
    def n_error(self) -> IntArray:
        """Repeats of a cell that are in error: (concepts, framings, groups)."""
        return self.count(ERROR)

    @property
    def absent(self) -> IntArray:
        """Planned rows of a concept that are not there: (concepts,)."""
        return np.asarray((self.status == ABSENT).sum(axis=(1, 2, 3)))

    @cached_property
    def means(self) -> FloatArray:
        """Cell means s(c, f, g): float array (concepts, framings, groups), in [0, 1], NaN = no scored repeat."""
        return mean_where(self.values, self.scored)

    @cached_property
    def n_groups(self) -> IntArray:
        """Groups of a (concept, framing) that have a mean, m in the formulas: int array (concepts, framings)."""
        return np.asarray((self.n_scored > 0).sum(axis=-1))

    @cached_property
    def counting(self) -> BoolArray:
        """Whether a (concept, framing) counts, with means of two or more groups: bool array (concepts, framings)."""
        return np.asarray(self.n_groups >= 2)

    @cached_property
    def repeated(self) -> BoolArray:
        """Whether a cell has two or more scored repeats: bool array (concepts, framings, groups)."""
        return np.asarray(self.n_scored >= 2)

    @cached_property
    def unanimous(self) -> BoolArray:
        """Whether all scored repeats of a cell have one final label: bool array (concepts, framings, groups).

        It says something only where `repeated` holds.
        """
        # Unscored repeats take the extreme that cannot win, so largest = smallest means one label.
        top = np.where(self.scored, self.label, np.iinfo(np.int16).min).max(axis=-1)
        low = np.where(self.scored, self.label, np.iinfo(np.int16).max).min(axis=-1)
        return np.asarray(top == low)

    def of(self, concepts: BoolArray | IntArray) -> Rows:
        """Return the rows of some concepts.

        Args:
            concepts: a mask (concepts,) or the places of the concepts.
        """
        # __dict__ also holds what cached_property left there, which must not be carried over.
        return Rows(**{name: value[concepts] for name, value in self.__dict__.items() if name in FIELDS})


FIELDS = frozenset(Rows.__dataclass_fields__)


def mean_where(values: FloatArray, present: BoolArray) -> FloatArray:
    """Return the mean over the last axis of the values that are present.

    Args:
        values: float array (..., n); what is absent may hold anything, NaN too.
        present: bool array of the same shape.

    Returns:
        Float array (...); NaN where nothing is present.
    """
    n = present.sum(axis=-1)
    total = np.where(present, values, 0.0).sum(axis=-1)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(n > 0, total / n, np.nan))


def nan_mean(values: FloatArray) -> FloatArray:
    """Return the mean over the last axis with NaN skipped: float array (..., n) -> (...), NaN where all are NaN.

    Unlike numpy's nanmean it gives no warning for a row of NaN alone.
    """
    return mean_where(values, ~np.isnan(values))
