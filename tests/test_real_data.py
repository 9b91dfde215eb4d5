"""The statistics on real public data, against reference values worked elsewhere, by a pair loop and by sorted Gini."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from generator.schema.bank import Roles
from generator.scoring.attribute import AttributeResult
from generator.scoring.controls import band_scores
from generator.scoring.model import model_scores
from generator.stats.agreement import agreement, linear_weights, weighted_kappa
from generator.stats.bootstrap import Resamples, concept_counts
from generator.stats.cells import CONTESTED, ERROR, REFUSED, SCORED
from generator.stats.tally import replicates, tally
from tests.scoring import rows_from

ROLES = Roles(("race_ethnicity",), "control_profession", "control_tag")

DATA = Path(__file__).parent / "data"  # labels and votes, of what licence and whose: NOTICE.md there
OUTSIDE = Path(__file__).parents[2] / "shared" / "data"  # share-alike: not part of this repository
LABELS = ["DENIAL", "EVASIVE", "COMPLETE"]


def read(name: str) -> pd.DataFrame:
    """A table of this repository."""
    return pd.read_parquet(DATA / f"{name}.parquet")


def read_outside(name: str) -> pd.DataFrame:
    """A table that cannot be part of this repository; the test that asks for it is skipped where it is absent."""
    path = OUTSIDE / f"{name}.parquet"
    if not path.is_file():
        pytest.skip(f"{path} is absent: its license (CC BY-SA 4.0) keeps it out of this repository")
    return pd.read_parquet(path)


def rows_of(table: pd.DataFrame, model: str, attribute: str):
    """A model's rows of an attribute as arrays, ids sorted; returns (rows, group names)."""
    own = table[(table.model == model) & (table.attribute == attribute)]
    axes = [sorted(own[c].unique()) for c in ("concept", "framing", "group", "repeat")]
    place = tuple(
        own[c].map(axis.index) for c, axis in zip(("concept", "framing", "group", "repeat"), axes, strict=True)
    )
    values = np.full([len(axis) for axis in axes], np.nan)
    status = np.full(values.shape, ERROR, np.int8)
    values[place] = own.value
    status[place] = np.select([own.value.notna(), own.refused, own.contested], [SCORED, REFUSED, CONTESTED], ERROR)
    return rows_from(values, status), tuple(axes[2])


def result_of(table: pd.DataFrame, model: str, attribute: str, kind: str = "demographic") -> AttributeResult:
    """An attribute scored with 500 resamples."""
    rows, groups = rows_of(table, model, attribute)
    found = tally(rows, groups)
    draws = Resamples.of(concept_counts("0" * 64, attribute, len(rows.values), 500))
    return AttributeResult(attribute, kind, found, replicates(found, draws), withheld=False)


@pytest.fixture(scope="module")
def stance():
    return read_outside("stance_60k")


@pytest.fixture(scope="module")
def criticism():
    return read("criticism_labels")


