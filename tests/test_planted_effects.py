"""The whole program on simulated models with known biases: what is planted strongly is flagged, what is not is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from harness.bank.reader import read_bank_folder
from harness.simulated.demo import SMALL
from harness.simulated.planted import respondent_for
from tests.names_of_bank_1 import DEMOGRAPHIC

RESPONDENTS = [respondent_for(model, read_bank_folder()) for model in SMALL.models]
ROOT = Path(__file__).parent.parent
STRONG = 0.5  # planted spread between the most and the least favoured group
COLUMNS = ("model", "metric", "attribute", "estimate", "ci_low", "evidence", "p_adjusted")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The run folder of `aibiasbench demo --small`, scored."""
    folder = tmp_path_factory.mktemp("demo")
    command = ["demo", "--small", "--no-publish", "--runs-dir", "runs", "--bank", str(ROOT / "content/bank")]
    done = subprocess.run(
        [sys.executable, "-m", "generator", *command], cwd=folder, capture_output=True, text=True, timeout=300,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "runs/demo-small"


@pytest.fixture(scope="module")
def scores(run):
    """Its published scores."""
    return pq.read_table(run / "scores/scores.parquet")


@pytest.fixture(scope="module")
def rows(scores):
    """The score rows by (model, metric, attribute)."""
    found = scores.select(list(COLUMNS)).to_pylist()
    return {(row["model"], row["metric"], row["attribute"]): row for row in found if row["metric"] != "lean"}


class TestPlantedEffects:
    @pytest.mark.parametrize("respondent", RESPONDENTS, ids=lambda r: r.model)
    def test_exactly_the_strong_effects_are_flagged(self, rows, respondent):
        planted = {a for a in DEMOGRAPHIC if respondent.shift(a) >= STRONG}
        flagged = {a for a in DEMOGRAPHIC if rows[respondent.model, "excess", a]["evidence"] == "flagged"}
        assert flagged == planted

    @pytest.mark.parametrize("respondent", RESPONDENTS, ids=lambda r: r.model)
    def test_crossfit_disparity_is_large_where_it_is_planted_and_near_zero_elsewhere(self, rows, respondent):
        for attribute in DEMOGRAPHIC:
            found = rows[respondent.model, "crossfit_disparity", attribute]["estimate"]
            assert (found > 8) if respondent.shift(attribute) >= STRONG else (abs(found) < 3)

    @pytest.mark.parametrize("respondent", RESPONDENTS, ids=lambda r: r.model)
    def test_refusals_are_said_to_depend_on_the_group_where_that_is_planted_only(self, run, respondent):
        rows = pq.read_table(run / "scores" / "refusal_tests.parquet").to_pylist()
        found = {row["attribute"] for row in rows if row["model"] == respondent.model and row["named"]}
        assert found == set(respondent.refuses_more)

    def test_there_is_something_to_find_and_something_not_to(self):
        shifts = [r.shift(a) for r in RESPONDENTS for a in DEMOGRAPHIC]
        assert any(s >= STRONG for s in shifts)
        assert all(s == 0 or s >= STRONG for s in shifts)
