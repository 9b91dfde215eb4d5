"""What a run found, read off its published tables: findings as values, which pages put into words.

Takes `scores` as a ScoreBook and the rows of `refusal_tests`; computes nothing that the tables do not hold.
(contract: publication, "Findings")
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from generator.schema.bank import Attribute, Group
from generator.scoring.lookup import ScoreBook, ScoreRow
from generator.stats.bootstrap import round12

T = TypeVar("T")
# In this order a model belongs to the first kind of which it has a finding.
Kind = Literal["flagged", "refusals", "level", "suggestive", "none", "untested"]
KINDS: tuple[Kind, ...] = ("flagged", "refusals", "level", "suggestive", "none", "untested")


@dataclass(frozen=True)
class Moved:
    """An attribute on which a model's answers moved: by how much beyond its own noise, and whom they favor.

    excess: its row of `scores`, in points. best, worst: the groups with the largest and the smallest lean, or None
    where no two differ. (methodology: scoring, "Directional lean")
    """

    model: str
    attribute: Attribute
    excess: ScoreRow
    best: tuple[Group, ScoreRow] | None
    worst: tuple[Group, ScoreRow] | None


@dataclass(frozen=True)
class Apart:
    """A level that stands apart from all other models', overall (category None) or in a category.

    side: lower or higher. level, gap: rows of favorability and favorability_gap, in points.
    """

    model: str
    category: str | None
    side: str
    level: ScoreRow
    gap: ScoreRow


@dataclass(frozen=True)
class ModelFindings:
    """What was found about one model; attributes in the bank's order. unresolved: attributes that are."""

    model: str
    flagged: tuple[Moved, ...]
    suggestive: tuple[Moved, ...]
    refusing: tuple[Attribute, ...]
    apart: tuple[Apart, ...]
    unresolved: int

    @property
    def tested(self) -> int:
        """Attributes that have an evidence tier."""
        return len(self.flagged) + len(self.suggestive) + self.unresolved

    @property
    def kind(self) -> Kind:
        """The first kind of finding that the model has; `untested` where nothing could be held against its noise."""
        held = {
            "flagged": self.flagged,
            "refusals": self.refusing,
            "level": self.apart,
            "suggestive": self.suggestive,
            "none": self.tested,
        }
        return next((kind for kind in KINDS if held.get(kind)), "untested")


@dataclass(frozen=True)
class RunFindings:
    """What was found about all models of a run, in the order of their slugs' bytes.

    pairs: attributes times models. refusal_tests: those that have a p. noticed: the smallest and the largest of the
    sizes that would have been seen (MDE) on the unresolved attributes, None without one. levels: every model's overall
    favorability that has a value, lowest first. compared: whether levels were held against each other. withheld:
    categories that count nowhere.
    """

    models: tuple[ModelFindings, ...]
    pairs: int
    refusal_tests: int
    noticed: tuple[ScoreRow, ScoreRow] | None
    levels: tuple[ScoreRow, ...]
    compared: bool
    withheld: tuple[str, ...]

    def of(self, model: str) -> ModelFindings:
        """Return what was found about a model of the run; raises KeyError for any other."""
        for found in self.models:
            if found.model == model:
                return found
        raise KeyError(model)

    @property
    def flagged(self) -> tuple[Moved, ...]:
        """All flagged attributes of all models."""
        return tuple(one for found in self.models for one in found.flagged)

    @property
    def largest(self) -> Moved | None:
        """The flagged attribute with the largest excess; of equal ones the first, None where none is flagged."""
        return max(self.flagged, key=lambda one: round12(one.excess.estimate or 0.0), default=None)

    @property
    def apart(self) -> tuple[Apart, ...]:
        """All levels that stand apart."""
        return tuple(one for found in self.models for one in found.apart)

    @property
    def unresolved(self) -> int:
        """Pairs of model and attribute that are unresolved."""
        return sum(found.unresolved for found in self.models)

    @property
    def suggestive(self) -> int:
        """Pairs of model and attribute that are suggestive."""
        return sum(len(found.suggestive) for found in self.models)

    @property
    def tested(self) -> int:
        """Pairs of model and attribute that have an evidence tier."""
        return sum(found.tested for found in self.models)

    def by_kind(self) -> list[tuple[Kind, tuple[ModelFindings, ...]]]:
        """Return the models by their kind of finding, kinds without a model left out."""
        groups = [(kind, tuple(found for found in self.models if found.kind == kind)) for kind in KINDS]
        return [(kind, found) for kind, found in groups if found]


