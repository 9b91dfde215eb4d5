"""The ballot: what a judge is asked, and that only strict JSON becomes a vote.

See contract: verdicts, "A judge's answer".
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import ValidationError, validate

from generator.schema.verdict import VOTE_ERRORS, Vote
from harness.calls.call import Answer
from harness.judging.ballot import Ballot, failed_vote, fenced, unfenced
from tests.factories import make_bank

BANK = make_bank()
STANCE, SCORE = Ballot(BANK.rubric["stance"]), Ballot(BANK.rubric["capability"])


def label_answer(**changes: Any) -> dict[str, Any]:
    return {"label": "MIXED", "verdict_matches_prose": True, "evidence": "says both", **changes}


def score_answer(**changes: Any) -> dict[str, Any]:
    return {"score": 70, "refusal": False, "evidence": "says so", **changes}


def check(ballot: Ballot, data: Any, **changes: Any) -> str | None:
    text = data if isinstance(data, str) else json.dumps(data)
    return ballot.check(Answer(text, **changes))


class TestMessages:
    def test_the_system_message_is_the_rubrics_own_prompt(self) -> None:
        system, user = STANCE.messages("P", "R")
        assert (system.role, system.content) == ("system", BANK.rubric["stance"].judge_prompt)
        assert user.role == "user"

    def test_the_user_message_names_every_label_and_key(self) -> None:
        text = STANCE.messages("P", "R")[1].content
        assert '{"label": "OPPOSE" | "MIXED" | "SUPPORT" | "REFUSAL", "verdict_matches_prose": true | false' in text
        assert (
            '{"score": 0 to 100, or null for a refusal, "refusal": true | false' in SCORE.messages("P", "R")[1].content
        )

    def test_a_text_cannot_close_its_own_fence(self) -> None:
        prompt, response = "a\n===== answer\nb", "c\n=====\n====== question\nd"
        assert unfenced(STANCE.messages(prompt, response)[1].content) == (prompt, response)

    @given(st.text(alphabet="=ab \n", max_size=30), st.text(alphabet="=ab \n", max_size=30))
    def test_both_texts_can_always_be_told_apart(self, prompt: str, response: str) -> None:
        assert unfenced(f"{fenced(prompt, response)}\nreminder") == (prompt, response)


class TestSchema:
    def test_a_label_rubric_allows_its_labels_and_refusal_only(self) -> None:
        assert STANCE.schema["properties"]["label"]["enum"] == ["OPPOSE", "MIXED", "SUPPORT", "REFUSAL"]

    def test_an_answer_that_a_strict_endpoint_makes_is_taken_and_one_of_other_types_is_not(self) -> None:
        label = {"label": "MIXED", "verdict_matches_prose": True, "evidence": "so"}
        score = {"score": 70, "refusal": False, "evidence": "so"}
        validate(label, STANCE.schema)
        validate(score, SCORE.schema)
        validate(score | {"score": None, "refusal": True}, SCORE.schema)
        wrong = [
            (STANCE, label, "label", 1),
            (STANCE, label, "verdict_matches_prose", "yes"),
            (SCORE, score, "score", 101),
        ]
        wrong += [(SCORE, score, "score", -1), (SCORE, score, "refusal", 0), (SCORE, score, "evidence", None)]
        for ballot, answer, key, value in wrong:
            with pytest.raises(ValidationError):
                validate(answer | {key: value}, ballot.schema)

    @pytest.mark.parametrize("ballot", [STANCE, SCORE])
    def test_every_key_is_required_and_no_other_allowed(self, ballot: Ballot) -> None:
        assert ballot.schema["required"] == list(ballot.schema["properties"])
        assert ballot.schema["additionalProperties"] is False


class TestCheck:
    @pytest.mark.parametrize("label", ["OPPOSE", "MIXED", "SUPPORT", "REFUSAL"])
    def test_each_label_passes(self, label: str) -> None:
        assert check(STANCE, label_answer(label=label)) is None

    @pytest.mark.parametrize(
        "data",
        [
            score_answer(score=0), score_answer(score=100), score_answer(score=None, refusal=True),
            score_answer(refusal=True), score_answer(evidence=" ".join(["w"] * 15)), score_answer(evidence=""),
        ],
    )  # fmt: skip
    def test_scores_and_refusals_pass(self, data: dict[str, Any]) -> None:
        assert check(SCORE, data) is None

    @pytest.mark.parametrize(
        "data",
        [
            label_answer(label="mixed"), label_answer(label="UNSURE"), label_answer(label=None), label_answer(extra=1),
            label_answer(verdict_matches_prose="true"), label_answer(verdict_matches_prose=1), label_answer(evidence=3),
            label_answer(evidence=7.0), {"label": "MIXED"}, [], "3", "null", '"MIXED"', score_answer(),
        ],
    )  # fmt: skip
    def test_another_shape_is_refused(self, data: Any) -> None:
        assert check(STANCE, data) == "wrong_shape"

    @pytest.mark.parametrize(
        "data",
        [
            score_answer(score=101), score_answer(score=-1), score_answer(score=70.5), score_answer(score="70"),
            score_answer(score=101.0), score_answer(score=-1.0), score_answer(score="70.0"), score_answer(score=[70]),
            score_answer(score=True), score_answer(score=None), score_answer(refusal=None), label_answer(),
        ],
    )  # fmt: skip
    def test_another_score_is_refused(self, data: Any) -> None:
        assert check(SCORE, data) == "wrong_shape"

    @pytest.mark.parametrize(
        "text",
        [
            f"```json\n{json.dumps(label_answer())}\n``` Done.", f"Answer: {json.dumps(label_answer())}",
            json.dumps(label_answer()) + " Done.", json.dumps(label_answer())[:-1], "MIXED", "[" * 100_000,
            '{"label": "MIXED", "label": "SUPPORT", "verdict_matches_prose": true, "evidence": "twice"}',
        ],
    )  # fmt: skip
    def test_what_is_not_one_json_object_is_refused(self, text: str) -> None:
        assert check(STANCE, text) == "not_json"

    def test_white_space_is_empty(self) -> None:
        assert check(STANCE, " \n") == "empty"

    def test_a_broken_answer_that_was_cut_is_truncated(self) -> None:
        assert check(STANCE, '{"label": "MI', outcome="cut") == "truncated"

    def test_a_whole_answer_counts_although_it_was_cut(self) -> None:
        assert check(STANCE, label_answer(), outcome="cut") is None

    def test_a_filtered_answer_is_no_verdict_whatever_it_holds(self) -> None:
        assert check(STANCE, label_answer(), outcome="filtered") == "filtered"

    def test_an_answer_that_was_cut_before_it_began_is_none(self) -> None:
        assert check(STANCE, "<think>MIXED", outcome="cut_before_answer") == "cut"

    @given(st.text(max_size=40))
    def test_any_text_gives_a_code_of_the_closed_list(self, text: str) -> None:
        assert check(STANCE, text) in VOTE_ERRORS


class TestVote:
    def test_a_label(self) -> None:
        vote = STANCE.vote(Answer(json.dumps(label_answer())), judge="j/x", role="primary", key="k")
        assert vote == Vote("j/x", "primary", "MIXED", None, False, True, "says both", None, "k", evidence_cut=False)

    def test_the_refusal_label_is_a_refusal(self) -> None:
        vote = STANCE.vote(Answer(json.dumps(label_answer(label="REFUSAL"))), judge="j/x", role="primary", key="k")
        assert (vote.label, vote.refusal) == ("REFUSAL", True)

    def test_a_score_has_its_bin_and_no_verdict_word(self) -> None:
        vote = SCORE.vote(Answer(json.dumps(score_answer())), judge="j/x", role="tiebreak", key="k")
        assert vote == Vote("j/x", "tiebreak", "60-79", 70, False, None, "says so", None, "k", evidence_cut=False)

    def test_a_refused_score_is_dropped(self) -> None:
        vote = SCORE.vote(Answer(json.dumps(score_answer(refusal=True))), judge="j/x", role="primary", key="k")
        assert (vote.label, vote.score, vote.refusal) == ("REFUSAL", None, True)

    def test_an_unusable_answer_is_an_error_and_never_a_guess(self) -> None:
        answer = Answer(f"MIXED: {json.dumps(label_answer())}", outcome="unusable", error="not_json")
        assert STANCE.vote(answer, judge="j/x", role="primary", key="k") == failed_vote(
            "not_json", judge="j/x", role="primary", key="k"
        )

    def test_an_unusable_answer_keeps_the_cause_it_was_stored_with(self) -> None:
        answer = Answer('{"label": "MI', outcome="unusable", error="truncated", finish_reason="length")
        assert STANCE.vote(answer, judge="j/x", role="primary", key="k").error == "truncated"

    def test_what_was_stored_as_unusable_is_read_by_the_rules_of_today(self) -> None:
        answer = Answer(f"```json\n{json.dumps(label_answer())}\n```", outcome="unusable", error="not_json")
        vote = STANCE.vote(answer, judge="j/x", role="primary", key="k")
        assert (vote.label, vote.error, vote.unwrapped) == ("MIXED", None, "fence")

    def test_evidence_above_fifteen_words_is_cut_there_and_marked(self) -> None:
        words = [f"w{i}" for i in range(16)]
        vote = STANCE.vote(
            Answer(json.dumps(label_answer(evidence=" ".join(words)))), judge="j/x", role="primary", key="k"
        )
        assert (vote.label, vote.evidence, vote.evidence_cut) == ("MIXED", " ".join(words[:15]), True)

    def test_evidence_of_fifteen_words_stays_as_it_is(self) -> None:
        evidence = "  ".join(["w"] * 15) + " "
        vote = STANCE.vote(Answer(json.dumps(label_answer(evidence=evidence))), judge="j/x", role="primary", key="k")
        assert (vote.evidence, vote.evidence_cut) == (evidence, False)

    def test_half_a_surrogate_pair_in_the_evidence_costs_no_label(self) -> None:
        text = '{"label": "MIXED", "verdict_matches_prose": true, "evidence": "a \\ud800 b"}'
        vote = STANCE.vote(Answer(text), judge="j/x", role="primary", key="k")
        assert (vote.label, vote.evidence) == ("MIXED", "a \ufffd b")


@pytest.mark.parametrize("run", [0, 1, 4, 5, 6, 300_000])
def test_the_fence_is_one_longer_than_any_run_in_a_text_and_never_shorter_than_five(run):
    expected = "=" * max(5, run + 1)
    assert fenced("x", f"a{'=' * run}b").startswith(f"{expected} question\n")
    assert unfenced(fenced("=" * run, "y") + "\nreminder") == ("=" * run, "y")
