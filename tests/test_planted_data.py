"""The planted effects of a simulated manifest: all that the profiles hold, and nothing that they do not."""

from __future__ import annotations

import dataclasses
import tomllib

import pytest

from generator.schema.bank import Bank
from generator.schema.manifest import Planted
from harness.bank.reader import read_bank_folder
from harness.plan.run_toml import load_plan
from harness.simulated.demo import FULL, run_toml
from harness.simulated.endpoint import cases_of, places
from harness.simulated.planted import HARD_SLIPS, JUDGES, LOWER_EDGE, Respondent, SimulatedJudge, respondents
from harness.simulated.planted_effects import planted_effects
from tests.factories import make_bank
from tests.plans import callee, make_plan, simulated_data

BANK = read_bank_folder()
RESPONDENTS = respondents(BANK)
FULL_PLAN = load_plan(tomllib.loads(run_toml(FULL, BANK)), run_id=FULL.run_id, where="run.toml")


def effects(bank: Bank, *models: str) -> list[Planted]:
    """The planted effects of a plan of some models, as a manifest reads them."""
    subjects = [callee(model, "simulated", api_model=model) for model in models]
    plan = make_plan(simulated_data(bank, models=subjects))
    return [Planted.model_validate(item) for item in planted_effects(plan, bank)]


ALL = effects(BANK, *(r.model for r in RESPONDENTS))


def sizes(who: str, effect: str) -> dict[str | None, float | None]:
    return {e.attribute: e.size for e in ALL if (e.who, e.effect) == (who, effect)}


class TestSubjects:
    @pytest.mark.parametrize("respondent", RESPONDENTS, ids=lambda r: r.model)
    def test_the_spreads_are_those_of_the_profile(self, respondent: Respondent) -> None:
        expected = {a.id: respondent.shift(a.id) for a in BANK.attributes if respondent.shift(a.id)}
        assert sizes(respondent.model, "group_effect") == expected

    @pytest.mark.parametrize("respondent", RESPONDENTS, ids=lambda r: r.model)
    def test_every_other_number_of_the_profile_stands_once(self, respondent: Respondent) -> None:
        numbers = {f.name: getattr(respondent, f.name) for f in dataclasses.fields(respondent)}
        planted = {name: value for name, value in numbers.items() if isinstance(value, float) and value}
        told = {e.effect: e.size for e in ALL if e.who == respondent.model and e.attribute is None}
        assert told == {**planted, "verdict": None}

    def test_the_group_is_the_one_that_answers_favor_most(self) -> None:
        for effect in (e for e in ALL if e.effect == "group_effect"):
            where = places(BANK, str(effect.attribute))
            assert where[str(effect.group)] == max(where.values()) == 0.5
            assert {case.place for case in cases_of(BANK).values() if case.concept.attribute == effect.attribute} == {
                *where.values()
            }

    def test_more_refusals_fall_on_the_less_favored_half(self) -> None:
        found = [e for e in ALL if e.effect == "refuses_more"]
        where = places(BANK, "political_affiliation")
        assert {e.who for e in found} == {"sim-boreal/brook"}
        assert {e.group for e in found} == {group for group, place in where.items() if place < 0}
        assert {(e.attribute, e.size, e.unit) for e in found} == {("political_affiliation", 0.3, "share of answers")}

    def test_a_model_without_a_profile_is_moved_by_the_control_of_the_lower_edge_alone(self) -> None:
        found = [e for e in effects(BANK, "sim-new/model") if e.who == "sim-new/model" and e.effect == "group_effect"]
        assert [(e.attribute, e.size) for e in found] == [("control_profession", LOWER_EDGE)]

    def test_only_attributes_of_the_bank_are_named(self) -> None:
        bank = make_bank(("age",), groups=3, quota={"stance": 1})
        assert {item.attribute for item in effects(bank, "sim-fornax/flint")} == {"age", None}


class TestJudges:
    @pytest.mark.parametrize("judge", JUDGES, ids=lambda j: j.model)
    def test_every_error_of_a_judge_stands_once(self, judge: SimulatedJudge) -> None:
        planted = planted_effects(FULL_PLAN, BANK)
        numbers = {f.name: getattr(judge, f.name) for f in dataclasses.fields(judge)}
        told = {e["effect"]: e["size"] for e in planted if (e["who"], e["role"]) == (judge.model, "judge")}
        expected = {name: value for name, value in numbers.items() if isinstance(value, float) and value}
        assert told == {**expected, "hard_slips": HARD_SLIPS}


class TestOrder:
    def test_subjects_by_slug_then_judges_in_the_order_of_the_panel(self) -> None:
        planted = planted_effects(FULL_PLAN, BANK)
        seen = list(dict.fromkeys((e["role"], e["who"]) for e in planted))
        judges = [j.model for j in FULL_PLAN.judges.all]
        assert seen == [("subject", m) for m in sorted(FULL_PLAN.subject, key=str.encode)] + [
            ("judge", j) for j in judges
        ]
        assert len({(e["who"], e["effect"], e["attribute"], e["group"]) for e in planted}) == len(planted)
