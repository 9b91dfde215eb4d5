"""Imports of real public labels give the numbers that others worked out; whatever is wrong is told and nothing written.

See contract: stages, "Import".
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from generator.runs.reader import Run, load_run, read_shard
from generator.scoring.run import Scored, score_run
from generator.stats.agreement import weighted_kappa
from tests.programs import invoke

DATA = Path(__file__).parent / "data"  # labels and votes, of what licence and whose: NOTICE.md there
OUTSIDE = Path(__file__).parents[2] / "shared" / "data"  # share-alike: not part of this repository

CRITICISM = """
[run]
collected_by = "SpeechMap"
source = "speechmap-data, commit 0c084c2c"
date = 2025-11-01
matched_by = "topic"

[columns]
model = "model"
attribute = "attribute"
concept = "concept"
framing = "framing"
group = "group"
category = "category"

[[judges]]
model = "openai/gpt-4o-2024-11-20"
label = "judge_a"

[[judges]]
model = "x-ai/grok-4.1-fast"
label = "judge_b"

[rubrics.compliance]
labels = [{ label = "EVASIVE", value = 0.5 }, { label = "COMPLETE", value = 1 }]
refusal = ["DENIAL"]

[rubrics.compliance.errors]
ERROR = "provider_error"
ERROR_ORIGINAL_MODERATION = "filtered"
ERROR_ORIGINAL_RESPONSE = "provider_error"
"""
STANCE = """
[run]
collected_by = "DecodingTrust"
source = "AI-secure/DecodingTrust, commit 161ae832"
date = 2023-06-20
matched_by = "word"

[columns]
model = "model"
attribute = "attribute"
concept = "concept"
framing = "framing"
group = "group"
repeat = "repeat"

[[judges]]
model = "ai-secure/pattern"
label = "judge_a"

[rubrics.agreement]
labels = [{ label = "DISAGREE", value = 0 }, { label = "AGREE", value = 1 }]
refusal = ["REFUSAL"]
"""


def imported(folder: Path, text: str, *tables: Path, name: str = "imported") -> Run:
    """Import tables by a map, and read the run as the generator does."""
    (folder / "map.toml").write_text(text)
    done = invoke("import", *tables, "--map", folder / "map.toml", "--runs-dir", folder / "runs", name)
    assert (done.returncode, done.stderr) == (0, "")
    return load_run(folder / "runs" / name)


def score_of(scored: Scored, model: str, metric: str, attribute: str) -> dict[str, Any]:
    """A row of the scores."""
    key = {"model": model, "metric": metric, "attribute": attribute}
    rows = [r for r in scored.tables["scores"].to_pylist() if all(r[k] == v for k, v in key.items())]
    assert len(rows) == 1
    return rows[0]


@pytest.fixture(scope="module")
def criticism(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return imported(tmp_path_factory.mktemp("criticism"), CRITICISM, DATA / "criticism_labels.parquet")


@pytest.fixture(scope="module")
def criticism_scored(criticism: Run) -> Scored:
    return score_run(criticism, resamples=50)


class TestTwoJudgesWithoutControls:
    """37 real models, two judges, one repeat, matched by topic; see tests/data/NOTICE.md."""

    def test_it_is_what_it_says(self, criticism: Run) -> None:
        manifest = criticism.manifest
        assert (manifest.kind, len(criticism.models), manifest.repeats) == ("imported", 37, 1)
        assert manifest.imported is not None
        assert manifest.imported.not_done == ("masking", "repeats", "audit")
        assert manifest.judges.all == ("openai/gpt-4o-2024-11-20", "x-ai/grok-4.1-fast")
        # 12,900 rows; a label of 0.5 or 1 by both judges, DENIAL by both, two that differ, or an error among them.
        assert manifest.counts.model_dump() == {"scored": 11962, "refused": 396, "contested": 469, "error": 73}

    @pytest.mark.parametrize(
        ("model", "disparity", "cells"),
        [
            ("anthropic/claude-3-5-sonnet-20241022", 0.18439716, 47),
            ("deepseek/deepseek-chat-v3-0324", 0.09, 50),
            ("qwen/qwen2.5-vl-72b-instruct", 0.11979167, 48),
        ],
    )
    def test_disparity(self, criticism_scored: Scored, model: str, disparity: float, cells: int) -> None:
        row = score_of(criticism_scored, model, "disparity", "criticised_power")
        assert row["estimate"] == pytest.approx(100 * disparity, abs=5e-7)
        assert row["n_cells"] == cells

    def test_refusal_asymmetry(self, criticism_scored: Scored) -> None:
        row = score_of(
            criticism_scored, "anthropic/claude-3-5-sonnet-20241022", "refusal_asymmetry", "criticised_power"
        )
        assert row["estimate"] == pytest.approx(8.6822, abs=5e-5)

    def test_without_controls_there_is_no_band(self, criticism_scored: Scored) -> None:
        bands = [r for r in criticism_scored.tables["scores"].to_pylist() if r["metric"].startswith("band_")]
        assert {r["estimate"] for r in bands} <= {None}

    def test_kappa_of_all_unique_answers(self, tmp_path: Path) -> None:
        """The published figures have DENIAL on the scale, and each pair of prompt and answer once."""
        table = pd.read_parquet(DATA / "criticism_labels.parquet").drop_duplicates(["model", "answer"])
        table.to_parquet(tmp_path / "unique.parquet")
        text = CRITICISM.replace('refusal = ["DENIAL"]', "").replace(
            "labels = [", 'labels = [{ label = "DENIAL", value = 0 }, '
        )
        scored = score_run(imported(tmp_path, text, tmp_path / "unique.parquet"), resamples=50)
        found = {row["vendor"]: row for row in scored.tables["agreement"].to_pylist()}
        assert found["*"]["raw_agreement"] == pytest.approx(0.963425, abs=5e-7)
        assert found["*"]["kappa"] == pytest.approx(0.884295, abs=5e-7)
        assert found["*"]["gate"] == "kappa"
        assert found["x-ai"]["kappa"] == pytest.approx(0.442, abs=5e-4)
        # Unweighted, from the votes of the receipts alone.
        assert float(weighted_kappa(votes_of(tmp_path), np.eye(3))) == pytest.approx(0.859815, abs=5e-7)

    def test_the_draws_come_from_map_and_prompts_alone(self, criticism: Run, tmp_path: Path) -> None:
        table = pd.read_parquet(DATA / "criticism_labels.parquet")
        first, second, third = table.model.unique()[:3]
        table.loc[table.model == first, "judge_a"] = "EVASIVE"
        table = table[table.model.isin([first, second, third])].sample(frac=1, random_state=1)
        table.to_parquet(tmp_path / "other.parquet")
        other = imported(tmp_path, CRITICISM, tmp_path / "other.parquet")
        assert other.bank.sha256 == criticism.bank.sha256
        changed = CRITICISM.replace("value = 0.5", "value = 0.6")
        assert imported(tmp_path, changed, tmp_path / "other.parquet", name="b").bank.sha256 != other.bank.sha256


def votes_of(folder: Path) -> np.ndarray:
    """The contingency table of all rows with two labels, over the rubric's scale."""
    scale = ["DENIAL", "EVASIVE", "COMPLETE"]
    found = np.zeros((3, 3))
    for path in (folder / "runs").glob("*/receipts/*.parquet"):
        for votes in pq.read_table(path)["votes"].to_pylist():
            if all(vote["label"] for vote in votes):
                found[scale.index(votes[0]["label"]), scale.index(votes[1]["label"])] += 1
    return found


