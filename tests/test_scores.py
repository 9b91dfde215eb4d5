"""Whole runs scored: a run worked by hand, laws that hold between runs, and what is flagged, withheld or missing."""

from __future__ import annotations

import math
import pickle
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

from generator.runs.reader import load_run
from generator.schema.bank import Bank, load_bank
from generator.schema.columns import arrow_schema
from generator.schema.tables import METRICS, OVERALL, TABLES
from generator.scoring import run as scores
from generator.scoring.lookup import ScoreBook
from generator.scoring.run import score_here, score_run
from generator.stats.bootstrap import concept_counts, expanded_tail
from tests.factories import make_bank, make_rows, make_run, unit, write_run
from tests.names_of_bank_1 import CONTROL_PROFESSION, CONTROL_TAG, CONTROLS, DEMOGRAPHIC

MODEL = "sim-alpha/one"
OTHER = "sim-beta/two"
SMALL = 400
NINE = (*DEMOGRAPHIC, *CONTROLS)
TINY = make_bank(NINE, groups=3, quota={"stance": 3}, control_quota={"stance": 3})


# A run worked by hand. Nine attributes of three stance concepts (0 and 1 of polarity +1, 2 of polarity -1), two
# framings, three groups, two repeats. Two answers a cell; R refused, C contested, E error.
#
#   age         direct g0    g1    g2      professional g0    g1    g2
#   concept 0          1 1   .5 .5  0 0                .5 .5 .5 .5 .5 .5
#   concept 1          1 0   .5 .5  R R                1 1   C C   E E
#   concept 2          0 0   1 1    1 R                .5 .5 .5 .5 1 1
#
# D(c, f): concept 0 (.5 + 1 + .5)/3 = 2/3 and 0; concept 1 |.5 - .5| = 0, its professional cell has one group and does
# not count; concept 2 (1 + 1 + 0)/3 = 2/3 and (0 + .5 + .5)/3 = 1/3. D(c) = 1/3, 0, 1/2; D(age) = 5/18, CS = 72.2...
# W: gaps 1 and 0, 0, 1 and .5: (1/2 + 0 + 3/4)/3 = 5/12.
# Lean of g0 over its five counting cells: .5 + 0 + 0 + 2/3 + 1/6 = 4/3, /5 = 4/15 (at polarity -1 fav is 1 - value);
#   g1: 0 + 0 + 0 - 1/3 + 1/6 = -1/6, /5 = -1/30; g2 over four cells: -1/2 + 0 - 1/3 - 1/3 = -7/6, /4 = -7/24.
# Rows: 36 planned, 3 refused (all g2), 2 contested, 2 error, 29 scored. r(g0) = r(g1) = 0, r(g2) = 3/10: RA = 30.
#   refusal 3/32, contested 2/34, error 2/36. Instability: 14 cells with two scored repeats, one not unanimous: 1/14.
# Cross-fit: concept 0: 2/3 and 0, mean 1/3. Concept 1: the pair g0 g1 only; leaving repeat 0 out, g0 (0) is behind g1
#   (.5), and repeat 0 has g0 ahead by .5: -.5; the same for repeat 1: -.5. Concept 2: g2 has one scored repeat, so the
#   pair g0 g1: 1; professional 0, .5, .5: 1/3; mean 2/3. D_x = (1/3 - 1/2 + 2/3)/3 = 1/6.
# Controls: professions differ in concept 0, direct only, g0 1, others 0: D(c, f) = 2/3, D = 1/9, CS = 88.8...
#   tags in both framings of concept 0: D = 2/9, CS = 77.7...: the band is swapped, the edge is the tag.
#   CAC(age) = 100 (1 - (5/18 - 4/18)) = 94.4..., excess 5.5...
# The other six attributes always answer .5: D = 0. Overall D = 5/126.
AGE = {
    (0, "direct"): ((1, 1), (0.5, 0.5), (0, 0)),
    (0, "professional"): ((0.5, 0.5), (0.5, 0.5), (0.5, 0.5)),
    (1, "direct"): ((1, 0), (0.5, 0.5), ("R", "R")),
    (1, "professional"): ((1, 1), ("C", "C"), ("E", "E")),
    (2, "direct"): ((0, 0), (1, 1), (1, "R")),
    (2, "professional"): ((0.5, 0.5), (0.5, 0.5), (1, 1)),
}
BALLOTS = {"R": ("REFUSAL", "REFUSAL"), "C": (0, 0.5, 1), "E": (None, 0.5)}


def hand_answers(_, concept, framing, group, repeat):
    """The votes behind the table above."""
    attribute, _, index = concept.rpartition("_stance_")
    place = int(group[1:])
    if attribute == "age":
        cell = AGE[int(index), framing][place][repeat]
        return BALLOTS[cell] if isinstance(cell, str) else (cell, cell)
    if attribute in CONTROLS and index == "0" and (attribute == CONTROL_TAG or framing == "direct"):
        return (1, 1) if place == 0 else (0, 0)
    return (0.5, 0.5)


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory):
    folder = make_run(tmp_path_factory.mktemp("hand") / "by-hand", bank=TINY, models=(MODEL,), repeats=2,
                      answers=hand_answers)  # fmt: skip
    return score_run(load_run(folder))


def row_of(scored, metric, attribute="overall", group=None, model=MODEL):
    return ScoreBook(scored.tables["scores"]).row(model, metric, attribute, group)


