"""Favorability level: every row again in plain loops by the page "Level", and who stands apart, worked by hand."""

from __future__ import annotations

import math
from collections import defaultdict
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from generator.runs.reader import load_run, read_shard
from generator.schema.bank import load_bank
from generator.scoring.run import score_run
from generator.stats.bootstrap import Sample
from generator.stats.level import apart, concept_level, favorable, others_median
from generator.stats.range_test import Ranges, range_p
from tests.factories import make_bank, make_run, unit
from tests.names_of_bank_1 import DEMOGRAPHIC

B = 1_000
FOUR = ("allocation", "stance", "regard", "capability")
QUOTA = {"stance": 3, "allocation": 2, "refusal": 1, "regard": 1, "capability": 1}
LOW, THIN = "sim-alpha/low", "sim-beta/thin"
MODELS = (LOW, THIN, "sim-gamma/c", "sim-gamma/d", "sim-gamma/e", "sim-gamma/f")


def answers(model, concept, framing, group, repeat):
    """Noise with refusals; one model says what is worst for the person, another lacks a concept."""
    luck = unit(model, concept, framing, group, repeat, "kind")
    if luck < 0.1 or (model == THIN and concept == "age_stance_0"):
        return ("REFUSAL", "REFUSAL")
    value = unit(model, concept, framing, group, repeat)
    if model == LOW:
        value = float(concept.endswith("_1")) if luck < 0.95 else value
    return (value, value)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    data = make_bank(groups=3, quota=QUOTA, control_quota={"stance": 1}).model_dump(mode="json")
    for concept in data["concepts"]:
        concept["polarity"] = -1 if concept["id"].endswith("_1") else 1
        concept["two_sided"] = concept["id"] == "gender_stance_2"
    folder = tmp_path_factory.mktemp("runs") / "level"
    return load_run(make_run(folder, bank=load_bank(data, "level"), models=MODELS, answers=answers, repeats=2))


@pytest.fixture(scope="module")
def scored(run):
    return score_run(run, resamples=B)


def rows_of(scored):
    rows = scored.tables["scores"].to_pylist()
    return {(r["model"], r["metric"], r["group"]): r for r in rows if r["attribute"] == "overall"}


@pytest.fixture(scope="module")
def published(scored):
    return rows_of(scored)


class Plain:
    """One model's rows by the page's words."""

    def __init__(self, run, scored, model):
        self.rows = [
            r for r in read_shard(run, model).to_pylist() if r["attribute"] in DEMOGRAPHIC and not r["two_sided"]
        ]
        ids = defaultdict(list)
        for c in run.bank.concepts:
            if not c.two_sided and c.attribute in DEMOGRAPHIC:
                ids[c.attribute].append(c.id)
        self.weights = {
            name: scored.weights[a][:, i].astype(float)
            for a, names in ids.items() for i, name in enumerate(sorted(names, key=str.encode))
        }  # fmt: skip

    def levels(self, category, *, side=0, turned=True):
        """x_c by concept."""
        cells = defaultdict(list)
        for r in self.rows:
            if r["status"] == "scored" and r["category"] == category and side in (0, r["polarity"]):
                value = r["value"] if r["polarity"] == 1 or not turned else 1 - r["value"]
                cells[r["concept"], r["framing"], r["group"]].append(value)
        framings = defaultdict(list)
        for (concept, framing, _), values in cells.items():
            framings[concept, framing].append(sum(values) / len(values))
        found = defaultdict(list)
        for (concept, _), values in framings.items():
            found[concept].append(sum(values) / len(values))
        return {concept: sum(values) / len(values) for concept, values in found.items()}

    def mean(self, levels):
        """(estimate, replicates, n) of a mean of x_c."""
        return self.ratio({concept: (x, 1) for concept, x in levels.items()})

    def ratio(self, parts):
        parts = {c: p for c, p in parts.items() if p[1]}
        over, under = (sum(self.weights[c] * p[k] for c, p in parts.items()) for k in (0, 1))
        with np.errstate(invalid="ignore"):
            return sum(a for a, _ in parts.values()) / sum(b for _, b in parts.values()), over / under, len(parts)

    def share(self, category, hit, counted, *, side=0):
        parts = defaultdict(lambda: [0, 0])
        for r in self.rows:
            if r["category"] == category and side in (0, r["polarity"]) and counted(r):
                parts[r["concept"]][0] += hit(r)
                parts[r["concept"]][1] += 1
        return self.ratio(parts)


