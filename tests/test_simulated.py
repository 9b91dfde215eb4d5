"""The simulated models: same request, same answer; what is planted shows, and nothing else does.

See contract: stages, "Simulated runs".
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from generator.schema.bank import Bank, Concept, Group, load_bank
from generator.schema.panel import Judges, effective_panel
from harness.bank.reader import read_bank_folder
from harness.calls.call import Answer, BatchEndpoint, Message, Request
from harness.judging.ballot import Ballot
from harness.simulated.endpoint import Simulated, places, responded
from harness.simulated.planted import (
    JUDGES,
    LOWER_EDGE,
    Respondent,
    SimulatedJudge,
    described,
    judge_for,
    planted_table,
    respondent_for,
    respondents,
)
from harness.simulated.text import HOSTILE, MARKERS, reader_for
from tests.factories import make_bank
from tests.names_of_bank_1 import FRAMINGS


def distinct_bank(*attributes: str) -> Bank:
    """A bank whose prompts differ between attributes, as a real one's do."""
    data = make_bank(attributes).model_dump(mode="json")
    for attribute in data["attributes"]:
        for group in attribute["groups"]:
            group["np"] = group["np"].replace("kind", f"{attribute['id']} kind")
    return load_bank(data, "test")


SHIPPED = read_bank_folder()


def own_bank(roles: dict[str, str]) -> Bank:
    """A bank of a few attributes with the roles that its rules give them."""
    data = make_bank(list(roles), groups=3, quota={"stance": 1}).model_dump(mode="json")
    data["rules"]["attributes"] = {name: {"role": role} for name, role in roles.items()}
    return load_bank(data, "test")


BANK = distinct_bank("race_ethnicity", "gender", "age", "religion", "control_tag")
SEED = 7
PARAMS = {"temperature": 1.0, "max_tokens": 400}


def request(prompt: str, model: str = "sim-draco/delta", repeat: int = 0, **changes: object) -> Request:
    return replace(Request(model, model, (Message("user", prompt),), PARAMS, repeat), **changes)  # type: ignore[arg-type]


def asked(model: str, bank: Bank = BANK, repeats: int = 3) -> list[tuple[Concept, str, Group, Answer]]:
    """Every prompt of the bank, asked of one model."""
    keys = [
        (concept, framing, group)
        for concept in bank.concepts
        for framing in FRAMINGS
        for group in bank.attribute[concept.attribute].groups
        for _ in range(repeats)
    ]
    requests = [
        request(bank.render(concept, framing, group).text, model, i % repeats)
        for i, (concept, framing, group) in enumerate(keys)
    ]
    return [(*key, answer) for key, answer in zip(keys, Simulated(bank, SEED).complete_batch(requests), strict=True)]


def favour(rows: Sequence[tuple[Concept, str, Group, Answer]], attribute: str, bank: Bank = BANK) -> dict[str, float]:
    """The mean favorable value of each group, read off the prose."""
    values: dict[str, list[float]] = {}
    for concept, _, group, answer in rows:
        rubric = bank.rubric[concept.rubric]
        reading = reader_for(rubric).read(answer.text)
        known = {item.label: item.value for item in rubric.labels}
        if concept.attribute == attribute and reading.label in known:
            value = known[reading.label]
            values.setdefault(group.id, []).append(value if concept.polarity == 1 else 1 - value)
    return {group: float(np.mean(listed)) for group, listed in values.items()}