def extremes(leans: Sequence[tuple[T, float | None]]) -> tuple[T, T] | None:
    """Return what has the largest and the smallest lean, equal ones in their order; None without two that differ."""
    known = [(round(lean, 10), item) for item, lean in leans if lean is not None]
    ranked = sorted(known, key=lambda pair: -pair[0])
    return (ranked[0][1], ranked[-1][1]) if ranked and ranked[0][0] > ranked[-1][0] else None


def find(
    book: ScoreBook,
    tests: Iterable[Mapping[str, Any]],
    models: Iterable[str],
    attributes: Sequence[Attribute],
    categories: Sequence[str],
    withheld: Iterable[str] = (),
) -> RunFindings:
    """Return what the published tables of a run say was found.

    Args:
        book: the table `scores`.
        tests: the rows of `refusal_tests`.
        models: the slugs of the models.
        attributes: the demographic ones, in the bank's order.
        categories: those with a favorability, in the bank's order.
        withheld: the categories that count nowhere.
    """
    listed = sorted(models, key=str.encode)
    rows = list(tests)
    named = {(row["model"], row["attribute"]) for row in rows if row["named"]}
    found = tuple(_of_model(book, model, attributes, categories, named) for model in listed)
    gaps = [book.row(model, "favorability_gap") for model in listed]
    return RunFindings(
        models=found,
        pairs=len(listed) * len(attributes),
        refusal_tests=sum(row["p"] is not None for row in rows),
        noticed=_noticed(book, listed, attributes),
        levels=_levels(book, listed),
        compared=sum(gap.estimate is not None for gap in gaps) > 2,
        withheld=tuple(sorted(withheld)),
    )


def _of_model(
    book: ScoreBook,
    model: str,
    attributes: Sequence[Attribute],
    categories: Sequence[str],
    named: set[tuple[str, str]],
) -> ModelFindings:
    tier = {a.id: book.row(model, "excess", a.id).evidence for a in attributes}
    return ModelFindings(
        model=model,
        flagged=tuple(_moved(book, model, a) for a in attributes if tier[a.id] == "flagged"),
        suggestive=tuple(_moved(book, model, a) for a in attributes if tier[a.id] == "suggestive"),
        refusing=tuple(a for a in attributes if (model, a.id) in named),
        apart=_apart(book, model, categories),
        unresolved=list(tier.values()).count("unresolved"),
    )


def _moved(book: ScoreBook, model: str, attribute: Attribute) -> Moved:
    leans = [(group, book.row(model, "lean", attribute.id, group.id)) for group in attribute.groups]
    best, worst = extremes([(pair, pair[1].estimate) for pair in leans]) or (None, None)
    return Moved(model, attribute, book.row(model, "excess", attribute.id), best, worst)


def _apart(book: ScoreBook, model: str, categories: Sequence[str]) -> tuple[Apart, ...]:
    gaps = [(category, book.row(model, "favorability_gap", group=category)) for category in (None, *categories)]
    return tuple(
        Apart(model, category, gap.evidence, book.row(model, "favorability", group=category), gap)
        for category, gap in gaps
        if gap.evidence
    )


def _noticed(
    book: ScoreBook, models: Sequence[str], attributes: Sequence[Attribute]
) -> tuple[ScoreRow, ScoreRow] | None:
    unresolved = [(m, a.id) for m in models for a in attributes if book.row(m, "excess", a.id).evidence == "unresolved"]
    sizes = [book.row(model, "mde", attribute) for model, attribute in unresolved]
    ranked = sorted((row for row in sizes if row.estimate is not None), key=lambda row: row.estimate or 0.0)
    return (ranked[0], ranked[-1]) if ranked else None


def _levels(book: ScoreBook, models: Sequence[str]) -> tuple[ScoreRow, ...]:
    rows = [book.row(model, "favorability") for model in models]
    return tuple(sorted((row for row in rows if row.estimate is not None), key=lambda row: row.estimate or 0.0))
