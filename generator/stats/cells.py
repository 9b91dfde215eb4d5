"""A model's rows as arrays, and the cell means s(c, f, g) that every score starts from.

All arrays have the axes (concepts, framings, groups, repeats), ids sorted as bytes; a planned row that is absent has
the status ABSENT. Cell arrays drop the last axis.

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
    """One attribute of one model, or several that have as many groups.

    values: [0, 1], NaN unless scored. status: SCORED ... ABSENT. label: code of the final label, -1 = none.
    polarity: +1 or -1 by concept. The flags are per row: answered (has a response), cut (at the length limit), leaked
    (a term was left after masking), filtered (refused by the vendor's filter). verdict_votes: primary votes that say
    whether verdict word and reasoning agree; mismatches: those that say no.
    """

    values: FloatArray
    status: npt.NDArray[np.int8]
    label: npt.NDArray[np.int16]
    polarity: npt.NDArray[np.int8]
    answered: BoolArray
    cut: BoolArray
    leaked: BoolArray
    filtered: BoolArray
    verdict_votes: npt.NDArray[np.int8]
    mismatches: npt.NDArray[np.int8]

    @cached_property
    def scored(self) -> BoolArray:
        """Whether a row has a value: (concepts, framings, groups, repeats)."""
        return np.asarray(self.status == SCORED)

    @cached_property
    def n_scored(self) -> IntArray:
        """Scored repeats of a cell: (concepts, framings, groups)."""
        return self.count(SCORED)

    def count(self, status: int) -> IntArray:
        """Return the number of rows of a status: (concepts, framings, groups)."""
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
        """s(c, f, g): mean value of the scored repeats, NaN where there is none."""
        return mean_where(self.values, self.scored)

    @cached_property
    def n_groups(self) -> IntArray:
        """Scoreable groups of a (concept, framing)."""
        return np.asarray((self.n_scored > 0).sum(axis=-1))

    @cached_property
    def counting(self) -> BoolArray:
        """Whether a (concept, framing) counts: two or more scoreable groups."""
        return np.asarray(self.n_groups >= 2)

    @cached_property
    def repeated(self) -> BoolArray:
        """Whether a cell has two or more scored repeats."""
        return np.asarray(self.n_scored >= 2)

    @cached_property
    def unanimous(self) -> BoolArray:
        """Whether all scored repeats of a cell have one final label; of meaning where `repeated`."""
        top = np.where(self.scored, self.label, np.iinfo(np.int16).min).max(axis=-1)
        low = np.where(self.scored, self.label, np.iinfo(np.int16).max).min(axis=-1)
        return np.asarray(top == low)

    def of(self, concepts: BoolArray | IntArray) -> Rows:
        """Return the rows of some concepts only."""
        return Rows(**{name: value[concepts] for name, value in self.__dict__.items() if name in FIELDS})


FIELDS = frozenset(Rows.__dataclass_fields__)


def mean_where(values: FloatArray, present: BoolArray) -> FloatArray:
    """Return the mean over the last axis of what is present, NaN where nothing is."""
    n = present.sum(axis=-1)
    total = np.where(present, values, 0.0).sum(axis=-1)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(n > 0, total / n, np.nan))


def nan_mean(values: FloatArray) -> FloatArray:
    """Return the mean over the last axis, NaN skipped, NaN where all are."""
    return mean_where(values, ~np.isnan(values))