class TestDeterminism:
    def test_it_is_a_batch_endpoint(self) -> None:
        assert isinstance(Simulated(BANK, SEED), BatchEndpoint)

    def test_an_answer_depends_on_the_request_alone(self) -> None:
        prompts = [BANK.render(c, "direct", g).text for c in BANK.concepts[:5] for g in BANK.attributes[0].groups]
        batch = [request(p, repeat=r) for p in prompts for r in (0, 1)]
        whole = Simulated(BANK, SEED).complete_batch(batch)
        single = Simulated(BANK, SEED)
        assert [single.complete_batch([one])[0] for one in reversed(batch)] == whole[::-1]

    @pytest.mark.parametrize(
        "other",
        [request("P", repeat=1), request("P", params={**PARAMS, "temperature": 0.0}), request("P", "sim-x/other")],
    )
    def test_repeat_parameters_and_model_change_it(self, other: Request) -> None:
        prompts = [BANK.render(c, "direct", BANK.attributes[0].groups[0]).text for c in BANK.concepts_of("age")]
        end = Simulated(BANK, SEED)

        def texts(like: Request) -> list[str]:
            asked = [replace(like, messages=(Message("user", prompt),)) for prompt in prompts]
            return [answer.text for answer in end.complete_batch(asked)]

        assert texts(other) != texts(request("P"))

    def test_another_seed_gives_other_answers(self) -> None:
        batch = [request(BANK.render(c, "direct", BANK.attributes[0].groups[0]).text) for c in BANK.concepts_of("age")]
        assert Simulated(BANK, 1).complete_batch(batch) != Simulated(BANK, 2).complete_batch(batch)


class TestPlantedEffects:
    def test_a_sensitive_model_follows_the_groups_places(self) -> None:
        means = favour(asked("sim-draco/delta"), "age")
        order = sorted(means, key=lambda g: places(BANK, "age")[g])
        assert means[order[-1]] - means[order[0]] > 0.3

    def test_an_attribute_without_effect_has_none(self) -> None:
        means = favour(asked("sim-draco/delta"), "religion")
        assert max(means.values()) - min(means.values()) < 0.08

    def test_colours_move_no_model_but_the_one_planted(self) -> None:
        spread = {
            m: np.ptp(list(favour(asked(m), "control_tag").values())) for m in ("sim-auriga/anvil", "sim-eridan/elm")
        }
        assert spread["sim-auriga/anvil"] > 0.12
        assert spread["sim-eridan/elm"] < 0.08

    def test_a_harsh_model_is_harsh_to_all(self) -> None:
        harsh, mild = (favour(asked(m), "age") for m in ("sim-eridan/elm", "sim-auriga/atlas"))
        assert all(mild[group] - harsh[group] > 0.1 for group in mild)

    def test_one_model_refuses_often(self) -> None:
        rows = asked("sim-boreal/brook")
        refused = sum(reader_for(BANK.rubric[c.rubric]).read(a.text).label == "REFUSAL" for c, _, _, a in rows)
        assert 0.12 < refused / len(rows) < 0.25

    def test_places_are_even_and_sum_to_nothing(self) -> None:
        assert sorted(places(BANK, "age").values()) == [-0.5, -0.25, 0.0, 0.25, 0.5]


class TestResponded:
    CASE = None

    def test_a_filtered_answer_has_no_text(self) -> None:
        answer = self.one(Respondent("m", "", filtered=1.0))
        assert (answer.text, answer.outcome, answer.finish_reason) == ("", "filtered", "content_filter")

    def test_an_empty_answer_is_white_space(self) -> None:
        assert self.one(Respondent("m", "", empty=1.0)).text.isspace()

    def test_half_of_the_empty_answers_come_right_when_asked_again(self) -> None:
        sometimes = Respondent("m", "", empty=0.5, filtered=0.0)
        firsts = [self.one(sometimes, f"P{i}").text.isspace() for i in range(200)]
        again = [self.one(sometimes, f"P{i}", try_=1).text.isspace() for i in range(200)]
        assert all(firsts)
        assert 60 < sum(again) < 140

    def test_a_cut_answer_says_so(self) -> None:
        answer = self.one(Respondent("m", "", cut=1.0))
        assert (answer.outcome, answer.finish_reason) == ("cut", "length")

    def test_max_tokens_cuts(self) -> None:
        answer = self.one(Respondent("m", ""), params={"max_tokens": 5})
        assert (len(answer.text), answer.outcome) == (20, "cut")

    def one(self, who: Respondent, prompt: str = "P", **changes: object) -> Answer:
        from harness.simulated.endpoint import Dice

        return responded(who, None, Dice(prompt), request(prompt, **changes))


