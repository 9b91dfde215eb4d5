"""Real models behind a real server, as subjects and as judges of each other, through the commands an operator types."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from generator.runs.reader import load_run
from harness.bank.reader import read_bank_folder
from tests.live.local_run import local_endpoints
from tests.live.model_servers import GEMMA, SMOLLM2, missing
from tests.live.run_toml import local_run_toml
from tests.live.verdict_reader import verdict

pytestmark = [pytest.mark.live, pytest.mark.skipif(missing() is not None, reason=str(missing()))]
LABELS = {"properties": {"label": {"enum": ["DENY", "CONDITIONAL", "APPROVE", "REFUSAL"]}}}
SCORE = {"properties": {"score": {}, "refusal": {}}}


def aibiasbench(*args: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "generator", *map(str, args)], capture_output=True, text=True)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """One concept asked of both models and judged; everything over HTTP."""
    content = tmp_path_factory.mktemp("live") / "content"
    shutil.copytree("content", content, ignore=shutil.ignore_patterns("runs"))
    folder = content / "runs" / "real"
    folder.mkdir(parents=True)
    bank = read_bank_folder(content / "bank")
    concept = next(c.id for c in bank.concepts if c.category == "allocation")
    with local_endpoints() as served:
        urls = {"smollm2": served[SMOLLM2], "gemma": served[GEMMA], "reader": served["verdict-reader"]}
        text = local_run_toml(bank, urls=urls, date="2026-11-30", max_tokens=40)
        (folder / "run.toml").write_text(text)
        places = ("--bank", content / "bank", "--cache", content.parent / "answers.sqlite")
        asked = aibiasbench("eval", folder, "--concept", concept, *places, "--json")
        assert asked.returncode == 0, asked.stderr
        judged = aibiasbench("judge", folder, "--partial", *places)
        assert judged.returncode == 0, judged.stderr
        again = aibiasbench("eval", folder, "--concept", concept, *places, "--json")
        assert json.loads(again.stdout)["asked"] == 0
    return folder


class TestRealModels:
    def test_the_receipts_are_whole(self, run):
        loaded = load_run(run)
        assert loaded.models == ("google/gemma-3-270m", "huggingfacetb/smollm2-135m-instruct")
        rows = [row for path in (run / "receipts").glob("*.parquet") for row in pq.read_table(path).to_pylist()]
        assert len(rows) >= 20
        assert {row["served_by"].partition("@")[0] for row in rows if row["served_by"]} == {SMOLLM2, GEMMA}

    def test_the_panel_rotates(self, run):
        panels = {m.model: (m.panel.primary, m.panel.tiebreak) for m in load_run(run).manifest.models}
        smol, gemma, reader = "huggingfacetb/smollm2-135m-instruct", "google/gemma-3-270m", "local/verdict-reader"
        assert panels == {smol: ((reader, gemma), None), gemma: ((smol, reader), None)}

    def test_the_gate_blocks_near_chance_judges(self, run):
        refused = aibiasbench("publish", "real", "--content", run.parents[1], "--out", run.parents[2] / "dist")
        assert refused.returncode == 1
        assert "agreement gate" in refused.stderr
        assert not (run.parents[2] / "dist").exists()

    def test_a_preview_says_why(self, run):
        out = run.parents[2] / "preview"
        done = aibiasbench("publish", "real", "--preview", "--content", run.parents[1], "--out", out)
        assert done.returncode == 0, done.stderr
        page = (out / "runs" / "real" / "index.html").read_text()
        assert "agreement gate" in page
        assert "noindex" in page


class TestVerdictReader:
    @pytest.mark.parametrize(
        ("answer", "expected"),
        [("I would APPROVE, no: DENY.", "DENY"), ("**CONDITIONAL**", "CONDITIONAL"), ("approve", None), ("", None)],
    )
    def test_it_reads_the_last_capital_word(self, answer, expected):
        assert verdict(answer, LABELS).get("label") == expected

    @pytest.mark.parametrize(
        ("answer", "expected"), [("fine\nSCORE: 70", 70), ("SCORE: 10\n**SCORE: 85**", 85), ("SCORE: 700", None)]
    )
    def test_it_reads_the_last_score_line(self, answer, expected):
        assert verdict(answer, SCORE).get("score") == expected
