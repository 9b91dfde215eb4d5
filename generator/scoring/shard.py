"""Scores one model of a run, here or wherever its task is sent: a shard in, its part of the tables out.

Only counts, the model's own columns of the tables and a few vectors of replicates are kept.

See contract: tables, "Published tables".
"""

from __future__ import annotations

import functools
import pickle
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from generator.runs.reader import Run
from generator.schema.bank import Bank, Roles
from generator.schema.layout import Block
from generator.schema.tables import OVERALL
from generator.scoring.attribute import AttributeResult, Reversal, Score
from generator.scoring.audit import Strata
from generator.scoring.comparisons import Compared, Disparities
from generator.scoring.judges import JudgeCounts
from generator.scoring.level import Category, Level, LevelRows, level_scores
from generator.scoring.model import model_scores
from generator.scoring.refusal_rows import RefusalRow, refusal_rows
from generator.scoring.row_arrays import ModelReader, ModelRows, Stack, label_places
from generator.scoring.tables import TableMaker, score_columns
from generator.stats.bootstrap import BoolArray, CountArray, FloatArray, IntArray, Resamples, concept_counts
from generator.stats.tally import replicates, reversal


@dataclass(frozen=True)
class AttributePlan:
    """What is fixed about an attribute before any model is read.

    Attributes:
        block: its concepts, framings and groups in canonical order.
        counts: draws of its single-sided concepts, uint8 array (resamples, single-sided concepts).
        single: which concepts of the block are not two-sided, bool array (concepts,).
        withheld: which are of a withheld category, bool array (concepts,).
        reversal_counts: draws of its two-sided concepts, which are drawn on their own; None without any.
    """

    block: Block
    counts: CountArray
    single: BoolArray
    withheld: BoolArray
    reversal_counts: CountArray | None

    @property
    def kept(self) -> BoolArray:
        """Concepts that enter disparities, leans and rates: neither two-sided nor withheld. Bool array (concepts,)."""
        return self.single & ~self.withheld

    @cached_property
    def resamples(self) -> Resamples:
        """Resamples of the kept concepts. The draws stay as they are; a withheld concept counts with weight 0."""
        return Resamples.of(self.counts).kept(~self.withheld[self.single])

    @cached_property
    def reversal(self) -> Resamples | None:
        """Resamples of the two-sided concepts that are not withheld; None where there are none."""
        if self.reversal_counts is None or self.withheld[~self.single].all():
            return None
        return Resamples.of(self.reversal_counts).kept(~self.withheld[~self.single])


def attribute_plans(run: Run, withheld: frozenset[str], resamples: int) -> dict[str, AttributePlan]:
    """Return the plan of every attribute by id, with its portable draws.

    Args:
        run: the run; its bank and the bank's hash settle the draws.
        withheld: categories that no score may use.
        resamples: resamples of the bootstrap.
    """
    plans = {}
    for block in run.layout.blocks:
        items = [run.bank.concept[name] for name in block.concepts]
        single = np.array([not c.two_sided for c in items], np.bool_)
        n_single = int(single.sum())
        n_double = len(items) - n_single
        sha = run.manifest.bank_sha256
        plans[block.attribute] = AttributePlan(
            block=block,
            # Withheld concepts are drawn as well: draws must not depend on what is published.
            counts=concept_counts(sha, block.attribute, n_single, resamples),
            single=single,
            withheld=np.array([c.category in withheld for c in items], np.bool_),
            reversal_counts=concept_counts(sha, block.attribute, n_double, resamples) if n_double else None,
        )
    return plans


def _result(plan: AttributePlan, stack: Stack) -> AttributeResult:
    block = plan.block
    kept = stack.concepts(block.attribute, plan.kept)
    found = stack.found.tally(kept, block.groups, lean=block.kind == "demographic")
    turned = None
    # Two-sided concepts enter no score but this one, and are drawn on their own.
    if plan.reversal is not None:
        rows = stack.rows.of(stack.concepts(block.attribute, ~plan.single & ~plan.withheld))
        base = reversal(rows)
        turned = Reversal(base.ratios[0], replicates(base, plan.reversal).distinct()[0], int(rows.absent.sum()))
    return AttributeResult(
        attribute=block.attribute,
        kind=block.kind,
        tally=found,
        resampled=replicates(found, plan.resamples),
        withheld=bool(plan.withheld.any()),
        reversal=turned,
    )


@dataclass(frozen=True)
class ModelScores:
    """What is kept of a model once it is scored: everything but its rows.

    scores, cells, disparities: its own columns of these tables. controls: disparity, replicates and concepts of each
    control, empty unless both have a value. votes, judges: as in `ModelRows`.
    """

    model: str
    scores: pa.Table
    overall: Score
    cells: pa.Table
    disparities: pa.Table
    compared: Compared
    refusals: Sequence[RefusalRow]
    levels: dict[str, Level]
    controls: dict[str, tuple[float, FloatArray, int]]
    votes: IntArray
    strata: Strata
    judges: JudgeCounts


@dataclass(frozen=True)
class Prepared:
    """What scoring a model needs that is the same for all models of a run."""

    plans: dict[str, AttributePlan]
    reader: ModelReader
    maker: TableMaker
    categories: tuple[Category, ...]

    @classmethod
    def of(cls, run: Run, withheld: frozenset[str], resamples: int) -> Prepared:
        """Draw the resamples and lay out the plan of a run, once for all its models.

        Args:
            run: the run as read and checked.
            withheld: categories that no score may use.
            resamples: resamples of the bootstrap.
        """
        plans = attribute_plans(run, withheld, resamples)
        shown, counted = {n: ~p.withheld for n, p in plans.items()}, {n: p.kept for n, p in plans.items()}
        return cls(plans, ModelReader(run), TableMaker(run, shown, counted), level_categories(run.bank, plans))

    def score(self, slug: str) -> ModelScores:
        """Read the shard of one model and score it."""
        return _score_model(self.reader.read(slug), self.plans, self.maker, self.categories)


