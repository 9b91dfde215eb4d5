"""The rows of `comparisons`: every two models, overall and by attribute, with the range test.

See methodology: evidence, "Comparing two models"; methodology: evidence, "The range test".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from generator.schema.tables import OVERALL
from generator.stats.bootstrap import BoolArray, FloatArray, Resamples, Sample, ratio, several_attributes
from generator.stats.pairs import Contender, Pairs, pairs
from generator.stats.range_test import Ranges, error_ranges, largest_of

# Pairs within attributes are tabled up to here: of 1,000 models they would be 3.5 million rows that nobody reads.
MOST_BY_ATTRIBUTE = 200


@dataclass(frozen=True)
class Disparities:
    """A model's disparity on one attribute, 0-1 scale.

    `estimate` is D(A). `by_concept` holds D(c) of the attribute's kept concepts, NaN = none: float array (concepts,).
    """

    estimate: float
    by_concept: FloatArray


@dataclass(frozen=True)
class Compared:
    """What comparisons need of a model.

    `attributes`: its disparities by attribute id. `overall`: its overall disparity with replicates (resamples,), 0-1
    scale; None where it lacks an attribute.
    """

    model: str
    attributes: Mapping[str, Disparities]
    overall: tuple[float, FloatArray] | None


@dataclass(frozen=True)
class Comparisons:
    """The pairs of one attribute, or of `overall`, with both range tests.

    `u_within` and `p_within` hold for all pairs of this attribute, `u_all` and `p_all` for those of all attributes:
    float arrays (pairs,), NaN where one of the two models is outside the family.
    """

    attribute: str
    found: Pairs
    u_within: FloatArray
    p_within: FloatArray
    u_all: FloatArray
    p_all: FloatArray


@dataclass(frozen=True)
class _Field:
    """All models on one attribute, 0-1 scale.

    `values` holds D(c), NaN = none: float array (models, concepts). `estimates` holds D(A): (models,).
    """

    slugs: tuple[str, ...]
    values: FloatArray
    estimates: FloatArray

    @cached_property
    def present(self) -> BoolArray:
        """Whether a model has a value on the attribute: (models,)."""
        return np.asarray((~np.isnan(self.values)).any(axis=1))

    @cached_property
    def asked(self) -> BoolArray:
        """The concepts of the family, those on which some model has a value: (concepts,)."""
        return np.asarray((~np.isnan(self.values)).any(axis=0))

    @cached_property
    def members(self) -> BoolArray:
        """Whether a model has a value on every concept of the family: (models,)."""
        return np.asarray(~np.isnan(self.values[:, self.asked]).any(axis=1) & self.present)

    @property
    def n(self) -> int:
        """Concepts of the family."""
        return int(self.asked.sum())

    def draws(self, resamples: Resamples) -> FloatArray:
        """Return the replicates of the models with a value: (present models, resamples)."""
        own = self.values[self.present]
        # A resample of a mean over concepts: both sums leave out the concepts without a value.
        some = ~np.isnan(own)
        return ratio(resamples.sums(np.where(some, own, 0.0)), resamples.sums(some.astype(np.float64)))


def _field(models: Sequence[Compared], attribute: str) -> _Field:
    found = [m.attributes[attribute] for m in models]
    return _Field(
        slugs=tuple(m.model for m in models),
        values=np.array([f.by_concept for f in found], np.float64),
        estimates=np.array([f.estimate for f in found], np.float64),
    )


def compare(
    models: Sequence[Compared], resamples: Mapping[str, Resamples], demographic: Sequence[str]
) -> list[Comparisons]:
    """Compare every two models of a run, overall and, in runs of up to 200 models, on each demographic attribute.

    A model belongs to the family of an attribute if it has a value on every concept on which any model has one. Only
    pairs within the family have u and p (methodology: evidence, "The range test").

    Args:
        models: at least two, or nothing is compared.
        resamples: by attribute id, the resamples of its kept concepts, in the order of `Disparities.by_concept`.
        demographic: the attributes that are measured; without all of them nothing is compared overall.

    Returns:
        Overall first, then the attributes; none without a pair.
    """
    ordered = sorted(models, key=lambda m: m.model.encode())
    if len(ordered) < 2:
        return []
    fields = {a: _field(ordered, a) for a in demographic if a in resamples}
    found = [_overall(ordered, fields)] if len(fields) == len(demographic) else []
    if len(ordered) <= MOST_BY_ATTRIBUTE:
        found += _by_attribute(fields, resamples)
    return [one for one in found if len(one.found.first)]


def _by_attribute(fields: Mapping[str, _Field], resamples: Mapping[str, Resamples]) -> list[Comparisons]:
    draws = {a: field.draws(resamples[a]) for a, field in fields.items()}
    families = {a: _family(field, draws[a]) for a, field in fields.items()}
    whole = [family for family in families.values() if family is not None]
    # p_all: a difference on one attribute against the largest range of any.
    widest = largest_of(whole) if whole else None
    found = []
    for attribute, field in fields.items():
        slugs = [slug for slug, there in zip(field.slugs, field.present, strict=True) if there]
        n_concepts = (~np.isnan(field.values[field.present])).sum(axis=1).tolist()
        columns = zip(slugs, field.estimates[field.present].tolist(), draws[attribute], n_concepts, strict=True)
        apart = pairs([Contender(slug, d, row, (n,)) for slug, d, row, n in columns])
        members = field.members[field.present]
        ranges = families[attribute]
        within, overall = _tested(apart, members, ranges), _tested(apart, members, ranges and widest)
        found.append(Comparisons(attribute, apart, *within, *overall))
    return found


def _family(field: _Field, draws: FloatArray) -> Ranges | None:
    """Return the ranges of an attribute's family, None below two members or two concepts."""
    members = field.members[field.present]
    # A range needs two models, and one concept alone has no spread in resamples.
    if members.sum() < 2 or field.n < 2:
        return None
    estimates = field.estimates[field.present][members]
    return Ranges(error_ranges(estimates, draws[members]), Sample(field.n, field.n - 1))


def _overall(models: Sequence[Compared], fields: Mapping[str, _Field]) -> Comparisons:
    """Compare the models that have an overall score."""
    # The overall family: models that belong to the family of every attribute.
    complete = np.logical_and.reduce([field.members for field in fields.values()])
    contenders, members = [], []
    for place, model in enumerate(models):
        if model.overall is not None:
            own = [int((~np.isnan(field.values[place])).sum()) for field in fields.values()]
            contenders.append(Contender(model.model, *model.overall, tuple(own)))
            members.append(bool(complete[place]))
    apart = pairs(contenders)
    chosen = [c for c, member in zip(contenders, members, strict=True) if member]
    ranges = None
    if len(chosen) >= 2:
        errors = error_ranges(np.array([c.disparity for c in chosen]), np.array([c.draws for c in chosen]))
        ranges = Ranges(errors, several_attributes([field.n for field in fields.values()]))
    none = np.full(len(apart.first), np.nan)
    return Comparisons(OVERALL, apart, *_tested(apart, np.array(members, np.bool_), ranges), none, none)


def _tested(apart: Pairs, members: BoolArray, ranges: Ranges | None) -> tuple[FloatArray, FloatArray]:
    """Return u and p of each pair, NaN where one of the two is outside the family: two arrays (pairs,)."""
    u, p = (np.full(len(apart.first), np.nan) for _ in range(2))
    if ranges is not None:
        # The range is that of the family's errors, so it says nothing about other models.
        both = members[apart.first] & members[apart.second]
        u[both], p[both] = ranges.test(apart.difference[both])
    return u, p
