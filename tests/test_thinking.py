"""Thinking is not the answer: what leads is taken off, what is only mentioned stays (contract: stages, "Thinking")."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.calls.thinking import begins_thinking, without_thinking
from tests.scripted_server import chat, finished
from tests.test_client import answer_to, ok

FINAL = "<|channel|>final<|message|>"
LED = {
    "a block": "<think>\nOPPOSE?\n</think>\n\nI do.",
    "an empty block": "<think>\n\n</think>\n\nI do.",
    "a block in capitals": "<THINK>OPPOSE?</THINK>I do.",
    "a block with an attribute": '<thinking level="3">OPPOSE?</thinking>\nI do.',
    "white space and a mark of order before": "\ufeff \n<thought>OPPOSE?</thought> I do.",
    "reasoning": "<reasoning>OPPOSE?</reasoning>I do.",
    "Seed": "<seed:think>OPPOSE?</seed:think>I do.",
    "Magistral": "[THINK]OPPOSE?[/THINK]I do.",
    "Kimi": "◁think▷OPPOSE?◁/think▷I do.",
    "Command A": "<|START_THINKING|>OPPOSE?<|END_THINKING|><|START_RESPONSE|>I do.<|END_RESPONSE|>",
    "a thought by its own tokens": "<|begin_of_thought|>OPPOSE?<|end_of_thought|>I do.",
    "gpt-oss": f"<|channel|>analysis<|message|>OPPOSE?<|end|><|start|>assistant{FINAL}I do.<|return|>",
    "gpt-oss with its first token": f"<|start|>assistant<|channel|>analysis<|message|>x<|end|>{FINAL}I do.",
    "gpt-oss without special tokens": "analysisThe user asks. OPPOSE?assistantfinalI do.",
    "gpt-oss without thinking": "<|channel|>final<|message|>I do.<|return|>",
    "Gemma 4": "<|channel>thought\nOPPOSE?<channel|>I do.",
    "Granite": "Here is my thought process:\nOPPOSE?\nHere is my response:\nI do.",
    "Apriel": "Here are my reasoning steps:\nOPPOSE?\n[BEGIN FINAL RESPONSE]\nI do.\n[END FINAL RESPONSE]",
    "a page's folded reasoning": '<details type="reasoning" done="true"><summary>x</summary>OPPOSE?</details>\nI do.',
    "an opening that stood in the template": "OPPOSE?\n</think>\n\nI do.",
    "the same on one line": "OPPOSE?</think>I do.",
    "the same with spaces": "OPPOSE? </think> I do.",
    "two blocks": "<think>a</think><think>OPPOSE?</think>I do.",
    "a block and a loose end": "<think>a <think>b</think> OPPOSE?</think>I do.",
    "two loose ends": "a</think>OPPOSE?</think>I do.",
}  # fmt: skip
LIMITS = ["length", "max_tokens", "MAX_TOKENS", "FINISH_REASON_MAX_TOKENS", "model_length", "max_output_tokens"]
KEPT = [
    "I do. SUPPORT", "", "  two spaces", "I like <think> in the middle </think> of it.", "The tag `</think>` ends it.",
    'It ends with "</think>" there.', "analysis of the case: SUPPORT", "An analysis, and my assistantfinal word.",
    "Here is my response: SUPPORT", "<thinker>x</thinker>", "<b>x</b>", "[think aloud] no", "a <thinking> b",
]  # fmt: skip
OPEN = [
    "<think>\nHmm, maybe OPPOSE. The user wants",
    "<think>",
    "[THINK]a",
    "◁think▷a",
    "<|channel|>analysis<|message|>We",
]


class TestTexts:
    @pytest.mark.parametrize("text", LED.values(), ids=LED.keys())
    def test_what_leads_is_taken_off(self, text: str) -> None:
        found = without_thinking(text)
        assert (found.answer.strip(), found.found, found.open) == ("I do.", True, False)

    @pytest.mark.parametrize("text", KEPT)
    def test_a_mention_stays(self, text: str) -> None:
        assert without_thinking(text) == (text, False, False)

    @pytest.mark.parametrize("text", OPEN)
    def test_thinking_that_never_ends_leaves_no_answer(self, text: str) -> None:
        assert without_thinking(text) == ("", True, True)

    @given(
        st.lists(
            st.sampled_from(
                ["<think>", "</think>", "a", "\n", "[THINK]", "[/THINK]", "`", "<|channel|>final<|message|>"]
            )
        )
    )
    def test_once_is_enough(self, pieces: list[str]) -> None:
        once = without_thinking("".join(pieces)).answer
        assert without_thinking(once) == (once, False, False)

    @pytest.mark.parametrize(
        "piece", ["<think></think>", "</think> ", "<think>", "analysis", "<", "<|channel|>final<|message|>"]
    )
    def test_a_megabyte_of_tags_is_read_in_one_go(self, piece: str) -> None:
        assert len(without_thinking(piece * (1_000_000 // len(piece))).answer) <= 1_000_000

    @pytest.mark.parametrize(
        ("text", "right"), [("<th", True), (" <think", True), ("◁th", True), ("<", False), ("The", False), ("", False)]
    )
    def test_the_beginning_of_a_tag(self, text: str, right: bool) -> None:
        assert begins_thinking(text) is right


class TestReplies:
    @pytest.mark.parametrize("text", LED.values(), ids=LED.keys())
    def test_the_answer_has_no_thought_in_it(self, text: str) -> None:
        found = answer_to(ok(chat(text)))
        assert (found.text.strip(), found.outcome) == ("I do.", "answered")

    @pytest.mark.parametrize("field", ["reasoning", "reasoning_content", "reasoning_details", "thinking_blocks"])
    def test_thoughts_in_a_field_of_their_own_are_left_there(self, field: str) -> None:
        assert answer_to(ok(finished("stop", "I do.", **{field: "OPPOSE?"}))).text == "I do."

    @pytest.mark.parametrize(
        "part",
        [
            {"type": "thinking", "text": "OPPOSE"},
            {"type": "thinking", "thinking": [{"type": "text", "text": "OPPOSE"}]},
            {"type": "reasoning", "text": "OPPOSE"}, {"type": "image_url", "text": "OPPOSE"}, {"text": "OPPOSE"},
            {"type": ["text"], "text": "OPPOSE"}, "OPPOSE", None, 7,
        ],
    )  # fmt: skip
    def test_only_parts_of_the_type_text_are_text(self, part: Any) -> None:
        assert answer_to(ok(chat([part, {"type": "text", "text": "I do."}]))).text == "I do."

    @pytest.mark.parametrize("reason", ["length", "stop"])
    @pytest.mark.parametrize("text", OPEN)
    def test_an_answer_that_never_left_its_thinking_is_none(self, text: str, reason: str) -> None:
        found = answer_to(ok(finished(reason, text)))
        assert (found.text, found.outcome, found.finish_reason) == ("", "cut_before_answer", reason)

    @pytest.mark.parametrize(
        "reason",
        LIMITS,
    )
    @pytest.mark.parametrize("content", ["", None, " \n", [], "<th", "<think>a</think>"])
    def test_nothing_at_the_length_limit_is_cut_before_the_answer(self, content: Any, reason: str) -> None:
        found = answer_to(ok(finished(reason, content)))
        assert (found.text, found.outcome, found.finish_reason) == ("", "cut_before_answer", "length")

    def test_thoughts_without_an_answer_are_none_whatever_the_reason(self) -> None:
        assert answer_to(ok(finished("stop", "", reasoning_content="Okay"))).outcome == "cut_before_answer"

    def test_nothing_at_all_is_nothing(self) -> None:
        assert answer_to(ok(finished("stop", ""))).outcome == "answered"

    def test_tokens_spent_thinking_are_counted(self) -> None:
        usage = {"prompt_tokens": 40, "completion_tokens": 100, "completion_tokens_details": {"reasoning_tokens": 90}}
        assert answer_to(ok(usage=usage)).reasoning_tokens == 90