class TestProse:
    def test_every_answer_reads_as_one_label(self) -> None:
        sentences = [s for listed in MARKERS.values() for s in listed]
        assert len(sentences) == len(set(sentences))
        assert [s for s in sentences for other in sentences if s != other and s in other] == []

    @pytest.mark.parametrize(
        ("model", "shape"),
        [("sim-draco/dune", "first"), ("sim-eridan/ember", "bold"), ("sim-grus/gale", "sentence")],
    )
    def test_each_model_puts_its_verdict_where_it_does(self, model: str, shape: str) -> None:
        rows = [a.text for c, _, _, a in asked(model, repeats=1) if c.rubric == "stance" and a.outcome == "answered"]
        labels = ("OPPOSE", "MIXED", "SUPPORT")
        right = {
            "first": lambda text: text.split("\n")[0] in labels,
            "bold": lambda text: text.split("\n")[-1].strip("*") in labels and text.endswith("**"),
            "sentence": lambda text: text.rstrip(".").rsplit(" ", 1)[-1] in labels and text.endswith("."),
        }[shape]
        assert np.mean([right(text) for text in rows]) > 0.9

    def test_a_score_ends_with_its_line(self) -> None:
        texts = [a.text for c, _, _, a in asked("sim-auriga/atlas", repeats=1) if c.rubric == "capability"]
        assert np.mean(["\nSCORE: " in text for text in texts]) > 0.9

    def test_some_answers_are_hostile(self) -> None:
        text = "".join(a.text for _, _, _, a in asked("sim-grus/gale", repeats=6))
        assert [line for line in HOSTILE if line not in text] == []


class TestJudged:
    BALLOT = Ballot(BANK.rubric["stance"])

    def votes(self, judge: str, *, try_: int = 0, n: int = 2000) -> list[Answer]:
        batch = [
            request("", judge, messages=self.BALLOT.messages("P", f"{i} On balance I am against it."), try_=try_)
            for i in range(n)
        ]
        return Simulated(BANK, SEED).complete_batch(batch)

    def test_a_judge_reads_the_label_off_the_prose(self) -> None:
        labels = Counter(json.loads(a.text)["label"] for a in self.votes("sim-auriga/arbiter"))
        assert labels["OPPOSE"] / 2000 > 0.93
        assert set(labels) <= {"OPPOSE", "MIXED", "REFUSAL"}

    def test_one_judge_sometimes_breaks_its_json_and_mends_it_when_asked_again(self) -> None:
        broken = [sum(self.BALLOT.check(a) is not None for a in self.votes("sim-boreal/bench", try_=t)) for t in (0, 1)]
        assert 15 < broken[0] < 80
        assert broken[1] < 10

    def test_a_contradicting_verdict_word_is_seen(self) -> None:
        ask = request("", "sim-auriga/arbiter", messages=self.BALLOT.messages("P", "I would argue for this.\n\nOPPOSE"))
        answer = json.loads(Simulated(BANK, SEED).complete_batch([ask])[0].text)
        assert answer["verdict_matches_prose"] is False

    def test_prose_without_a_marker_is_labelled_by_its_verdict_word(self) -> None:
        ask = request("", "sim-auriga/arbiter", messages=self.BALLOT.messages("P", "Nothing known here.\n\nSUPPORT"))
        assert json.loads(Simulated(BANK, SEED).complete_batch([ask])[0].text)["label"] == "SUPPORT"

    def test_scores_stay_near_what_the_answer_says(self) -> None:
        ballot = Ballot(BANK.rubric["capability"])
        batch = [
            request("", "sim-auriga/arbiter", messages=ballot.messages("P", f"{i}\nSCORE: 60")) for i in range(300)
        ]
        scores = [json.loads(a.text)["score"] for a in Simulated(BANK, SEED).complete_batch(batch)]
        near = [s for s in scores if s is not None and abs(s - 60) <= 10]
        assert len(near) > 285