class TestStance:
    @pytest.mark.parametrize(
        ("model", "consistency"),
        [
            ("chavinlo/alpaca-native", 80.45957),
            ("lmsys/vicuna-7b-v1.3", 83.76215),
            ("meta-llama/Llama-2-7b-chat-hf", 98.34573),
            ("mosaicml/mpt-7b-chat", 84.75893),
            ("openai/gpt-3.5-turbo-0301", 99.87500),
            ("openai/gpt-4-0314", 96.07366),
            ("tiiuae/falcon-7b-instruct", 73.81176),
            ("togethercomputer/RedPajama-INCITE-7B-Instruct", 74.46577),
        ],
    )
    def test_consistency_on_race_and_ethnicity(self, stance, model, consistency):
        found = tally(*rows_of(stance, model, "race_ethnicity")).find("disparity")
        assert 100 * (1 - found.estimate) == pytest.approx(consistency, abs=5e-6)

    def test_gpt_4_in_full(self, stance):
        result = result_of(stance, "openai/gpt-4-0314", "race_ethnicity")
        assert result.disparity.estimate == pytest.approx(0.03926339, abs=5e-9)
        assert result.disparity.n_cells == 31
        assert result.tally.find("worst_gap").estimate == pytest.approx(0.079886, abs=5e-7)
        rows, _ = model_scores({"race_ethnicity": result}, ROLES)
        asymmetry = next(r for r in rows if r.metric == "refusal_asymmetry")
        assert asymmetry.estimate == pytest.approx(4.6875, abs=1e-10)

    @pytest.mark.parametrize(
        ("model", "attribute", "disparity", "cells"),
        [
            ("openai/gpt-4-0314", "nationality", 0.09790427, None),
            ("meta-llama/Llama-2-7b-chat-hf", "age", 0.1953869, 27),
        ],
    )
    def test_other_attributes(self, stance, model, attribute, disparity, cells):
        found = tally(*rows_of(stance, model, attribute)).find("disparity")
        assert found.estimate == pytest.approx(disparity, abs=5e-8)
        assert cells is None or found.n_cells == cells

    def test_crossfit_disparity_lies_below_the_plain_one(self, stance):
        for model in stance.model.unique():
            found = tally(*rows_of(stance, model, "race_ethnicity"))
            assert found.find("crossfit_disparity").estimate < found.find("disparity").estimate

    def test_calibrated_consistency_against_the_pseudo_tag(self, stance):
        controls = read_outside("stance_pseudo_controls")
        found = {}
        for model in stance.model.unique():
            results = {
                a: result_of(table, model, a, kind)
                for a, table, kind in [
                    ("race_ethnicity", stance, "demographic"),
                    ("control_profession", controls, "control"),
                    ("control_tag", controls, "control"),
                ]
            }
            rows, _ = model_scores(results, ROLES)
            found[model] = next(r.estimate for r in rows if r.metric == "calibrated_consistency")
        hundred = [m for m, value in found.items() if value == pytest.approx(100, abs=1e-9)]
        assert len(hundred) == 7
        assert found["togethercomputer/RedPajama-INCITE-7B-Instruct"] == pytest.approx(95.90625, abs=1e-9)

    def test_five_of_the_eight_pseudo_bands_are_swapped(self, stance):
        controls = read_outside("stance_pseudo_controls")
        names = ("control_profession", "control_tag")
        bands = [
            band_scores(*(result_of(controls, model, name, "control") for name in names))
            for model in stance.model.unique()
        ]
        assert sum("swapped" in low.flags for low, _ in bands) == 5
        assert all(low.estimate <= high.estimate for low, high in bands)


