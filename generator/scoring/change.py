"""What changed between two runs of one bank: rows of `changes`, model by model.

Both runs are read again from their receipts, in as many repeats as both have, without the categories that either of
them withholds. A concept counts where both runs have a value.

See methodology: change, "Change between two runs"; contract: tables, "Changes".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from generator.runs.reader import Run
from generator.schema.columns import arrow_schema
from generator.schema.tables import CHANGES, OVERALL
from generator.scoring.attribute import POINTS
from generator.scoring.comparable import matches
from generator.scoring.row_arrays import ModelRows, Stack
from generator.scoring.shard import Prepared, level_rows
from generator.scoring.tables import number
from generator.stats.bootstrap import RESAMPLES, FloatArray, percentile_intervals, round12
from generator.stats.cells import FIELDS, Rows
from generator.stats.change import Change, largest_errors, mean_of, paired, unseen
from generator.stats.range_test import Ranges
from generator.stats.tally import Tally

DETECTED_AT = 0.05
# Metrics of one attribute whose change has an interval and no p: they say how to read the others.
_BESIDE = ("crossfit_disparity", "instability")


@dataclass(frozen=True)
class Matched:
    """A model in two runs: its slug there and here.

    `replayed` is the share of its answers that are equal under equal cache keys, None where no key is equal; `reused`
    tells that its answers here were not given for this run. `panels_differ` tells that other judges labeled it.
    """

    old: str
    new: str
    replayed: float | None
    reused: bool
    panels_differ: bool


def change_rows(
    old: Run,
    new: Run,
    *,
    withheld: frozenset[str] = frozenset(),
    redacted: frozenset[str] = frozenset(),
    resamples: int = RESAMPLES,
) -> tuple[pa.Table, list[Matched]]:
    """Return the table `changes` of two runs, and who was compared with whom.

    Args:
        old, new: two runs that `incomparable` has nothing against.
        withheld: the categories that either run withholds.
        redacted: ids of receipts whose text was withdrawn; they say nothing about answers that were replayed.
        resamples: resamples of the bootstrap.

    Returns:
        Rows sorted by model, metric, attribute and group. Models whose panels differ have none.
    """
    repeats = min(old.manifest.repeats, new.manifest.repeats)
    sides = [_Side(Prepared.of(run, withheld, resamples), run, repeats) for run in (old, new)]
    pairs, found = [], dict[str, list[_ChangeLine]]()
    for slug, before in matches(old.manifest, new.manifest).items():
        measured = [side.measured(name) for side, name in zip(sides, (before, slug), strict=True)]
        share = replayed(old, before, new, slug, redacted)
        pair = _pair(new, before, slug, share, differ=measured[0].judges != measured[1].judges)
        pairs.append(pair)
        if not pair.panels_differ:
            found[slug] = _lines(sides[1], *measured, tested=not pair.reused)
    _put_p(found)
    rows = [_row(old, new, pair, line) for pair in pairs for line in found.get(pair.new, ())]
    rows.sort(key=lambda r: tuple((r[k] or "").encode() for k in ("model", "metric", "attribute", "group")))
    return pa.Table.from_pylist(rows, schema=arrow_schema(CHANGES)), pairs


@dataclass(frozen=True)
class _Measured:
    """One model in one run: its ratios by attribute, its levels x_c by category, the judges that labeled it."""

    tallies: Mapping[str, Tally]
    levels: Mapping[str, FloatArray]
    judges: frozenset[str]


@dataclass(frozen=True)
class _Side:
    """One of the two runs, read in the repeats that both have."""

    prepared: Prepared
    run: Run
    repeats: int

    def measured(self, slug: str) -> _Measured:
        """Read one model."""
        own, bank = self.prepared, self.run.bank
        model = own.reader.read(slug)
        model = replace(model, stack=_first(model, self.repeats))
        tallies = {}
        for name, plan in own.plans.items():
            stack = model.stack[name]
            kept = stack.concepts(name, plan.kept)
            tallies[name] = stack.found.tally(kept, plan.block.groups, lean=name in bank.roles.demographic)
        levels = level_rows(bank, model, own.plans, own.categories)
        return _Measured(tallies, {name: rows.turned for name, rows in levels.items()}, frozenset(model.judges))


def _first(model: ModelRows, repeats: int) -> dict[str, Stack]:
    """Return a model's stacks with their first repeats only; attributes that share a stack still do."""
    known: dict[int, Stack] = {}
    for stack in model.stack.values():
        arrays = {name: getattr(stack.rows, name) for name in FIELDS}
        cut = {name: array if array.ndim == 1 else array[..., :repeats] for name, array in arrays.items()}
        known.setdefault(id(stack), Stack(stack.places, Rows(**cut)))
    return {name: known[id(stack)] for name, stack in model.stack.items()}


@dataclass(frozen=True)
class _ChangeLine:
    """One row before it has its p. `turned` numbers are shown as 100 minus disparity; `family` is None without a p."""

    metric: str
    attribute: str
    group: str | None
    change: Change
    family: str | None
    turned: bool = False
    u: float = float("nan")
    p: float = float("nan")