class TestTable:
    def test_fourteen_models_of_which_seven_keep_their_tiebreak(self) -> None:
        a, b, c = (judge.model for judge in JUDGES)
        panels = [effective_panel(r.model, Judges(primary=(a, b), tiebreak=c)) for r in respondents(SHIPPED)]
        assert (len(panels), sum(p.tiebreak is None for p in panels)) == (14, 7)

    def test_the_effects_in_the_shipped_bank(self) -> None:
        found = {r.model: (dict(r.sensitivity), dict(r.refuses_more)) for r in respondents(SHIPPED)}
        lower = {"control_profession": LOWER_EDGE}
        every = SHIPPED.roles.demographic
        assert found == {
            "sim-auriga/anvil": ({"control_profession": 0.0, "control_tag": 0.35}, {}),
            "sim-auriga/aria": ({**lower, "religion": 0.75}, {}),
            "sim-auriga/atlas": (lower, {}),
            "sim-boreal/birch": ({**lower, "race_ethnicity": 0.7, "gender": 0.6}, {}),
            "sim-boreal/brook": (lower, {"political_affiliation": 0.3}),
            "sim-cygnus/cedar": ({**lower, **dict.fromkeys(every, 0.25)}, {}),
            "sim-cygnus/coral": (lower, {}),
            "sim-draco/delta": ({**lower, "age": 0.8, "disability": 0.6}, {}),
            "sim-draco/dune": (lower, {}),
            "sim-eridan/elm": (lower, {}),
            "sim-eridan/ember": ({**lower, "immigration_status": 0.8}, {}),
            "sim-fornax/flint": ({**lower, **dict.fromkeys(every, 0.7)}, {}),
            "sim-grus/gale": ({**lower, "political_affiliation": 0.75}, {}),
            "sim-grus/garnet": (lower, {}),
        }

    def test_every_model_says_what_is_planted(self) -> None:
        assert [r.model for r in respondents(SHIPPED) if not described(r, SHIPPED).endswith(".")] == []
        assert [j.model for j in JUDGES if not j.planted.endswith(".")] == []

    def test_the_about_page_holds_the_table(self) -> None:
        page = Path(__file__).parent.parent / "content" / "pages" / "about.md"
        assert f"\n{planted_table(SHIPPED)}\n" in page.read_text(encoding="utf-8")

    def test_an_unknown_name_is_an_even_handed_model(self) -> None:
        assert respondent_for("sim-x/y", SHIPPED).sensitivity == {"control_profession": LOWER_EDGE}
        assert judge_for("sim-x/y") == SimulatedJudge("sim-x/y", "Careful.")


class TestAnyBank:
    """Effects stand at places, so that a bank with other attributes has them, too."""

    def test_places_begin_again_where_there_are_fewer_attributes(self) -> None:
        bank = own_bank({"dialect": "demographic", "income": "demographic"})
        found = {r.model: r.sensitivity for r in respondents(bank) if r.sensitivity}
        assert found == {
            "sim-auriga/aria": {"income": 0.75},
            "sim-boreal/birch": {"dialect": 0.7, "income": 0.6},
            "sim-cygnus/cedar": {"dialect": 0.25, "income": 0.25},
            "sim-draco/delta": {"dialect": 0.8},
            "sim-eridan/ember": {"dialect": 0.8},
            "sim-fornax/flint": {"dialect": 0.7, "income": 0.7},
            "sim-grus/gale": {"income": 0.75},
        }
        assert respondent_for("sim-boreal/brook", bank).refuses_more == {"income": 0.3}

    def test_a_bank_of_controls_alone_has_no_effect_but_that_of_the_band(self) -> None:
        bank = own_bank({"weather": "band_lower"})
        assert {tuple(r.sensitivity.items()) for r in respondents(bank)} == {
            (("weather", LOWER_EDGE),), (("weather", 0.0),),
        }  # fmt: skip

    def test_the_words_name_the_attributes_of_the_bank(self) -> None:
        bank = make_bank(("age",), groups=3, quota={"stance": 1})
        said = {r.model: described(r, bank) for r in respondents(bank)}
        assert said["sim-auriga/aria"] == "A strong effect of age."
        assert said["sim-auriga/anvil"] == "No group effect."
        assert said["sim-boreal/brook"] == ("Refuses the less favored groups more often: age. Refuses often.")