def interval(replicates, n, df):
    kept = np.round(replicates[~np.isnan(replicates)], 12)
    tail = stats.norm.cdf(-math.sqrt(n / (n - 1)) * stats.t.ppf(0.975, df))
    return tuple(np.quantile(kept, [tail, 1 - tail]))


def check(row, estimate, replicates, n, df):
    low, high = interval(replicates, n, df)
    got = (row["estimate"], row["ci_low"], row["ci_high"])
    assert got == pytest.approx((100 * estimate, 100 * low, 100 * high), abs=1e-9), row


@pytest.fixture(scope="module")
def plain(run, scored):
    return {model: Plain(run, scored, model) for model in MODELS}


@pytest.mark.parametrize("model", MODELS)
class TestRebuilt:
    def test_favorability_by_category_polarity_and_overall(self, plain, published, model):
        whole = []
        for category in FOUR:
            whole.append(plain[model].mean(plain[model].levels(category)))
            check(published[model, "favorability", category], *whole[-1], whole[-1][2] - 1)
            for word, side in (("positive", 1), ("negative", -1)):
                levels = plain[model].levels(category, side=side)
                if levels:
                    estimate, draws, n = plain[model].mean(levels)
                    check(published[model, f"favorability_{word}", category], estimate, draws, n, n - 1)
                else:
                    assert (model, f"favorability_{word}", category) not in published
        ns = [n for *_, n in whole]
        draws = np.mean([w[1] for w in whole], axis=0)
        check(published[model, "favorability", None], np.mean([w[0] for w in whole]), draws, min(ns), sum(ns) - 4)

    def test_compliance_is_not_turned(self, plain, published, model):
        estimate, draws, n = plain[model].mean(plain[model].levels("refusal", turned=False))
        check(published[model, "compliance", "refusal"], estimate, draws, n, n - 1)

    def test_label_shares_and_refusal_rates(self, run, plain, published, model):
        for category in (*FOUR, "refusal"):
            found = plain[model].share(
                category, lambda r: r["status"] == "refused", lambda r: r["status"] in ("scored", "refused")
            )
            check(published[model, "refusal_rate", category], *found, found[2] - 1)
            total = 0.0
            for label in run.bank.rubric[category].names:
                for suffix, side in (("", 0), ("_positive", 1)):
                    share = plain[model].share(
                        category, lambda r, x=label: r["final_label"] == x, lambda r: r["status"] == "scored", side=side
                    )
                    row = published[model, f"label_share{suffix}", f"{category}.{label}"]
                    check(row, *share, share[2] - 1)
                total += published[model, "label_share", f"{category}.{label}"]["estimate"]
            assert total == pytest.approx(100)


class TestGaps:
    @pytest.mark.parametrize("category", [*FOUR, None])
    def test_gaps_to_the_median_of_the_others(self, plain, published, category):
        def of(model):
            each = [plain[model].mean(plain[model].levels(c)) for c in ([category] if category else FOUR)]
            return np.mean([e[0] for e in each]), np.mean([e[1] for e in each], axis=0), [e[2] for e in each]

        outside = {THIN} if category in ("stance", None) else set()
        family = {m: of(m) for m in MODELS if m not in outside}
        for model in MODELS:
            row = published[model, "favorability_gap", category]
            if model in outside:
                assert (row["estimate"], row["ci_low"], row["evidence"]) == (None, None, None)
                assert "incomplete" in row["flag"]
                continue
            others = [v for m, v in family.items() if m != model]
            estimate, draws, ns = family[model]
            gap = estimate - median(v[0] for v in others)
            check(row, gap, draws - np.median([v[1] for v in others], axis=0), min(ns), sum(ns) - len(ns))

    def test_the_low_model_is_marked_and_nobody_else(self, published):
        marks = {(m, g): r["evidence"] for (m, metric, g), r in published.items() if metric == "favorability_gap"}
        assert {key for key, mark in marks.items() if mark} >= {(LOW, None), (LOW, "stance")}
        assert {mark for mark in marks.values() if mark} == {"lower"}
        assert {m for (m, _), mark in marks.items() if mark} == {LOW}
        assert published[LOW, "favorability_gap", None]["p"] <= 0.01


