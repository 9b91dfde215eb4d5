"""Every word by which a vendor says that its filter acted, through a real server: filtered, asked once, the word kept.

See contract: stages, "Refusals by a vendor".
"""

from __future__ import annotations

from typing import Any

import pytest

from harness.calls.refusals import FILTER_WORDS, FilterWord, error_word, finish_word
from tests.scripted_server import Reply, chat, finished
from tests.test_client import answer_to, failure_of, ok

IN = {place: [row for row in FILTER_WORDS if place in row.places] for place in ("finish", "code", "message", "flag")}
WORDINGS = [str, str.lower, str.upper, "FINISH_REASON_{}".format, "{}: SAFETY".format, "{} (stop)".format]


def error_body(**fields: Any) -> dict[str, Any]:
    return {"error": {"message": "No.", "type": "invalid_request_error", **fields}}


def flagged(row: FilterWord) -> dict[str, Any]:
    *outer, name = row.word.split(".")
    entry: dict[str, Any] = {name: True}
    for above in reversed(outer):
        entry = {above: entry}
    return entry


class TestEveryRow:
    def test_every_place_has_rows(self) -> None:
        assert all(IN.values())

    def test_no_word_stands_twice(self) -> None:
        words = [row.word.lower() for row in FILTER_WORDS]
        assert len(set(words)) == len(words)

    @pytest.mark.parametrize("row", IN["finish"], ids=lambda row: row.word)
    def test_a_finish_reason_of_the_table_is_a_refusal(self, row: FilterWord) -> None:
        found = answer_to(ok(finished(row.word, None)))
        assert (found.text, found.outcome, found.filter_word) == ("", "filtered", row.word)

    @pytest.mark.parametrize("row", IN["finish"], ids=lambda row: row.word)
    @pytest.mark.parametrize("wording", WORDINGS)
    def test_in_any_case_and_with_any_beginning_or_ending(self, row: FilterWord, wording: Any) -> None:
        assert finish_word(wording(row.word)) == wording(row.word)

    @pytest.mark.parametrize("status", [400, 403, 422, 451])
    @pytest.mark.parametrize("row", IN["code"], ids=lambda row: row.word)
    def test_a_code_of_the_table_at_such_a_status_is_a_refusal(self, row: FilterWord, status: int) -> None:
        found = answer_to(Reply(status, error_body(code=row.word)))
        assert (found.text, found.outcome, found.filter_word) == ("", "filtered", row.word)
        assert (found.prompt_tokens, found.completion_tokens) == (0, 0)

    @pytest.mark.parametrize("row", IN["code"], ids=lambda row: row.word)
    def test_a_code_of_the_table_inside_a_200_is_a_refusal(self, row: FilterWord) -> None:
        assert answer_to(ok(error_body(code=row.word))).filter_word == row.word

    @pytest.mark.parametrize("row", IN["message"], ids=lambda row: row.word)
    def test_a_message_of_the_table_is_a_refusal_although_the_code_says_nothing(self, row: FilterWord) -> None:
        reply = Reply(
            400, error_body(message=f"<400> {row.word.upper()}: see the policy", code="invalid_request_error")
        )
        assert answer_to(reply).filter_word == row.word

    @pytest.mark.parametrize("row", IN["flag"], ids=lambda row: row.word)
    def test_a_flag_of_the_table_is_a_refusal(self, row: FilterWord) -> None:
        assert answer_to(Reply(403, error_body(**flagged(row)))).filter_word == row.word
        assert answer_to(ok({"choices": [], **flagged(row)})).filter_word == row.word


# As vendors are documented or reported to send them: what comes, and the word that is kept.
AS_SENT = [
    (
        "Gemini's compatible layer",
        ok(finished("content_filter: PROHIBITED_CONTENT", None)),
        "content_filter: PROHIBITED_CONTENT",
    ),
    (
        "a router with the vendor's own reason",
        ok({"choices": [{"finish_reason": "stop", "native_finish_reason": "SAFETY", "message": {"content": None}}]}),
        "SAFETY",
    ),
    (
        "a router's error of a filtered answer",
        ok({"choices": [{"finish_reason": "error", "native_finish_reason": "refusal", "error": {"code": 502}}]}),
        "refusal",
    ),
    ("Gemini's blocked prompt", ok({"choices": None, "promptFeedback": {"blockReason": "OTHER"}}), "OTHER"),
    (
        "Azure",
        Reply(
            400,
            error_body(
                code="content_filter",
                innererror={
                    "code": "ResponsibleAIPolicyViolation",
                    "content_filter_result": {"hate": {"filtered": True}},
                },
            ),
        ),
        "content_filter",
    ),
    (
        "Azure's inner code alone",
        Reply(400, error_body(code=None, innererror={"code": "ResponsibleAIPolicyViolation"})),
        "ResponsibleAIPolicyViolation",
    ),
    (
        "Alibaba with its code run together",
        Reply(400, {"code": "DataInspectionFailed", "message": "x"}),
        "DataInspectionFailed",
    ),
    (
        "ByteDance with a subclass",
        Reply(400, error_body(code="SensitiveContentDetected.Violence")),
        "SensitiveContentDetected.Violence",
    ),
    (
        "ByteDance with a beginning",
        Reply(400, error_body(code="InputTextSensitiveContentDetected")),
        "InputTextSensitiveContentDetected",
    ),
    (
        "Zhipu",
        Reply(400, {"contentFilter": [{"role": "user", "level": 1}], "error": {"code": "1301", "message": "x"}}),
        "1301",
    ),
    ("MiniMax", ok({"choices": None, "base_resp": {"status_code": 1026, "status_msg": "input new_sensitive"}}), "1026"),
    ("Moonshot", Reply(400, {"error": {"type": "content_filter", "message": "high risk"}}), "content_filter"),
    (
        "DeepSeek",
        Reply(400, error_body(message="Content Exists Risk", code="invalid_request_error")),
        "Content Exists Risk",
    ),
    ("DeepSeek, older", Reply(400, {"detail": "Content Exists Risk"}), "Content Exists Risk"),
    (
        "Anthropic",
        Reply(
            400,
            {
                "type": "error",
                "error": {"type": "invalid_request_error", "message": "Output blocked by content filtering policy"},
            },
        ),
        "blocked by content filtering policy",
    ),
    (
        "xAI",
        Reply(403, {"code": "The caller does not have permission", "error": "Content violates usage guidelines."}),
        "Content violates usage guidelines",
    ),
    (
        "OpenRouter's moderation",
        Reply(
            403,
            {
                "error": {
                    "code": 403,
                    "message": "flagged",
                    "metadata": {"reasons": ["violence", "hate"], "flagged_input": "…"},
                }
            },
        ),
        "violence, hate",
    ),
    (
        "OpenRouter's error type",
        Reply(403, {"error": {"code": 403, "message": "x", "metadata": {"error_type": "content_policy_violation"}}}),
        "content_policy_violation",
    ),
    (
        "a vendor's error that a router wraps as text",
        Reply(
            400,
            {
                "error": {
                    "code": 400,
                    "message": "Provider returned error",
                    "metadata": {"raw": '{"error": {"code": "invalid_prompt"}}'},
                }
            },
        ),
        "invalid_prompt",
    ),
    ("moderation inside a 200", ok({"error": {"code": 403, "message": "x", "metadata": {"reasons": ["x"]}}}), "x"),
    ("a part of the type refusal", ok(chat([{"type": "refusal", "refusal": "I cannot."}])), "refusal"),
]