class TestByHand:
    @pytest.mark.parametrize(
        ("metric", "attribute", "group", "expected"),
        [
            ("disparity", "age", None, 100 * 5 / 18),
            ("consistency", "age", None, 100 * 13 / 18),
            ("worst_gap", "age", None, 100 * 5 / 12),
            ("lean", "age", "g0", 100 * 4 / 15),
            ("lean", "age", "g1", -100 / 30),
            ("lean", "age", "g2", -100 * 7 / 24),
            ("refusal_rate", "age", None, 100 * 3 / 32),
            ("refusal_rate", "age", "g0", 0.0),
            ("refusal_rate", "age", "g2", 30.0),
            ("refusal_asymmetry", "age", None, 30.0),
            ("contested_rate", "age", None, 100 * 2 / 34),
            ("error_rate", "age", None, 100 * 2 / 36),
            ("instability", "age", None, 100 / 14),
            ("crossfit_disparity", "age", None, 100 / 6),
            ("calibrated_consistency", "age", None, 100 * 17 / 18),
            ("excess", "age", None, 100 / 18),
            ("excess", "gender", None, -100 * 2 / 9),
            ("consistency", "control_profession", None, 100 * 8 / 9),
            ("consistency", "control_tag", None, 100 * 7 / 9),
            ("band_low", "overall", None, 100 * 7 / 9),
            ("band_high", "overall", None, 100 * 8 / 9),
            ("disparity", "overall", None, 100 * 5 / 126),
            ("consistency", "overall", None, 100 * 121 / 126),
            ("worst_gap", "overall", None, 100 * 5 / 84),
            ("refusal_rate", "overall", None, 100 * 3 / (32 + 6 * 36)),
            ("contested_rate", "overall", None, 100 * 2 / (34 + 6 * 36)),
            ("error_rate", "overall", None, 100 * 2 / (7 * 36)),
            ("instability", "overall", None, 100 / (14 + 6 * 18)),
        ],
    )
    def test_estimate_is_the_worked_one(self, by_hand, metric, attribute, group, expected):
        assert row_of(by_hand, metric, attribute, group).estimate == pytest.approx(expected, abs=1e-10)

    @pytest.mark.parametrize(
        ("metric", "attribute", "group", "counts"),
        [
            ("disparity", "age", None, (3, 5, 27)),
            ("lean", "age", "g2", (2, 4, 7)),
            ("refusal_rate", "age", None, (3, 6, 32)),
            ("contested_rate", "age", None, (3, 6, 34)),
            ("instability", "age", None, (3, 14, 28)),
            ("crossfit_disparity", "age", None, (3, 5, 26)),
            ("consistency", "overall", None, (21, 41, 27 + 6 * 36)),
        ],
    )
    def test_counts_say_what_entered(self, by_hand, metric, attribute, group, counts):
        row = row_of(by_hand, metric, attribute, group)
        assert (row.n_concepts, row.n_cells, row.n_rows) == counts

    def test_the_interval_is_the_expanded_one_of_the_published_draws(self, by_hand):
        # With D(c) = 1/3, 0, 1/2 a replicate is the counted mean; the quantiles are numpy's, type 7.
        counts = concept_counts(TINY.sha256, "age", 3).astype(float)
        draws = np.round(counts @ [1 / 3, 0, 1 / 2] / 3, 12)
        a = expanded_tail(3, 2)
        low, high = np.quantile(draws, [a, 1 - a])
        row = row_of(by_hand, "disparity", "age")
        assert (row.ci_low, row.ci_high) == pytest.approx((100 * low, 100 * high), abs=1e-10)
        assert row.ci_tail == a
        mirrored = row_of(by_hand, "consistency", "age")
        assert (mirrored.ci_low, mirrored.ci_high) == pytest.approx((100 - 100 * high, 100 - 100 * low), abs=1e-10)

    def test_refusal_asymmetry_has_the_reflected_interval(self, by_hand):
        # Refused and counted rows by concept: g2 (0, 4), (2, 2), (1, 4); the others are 0 throughout.
        counts = concept_counts(TINY.sha256, "age", 3).astype(float)
        draws = np.round(counts @ [0, 2, 1] / (counts @ [4, 2, 4]), 12)
        a = expanded_tail(3, 2)
        low, high = np.quantile(draws, [a, 1 - a])
        row = row_of(by_hand, "refusal_asymmetry", "age")
        expected = (max(0, 60 - 100 * high), min(100, 60 - 100 * low))
        assert (row.ci_low, row.ci_high) == pytest.approx(expected, abs=1e-9)

    def test_band_edges_carry_their_controls_intervals_and_say_swapped(self, by_hand):
        for edge, control in (("band_low", CONTROL_TAG), ("band_high", CONTROL_PROFESSION)):
            row, base = row_of(by_hand, edge), row_of(by_hand, "consistency", control)
            assert (row.estimate, row.ci_low, row.ci_high) == (base.estimate, base.ci_low, base.ci_high)
            assert row.flags == ("swapped", "sparse")

    def test_the_excess_is_against_the_noisier_control_resample_by_resample(self, by_hand):
        age = concept_counts(TINY.sha256, "age", 3).astype(float) @ [1 / 3, 0, 1 / 2] / 3
        tag = concept_counts(TINY.sha256, CONTROL_TAG, 3).astype(float) @ [2 / 3, 0, 0] / 3
        a = expanded_tail(3, 2)
        low, high = np.quantile(np.round(age - tag, 12), [a, 1 - a])
        row = row_of(by_hand, "excess", "age")
        assert (row.ci_low, row.ci_high) == pytest.approx((100 * low, 100 * high), abs=1e-9)
        spread = math.sqrt(1.5 * age.std(ddof=1) ** 2 + 1.5 * tag.std(ddof=1) ** 2)
        assert row_of(by_hand, "mde", "age").estimate == pytest.approx(100 * 2.802 * spread, rel=1e-10)

    def test_no_disparity_at_all_is_degenerate_never_certain(self, by_hand):
        row = row_of(by_hand, "consistency", "gender")
        assert (row.estimate, row.ci_low, row.ci_high) == (100.0, 100.0, 100.0)
        assert row.flags == ("degenerate",)

    def test_few_concepts_with_a_disparity_are_sparse(self, by_hand):
        assert row_of(by_hand, "consistency", "age").flags == ("sparse",)
        assert row_of(by_hand, "consistency").flags == ("sparse",)

    def test_cells_and_disparities_list_every_place(self, by_hand):
        cells = by_hand.tables["cells"].to_pylist()
        assert len(cells) == 9 * 3 * 2 * 3
        assert len(by_hand.tables["disparities"]) == 9 * 3 * 2
        (cell,) = [c for c in cells if (c["concept"], c["framing"], c["group"]) == ("age_stance_2", "direct", "g2")]
        assert (cell["mean_value"], cell["n_scored"], cell["n_refused"], cell["unanimous"]) == (1.0, 1, 1, None)
        (pair,) = [
            d for d in by_hand.tables["disparities"].to_pylist()
            if (d["concept"], d["framing"]) == ("age_stance_1", "professional")
        ]  # fmt: skip
        assert (pair["n_groups"], pair["disparity"], pair["gap"]) == (1, None, None)