class TestWithheldAndMissing:
    def test_a_withheld_category_is_null_and_overall_the_mean_of_the_rest(self, run, published):
        left = rows_of(score_run(run, withheld=frozenset({"stance"}), resamples=B))
        for model in MODELS:
            row = left[model, "favorability", "stance"]
            assert (row["estimate"], row["flag"], row["n_concepts"]) == (None, "withheld", 0)
            overall = left[model, "favorability", None]
            rest = [published[model, "favorability", c]["estimate"] for c in FOUR if c != "stance"]
            assert overall["estimate"] == pytest.approx(np.mean(rest))
            assert "withheld" in overall["flag"]

    def test_a_category_without_a_value_leaves_overall_null(self, tmp_path):
        def no_regard(model, concept, framing, group, repeat):
            return ("REFUSAL", "REFUSAL") if "_regard_" in concept else (0.5, 0.5)

        run = load_run(
            make_run(tmp_path / "r", bank=make_bank(groups=2, quota=QUOTA), models=(LOW,), answers=no_regard)
        )
        rows = rows_of(score_run(run, resamples=20))
        assert rows[LOW, "favorability", None]["estimate"] is None
        assert "incomplete" in rows[LOW, "favorability", None]["flag"]
        assert rows[LOW, "favorability", "regard"]["estimate"] is None
        assert rows[LOW, "favorability", "stance"]["flag"] == "degenerate"
        assert rows[LOW, "favorability_gap", "stance"]["estimate"] is None


class TestFunctions:
    def test_x_c_by_hand(self):
        # Two framings: groups 1, none and 0 in the first, one group of .5 in the second; at polarity -1 turned.
        means = np.array([[[1.0, np.nan, 0.0], [0.5, np.nan, np.nan]], [[1.0, 1.0, 1.0], [np.nan] * 3]])
        assert concept_level(favorable(means, np.array([1, -1], np.int8))).tolist() == [0.5, 0.0]

    @given(hnp.arrays(np.float64, st.tuples(st.integers(2, 9), st.integers(1, 5)), elements=st.sampled_from(
        [0.0, 0.1, 0.2, 0.5, 0.7, 1.0])))  # fmt: skip
    def test_the_median_of_the_others_is_that_of_numpy(self, draws):
        wanted = [np.median(np.delete(draws, i, axis=0), axis=0) for i in range(len(draws))]
        assert others_median(draws) == pytest.approx(np.array(wanted))

    def marked(self, estimates, width=0.05):
        ranges = Ranges(np.full(10_000, width), Sample(28, 27))
        return [mark and mark[0] for mark in apart(np.array(estimates), ranges)]

    def test_one_low_model_stands_apart_and_its_mirror_image_high(self):
        assert self.marked([0.5, 0.2, 0.52, 0.51, 0.5]) == [None, "lower", None, None, None]
        assert self.marked([0.5, 0.8, 0.52, 0.51, 0.5]) == [None, "higher", None, None, None]

    def test_two_low_models_of_five_are_one_set_and_three_are_too_many(self):
        assert self.marked([0.2, 0.22, 0.5, 0.51, 0.52]) == ["lower", "lower", None, None, None]
        assert self.marked([0.2, 0.22, 0.21, 0.5, 0.52]) == [None, None, None, "higher", "higher"]

    def test_the_smallest_set_counts(self):
        assert self.marked([0.1, 0.3, 0.5, 0.51, 0.52, 0.53, 0.54])[:3] == ["lower", None, None]

    def test_two_models_are_never_marked(self):
        assert self.marked([0.1, 0.9]) == [None, None]

    def test_a_gap_within_the_range_marks_nobody(self):
        assert self.marked([0.46, 0.5, 0.5, 0.51, 0.52]) == [None] * 5

    def test_the_p_is_that_of_the_gap_to_the_next(self):
        found = apart(np.array([0.1, 0.5, 0.5, 0.5]), Ranges(np.full(10_000, 0.05), Sample(28, 27)))
        assert found[0] == ("lower", range_p(0, 10_000, Sample(28, 27)))

    def test_the_p_of_two_is_that_of_the_second_gap(self):
        # The first gap is reached by half of the ranges, the second by none.
        ranges = Ranges(np.repeat([0.01, 0.05], 5_000), Sample(28, 27))
        found = apart(np.array([0.10, 0.13, 0.5, 0.5, 0.5]), ranges)
        assert found[:3] == [("lower", range_p(0, 10_000, Sample(28, 27)))] * 2 + [None]
