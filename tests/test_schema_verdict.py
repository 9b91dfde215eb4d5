"""The final-label rule (contract: verdicts, "Final label"), by hand and by laws that hold for any votes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.schema.bank import Label, Rubric
from generator.schema.verdict import VOTE_ERRORS, Verdict, Vote, filter_word, final_verdict, primaries_agree, score_bin
from tests.factories import LABELS, make_rubric

STANCE = Rubric.model_validate(make_rubric("stance"))
SCORE = Rubric.model_validate(make_rubric("capability"))


def vote(answer: str | int | None, judge: str = "a/b") -> Vote:
    """A vote from its answer: a label, a score, "REFUSAL", or None for an error."""
    if answer is None:
        return Vote(judge, "primary", None, None, None, None, None, "not_json", None)
    if isinstance(answer, int):
        return Vote(judge, "primary", score_bin(answer), answer, False, None, "e", None, "k")
    return Vote(judge, "primary", answer, None, answer == "REFUSAL", None, "e", None, "k")


def test_the_error_codes_are_those_of_the_contract():
    text = (Path(__file__).parents[1] / "docs" / "contract" / "receipts.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` ", text.partition("## Error codes")[2].partition("\n## ")[0], flags=re.M)
    assert list(VOTE_ERRORS) == listed


def final(rubric: Rubric, *answers: str | int | None) -> tuple[str | None, float | None, str]:
    verdict = final_verdict([vote(a) for a in answers], rubric)
    return verdict.label, verdict.value, verdict.status


class TestLabelRubric:
    @pytest.mark.parametrize(
        ("answers", "expected"),
        [
            (("SUPPORT", "SUPPORT"), ("SUPPORT", 1.0, "scored")),
            (("REFUSAL", "REFUSAL"), ("REFUSAL", None, "refused")),
            (("SUPPORT", "MIXED"), (None, None, "contested")),
            (("SUPPORT", "MIXED", "MIXED"), ("MIXED", 0.5, "scored")),
            (("SUPPORT", "MIXED", "OPPOSE"), (None, None, "contested")),
            (("REFUSAL", "MIXED", "REFUSAL"), ("REFUSAL", None, "refused")),
            (("SUPPORT", "MIXED", None), (None, None, "contested")),
            ((None, "MIXED"), (None, None, "error")),
            (("SUPPORT", None, "SUPPORT"), (None, None, "error")),
        ],
    )
    def test_known_panels(self, answers, expected):
        assert final(STANCE, *answers) == expected


class TestScoreRubric:
    @pytest.mark.parametrize(
        ("answers", "expected"),
        [
            ((70, 80), ("60-79", 0.75, "scored")),
            ((70, 81), (None, None, "contested")),
            (("REFUSAL", "REFUSAL"), ("REFUSAL", None, "refused")),
            ((70, "REFUSAL"), (None, None, "contested")),
            ((70, "REFUSAL", 78), ("60-79", 0.74, "scored")),
            ((70, "REFUSAL", 80), ("60-79", 0.75, "scored")),
            ((70, "REFUSAL", "REFUSAL"), ("REFUSAL", None, "refused")),
            ((70, "REFUSAL", 81), (None, None, "contested")),
            ((10, 90, 50), (None, None, "contested")),
            # 40 and 46 are 6 apart, 46 and 55 are 9 apart: the closest pair decides.
            ((40, 55, 46), ("40-59", 0.43, "scored")),
            # 40, 48, 56: two pairs 8 apart, so the middle score is final.
            ((40, 56, 48), ("40-59", 0.48, "scored")),
            # The mean 79.5 is binned unrounded.
            ((79, 80), ("60-79", 0.795, "scored")),
            ((100, 100), ("80-100", 1.0, "scored")),
            ((0, 0), ("0-19", 0.0, "scored")),
            ((0, 20, None), (None, None, "contested")),
        ],
    )
    def test_known_panels(self, answers, expected):
        assert final(SCORE, *answers) == expected

    @pytest.mark.parametrize("rubric", [STANCE, SCORE])
    @pytest.mark.parametrize("answers", [(), ("REFUSAL",)])
    def test_fewer_than_two_votes_are_an_error(self, rubric, answers):
        assert final(rubric, *answers) == (None, None, "error")

    @pytest.mark.parametrize(
        ("answers", "expected"),
        [
            ((62,), ("60-79", 0.62, "scored")),
            (("REFUSAL",), ("REFUSAL", None, "refused")),
            ((None,), (None, None, "error")),
            ((), (None, None, "error")),
        ],
    )
    def test_the_only_judge_of_an_import_decides(self, answers, expected):
        found = final_verdict([vote(a) for a in answers], SCORE, primaries=1)
        assert (found.label, found.value, found.status) == expected

    def test_a_score_of_zero_is_not_a_refusal(self):
        assert not primaries_agree([vote(0), vote("REFUSAL")], SCORE)


answers = st.one_of(st.none(), st.just("REFUSAL"), st.integers(0, 100))
labels = st.sampled_from([None, "REFUSAL", *(label for label, _ in LABELS["stance"])])


class TestLaws:
    @given(a=labels, b=labels)
    def test_two_label_votes_commute(self, a, b):
        assert final(STANCE, a, b) == final(STANCE, b, a)

    @given(a=answers, b=answers)
    def test_two_score_votes_commute(self, a, b):
        assert final(SCORE, a, b) == final(SCORE, b, a)

    @given(votes=st.lists(answers, min_size=2, max_size=3))
    def test_value_and_label_stand_or_fall_with_scored(self, votes):
        label, value, status = final(SCORE, *votes)
        assert (value is not None) == (status == "scored")
        assert (label is None) == (status in ("contested", "error"))
        if value is not None:
            assert 0 <= value <= 1

    @given(votes=st.lists(st.integers(0, 100), min_size=3, max_size=3))
    def test_a_scored_mean_lies_within_five_points_of_two_votes(self, votes):
        _, value, status = final(SCORE, *votes)
        if status == "scored":
            assert sum(abs(v - 100 * value) <= 5 + 1e-9 for v in votes) >= 1

    def test_a_label_takes_the_value_of_its_rubric(self):
        odd = STANCE.model_copy(update={"labels": (Label(label="LOW", value=0.25), Label(label="HIGH", value=0.75))})
        assert final_verdict([vote("HIGH"), vote("HIGH")], odd) == Verdict("HIGH", 0.75, "scored")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("content_filter", "content_filter"),
        ("  two\n words\t", "two words"),
        ("a\x00b\u202ec", "a b c"),
        ("", None),
        (" \x1b ", None),
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 80),
        ("x" * 79 + " y", "x" * 79),  # cut at a space, which goes too
    ],
)
def test_a_vendors_word_for_its_filter(text, expected):
    assert filter_word(text) == expected


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (0, "0-19"),
        (19.5, "0-19"),
        (20, "20-39"),
        (39.9, "20-39"),
        (40, "40-59"),
        (60, "60-79"),
        (79.9, "60-79"),
        (80, "80-100"),
        (100, "80-100"),
    ],
)
def test_score_bin_edges(score, expected):
    assert score_bin(score) == expected