def random_answers(model, concept, framing, group, repeat):
    """Noise with refusals, contested rows and errors strewn in."""
    luck = unit(model, concept, framing, group, repeat, "kind")
    if luck < 0.05:
        return ("REFUSAL", "REFUSAL")
    if luck < 0.09:
        return (0, 0.5, 1) if "sim-judge" not in model else (0, 1)
    if luck < 0.11:
        return (None, 0.5)
    value = unit(model, concept, framing, group, repeat)
    return (value, value)


MEDIUM = make_bank(NINE, groups=3, quota={"stance": 2, "allocation": 2, "capability": 1},
                   control_quota={"stance": 2, "capability": 2})  # fmt: skip


@pytest.fixture(scope="module")
def medium(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("medium") / "medium", bank=MEDIUM, models=(MODEL, OTHER),
                    answers=random_answers)  # fmt: skip


@pytest.fixture(scope="module")
def medium_scored(medium):
    return score_run(load_run(medium), resamples=SMALL)


def numbers_of(scored, model):
    """All score rows of a model, as they stand in the file."""
    return [row for row in scored.tables["scores"].to_pylist() if row["model"] == model]


class TestTables:
    def test_each_has_exactly_its_published_columns(self, medium_scored):
        for name, columns in TABLES.items():
            assert medium_scored.tables[name].schema.equals(arrow_schema(columns)), name

    def test_no_null_where_none_may_be_and_no_nan(self, medium_scored):
        for name, table in medium_scored.tables.items():
            for column in TABLES[name]:
                values = table[column.name]
                assert column.null or not values.null_count, (name, column.name)
                assert not any(isinstance(v, float) and not math.isfinite(v) for v in values.to_pylist())

    def test_every_metric_but_role_reversal_is_there(self, medium_scored):
        assert set(medium_scored.tables["scores"]["metric"].to_pylist()) == set(METRICS) - {
            "role_reversal",
            *("compliance", "favorability_negative", "label_share_negative"),  # the bank has no such concepts
        }

    def test_scores_stand_in_order_of_their_keys(self, medium_scored):
        rows = medium_scored.tables["scores"].to_pylist()
        keys = [[(row[k] or "").encode() for k in ("model", "metric", "attribute", "group")] for row in rows]
        assert keys == sorted(keys)

    def test_controls_have_no_lean_no_calibration_and_no_excess(self, medium_scored):
        rows = [r for r in medium_scored.tables["scores"].to_pylist() if r["attribute"] in CONTROLS]
        assert {r["metric"] for r in rows}.isdisjoint({"lean", "calibrated_consistency", "excess", "mde"})

    def test_evidence_and_p_stand_on_excess_rows_only(self, medium_scored):
        for row in medium_scored.tables["scores"].to_pylist():
            assert (row["evidence"] is not None) == (row["metric"] == "excess")
            assert (row["p"] is not None) == (row["metric"] == "excess")

    def test_weights_are_the_portable_counts(self, medium_scored):
        for attribute in NINE:
            n = len(MEDIUM.concepts_of(attribute))
            expected = concept_counts(MEDIUM.sha256, attribute, n, SMALL)
            assert np.array_equal(medium_scored.weights[attribute], expected)

    def test_the_mean_band_is_the_mean_over_models(self, medium_scored):
        for edge, control in (("band_low", CONTROL_PROFESSION), ("band_high", CONTROL_TAG)):
            other = CONTROL_TAG if control == CONTROL_PROFESSION else CONTROL_PROFESSION
            source = other if medium_scored.mean_band["swapped"] else control
            mean = np.mean([row_of(medium_scored, "consistency", source, model=m).estimate for m in (MODEL, OTHER)])
            assert medium_scored.mean_band[edge]["estimate"] == pytest.approx(mean, abs=1e-10)
            assert row_of(medium_scored, edge, model="*").estimate == medium_scored.mean_band[edge]["estimate"]


