"""Packaging comes off a judge's reply, and nothing else does (contract: verdicts, "Packaging of a verdict")."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.schema.bank import Bank
from generator.schema.verdict import UNWRAPPED, VOTE_ERRORS
from harness.calls.call import Answer
from harness.calls.reply_text import with_calls
from harness.judging.ballot import Ballot
from harness.judging.verdict_text import NO_JSON, cut_evidence, in_order, read_verdict, whole_number
from tests.factories import make_bank

ROOT = Path(__file__).parent.parent
BANK: Bank = make_bank()
STANCE, SCORE = Ballot(BANK.rubric["stance"]), Ballot(BANK.rubric["capability"])
VERDICT = {"label": "OPPOSE", "verdict_matches_prose": True, "evidence": "it's `so`"}
JSON = json.dumps(VERDICT)
PACKED = {
    "as it is": (JSON, None),
    "white space around": (f"\n {JSON}\r\n", None),
    "a fence": (f"```json\n{JSON}\n```", "fence"),
    "a fence without a language": (f"```\n{JSON}\n```\n", "fence"),
    "a fence on one line": (f"```{JSON}```", "fence"),
    "a longer fence": (f"````json\n{JSON}\n````", "fence"),
    "a fence of tildes": (f"~~~ json\n{JSON}\n~~~", "fence"),
    "a thought": (f"<think>Hm {{}}</think>\n{JSON}", "thought"),
    "a thought without its opening": (f"Hm.\n</think>\n\n{JSON}", "thought"),
    "a harmony frame": (f"<|channel|>analysis<|message|>x<|end|><|channel|>final<|message|>{JSON}", "thought"),
    "a stop token": (f"{JSON}<|im_end|>", "stop_token"),
    "stop tokens": (f"{JSON} </s>\n<|eot_id|>", "stop_token"),
    "a tool call": (with_calls("", (("label", JSON),)), "tool_call"),
    "a tool call with a fence in it": (with_calls(" ", (("label", f"```json\n{JSON}\n```"),)), "fence;tool_call"),
    "everything": (f"<think>x</think>```json\n{JSON}\n```<|im_end|>", "fence;thought;stop_token"),
    "a stop token in the fence": (f"```json\n{JSON}<|end|>\n```", "fence;stop_token"),
}
BROKEN = {
    "two objects": JSON + JSON,
    "two fences": f"```json\n{JSON}\n```\n```json\n{JSON}\n```",
    "words before": f"Here it is: {JSON}",
    "words after": f"{JSON} Done.",
    "words around a fence": f"Sure:\n```json\n{JSON}\n```",
    "a fence in a fence": f"````\n```json\n{JSON}\n```\n````",
    "a fence that stays open": f"```json\n{JSON}",
    "a doubled key": '{"label": "OPPOSE", "label": "MIXED", "verdict_matches_prose": true, "evidence": ""}',
    "a doubled key in a fence": '```\n{"label": "OPPOSE", "label": "MIXED", "evidence": ""}\n```',
    "an open thought": f"<think>{JSON}",
    "two tool calls": with_calls("", (("label", JSON), ("label", JSON))),
    "a tool call beside a text": with_calls("I say MIXED", (("label", JSON),)),
    "a tool call written by the model": f'{{"name": "label", "arguments": {JSON}}}',
    "arguments that are no text": f'{{"tool_calls": [{{"name": "x", "arguments": {JSON}}}]}}',
    "a comment": JSON[:-1] + "} // so",
    "single quotes": str(VERDICT),
    "a number without an end": f'{{"score": {"9" * 5_000}, "refusal": false, "evidence": ""}}',
    "NaN": '{"score": NaN, "refusal": false, "evidence": ""}',
    "too deep": "[" * 100_000,
    "a trailing comma": JSON[:-1] + ",}",
    "a list": f"[{JSON}]",
}  # fmt: skip


def vote(text: str, ballot: Ballot = STANCE) -> Any:
    return ballot.vote(Answer(text), judge="j/x", role="primary", key="k")


# As model cards and chat templates of open models have them.
STOP_TOKENS = [
    "<|im_end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|end_of_turn|>",
    "<|END_OF_TURN_TOKEN|>",
    "<|user|>",
    "<|observation|>",
    "<|endofprompt|>",
    "<|stop|>",
    "<end_of_turn>",
    "<turn|>",
    "<eos>",
    "</s>",
    "[EOS]",
    "[/INST]",
    "<｜end▁of▁sentence｜>",
    "<|EOT|>",
    "<EOT>",
    "<|eos|>",
    "<|end_of_sentence|>",
    "<|role_end|>",
    "<|eom|>",
    "<|eot|>",
    "<|end_of_role|>",
    "<|end_of_box|>",
]


class TestPackaging:
    @pytest.mark.parametrize("token", STOP_TOKENS)
    def test_every_stop_token_comes_off(self, token: str) -> None:
        found = vote(JSON + token)
        assert (found.label, found.unwrapped) == ("OPPOSE", "stop_token")

    @pytest.mark.parametrize(("text", "off"), PACKED.values(), ids=PACKED.keys())
    def test_it_comes_off_and_is_noted(self, text: str, off: str | None) -> None:
        found = vote(text)
        assert (found.label, found.evidence, found.error, found.unwrapped) == ("OPPOSE", "it's `so`", None, off)

    @pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
    @pytest.mark.parametrize("ballot", [STANCE, SCORE])
    def test_what_would_have_to_be_guessed_is_an_error(self, text: str, ballot: Ballot) -> None:
        found = vote(text, ballot)
        assert found.error in ("not_json", "wrong_shape", "cut")
        assert (found.label, found.unwrapped, found.evidence_cut) == (None, None, None)

    def test_what_was_taken_off_stands_in_the_order_of_the_closed_list(self) -> None:
        assert in_order(frozenset(UNWRAPPED)) == "fence;thought;stop_token;tool_call;number_form"
        assert in_order(frozenset()) is None

    @pytest.mark.parametrize(
        "evidence", ["```", "</think>", "<think>", "ends with <|im_end|>", "x</s>", '{"a": 1}', "```json"]
    )
    def test_evidence_that_looks_like_packaging_stays(self, evidence: str) -> None:
        found = vote(json.dumps({**VERDICT, "evidence": evidence}))
        assert (found.evidence, found.unwrapped) == (evidence, None)


class TestNumbers:
    @pytest.mark.parametrize(
        ("digits", "score", "off"),
        [
            ("70", 70, None),
            ("70.0", 70, "number_form"),
            ("7e1", 70, "number_form"),
            ("0.0", 0, "number_form"),
            ("-0.0", 0, "number_form"),
            ("1E+2", 100, "number_form"),
        ],
    )
    def test_a_whole_number_is_one_in_any_form(self, digits: str, score: int, off: str | None) -> None:
        found = vote(f'{{"score": {digits}, "refusal": false, "evidence": "so"}}', SCORE)
        assert (found.score, found.error, found.unwrapped) == (score, None, off)

    @pytest.mark.parametrize(
        "digits",
        [
            "70.5",
            "70.00000000000000001",
            "100.0000000000000000001",
            "-1.0",
            "101.0",
            "1e3",
            "1e999999999",
            "1e-9",
            '"70.0"',
            "true",
            "[70.0]",
            "-1e400",
        ],
    )
    def test_any_other_is_an_error(self, digits: str) -> None:
        assert vote(f'{{"score": {digits}, "refusal": false, "evidence": "so"}}', SCORE).error == "wrong_shape"

    @given(st.decimals(allow_nan=False))
    def test_only_whole_numbers_in_range_change(self, value: Decimal) -> None:
        found = whole_number(value)
        assert found is value or (isinstance(found, int) and found == value and 0 <= found <= 100)


class TestEvidence:
    @given(st.text(), st.integers(1, 4), st.integers(1, 12))
    def test_it_is_a_beginning_within_both_bounds(self, text: str, words: int, characters: int) -> None:
        kept, cut = cut_evidence(text, words, characters)
        assert text.startswith(kept)
        assert len(kept.split()) <= words
        assert len(kept) <= characters
        assert cut == (kept != text)

    def test_a_word_without_an_end_is_cut(self) -> None:
        found = vote(json.dumps({**VERDICT, "evidence": "x" * 1_000_000}))
        assert (len(found.evidence), found.evidence_cut, found.label) == (400, True, "OPPOSE")


PIECES = [
    "```", "json", "\n", JSON, JSON[:20], "<think>", "</think>", "<|im_end|>", "</s>", '{"tool_calls": [', "]}",
    "\ud800", "\\ud800", "70.0", "NaN", "[" * 50, "null", '"', "{", "}", "\x00", "9" * 50,
]  # fmt: skip
KEYS = st.sampled_from(["label", "score", "evidence", "refusal", "tool_calls", "arguments", "name"])
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
    max_leaves=20,
)


class TestHostile:
    @given(st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=12).map("".join))
    def test_any_text_is_a_vote_or_an_error_of_the_closed_list(self, text: str) -> None:
        for ballot in (STANCE, SCORE):
            for outcome in ("answered", "cut", "unusable"):
                found = ballot.vote(Answer(text, outcome=outcome), judge="j/x", role="primary", key="k")
                assert (found.error is None) == (found.label is not None)
                assert found.error is None or found.error in VOTE_ERRORS
                json.dumps(found.evidence or "", ensure_ascii=False).encode()

    @given(ANY_JSON)
    def test_any_json_is_a_vote_or_an_error(self, data: Any) -> None:
        found = vote(json.dumps(data), SCORE)
        assert (found.error is None) == (found.label is not None)

    def test_nothing_is_no_json(self) -> None:
        assert read_verdict("") == (NO_JSON, frozenset())


class TestLength:
    """What a reply is made of does not decide how long it takes to read; its length does."""

    @pytest.mark.parametrize(
        "make",
        [
            lambda n: "```" + " " * n + "x", lambda n: "`" * n, lambda n: "</s>" * (n // 4), lambda n: " " * n + "x",
            lambda n: "```json\n" * (n // 8), lambda n: "```" + "\n" * n + "```x", lambda n: "[" * n,
        ],
    )  # fmt: skip
    def test_a_long_reply_is_read_in_a_child_with_a_time_limit(self, make):
        # In a child, so that a reply that takes for ever fails this test and does not hang it.
        code = f"from harness.judging.verdict_text import read_verdict; read_verdict({make(300_000)!r})"
        subprocess.run([sys.executable, "-"], input=code, text=True, check=True, timeout=30, cwd=ROOT)


@pytest.mark.parametrize("number", ["1e9999999999999999999", "1e-9999999999999999999", "-1E+99999999999999999999"])
def test_a_number_beyond_all_bounds_is_no_verdict(number):
    found = read_verdict(f'{{"label": {number}, "verdict_matches_prose": true, "evidence": "x"}}')
    assert found == (NO_JSON, frozenset())