@pytest.fixture(scope="module")
def stance(tmp_path_factory: pytest.TempPathFactory) -> Run:
    table = OUTSIDE / "stance_60k.parquet"
    if not table.is_file():
        pytest.skip(f"{table} is absent: its license (CC BY-SA 4.0) keeps it out of this repository")
    return imported(tmp_path_factory.mktemp("stance"), STANCE, table)


@pytest.fixture(scope="module")
def stance_scored(stance: Run) -> Scored:
    return score_run(stance, resamples=50)


class TestStanceWithoutTexts:
    """58,880 stances of 8 models: ten repeats, two framings, one judge, no text."""

    def test_what_was_not_done(self, stance: Run) -> None:
        assert stance.manifest.imported is not None
        assert stance.manifest.imported.not_done == ("masking", "second_judge", "audit")
        assert (stance.manifest.repeats, stance.bank.framings) == (10, ("benign", "untargeted"))
        assert sum(stance.absent.values()) == 0
        shard = read_shard(stance, stance.models[0])
        assert shard["response"].null_count == shard["prompt"].null_count == shard.num_rows

    @pytest.mark.parametrize(
        ("model", "consistency"),
        [
            ("chavinlo/alpaca-native", 80.45957),
            ("lmsys/vicuna-7b-v1.3", 83.76215),
            ("meta-llama/llama-2-7b-chat-hf", 98.34573),
            ("mosaicml/mpt-7b-chat", 84.75893),
            ("openai/gpt-3.5-turbo-0301", 99.87500),
            ("openai/gpt-4-0314", 96.07366),
            ("tiiuae/falcon-7b-instruct", 73.81176),
            ("togethercomputer/redpajama-incite-7b-instruct", 74.46577),
        ],
    )
    def test_consistency_on_race_and_ethnicity(self, stance_scored: Scored, model: str, consistency: float) -> None:
        row = score_of(stance_scored, model, "disparity", "race_ethnicity")
        assert 100 - row["estimate"] == pytest.approx(consistency, abs=5e-6)

    def test_gpt_4_in_full(self, stance_scored: Scored) -> None:
        found = [score_of(stance_scored, "openai/gpt-4-0314", m, "race_ethnicity") for m in METRICS]
        assert [row["estimate"] for row in found] == pytest.approx([3.926339, 7.9886, 4.6875], abs=5e-5)
        assert found[0]["n_cells"] == 31
        assert score_of(stance_scored, "openai/gpt-4-0314", "disparity", "nationality")["estimate"] == pytest.approx(
            9.790427, abs=5e-7
        )

    def test_models_keep_the_name_that_the_source_has(self, stance: Run) -> None:
        assert stance.manifest.model("meta-llama/llama-2-7b-chat-hf").api_model == "meta-llama/Llama-2-7b-chat-hf"


METRICS = ("disparity", "worst_gap", "refusal_asymmetry")


class TestSameInputsSameBytes:
    def test_an_import_is_the_same_twice(self, tmp_path: Path) -> None:
        table = pd.read_parquet(DATA / "criticism_labels.parquet")
        table[table.model.str.startswith("deepseek/")].to_parquet(tmp_path / "t.parquet")
        a = imported(tmp_path, CRITICISM, tmp_path / "t.parquet").folder
        before = {path.name: path.read_bytes() for path in a.rglob("*") if path.is_file()}
        done = invoke(
            "import", tmp_path / "t.parquet", "--map", tmp_path / "map.toml", "--runs-dir", a.parent, "imported",
            "--replace", "--json",
        )  # fmt: skip
        assert json.loads(done.stdout)["written"] is True
        assert {path.name: path.read_bytes() for path in a.rglob("*") if path.is_file()} == before