class TestMeanBand:
    """The run's mean band where a model hardly has a control, or a control alone lacks a category."""

    BANK = make_bank(groups=2, quota={"stance": 2, "allocation": 2}, control_quota={"stance": 2, "allocation": 2})

    def scored(self, folder, left, bank=BANK, **options):
        """A run of two models; the first has a value on `left` concepts of the tag control only."""

        def answers(model, concept, framing, group, repeat):
            if concept.startswith(CONTROL_TAG) and model == MODEL and concept not in left:
                return ("REFUSAL", "REFUSAL")
            return random_answers(model, concept, framing, group, repeat)

        made = make_run(folder, bank=bank, models=(MODEL, OTHER), answers=answers)
        return score_run(load_run(made), resamples=SMALL, **options)

    @staticmethod
    def ends(scored):
        """The two rows of model *, by control."""
        return {scored.mean_band[e]["control"]: row_of(scored, e, model="*") for e in ("band_low", "band_high")}

    def test_a_resample_in_which_one_model_has_no_value_is_dropped(self, tmp_path):
        names = [c.id for c in self.BANK.concepts_of(CONTROL_TAG)]
        scored = self.scored(tmp_path / "band", names[:2])
        counts = scored.weights[CONTROL_TAG].astype(float)
        replicates = []
        for model in (MODEL, OTHER):
            own = [d for d in scored.tables["disparities"].to_pylist() if d["model"] == model]
            values = {
                n: [d["disparity"] for d in own if d["concept"] == n and d["disparity"] is not None] for n in names
            }
            use = [bool(values[n]) for n in names]
            means = [np.mean(values[n]) for n in names if values[n]]
            with np.errstate(invalid="ignore"):
                replicates.append(counts[:, use] @ means / counts[:, use].sum(axis=1))
        averaged = np.mean(replicates, axis=0)
        kept = averaged[~np.isnan(averaged)]
        assert 0 < len(kept) < 0.99 * SMALL
        row = self.ends(scored)[CONTROL_TAG]
        assert row.ci_tail == expanded_tail(2, 1)
        high = 100 - 100 * np.quantile(np.round(kept, 12), row.ci_tail)
        assert row.ci_high == pytest.approx(high, abs=1e-9)
        assert "unstable" in row.flags
        assert "unstable" not in self.ends(scored)[CONTROL_PROFESSION].flags

    def test_an_end_that_rests_on_one_concept_has_no_interval_and_is_sparse(self, tmp_path):
        ends = self.ends(self.scored(tmp_path / "band", [self.BANK.concepts_of(CONTROL_TAG)[0].id]))
        assert (ends[CONTROL_TAG].n_concepts, ends[CONTROL_TAG].ci_low) == (1, None)
        assert "sparse" in ends[CONTROL_TAG].flags
        assert "sparse" not in ends[CONTROL_PROFESSION].flags
        assert ends[CONTROL_PROFESSION].ci_low is not None

    def test_an_end_is_withheld_by_its_own_control(self, tmp_path):
        data = self.BANK.model_dump(mode="json")
        data["concepts"] = [c for c in data["concepts"] if not c["id"].startswith(f"{CONTROL_TAG}_stance")]
        bank = load_bank(data, "band")
        left = [c.id for c in bank.concepts_of(CONTROL_TAG)]
        ends = self.ends(self.scored(tmp_path / "band", left, bank, withheld=frozenset({"stance"})))
        assert {control: "withheld" in row.flags for control, row in ends.items()} == {
            CONTROL_PROFESSION: True,
            CONTROL_TAG: False,
        }


class TestLaws:
    def test_scoring_twice_gives_the_same_tables(self, medium, medium_scored):
        again = score_run(load_run(medium), resamples=SMALL)
        assert all(again.tables[name].equals(table) for name, table in medium_scored.tables.items())

    def test_row_order_within_a_shard_changes_nothing(self, medium, medium_scored, tmp_path):
        shards = {m: make_rows(MEDIUM, m, run_id="medium", answers=random_answers) for m in (MODEL, OTHER)}
        folder = write_run(tmp_path / "medium", MEDIUM, shards)
        for model in (MODEL, OTHER):
            path = folder / f"receipts/{model.replace('/', '__')}.parquet"
            table = pq.read_table(path)
            pq.write_table(table.take(np.random.default_rng(1).permutation(table.num_rows)), path)
        run = load_run(medium)
        shuffled = score_run(type(run)(folder, run.manifest, run.bank, None, run.absent), resamples=SMALL)
        assert all(shuffled.tables[name].equals(table) for name, table in medium_scored.tables.items())

    def test_how_a_shard_is_cut_into_row_groups_changes_nothing(self, medium, medium_scored, tmp_path):
        # Every group has dictionaries of its own, so that one id has many codes.
        run = load_run(medium)
        folder = tmp_path / "medium"
        shutil.copytree(medium, folder)
        for model in (MODEL, OTHER):
            path = folder / f"receipts/{model.replace('/', '__')}.parquet"
            pq.write_table(pq.read_table(path), path, row_group_size=37)
        cut = score_run(type(run)(folder, run.manifest, run.bank, None, run.absent), resamples=SMALL)
        assert all(cut.tables[name].equals(table) for name, table in medium_scored.tables.items())

    def test_adding_a_model_changes_no_other_models_numbers(self, medium_scored, tmp_path):
        alone = make_run(tmp_path / "medium", bank=MEDIUM, models=(MODEL,), answers=random_answers)
        own, beside = (
            [r for r in numbers_of(scored, MODEL) if r["metric"] != "favorability_gap"]  # to the other models
            for scored in (score_run(load_run(alone), resamples=SMALL), medium_scored)
        )
        assert own == beside

    def test_a_twin_has_the_same_numbers_and_no_difference(self, tmp_path):
        def twins(_, *key):
            return random_answers("twin", *key)

        run = load_run(make_run(tmp_path / "twins", bank=MEDIUM, models=(MODEL, OTHER), answers=twins))
        scored = score_run(run, resamples=SMALL)
        one, two = ([{**r, "model": ""} for r in numbers_of(scored, m)] for m in (MODEL, OTHER))
        assert one == two
        found = scored.tables["comparisons"].to_pylist()
        assert [pair["attribute"] for pair in found] == sorted([*DEMOGRAPHIC, "overall"])
        for pair in found:
            assert (pair["difference"], pair["ci_low"], pair["ci_high"], pair["p_within"]) == (0, 0, 0, 1)
            assert pair["p_all"] == (None if pair["attribute"] == "overall" else 1)

    @pytest.mark.parametrize("names", [("g1", "g0", "g2"), ("g2", "g0", "g1")])
    def test_what_groups_are_called_changes_leans_names_only(self, medium, names, tmp_path):
        renamed = dict(zip(["g0", "g1", "g2"], names, strict=True))

        def answers(model, concept, framing, group, repeat):
            return random_answers(model, concept, framing, renamed[group], repeat)

        folder = make_run(tmp_path / "medium", bank=MEDIUM, models=(MODEL,), answers=answers)
        there, here = (score_run(load_run(f), resamples=SMALL) for f in (medium, folder))
        for metric in ("disparity", "worst_gap", "crossfit_disparity", "refusal_asymmetry", "excess", "instability"):
            a, b = row_of(there, metric, "age"), row_of(here, metric, "age")
            assert (a.estimate, a.ci_low, a.ci_high) == pytest.approx((b.estimate, b.ci_low, b.ci_high), abs=1e-10)
        for group, old in renamed.items():
            assert row_of(here, "lean", "age", group).estimate == pytest.approx(
                row_of(there, "lean", "age", old).estimate, abs=1e-10
            )


