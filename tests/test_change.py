"""Change between two runs: every number again in plain loops from the rows, and the cases that have none."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from scipy import stats

from generator.runs.reader import load_run, read_shard
from generator.scoring.change import change_rows, replayed
from generator.scoring.comparable import incomparable, matches
from generator.stats.bootstrap import Resamples, Sample, concept_counts, one_attribute, percentile_interval
from generator.stats.change import Change, largest_errors, mean_of, paired, unseen
from tests.factories import DEMOGRAPHIC, answers_from, make_bank, make_rows, unit, write_run

B = 500
QUOTA = {"stance": 2, "allocation": 2, "regard": 1, "capability": 1}
BANK = make_bank(DEMOGRAPHIC, groups=3, quota=QUOTA)
MODELS = ("sim-alpha/one", "sim-beta/two")


def answers(salt, push=0.0):
    """Noise by run; `push` lowers what one group gets."""

    def votes(model, concept, framing, group, repeat):
        value = unit(salt, model, concept, framing, group, repeat)
        return answers_from(round(max(0.0, value - (push if group == "g0" else 0.0)) * 2) / 2)

    return votes


def make(folder, salt, *, push=0.0, models=MODELS, repeats=2, keys=True, **changes):
    shards = {}
    for model in models:
        rows = make_rows(BANK, model, repeats=repeats, run_id=folder.name, answers=answers(salt, push))
        for row in rows if keys else ():
            row["response_key"] = row["response_key"][:60] + f"{hash_of(salt):04x}"
        shards[model] = rows
    return load_run(write_run(folder, BANK, shards, **changes))


def hash_of(salt):
    return int(unit(salt, "key") * 65_535)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("change")
    return make(folder / "run-old", "old"), make(folder / "run-new", "new", push=0.6)


@pytest.fixture(scope="module")
def table(runs):
    return change_rows(*runs, resamples=B)[0].to_pylist()


def one(rows, model, metric, attribute="overall", group=None):
    key = (model, metric, attribute, group)
    return next(r for r in rows if (r["model"], r["metric"], r["attribute"], r["group"]) == key)


def disparities(run, model, attribute):
    """D(c) in plain loops: mean over framings of the mean distance of two groups' means."""
    values = defaultdict(list)
    for row in read_shard(run, model).to_pylist():
        if row["attribute"] == attribute and row["status"] == "scored":
            values[row["concept"], row["framing"], row["group"]].append(row["value"])
    means = {key: sum(own) / len(own) for key, own in values.items()}
    found = []
    for concept in sorted({c for c, _, _ in means}):
        by_framing = []
        for framing in sorted({f for c, f, _ in means if c == concept}):
            own = [m for (c, f, _), m in means.items() if (c, f) == (concept, framing)]
            apart = [abs(a - b) for i, a in enumerate(own) for b in own[i + 1 :]]
            by_framing.append(sum(apart) / len(apart))
        found.append(sum(by_framing) / len(by_framing))
    return np.array(found)


def drawn(attribute, n):
    return concept_counts(BANK.sha256, attribute, n, B).astype(float)


class TestPlainly:
    @pytest.mark.parametrize("model", MODELS)
    @pytest.mark.parametrize("attribute", ["age", "gender"])
    def test_consistency_of_an_attribute(self, runs, table, model, attribute):
        before, after = (disparities(run, model, attribute) for run in runs)
        weights = drawn(attribute, len(before))
        row = one(table, model, "consistency", attribute)
        draws = -100 * (weights @ (after - before)) / weights.sum(axis=1)
        interval = percentile_interval(draws, one_attribute(len(before)))
        assert row["estimate_old"] == pytest.approx(100 - 100 * before.mean())
        assert row["estimate_new"] == pytest.approx(100 - 100 * after.mean())
        assert row["change"] == pytest.approx(-100 * (after - before).mean())
        assert (row["ci_low"], row["ci_high"]) == pytest.approx((interval.low, interval.high))
        n = len(before)
        assert row["unseen"] == pytest.approx(2.802 * math.sqrt(n / (n - 1)) * draws.std(ddof=1), rel=1e-3)

    def test_p_is_that_of_the_largest_error_over_models_and_attributes(self, runs, table):
        changes = {}
        for model in MODELS:
            for attribute in DEMOGRAPHIC:
                apart = disparities(runs[1], model, attribute) - disparities(runs[0], model, attribute)
                weights = drawn(attribute, len(apart))
                changes[model, attribute] = apart.mean(), (weights @ apart) / weights.sum(axis=1), len(apart)
        largest = np.round(np.max([np.abs(draws - d) for d, draws, _ in changes.values()], axis=0), 12)
        n = min(n for _, _, n in changes.values())
        for (model, attribute), (d, _, _) in changes.items():
            row = one(table, model, "consistency", attribute)
            u = (1 + int((largest >= round(abs(d), 12)).sum())) / (B + 1)
            assert row["u"] == pytest.approx(u)
            assert row["p"] == pytest.approx(2 * stats.t.cdf(stats.norm.ppf(u / 2) * math.sqrt((n - 1) / n), n - 1))
            assert row["detected"] == (row["p"] <= 0.05)

    def test_overall_is_the_mean_of_the_attributes(self, table):
        for model in MODELS:
            parts = [one(table, model, "consistency", a)["change"] for a in DEMOGRAPHIC]
            assert one(table, model, "consistency")["change"] == pytest.approx(sum(parts) / 7)

    def test_favorability_falls_with_what_one_group_gets(self, table):
        for model in MODELS:
            overall = one(table, model, "favorability")
            parts = [
                one(table, model, "favorability", "overall", c)
                for c in ("allocation", "capability", "regard", "stance")
            ]
            assert overall["change"] == pytest.approx(sum(r["change"] for r in parts) / 4)
            assert overall["p"] is not None
            assert {r["p"] for r in parts} == {None}

    def test_the_lean_of_the_group_that_gets_less_falls(self, table):
        leans = [r for r in table if r["metric"] == "lean" and r["group"] == "g0"]
        assert leans
        assert all(row["change"] < 0 and row["p"] is not None for row in leans)

    def test_what_only_says_how_to_read_the_others_has_no_p(self, table):
        for metric in ("crossfit_disparity", "instability"):
            rows = [r for r in table if r["metric"] == metric]
            assert rows
            assert all(r["u"] is r["p"] is r["detected"] is None for r in rows)

    def test_rows_are_sorted_and_the_runs_named(self, table):
        keys = [tuple((r[k] or "").encode() for k in ("model", "metric", "attribute", "group")) for r in table]
        assert keys == sorted(keys)
        assert {(r["run_id"], r["run_id_old"]) for r in table} == {("run-new", "run-old")}


