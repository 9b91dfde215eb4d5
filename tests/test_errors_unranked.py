"""A live model with more than 10 % of its planned rows in error has no rank (methodology: tiers, "The rule")."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import pytest

from generator.edition.coverage import plan_coverage
from generator.pages.leaderboard import _error_words
from generator.runs.reader import Run, load_run
from generator.scoring.gate import standing_of
from generator.scoring.reasons import NoRankedModel
from generator.scoring.run import score_run
from generator.stats.tiers import too_many_errors
from tests.factories import make_bank, make_run
from tests.names_of_bank_1 import DEMOGRAPHIC

BANK = make_bank(DEMOGRAPHIC, groups=2, quota={"stance": 2})  # a rank takes every attribute
FIRST = BANK.concepts[0].id
MODELS = ("sim-alpha/one", "sim-beta/two")


def run_of(folder: Path, *, kind: str, one_more: bool) -> Run:
    """A run whose first model errs in one of ten repeats, and in one row more if asked; the second never."""

    def answers(model: str, concept: str, framing: str, group: str, repeat: int) -> tuple[float | str | None, ...]:
        extra = one_more and (concept, framing, group, repeat) == (FIRST, "direct", "g0", 1)
        return (None, None) if model == MODELS[0] and (repeat == 0 or extra) else (0.5, 0.5)

    run = load_run(make_run(folder / "errors", bank=BANK, models=MODELS, repeats=10, answers=answers))
    return dataclasses.replace(run, manifest=run.manifest.model_copy(update={"kind": kind}))


def ranks(run: Run) -> dict[str, int | None]:
    rows = score_run(run, resamples=50).tables["tiers"].to_pylist()
    return {row["model"]: row["rank"] for row in rows}


class TestRank:
    @pytest.mark.parametrize(("kind", "one_more", "ranked"), [
        ("live", False, True),
        ("live", True, False),
        ("simulated", True, True),
    ])  # fmt: skip
    def test_more_than_a_tenth_of_a_live_models_rows(
        self, tmp_path: Path, kind: str, one_more: bool, ranked: bool
    ) -> None:
        found = ranks(run_of(tmp_path, kind=kind, one_more=one_more))
        assert {model: rank is not None for model, rank in found.items()} == {MODELS[0]: ranked, MODELS[1]: True}

    def test_its_score_stays_and_the_figure_is_said(self, tmp_path: Path) -> None:
        scored = score_run(run_of(tmp_path, kind="live", one_more=True), resamples=50)
        last = scored.tables["tiers"].to_pylist()[-1]
        assert (last["model"], last["estimate"] is not None) == (MODELS[0], True)
        view = SimpleNamespace(asked=plan_coverage(scored.tables["cells"], 10))
        cover = view.asked[MODELS[0]]
        assert cover.error * 10 == cover.planned + 10
        share = f"{cover.error / cover.planned:.1%}"
        expected = f"{cover.error} of {cover.planned} planned answers ({share}) are in error, more than 10%"
        assert _error_words(view, MODELS[0]) == expected


class TestShare:
    @pytest.mark.parametrize(("errors", "planned", "many"), [(0, 0, False), (10, 100, False), (11, 100, True)])
    def test_exactly_a_tenth_is_not_more(self, errors: int, planned: int, many: bool) -> None:
        assert too_many_errors(errors, planned) is many


class TestGate:
    def test_a_run_without_a_ranked_model_is_a_preview(self, tmp_path: Path) -> None:
        folder = make_run(tmp_path / "none", bank=BANK, models=MODELS[:1], answers=lambda *_: (None, None))
        run = load_run(folder)
        run = dataclasses.replace(run, manifest=run.manifest.model_copy(update={"kind": "live"}))
        standing = standing_of(run, score_run(run, resamples=50), preview=True, withhold=False)
        assert standing.state == "preview"
        assert NoRankedModel() in standing.reasons