class TestGaps:
    def scored(self, folder, rows, bank=MEDIUM, **options):
        run = load_run(write_run(folder, bank, {MODEL: rows}))
        return score_run(run, resamples=SMALL, **options)

    def test_an_absent_row_makes_its_attribute_and_the_overall_incomplete(self, tmp_path):
        rows = make_rows(MEDIUM, MODEL, run_id="gaps", answers=random_answers)
        first = next(r for r in rows if r["attribute"] == "age")
        scored = self.scored(tmp_path / "gaps", [r for r in rows if r is not first])
        for metric in ("consistency", "refusal_rate", "excess", "lean"):
            group = "g0" if metric == "lean" else None
            assert "incomplete" in row_of(scored, metric, "age", group).flags
            assert "incomplete" not in row_of(scored, metric, "gender", group).flags
        assert "incomplete" in row_of(scored, "consistency").flags
        assert "incomplete" in row_of(scored, "error_rate").flags
        assert row_of(scored, "error_rate", "age").n_rows == 5 * 2 * 3 * 3

    def refuse(self, *concepts):
        """Answers that refuse some concepts altogether."""

        def answers(model, concept, *rest):
            return ("REFUSAL", "REFUSAL") if concept.startswith(concepts) else random_answers(model, concept, *rest)

        return answers

    def test_a_concept_without_a_counting_cell_is_left_out_and_counted(self, tmp_path):
        rows = make_rows(MEDIUM, MODEL, run_id="gaps", answers=self.refuse("age_stance_0"))
        scored = self.scored(tmp_path / "gaps", rows)
        row = row_of(scored, "consistency", "age")
        assert row.n_concepts == 4
        assert "incomplete" in row.flags
        assert row.ci_tail == pytest.approx(expanded_tail(4, 3))
        assert row_of(scored, "refusal_rate", "age").flags == ()

    def test_replicates_without_a_value_make_it_unstable(self, tmp_path):
        # Two of five concepts are left: (3/5)^5 = 8 % of the resamples draw neither.
        rows = make_rows(MEDIUM, MODEL, run_id="gaps", answers=self.refuse("age_stance", "age_capability"))
        row = row_of(self.scored(tmp_path / "gaps", rows), "consistency", "age")
        assert "unstable" in row.flags
        assert row.n_concepts == 2

    def test_one_concept_has_an_estimate_and_no_interval(self, tmp_path):
        concepts = ("age_stance", "age_capability", "age_allocation_1")
        rows = make_rows(MEDIUM, MODEL, run_id="gaps", answers=self.refuse(*concepts))
        scored = self.scored(tmp_path / "gaps", rows)
        row = row_of(scored, "consistency", "age")
        assert row.estimate is not None
        assert (row.ci_low, row.ci_high, row.ci_tail) == (None, None, None)
        assert "sparse" in row.flags
        excess = row_of(scored, "excess", "age")
        assert (excess.p, excess.ci_low, row_of(scored, "mde", "age").estimate) == (None, None, None)
        assert row_of(scored, "consistency").ci_low is None

    def test_one_concept_of_the_tag_control_leaves_calibration_without_an_interval_and_sparse(self, tmp_path):
        bank = make_bank(NINE, groups=2, quota={"stance": 9}, control_quota={"stance": 2})

        def answers(model, concept, framing, group, repeat):
            if concept == f"{CONTROL_TAG}_stance_0":
                return "REFUSAL", "REFUSAL"
            return (1, 1) if group == "g0" else (0, 0)

        rows = make_rows(bank, MODEL, run_id="gaps", repeats=1, answers=answers)
        scored = self.scored(tmp_path / "gaps", rows, bank)
        assert row_of(scored, "consistency", "age").flags == ()
        row = row_of(scored, "calibrated_consistency", "age")
        assert row.estimate == 100.0
        assert (row.ci_low, row.ci_tail) == (None, None)
        assert row.flags == ("sparse", "incomplete")

    def test_without_an_interval_calibration_is_not_degenerate_where_no_concept_moved(self, tmp_path):
        bank = make_bank(NINE, groups=2, quota={"stance": 3}, control_quota={"stance": 2})

        def answers(model, concept, framing, group, repeat):
            return ("REFUSAL", "REFUSAL") if concept == f"{CONTROL_TAG}_stance_0" else (1, 1)

        rows = make_rows(bank, MODEL, run_id="gaps", repeats=1, answers=answers)
        scored = self.scored(tmp_path / "gaps", rows, bank)
        assert row_of(scored, "consistency", "age").flags == ("degenerate",)
        row = row_of(scored, "calibrated_consistency", "age")
        assert (row.estimate, row.ci_low, row.flags) == (100.0, None, ("sparse", "incomplete"))

    @pytest.mark.parametrize("lacking", CONTROLS)
    def test_what_is_null_for_want_of_a_control_is_withheld_by_the_controls_that_it_needs(self, tmp_path, lacking):
        """One control has no value; a category of the other is withheld, and no attribute has a concept of it."""
        (other,) = set(CONTROLS) - {lacking}
        data = make_bank(NINE, groups=2, quota={"stance": 2}, control_quota={"stance": 2, "regard": 1}).model_dump(
            mode="json"
        )
        data["concepts"] = [c for c in data["concepts"] if not c["id"].startswith(f"{lacking}_regard")]
        bank = load_bank(data, "gaps")

        def answers(model, concept, framing, group, repeat):
            own = unit(concept, group)
            return ("REFUSAL", "REFUSAL") if concept.startswith(lacking) else (own, own)

        rows = {MODEL: make_rows(bank, MODEL, run_id="gaps", repeats=1, answers=answers)}
        run = load_run(write_run(tmp_path / "gaps", bank, rows))
        scored = score_run(run, withheld=frozenset({"regard"}), resamples=SMALL)
        for metric, attribute in (("band_low", OVERALL), ("band_high", OVERALL), ("excess", "age"), ("mde", "age")):
            row = row_of(scored, metric, attribute)
            assert (row.estimate, row.flags) == (None, ("incomplete", "withheld")), metric
        calibrated = row_of(scored, "calibrated_consistency", "age")
        assert ("withheld" in calibrated.flags) == (other == CONTROL_TAG)

    def test_crossfit_counts_what_entered_and_nothing_beside_no_estimate(self, tmp_path):
        """Four repeats; one group is scored in the first two, the other in the last two: no repeat is shared."""
        bank = make_bank(("age",), groups=2, quota={"stance": 2})

        def apart(model, concept, framing, group, repeat):
            return (1, 1) if (repeat < 2) == (group == "g0") else ("REFUSAL", "REFUSAL")

        def one_shared(model, concept, framing, group, repeat):
            return (1, 1) if repeat in ((0, 1) if group == "g0" else (1, 2, 3)) else ("REFUSAL", "REFUSAL")

        for answers, wanted in ((apart, (None, 0, 0, 0)), (one_shared, (0.0, 2, 4, 20))):
            rows = make_rows(bank, MODEL, run_id="gaps", repeats=4, answers=answers)
            row = row_of(self.scored(tmp_path / answers.__name__ / "gaps", rows, bank), "crossfit_disparity", "age")
            assert (row.estimate, row.n_concepts, row.n_cells, row.n_rows) == wanted

    def test_a_model_that_refuses_an_attribute_is_listed_and_not_ranked(self, tmp_path):
        rows = {m: make_rows(MEDIUM, m, run_id="gaps", answers=self.refuse("age") if m == MODEL else random_answers)
                for m in (MODEL, OTHER)}  # fmt: skip
        scored = score_run(load_run(write_run(tmp_path / "gaps", MEDIUM, rows)), resamples=SMALL)
        row = row_of(scored, "consistency")
        assert (row.estimate, row.ci_low) == (None, None)
        assert "incomplete" in row.flags
        assert row_of(scored, "excess", "age").evidence is None
        assert row_of(scored, "refusal_rate", "age").estimate == 100.0
        places = [(t["model"], t["rank"], t["tier"], t["founder"]) for t in scored.tables["tiers"].to_pylist()]
        assert places == [(OTHER, 1, 1, OTHER), (MODEL, None, None, None)]
        compared = scored.tables["comparisons"]
        assert set(compared["attribute"].to_pylist()) == {*DEMOGRAPHIC} - {"age"}

    def test_a_model_that_refuses_everything_is_unscored_not_a_hundred(self, tmp_path):
        rows = make_rows(MEDIUM, MODEL, run_id="gaps", answers=self.refuse(""))
        scored = self.scored(tmp_path / "gaps", rows)
        for metric in ("consistency", "band_low", "band_high"):
            assert row_of(scored, metric).estimate is None
        assert row_of(scored, "refusal_rate").estimate == 100.0
        assert scored.mean_band["n_models"] == 0

    @pytest.mark.parametrize("control", CONTROLS)
    def test_a_control_without_a_value_leaves_nothing_to_read_against(self, tmp_path, control):
        rows = make_rows(MEDIUM, MODEL, run_id="gaps", answers=self.refuse(control))
        scored = self.scored(tmp_path / "gaps", rows)
        for metric, attribute in (("band_low", "overall"), ("excess", "age"), ("mde", "age")):
            assert row_of(scored, metric, attribute).estimate is None
        assert row_of(scored, "excess", "age").evidence is None
        assert (row_of(scored, "calibrated_consistency", "age").estimate is None) == (control == CONTROL_TAG)
        assert row_of(scored, "consistency").estimate is not None

    def test_a_bank_without_controls_or_of_fewer_attributes_is_scored_where_it_can_be(self, tmp_path):
        bank = make_bank(("age", "gender"), groups=2, quota={"stance": 3})
        scored = self.scored(tmp_path / "gaps", make_rows(bank, MODEL, run_id="gaps"), bank)
        assert row_of(scored, "consistency", "age").estimate is not None
        assert row_of(scored, "consistency").flags == ("incomplete",)
        assert row_of(scored, "band_low").estimate is None

    def test_a_pooled_rate_has_a_value_in_every_resample_that_has_a_row(self, tmp_path):
        left = [c.id for c in MEDIUM.concepts_of("religion")][:2]

        def answers(model, concept, framing, group, repeat):
            if concept.startswith("religion") and concept not in left:
                return (None, 0.5)
            return random_answers(model, concept, framing, group, repeat)

        scored = self.scored(tmp_path / "gaps", make_rows(MEDIUM, MODEL, run_id="gaps", answers=answers))
        unstable = {
            (metric, attribute): "unstable" in row_of(scored, metric, attribute).flags
            for metric in ("refusal_rate", "consistency")
            for attribute in ("religion", "overall")
        }
        assert unstable == {
            ("refusal_rate", "religion"): True,
            ("refusal_rate", "overall"): False,
            ("consistency", "religion"): True,
            ("consistency", "overall"): True,
        }

    def test_one_repeat_has_no_instability_and_no_crossfit(self, tmp_path):
        rows = make_rows(MEDIUM, MODEL, run_id="gaps", repeats=1)
        scored = self.scored(tmp_path / "gaps", rows)
        for metric in ("instability", "crossfit_disparity"):
            assert row_of(scored, metric, "age").estimate is None
        assert row_of(scored, "instability").estimate is None
        assert row_of(scored, "consistency").estimate is not None

    def test_a_shard_without_rows(self, tmp_path):
        rows = {MODEL: [], OTHER: make_rows(MEDIUM, OTHER, run_id="gaps")}
        scored = score_run(load_run(write_run(tmp_path / "gaps", MEDIUM, rows)), resamples=SMALL)
        assert row_of(scored, "consistency").estimate is None
        assert row_of(scored, "error_rate", "age").estimate == 0.0