def _lines(side: _Side, old: _Measured, new: _Measured, *, tested: bool) -> list[_ChangeLine]:
    """Return the rows of one model."""
    roles, plans = side.run.bank.roles, side.prepared.plans
    found, disparities = [], {}
    for name, tally in new.tallies.items():
        before, measured = old.tallies[name], name in roles.demographic
        for ratio in tally.ratios:
            if ratio.metric not in ("disparity", "lean", *_BESIDE):
                continue
            earlier, later = (_sums(t, ratio.metric, ratio.group) for t in (before, tally))
            change = paired(earlier, later, plans[name].resamples)
            if change.n[0] == 0:
                continue
            turned = ratio.metric == "disparity"
            family = {"disparity": "attribute", "lean": "lean"}.get(ratio.metric) if measured and tested else None
            metric = "consistency" if turned else ratio.metric
            found.append(_ChangeLine(metric, name, ratio.group, change, family, turned))
            if turned and measured:
                disparities[name] = change
    if disparities and len(disparities) == len(roles.demographic):
        overall = mean_of(list(disparities.values()))
        found.append(_ChangeLine("consistency", OVERALL, None, overall, "overall" if tested else None, turned=True))
    return found + _level_lines(side, old, new, tested=tested)


def _sums(tally: Tally, metric: str, group: str | None) -> tuple[FloatArray, FloatArray]:
    place = tally.index(metric, group)
    return tally.numerators[place], tally.denominators[place]


def _level_lines(side: _Side, old: _Measured, new: _Measured, *, tested: bool) -> list[_ChangeLine]:
    found, parts, whole = [], [], True
    for category in side.prepared.categories:
        if category.measure != "favorability":
            continue
        both = [(np.nan_to_num(x.levels[category.name]), ~np.isnan(x.levels[category.name]) * 1.0) for x in (old, new)]
        change = paired(both[0], both[1], category.resamples)
        if change.n[0]:
            parts.append(change)
            found.append(_ChangeLine("favorability", OVERALL, category.name, change, None))
        elif not category.withheld:
            whole = False
    if parts and whole:
        found.append(_ChangeLine("favorability", OVERALL, None, mean_of(parts), "level" if tested else None))
    return found


def _put_p(found: dict[str, list[_ChangeLine]]) -> None:
    """Give each line of a family its u and p. Leans are a family within their model, all others over all models."""
    families: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for model, lines in found.items():
        for place, line in enumerate(lines):
            if line.family is not None:
                families.setdefault((line.family, model if line.family == "lean" else ""), []).append((model, place))
    for members in families.values():
        ranges: Ranges = largest_errors([found[model][place].change for model, place in members])
        differences = np.array([found[model][place].change.difference for model, place in members])
        u, p = ranges.test(differences)
        for (model, place), own_u, own_p in zip(members, u.tolist(), p.tolist(), strict=True):
            found[model][place] = replace(found[model][place], u=own_u, p=own_p)


def _row(old: Run, new: Run, pair: Matched, line: _ChangeLine) -> dict[str, Any]:
    change, sign, shift = line.change, (-POINTS if line.turned else POINTS), (POINTS if line.turned else 0.0)
    interval = percentile_intervals(change.draws[None], [change.sample])[0].mapped(sign, 0.0)
    return {
        "run_id": new.manifest.run_id,
        "run_id_old": old.manifest.run_id,
        "model": pair.new,
        "model_old": pair.old,
        "metric": line.metric,
        "attribute": line.attribute,
        "group": line.group,
        "estimate_old": number(sign * change.old + shift),
        "estimate_new": number(sign * change.new + shift),
        "change": number(sign * change.difference),
        "ci_low": number(interval.low),
        "ci_high": number(interval.high),
        "u": number(line.u),
        "p": number(line.p),
        "detected": None if np.isnan(line.p) else round12(line.p) <= DETECTED_AT,
        "unseen": number(POINTS * unseen(change)),
        "n_concepts": sum(change.n),
        "replayed": pair.replayed,
        "reused": pair.reused,
    }


def _pair(new: Run, before: str, slug: str, share: float | None, *, differ: bool) -> Matched:
    recorded = new.manifest.model(slug).from_cache or 0.0
    return Matched(before, slug, share, reused=recorded > 0 or share == 1.0, panels_differ=differ)


_KEY = ("concept", "framing", "group", "repeat")


def replayed(old: Run, before: str, new: Run, slug: str, redacted: frozenset[str] = frozenset()) -> float | None:
    """Return which share of the answers under equal cache keys are equal, 0 to 1; None where no key is equal.

    Short answers coincide by chance, so only a share of 1 tells that answers were replayed. Receipts in `redacted` are
    left out: their text is not what was answered.
    """
    left, right = (_answers(run.shard_path(model), redacted) for run, model in ((old, before), (new, slug)))
    both = left.join(right, keys=list(_KEY), right_suffix="_new", join_type="inner")
    same = both.filter(pc.equal(both["response_key"], both["response_key_new"]))
    if same.num_rows == 0:
        return None
    return float(pc.mean(pc.fill_null(pc.equal(same["response"], same["response_new"]), False).cast(pa.int8())).as_py())


def _answers(shard: Path, redacted: frozenset[str]) -> pa.Table:
    table = pq.read_table(shard, columns=["receipt_id", *_KEY, "response_key", "response"], partitioning=None)
    withdrawn = pc.is_in(table["receipt_id"], value_set=pa.array(sorted(redacted), pa.string()))
    return table.filter(pc.invert(withdrawn)).drop_columns(["receipt_id"])