class TestWhoIsCompared:
    def test_the_repeats_that_both_have(self, tmp_path, runs, table):
        longer = make(tmp_path / "run-long", "new", push=0.6, repeats=3)
        found = change_rows(runs[0], longer, resamples=B)[0].to_pylist()
        assert [r | {"run_id": ""} for r in found] == [r | {"run_id": ""} for r in table]

    def test_a_model_that_only_one_has_is_left_out(self, tmp_path, runs):
        other = make(tmp_path / "run-other", "x", models=(MODELS[1], "sim-gamma/three"))
        assert matches(runs[0].manifest, other.manifest) == {MODELS[1]: MODELS[1]}
        assert {r["model"] for r in change_rows(runs[0], other, resamples=B)[0].to_pylist()} == {MODELS[1]}
        alone = make(tmp_path / "run-alone", "x", models=("sim-gamma/three",))
        assert incomparable(runs[0].manifest, alone.manifest) == "nobody"

    def test_another_bank_is_not_compared(self, tmp_path, runs):
        bank = make_bank(("age",), groups=2, quota={"stance": 2})
        rows = make_rows(bank, MODELS[0], repeats=1, run_id="run-bank")
        other = load_run(write_run(tmp_path / "run-bank", bank, {MODELS[0]: rows}))
        assert incomparable(runs[0].manifest, other.manifest) == "bank"

    def test_replayed_answers_have_intervals_and_no_p(self, tmp_path):
        first = make(tmp_path / "run-a", "same", keys=False)
        again = make(tmp_path / "run-b", "same", keys=False)
        found, pairs = change_rows(first, again, resamples=B)
        assert {(pair.replayed, pair.reused) for pair in pairs} == {(1.0, True)}
        assert {r["p"] for r in found.to_pylist()} == {None}
        assert replayed(first, MODELS[0], make(tmp_path / "run-c", "other"), MODELS[0]) is None


class TestFunctions:
    def test_a_ratio_over_the_concepts_that_count_in_both(self):
        resamples = Resamples(np.array([[2.0, 1, 0], [0.0, 1, 2], [1.0, 1, 1]]))
        old = np.array([0.2, 0.4, 0.9]), np.array([1.0, 1.0, 0.0])
        new = np.array([0.5, 0.4, 0.1]), np.array([1.0, 1.0, 1.0])
        change = paired(old, new, resamples)
        assert (change.old, change.new, change.n) == (pytest.approx(0.3), pytest.approx(0.45), (2,))
        assert change.draws.tolist() == pytest.approx([0.3, 0.15, 0.0])

    def test_without_a_common_concept_there_is_none(self):
        change = paired(
            (np.array([1.0]), np.array([0.0])), (np.array([1.0]), np.array([1.0])), Resamples(np.ones((1, 3)))
        )
        assert math.isnan(change.difference)
        assert math.isnan(unseen(change))

    def test_a_mean_pairs_replicates_and_keeps_each_number_of_concepts(self):
        parts = [Change(0.1, 0.2, np.array([0.1, 0.3]), (4,)), Change(0.3, 0.2, np.array([-0.1, 0.1]), (6,))]
        found = mean_of(parts)
        assert (found.difference, found.draws.tolist(), found.n) == (
            pytest.approx(0.0),
            pytest.approx([0.0, 0.2]),
            (4, 6),
        )
        assert found.sample == Sample(4, 8)

    def test_the_largest_error_by_hand(self):
        parts = [Change(0.0, 0.1, np.array([0.1, 0.3]), (4,)), Change(0.0, 0.2, np.array([0.5, math.nan]), (9,))]
        ranges = largest_errors(parts)
        assert ranges.values[0] == pytest.approx(0.3)
        assert math.isnan(ranges.values[1])
        assert ranges.sample == Sample(4, 3)