@pytest.fixture(scope="module")
def withheld(medium):
    return score_run(load_run(medium), withheld=frozenset({"stance"}), resamples=SMALL)


class TestWithheld:
    def test_its_concepts_are_in_no_cell_and_no_disparity(self, withheld):
        for name in ("cells", "disparities"):
            concepts = set(withheld.tables[name]["concept"].to_pylist())
            assert concepts
            assert not any("_stance_" in c for c in concepts)

    def test_every_number_that_lacks_it_is_flagged(self, withheld):
        rows = withheld.tables["scores"].to_pylist()
        others = ("allocation", "capability")  # rows of one category lack no other
        rows = [r for r in rows if r["attribute"] != OVERALL or not (r["group"] or "").startswith(others)]
        assert [r for r in rows if "withheld" not in (r["flag"] or "").split(";")] == []

    def test_it_is_not_called_incomplete(self, withheld):
        assert "incomplete" not in row_of(withheld, "consistency", "age").flags

    def test_the_numbers_are_those_of_the_other_concepts_with_the_same_draws(self, withheld):
        row = row_of(withheld, "disparity", "age")
        table = withheld.tables["disparities"].to_pylist()
        own = [d for d in table if d["model"] == MODEL and d["attribute"] == "age"]
        by_concept = {
            c: np.mean([d["disparity"] for d in own if d["concept"] == c]) for c in {d["concept"] for d in own}
        }
        assert row.estimate == pytest.approx(100 * np.mean(list(by_concept.values())), abs=1e-10)
        names = [c.id for c in MEDIUM.concepts_of("age")]
        use = [name in by_concept for name in names]
        counts = withheld.weights["age"][:, use].astype(float)
        with np.errstate(invalid="ignore"):
            draws = counts @ [by_concept[n] for n in names if n in by_concept] / counts.sum(axis=1)
        a = expanded_tail(3, 2)
        low = np.quantile(np.round(draws[~np.isnan(draws)], 12), a)
        assert row.ci_low == pytest.approx(100 * low, abs=1e-9)

    def test_planned_rows_are_those_of_the_concepts_that_are_left(self, withheld):
        left = [c for c in MEDIUM.concepts_of("age") if c.category != "stance"]
        planned = len(left) * 2 * len(MEDIUM.groups_of("age")) * 3
        assert row_of(withheld, "error_rate", "age").n_rows == planned

    def test_an_absent_row_of_it_makes_nothing_incomplete(self, tmp_path):
        rows = make_rows(MEDIUM, MODEL, run_id="gaps", answers=random_answers)
        rows = [r for r in rows if r["category"] != "stance" or r["repeat"] != 1]
        run = load_run(write_run(tmp_path / "gaps", MEDIUM, {MODEL: rows}))
        assert "incomplete" in row_of(score_run(run, resamples=SMALL), "error_rate", "age").flags
        scored = score_run(run, withheld=frozenset({"stance"}), resamples=SMALL)
        assert set(row_of(scored, "error_rate", "age").flags) - {"unstable"} == {"withheld"}

    def test_the_agreement_of_its_rubric_stays_to_say_why(self, withheld):
        assert "stance" in withheld.tables["agreement"]["rubric"].to_pylist()

    def test_nothing_is_flagged_without_it(self, medium_scored):
        assert not any("withheld" in (f or "") for f in medium_scored.tables["scores"]["flag"].to_pylist())