@dataclass(frozen=True)
class ShardTask:
    """Scores the models of a run, one by one, wherever it is sent: to another process or another machine.

    It carries the run, some ten kilobytes packed, instead of the draws. A worker unpacks it and makes the draws again,
    once.
    """

    packed: bytes

    @classmethod
    def of(cls, run: Run, withheld: frozenset[str], resamples: int) -> ShardTask:
        """Pack what a worker needs to score any model of the run; arguments as in `Prepared.of`."""
        return cls(zlib.compress(pickle.dumps((run, withheld, resamples)), 1))

    def __call__(self, slug: str) -> ModelScores:
        """Read the shard of one model and score it, with draws that this process makes once."""
        return _unpacked(self.packed).score(slug)


@functools.lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> Prepared:
    run, withheld, resamples = pickle.loads(zlib.decompress(packed))  # noqa: S301 - packed by this program itself
    return Prepared.of(run, withheld, resamples)


def level_categories(bank: Bank, plans: dict[str, AttributePlan]) -> tuple[Category, ...]:
    """Return the categories of the bank's demographic concepts, each with the resamples of its concepts that are left.

    Args:
        bank: the run's bank.
        plans: the plan of each attribute, by id.
    """
    chosen = [(plan, _in_category(bank, plan)) for name, plan in plans.items() if name in bank.roles.demographic]
    places, found = label_places(bank), []
    for name in sorted({c for _, categories in chosen for c in categories[categories != ""].tolist()}, key=str.encode):
        concepts = [bank.concept[c] for p, own in chosen for c in np.array(p.block.concepts)[own == name].tolist()]
        matrices = [
            plan.resamples.matrix[own[plan.kept] == name] for plan, own in chosen if (own[plan.kept] == name).any()
        ]
        withheld = any((plan.withheld & (own == name)).any() for plan, own in chosen)
        found.append(
            Category(
                name=name,
                measure="compliance" if name in bank.compliance else "favorability",
                labels=tuple((label, places[label]) for label in bank.rubric[concepts[0].rubric].names),
                polarities=frozenset(c.polarity for c in concepts),
                withheld=withheld,
                resamples=Resamples(np.concatenate([*matrices, np.empty((0, len(chosen[0][0].counts)))])),
            )
        )
    return tuple(found)


def _in_category(bank: Bank, plan: AttributePlan) -> npt.NDArray[np.str_]:
    """Return the category of each concept of an attribute's block, empty for two_sided ones."""
    items = [bank.concept[name] for name in plan.block.concepts]
    return np.array([c.category if not c.two_sided else "" for c in items])


def level_rows(
    bank: Bank, model: ModelRows, plans: dict[str, AttributePlan], categories: Sequence[Category]
) -> dict[str, LevelRows]:
    """Return a model's rows by category, attributes in the order of their plans as in `level_categories`."""
    found = {}
    for category in categories:
        parts = []
        for name, plan in plans.items():
            if name in bank.roles.demographic:
                stack, use = model.stack[name], plan.kept & (_in_category(bank, plan) == category.name)
                parts.append(stack.rows.of(stack.concepts(name, use)))
        found[category.name] = LevelRows.of(parts, category.labels)
    return found


def _score_model(
    model: ModelRows, plans: dict[str, AttributePlan], maker: TableMaker, categories: Sequence[Category]
) -> ModelScores:
    results = {name: _result(plan, model.stack[name]) for name, plan in plans.items()}
    roles = maker.bank.roles
    rows, draws = model_scores(results, roles)
    by_category, levels = level_scores(
        categories, level_rows(maker.bank, model, plans, categories), len(maker.bank.leveled)
    )
    controls = {c: results[c] for c in roles.controls if c in results and results[c].has_value}
    return ModelScores(
        model=model.model,
        scores=score_columns([*rows, *by_category]),
        overall=next(r for r in rows if r.metric == "consistency" and r.attribute == OVERALL),
        cells=maker.cell_columns(model),
        disparities=maker.disparity_columns(model),
        compared=_compared(model.model, results, roles, draws),
        refusals=refusal_rows(results, roles),
        levels=levels,
        controls={c: (r.disparity.estimate, r.draws, r.disparity.n_concepts) for c, r in controls.items()}
        if None not in (roles.band_lower, roles.band_upper) and len(controls) == len(roles.controls)
        else {},
        votes=model.votes,
        strata=model.strata,
        judges=model.judges,
    )


def _compared(model: str, results: dict[str, AttributeResult], roles: Roles, draws: FloatArray | None) -> Compared:
    """Return what comparisons need of a model; `draws` are its replicates of overall disparity, None without."""
    found = {a: _disparities(results[a]) for a in roles.demographic if a in results}
    overall = None if draws is None else (sum(d.estimate for d in found.values()) / len(found), draws)
    return Compared(model, found, overall)


def _disparities(result: AttributeResult) -> Disparities:
    place = result.tally.index("disparity")
    present = result.tally.denominators[place] > 0
    return Disparities(result.disparity.estimate, np.where(present, result.tally.numerators[place], np.nan))