class TestCriticism:
    @pytest.mark.parametrize(
        ("model", "disparity", "cells"),
        [
            ("anthropic/claude-3-5-sonnet-20241022", 0.18439716, 47),
            ("deepseek/deepseek-chat-v3-0324", 0.09, None),
        ],
    )
    def test_disparity(self, criticism, model, disparity, cells):
        found = tally(*rows_of(criticism, model, "criticised_power")).find("disparity")
        assert found.estimate == pytest.approx(disparity, abs=5e-9)
        assert cells is None or found.n_cells == cells

    def test_refusal_asymmetry(self, criticism):
        result = result_of(criticism, "anthropic/claude-3-5-sonnet-20241022", "criticised_power")
        row = next(r for r in model_scores({"criticised_power": result}, ROLES)[0] if r.metric == "refusal_asymmetry")
        assert row.estimate == pytest.approx(8.6822, abs=5e-5)

    def test_a_refusal_is_never_taken_as_zero(self, criticism):
        (model,) = (m for m in criticism.model.unique() if "qwen2.5-vl-72b" in m.lower())
        rows, groups = rows_of(criticism, model, "criticised_power")
        assert tally(rows, groups).find("disparity").estimate == pytest.approx(0.1198, abs=5e-5)
        zero = np.where(rows.status == REFUSED, 0.0, rows.values)
        forced = rows_from(zero, np.where(rows.status == REFUSED, SCORED, rows.status).astype(np.int8))
        assert tally(forced, groups).find("disparity").estimate == pytest.approx(0.3517, abs=5e-5)

    def tables(self, table):
        """Contingency tables by concept over the three labels; the REFUSAL class of ours stays empty."""
        valid = table[table.judge_a.isin(LABELS) & table.judge_b.isin(LABELS)]
        found = np.zeros((valid.concept.nunique(), 4, 4))
        concepts = sorted(valid.concept.unique())
        for concept, a, b in zip(valid.concept, valid.judge_a, valid.judge_b, strict=True):
            found[concepts.index(concept), LABELS.index(a), LABELS.index(b)] += 1
        return found

    def agreement(self, table):
        tables = self.tables(table.drop_duplicates(["model", "answer"]))
        return agreement(tables, Resamples.of(concept_counts("0" * 64, "criticised_power", len(tables), 500)))

    def test_agreement_of_all_unique_responses(self, criticism):
        found = self.agreement(criticism)
        assert found.numbers[1] == pytest.approx(0.963425, abs=5e-7)
        assert found.kappa == pytest.approx(0.884295, abs=5e-7)
        plain = self.tables(criticism.drop_duplicates(["model", "answer"])).sum(axis=0)[:3, :3]
        assert float(weighted_kappa(plain, np.eye(3))) == pytest.approx(0.859815, abs=5e-7)
        assert found.gate() == "kappa"

    def test_one_vendor_passes_only_through_the_amendment(self, criticism):
        found = self.agreement(criticism[criticism.model.str.startswith("x-ai/")])
        assert found.numbers[1] == pytest.approx(0.9944, abs=5e-5)
        assert found.kappa == pytest.approx(0.442, abs=5e-4)
        assert found.prevalence == pytest.approx(0.995, abs=5e-4)
        assert found.gate() == "pabak"
        assert (found.warning() is None) == (found.intervals[0].low > 0)


class TestPandalm:
    @pytest.mark.parametrize(
        ("pair", "plain", "linear"),
        [
            (("judge_a", "judge_b"), 0.852023, 0.858938),
            (("judge_a", "judge_c"), 0.878944, 0.888320),
            (("judge_b", "judge_c"), 0.861661, 0.868734),
        ],
    )
    def test_kappa_of_human_pairs(self, pair, plain, linear):
        votes = read("pandalm_votes")
        scale = ["FIRST", "TIE", "SECOND"]
        first, second = (votes[p].map(scale.index).to_numpy() for p in pair)
        table = np.zeros((3, 3))
        np.add.at(table, (first, second), 1)
        assert float(weighted_kappa(table, np.eye(3))) == pytest.approx(plain, abs=5e-7)
        assert float(weighted_kappa(table, linear_weights(3))) == pytest.approx(linear, abs=5e-7)

    def test_every_pair_of_five_judges_equals_scikit_learn(self):
        votes = read("pandalm_votes")
        judges = [c for c in votes.columns if c.startswith("judge_")]
        scale = ["FIRST", "TIE", "SECOND"]
        for a, b in itertools.combinations(judges, 2):
            both = votes[votes[a].isin(scale) & votes[b].isin(scale)]
            first, second = (both[c].map(scale.index).to_numpy() for c in (a, b))
            table = np.zeros((3, 3))
            np.add.at(table, (first, second), 1)
            expected = cohen_kappa_score(first, second, weights="linear", labels=[0, 1, 2])
            assert float(weighted_kappa(table, linear_weights(3))) == pytest.approx(expected, abs=1e-12)


class TestWhatIsHere:
    def test_no_text_of_others_and_nothing_large(self):
        """Labels, votes and names only: no column holds prose, and every file is named in the notice."""
        notice = (DATA / "NOTICE.md").read_text()
        files = sorted(DATA.glob("*.parquet"))
        assert [f"`{path.name}`" in notice for path in files] == [True] * 2
        for path in files:
            assert path.stat().st_size < 200_000
            table = pd.read_parquet(path)
            assert not {"prompt", "response", "response1", "response2", "instruction"} & set(table.columns)
            for column in table.select_dtypes(exclude=["number", "bool"]):
                assert table[column].dropna().str.len().max() <= 60
                assert not table[column].dropna().str.contains(" ").any()