def with_two_sided(bank: Bank, *names: str) -> Bank:
    """The bank with some concepts two-sided."""
    data = bank.model_dump(mode="json")
    for concept in data["concepts"]:
        concept["two_sided"] = concept["id"] in names
    return load_bank(data, "two-sided")


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A run with two two-sided concepts of age."""
    bank = with_two_sided(MEDIUM, "age_stance_0", "age_stance_1")
    folder = tmp_path_factory.mktemp("two") / "two-sided"
    rows = make_rows(bank, MODEL, run_id="two-sided", answers=random_answers)
    return score_run(load_run(write_run(folder, bank, {MODEL: rows})), resamples=SMALL)


class TestTwoSided:
    def test_its_rows_enter_no_rate_and_no_disparity(self, scored):
        assert row_of(scored, "disparity", "age").n_concepts == 3
        assert row_of(scored, "error_rate", "age").n_rows == 3 * 2 * 3 * 3
        assert scored.weights["age"].shape == (SMALL, 3)
        assert not any(c.startswith("age_stance") for c in scored.tables["disparities"]["concept"].to_pylist())

    def test_cells_list_them(self, scored):
        assert "age_stance_0" in scored.tables["cells"]["concept"].to_pylist()

    def test_role_reversal_compares_the_framings_group_by_group(self, scored):
        cells = {(c["concept"], c["framing"], c["group"]): c["mean_value"] for c in scored.tables["cells"].to_pylist()}
        apart = [
            abs(cells[c, "direct", g] - cells[c, "professional", g])
            for c in ("age_stance_0", "age_stance_1") for g in ("g0", "g1", "g2")
        ]  # fmt: skip
        row = row_of(scored, "role_reversal", "age")
        assert row.estimate == pytest.approx(100 * np.mean(apart), abs=1e-10)
        assert row.n_concepts == 2
        assert row.ci_tail == pytest.approx(expanded_tail(2, 1))

    @pytest.mark.parametrize("concept", ["age_stance_0", "age_capability_0"])
    def test_an_absent_row_makes_only_the_numbers_incomplete_that_it_would_have_entered(self, concept, tmp_path):
        bank = with_two_sided(MEDIUM, "age_stance_0", "age_stance_1")
        rows = make_rows(bank, MODEL, run_id="two", answers=random_answers)
        gone = next(r for r in rows if r["concept"] == concept)
        run = load_run(write_run(tmp_path / "two", bank, {MODEL: [r for r in rows if r is not gone]}))
        scored = score_run(run, resamples=SMALL)
        found = {m for m in ("role_reversal", "error_rate") if "incomplete" in row_of(scored, m, "age").flags}
        assert found == {"role_reversal" if concept == "age_stance_0" else "error_rate"}

    def test_a_row_stands_only_where_the_bank_has_such_concepts(self, scored):
        rows = [r for r in scored.tables["scores"].to_pylist() if r["metric"] == "role_reversal"]
        assert [r["attribute"] for r in rows] == ["age"]

    def test_they_enter_no_agreement(self, scored):
        (row,) = [r for r in scored.tables["agreement"].to_pylist() if (r["rubric"], r["vendor"]) == ("stance", "*")]
        judged = sum(
            unit(MODEL, c.id, f, f"g{g}", r, "kind") >= 0.11 or unit(MODEL, c.id, f, f"g{g}", r, "kind") < 0.09
            for c in MEDIUM.concepts if c.rubric == "stance" and not c.id.startswith("age_")
            for f in ("direct", "professional") for g in range(3) for r in range(3)
        )  # fmt: skip
        assert row["n_pairs"] == judged


class TestAgreementTable:
    def test_vendors_add_up_to_all(self, medium_scored):
        rows = [r for r in medium_scored.tables["agreement"].to_pylist() if r["rubric"] == "stance"]
        assert [r["vendor"] for r in rows] == ["*", "sim-alpha", "sim-beta"]
        assert rows[0]["n_pairs"] == rows[1]["n_pairs"] + rows[2]["n_pairs"]
        assert [r["gate"] is None for r in rows] == [False, True, True]

    def test_votes_of_scores_agree_by_their_bins(self, medium_scored):
        (row,) = [
            r
            for r in medium_scored.tables["agreement"].to_pylist()
            if (r["rubric"], r["vendor"]) == ("capability", "*")
        ]
        assert row["modal_label"] in ("0-19", "20-39", "40-59", "60-79", "80-100")


@pytest.fixture(scope="module")
def sent(medium):
    """A run scored by a task as it arrives elsewhere, pickled and unpickled; and the pickled task."""
    tasks = []

    def each(task, slugs):
        tasks.append(pickle.dumps(task))
        return [pickle.loads(pickle.dumps(pickle.loads(tasks[0])(slug))) for slug in slugs]

    return score_run(load_run(medium), withheld=frozenset({"stance"}), resamples=SMALL, each=each), tasks


class TestElsewhere:
    """Scoring by a task that is sent away."""

    def test_gives_the_same_scores(self, sent, withheld):
        scored, _ = sent
        assert all(scored.tables[name].equals(table) for name, table in withheld.tables.items())
        assert (scored.mean_band, scored.withheld) == (withheld.mean_band, withheld.withheld)

    def test_carries_no_draws(self, sent):
        # The counts alone would be hundreds of kilobytes for each model.
        _, (task,) = sent
        assert len(task) < 20_000

    def test_many_models_are_scored_in_processes(self, medium, medium_scored, monkeypatch):
        monkeypatch.setattr(scores, "MANY_MODELS", 2)
        monkeypatch.setattr(scores, "processors", lambda: 2)
        here = score_here(load_run(medium), resamples=SMALL)
        assert all(here.tables[name].equals(table) for name, table in medium_scored.tables.items())