class TestAsSent:
    @pytest.mark.parametrize(("reply", "word"), [(r, w) for _, r, w in AS_SENT], ids=[name for name, _, _ in AS_SENT])
    def test_it_is_a_refusal_by_the_vendor(self, reply: Reply, word: str) -> None:
        found = answer_to(reply)
        assert (found.outcome, found.filter_word) == ("filtered", word)

    def test_what_was_written_before_the_stop_is_kept_without_its_thinking(self) -> None:
        found = answer_to(ok(finished("SAFETY", "<think>SUPPORT?</think>I would say")))
        assert (found.text, found.outcome) == ("I would say", "filtered")

    def test_usage_of_a_refusal_is_booked(self) -> None:
        usage = {"prompt_tokens": 40, "completion_tokens": 0, "total_tokens": 40}
        found = answer_to(ok({**finished("SAFETY", None), "usage": usage}))
        assert (found.prompt_tokens, found.completion_tokens) == (40, 0)

    def test_a_word_is_one_line_of_at_most_eighty_characters(self) -> None:
        word = answer_to(ok(finished("content_filter\x1b[31m\n" + "x" * 500, None))).filter_word
        assert word is not None
        assert len(word) == 80
        assert word.startswith("content_filter [31m xxx")


class TestNoRefusal:
    @pytest.mark.parametrize(
        "reason", ["stop", "length", "end_turn", "stop_sequence", "tool_calls", "eos", "COMPLETE", "OTHER", "LANGUAGE"]
    )
    def test_another_finish_reason_is_none(self, reason: str) -> None:
        assert answer_to(ok(finished(reason))).outcome in ("answered", "cut")

    @pytest.mark.parametrize("reason", [None, [], ["SAFETY"], {"x": "SAFETY"}, 7, True])
    def test_a_finish_reason_that_is_no_word_is_unreported(self, reason: Any) -> None:
        found = answer_to(ok(finished(reason)))
        assert (found.outcome, found.finish_reason) == ("answered", "unreported")

    @pytest.mark.parametrize(
        "error",
        [
            {"code": "context_length_exceeded"}, {"code": None}, {"message": "safety_settings is not supported"},
            {"code": "content_filter_error", "message": "The contents are not filtered"}, {"code": 400},
            {"message": "max_tokens is too large", "param": "max_tokens"}, {"code": "unsupported_parameter"},
        ],
    )  # fmt: skip
    def test_an_unknown_400_is_a_failure(self, error: dict[str, Any]) -> None:
        failed = failure_of(Reply(400, error_body(**error)))
        assert (failed.code, failed.retryable) == ("http_status", False)

    @pytest.mark.parametrize("status", [404, 429, 500, 503])
    def test_another_status_is_never_a_refusal(self, status: int) -> None:
        assert failure_of(Reply(status, error_body(code="content_filter"))).code == "http_status"

    def test_an_error_inside_a_200_with_a_code_of_load_is_none(self) -> None:
        assert failure_of(ok({"error": {"code": 503, "message": "content_filter"}})).code == "provider_error"

    def test_an_answer_that_speaks_of_filters_is_an_answer(self) -> None:
        text = '{"error": {"code": "content_filter"}, "blockReason": "SAFETY"}'
        assert answer_to(ok(chat(text))).outcome == "answered"

    def test_an_empty_refusal_field_says_nothing(self) -> None:
        assert answer_to(ok(finished("stop", "Yes.", refusal=""))).outcome == "answered"

    def test_a_walk_through_a_hostile_error_ends(self) -> None:
        deep: Any = "x"
        for _ in range(3_000):
            deep = {"error": [deep]}
        assert error_word({"error": deep}) is None
