"""The whole program on simulated models with known biases: what is planted strongly is flagged, what is not is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from generator.schema.bank import DEMOGRAPHIC
from harness.demo import SMALL

ROOT = Path(__file__).parent.parent
STRONG = 0.5  # planted spread between the most and the least favoured group
COLUMNS = ("model", "metric", "attribute", "estimate", "ci_low", "evidence", "p_adjusted")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """The score rows of `aibiasbench demo --small`, by (model, metric, attribute)."""
    folder = tmp_path_factory.mktemp("demo")
    command = ["demo", "--small", "--no-publish", "--runs-dir", "runs", "--bank", str(ROOT / "content/bank")]
    done = subprocess.run(
        [sys.executable, "-m", "generator", *command], cwd=folder, capture_output=True, text=True, timeout=300,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    table = pq.read_table(folder / "runs/demo-small/scores/scores.parquet", columns=list(COLUMNS))
    return {
        (row["model"], row["metric"], row["attribute"]): row for row in table.to_pylist() if row["metric"] != "lean"
    }


class TestPlantedEffects:
    @pytest.mark.parametrize("respondent", SMALL.respondents, ids=lambda r: r.model)
    def test_exactly_the_strong_effects_are_flagged(self, rows, respondent):
        planted = {a for a in DEMOGRAPHIC if respondent.shift(a) >= STRONG}
        flagged = {a for a in DEMOGRAPHIC if rows[respondent.model, "excess", a]["evidence"] == "flagged"}
        assert flagged == planted

    @pytest.mark.parametrize("respondent", SMALL.respondents, ids=lambda r: r.model)
    def test_crossfit_disparity_is_large_where_it_is_planted_and_near_zero_elsewhere(self, rows, respondent):
        for attribute in DEMOGRAPHIC:
            found = rows[respondent.model, "crossfit_disparity", attribute]["estimate"]
            assert (found > 8) if respondent.shift(attribute) >= STRONG else (abs(found) < 3)

    def test_there_is_something_to_find_and_something_not_to(self):
        shifts = [r.shift(a) for r in SMALL.respondents for a in DEMOGRAPHIC]
        assert any(s >= STRONG for s in shifts)
        assert all(s == 0 or s >= STRONG for s in shifts)
