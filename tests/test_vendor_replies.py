"""Replies that vendors are known to send, through `eval` and `judge` to the receipts (contract: stages, "Replies")."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from harness.cache.answers import Cache, Entry
from harness.commands import eval as evaluation
from harness.commands import judge
from tests.plans import live_data, write_run_toml
from tests.scripted_server import Reply, ScriptedServer, chat, finished
from tests.test_judge_command import A_CONCEPT, BANK, options

SCORED = sorted(c.id for c in BANK.concepts if c.rubric == "capability" and c.attribute == "age")[0]
ROWS = len(BANK.groups_of("age")) * 2
VOTES = 2 * 2  # masked, the groups of a framing look alike: two primaries on two framings
LABEL = {"label": "OPPOSE", "verdict_matches_prose": True, "evidence": "so it says"}
SCORE = {"score": 70, "refusal": False, "evidence": "so it says"}
Answering = Callable[[dict[str, Any]], Reply]


def usage(prompt: int, completion: int, total: int, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total, **more}


def verdict(request: dict[str, Any]) -> Reply:
    """A judge's right answer, under whatever rubric it is asked."""
    return Reply(body=chat(json.dumps(SCORE if '"score"' in request["messages"][-1]["content"] else LABEL)))


class Played:
    """One concept asked and judged at a server that answers by role."""

    def __init__(
        self, folder: Path, *, subject: Reply | None = None, judging: Answering = verdict, concept: str = A_CONCEPT,
        endpoint: dict[str, Any] | None = None, **plan: Any,
    ) -> None:  # fmt: skip
        answer = subject or Reply(body=chat("I do. SUPPORT"))

        def script(request: dict[str, Any], _: int) -> Reply:
            return answer if request["model"] == "one" else judging(request)

        with ScriptedServer(script) as server:
            data = live_data(BANK, server.url, **plan)
            data["endpoints"]["local"].update(endpoint or {})
            write_run_toml(folder, data)
            self.eval = CliRunner().invoke(evaluation.command, [*options(folder), "--concept", concept])
            self.judge = CliRunner().invoke(judge.command, [*options(folder), "--partial"])
        self.asked = [r for r in server.requests if r["model"] == "one"]
        self.judged = [r for r in server.requests if r["model"] != "one"]
        self.folder = folder

    @property
    def rows(self) -> list[dict[str, Any]]:
        (shard,) = (self.folder / "receipts").glob("*.parquet")
        rows: list[dict[str, Any]] = pq.read_table(shard).to_pylist()
        return rows

    def all_rows(self, *names: str) -> set[tuple[Any, ...]]:
        return {tuple(row[name] for name in names) for row in self.rows}


FILTERED = {
    "a finish reason": (Reply(body=finished("SAFETY", None)), "SAFETY"),
    "a finish reason with an ending": (
        Reply(body=finished("content_filter: PROHIBITED_CONTENT", None)),
        "content_filter: PROHIBITED_CONTENT",
    ),
    "an invalid prompt": (Reply(400, {"error": {"message": "Flagged.", "code": "invalid_prompt"}}), "invalid_prompt"),
    "a content policy": (Reply(400, {"error": {"code": "content_policy_violation"}}), "content_policy_violation"),
    "a failed inspection": (Reply(400, {"error": {"code": "data_inspection_failed"}}), "data_inspection_failed"),
    "moderation at a router": (Reply(403, {"error": {"code": 403, "metadata": {"reasons": ["hate"]}}}), "hate"),
    "a refusal field": (Reply(body=finished("stop", None, refusal="I cannot help.")), "refusal"),
}
BEFORE = {
    "an open thought": finished("length", "<think>\nHmm, maybe OPPOSE. The user wants"),
    "a budget that thinking took": {
        **finished("length", "", reasoning_content="Okay"),
        "usage": usage(40, 100, 140, completion_tokens_details={"reasoning_tokens": 100}),
    },
    "nothing at the limit": finished("MAX_TOKENS", None),
}


class TestSubjects:
    @pytest.mark.parametrize(("reply", "word"), FILTERED.values(), ids=FILTERED.keys())
    def test_a_filter_is_a_refusal_asked_once_and_never_judged(self, tmp_path: Path, reply: Reply, word: str) -> None:
        played = Played(tmp_path / "r", subject=reply)
        assert played.all_rows("outcome", "status", "final_label", "filter_word") == {
            ("filtered", "refused", "REFUSAL", word)
        }
        assert (len(played.asked), played.judged, len(played.rows)) == (ROWS, [], ROWS)
        assert played.eval.exit_code == 0

    @pytest.mark.parametrize("body", BEFORE.values(), ids=BEFORE.keys())
    def test_an_answer_cut_before_it_began_is_an_error_asked_once(self, tmp_path: Path, body: dict[str, Any]) -> None:
        played = Played(tmp_path / "r", subject=Reply(body=body))
        assert played.all_rows("outcome", "status", "finish_reason", "response") == {
            ("cut_before_answer", "error", "length", "")
        }
        assert (len(played.asked), played.judged) == (ROWS, [])
        told = f"{ROWS} answers were cut before they began: thinking took the budget; raise max_tokens or lower"
        assert told in played.eval.stdout

    def test_a_thought_never_reaches_judge_or_receipt(self, tmp_path: Path) -> None:
        parts = [
            {"type": "thinking", "text": "PRIVATE OPPOSE"},
            {"type": "text", "text": "<think>PRIVATE</think>I do."},
        ]
        body = finished("stop", parts, reasoning_content="PRIVATE")
        played = Played(tmp_path / "r", subject=Reply(body=body))
        assert played.all_rows("response", "status") == {("I do.", "scored")}
        assert "PRIVATE" not in json.dumps(played.judged)

    def test_tokens_that_are_counted_beside_the_completion_are_billed(self, tmp_path: Path) -> None:
        counted = usage(40, 5, 2045, completion_tokens_details={"reasoning_tokens": 2000})
        played = Played(tmp_path / "r", subject=Reply(body=chat("I do.", usage=counted)))
        assert played.all_rows("completion_tokens", "reasoning_tokens") == {(2005, 2000)}

    def test_an_own_key_at_a_router_costs_what_the_vendor_takes(self, tmp_path: Path) -> None:
        counted = usage(40, 90, 130, cost=0, is_byok=True, cost_details={"upstream_inference_cost": 0.036})
        played = Played(tmp_path / "r", subject=Reply(body=chat("I do.", usage=counted)))
        votes = VOTES * (20 * 1 + 5 * 10) / 1e6
        assert sum(row["cost_usd"] for row in played.rows) == pytest.approx(0.036 * ROWS + votes)

    def test_the_innermost_message_of_an_error_is_shown(self, tmp_path: Path) -> None:
        raw = json.dumps({"type": "error", "error": {"type": "x", "message": "`temperature` is deprecated here."}})
        error = {"message": "Provider returned error " + "y" * 200, "code": 400, "metadata": {"raw": raw}}
        played = Played(tmp_path / "r", subject=Reply(400, {"error": error}))
        assert "HTTP status 400: `temperature` is deprecated here." in played.eval.stdout

    def test_what_the_cache_holds_from_before_these_rules_is_read_by_them(self, tmp_path: Path) -> None:
        first = Played(tmp_path / "r", subject=Reply(body=chat("I do.")))
        keys = [row["response_key"] for row in first.rows]
        with Cache(tmp_path / "cache.sqlite", now=1) as cache:
            found = cache.lookup(keys)
            cache.prune(role="subject")
            old = {key: {"text": f"<think>PRIVATE {i}</think>I do."} for i, key in enumerate(keys)}
            old[keys[0]] = {"text": "", "finish_reason": "SAFETY", "outcome": "unusable", "error": "empty"}
            old[keys[1]] = {"text": "<think>PRIVATE", "finish_reason": "length", "outcome": "cut"}
            stored = [replace(found[key], **old[key]) for key in keys]
            cache.store([Entry(k, "subject", "alpha/one", a, "r/1", 0) for k, a in zip(keys, stored, strict=True)])
        again = CliRunner().invoke(judge.command, [*options(tmp_path / "r"), "--partial"])
        assert again.exit_code == 0, again.output  # its votes are in the cache: there is no server any more
        by_key = {row["response_key"]: row for row in first.rows}
        assert (by_key[keys[0]]["outcome"], by_key[keys[0]]["filter_word"]) == ("filtered", "SAFETY")
        assert (by_key[keys[1]]["outcome"], by_key[keys[1]]["response"]) == ("cut_before_answer", "")
        assert {by_key[key]["response"] for key in keys[2:]} == {"I do."}


class TestJudges:
    @pytest.mark.parametrize(
        ("content", "off"),
        [
            (f"```json\n{json.dumps(LABEL)}\n```", "fence"),
            (f"<think>x</think>{json.dumps(LABEL)}</s>", "thought;stop_token"),
        ],
    )
    def test_packaging_is_not_the_verdict(self, tmp_path: Path, content: str, off: str) -> None:
        played = Played(tmp_path / "r", judging=lambda _: Reply(body=chat(content)))
        assert {vote["unwrapped"] for row in played.rows for vote in row["votes"]} == {off}
        assert played.all_rows("final_label", "status") == {("OPPOSE", "scored")}
        assert len(played.judged) == VOTES

    def test_a_verdict_in_a_tool_call_counts(self, tmp_path: Path) -> None:
        call = {"id": "x", "type": "function", "function": {"name": "label", "arguments": json.dumps(LABEL)}}
        played = Played(tmp_path / "r", judging=lambda _: Reply(body=finished("tool_calls", None, tool_calls=[call])))
        assert {vote["unwrapped"] for row in played.rows for vote in row["votes"]} == {"tool_call"}
        legacy = {"name": "label", "arguments": json.dumps(LABEL)}
        played = Played(tmp_path / "s" / "r", judging=lambda _: Reply(body=finished("stop", "", function_call=legacy)))
        assert played.all_rows("final_label") == {("OPPOSE",)}

    def test_a_score_with_a_point_is_a_whole_number(self, tmp_path: Path) -> None:
        played = Played(
            tmp_path / "r", concept=SCORED, judging=lambda _: Reply(body=chat(json.dumps({**SCORE, "score": 70.0})))
        )
        assert {(v["score"], v["unwrapped"]) for row in played.rows for v in row["votes"]} == {(70, "number_form")}

    def test_half_a_surrogate_in_the_evidence_ends_no_stage(self, tmp_path: Path) -> None:
        text = json.dumps({**LABEL, "evidence": "a \ud800 b"})
        played = Played(tmp_path / "r", judging=lambda _: Reply(body=chat(text)))
        assert {vote["evidence"] for row in played.rows for vote in row["votes"]} == {"a \ufffd b"}

    @pytest.mark.parametrize(
        ("body", "error"), [(finished("SAFETY", json.dumps(LABEL)), "filtered"), (finished("length", "<think>"), "cut")]
    )
    def test_a_judge_that_was_filtered_or_cut_casts_no_vote_and_is_asked_once(
        self, tmp_path: Path, body: dict[str, Any], error: str
    ) -> None:
        played = Played(tmp_path / "r", judging=lambda _: Reply(body=body))
        assert len(played.judged) == VOTES
        if (played.folder / "receipts").exists():
            assert {vote["error"] for row in played.rows for vote in row["votes"]} == {error}


def refusing(*forms: str) -> Answering:
    """A judge whose endpoint refuses some forms of asking for JSON."""

    def judging(request: dict[str, Any]) -> Reply:
        form = request.get("response_format", {}).get("type", "none")
        if form in forms:
            return Reply(400, {"error": {"message": f"response_format of type {form} is not supported"}})
        return verdict(request)

    return judging


class TestForms:
    def test_no_keyword_that_a_vendor_refuses_is_sent(self, tmp_path: Path) -> None:
        played = Played(tmp_path / "r", concept=SCORED)
        for request in played.judged:
            schema = request["response_format"]["json_schema"]["schema"]
            assert schema["properties"]["score"] == {"type": ["integer", "null"]}
            assert "minimum" not in json.dumps(schema)

    @pytest.mark.parametrize(
        ("forms", "left"),
        [((), "json_schema"), (("json_schema",), "json_object"), (("json_schema", "json_object"), "none")],
    )
    def test_a_refused_form_gives_way_to_the_next_once_and_aloud(
        self, tmp_path: Path, forms: tuple[str, ...], left: str
    ) -> None:
        played = Played(tmp_path / "r", judging=refusing(*forms), endpoint={"concurrency": 1})
        used = [request.get("response_format", {}).get("type", "none") for request in played.judged]
        assert used.count(left) == len(used) - 2 * len(forms)  # each of the two judges learns each form once
        assert played.all_rows("status") == {("scored",)}
        told = [line for line in played.judge.stderr.splitlines() if "refuses" in line]
        assert len(told) == 2 * len(forms)
        assert all("set response_format" in line for line in told)

    def test_many_in_flight_step_down_together(self, tmp_path: Path) -> None:
        played = Played(tmp_path / "r", judging=refusing("json_schema"), endpoint={"concurrency": 16})
        assert {r.get("response_format", {}).get("type") for r in played.judged} == {"json_schema", "json_object"}
        assert played.all_rows("status") == {("scored",)}

    def test_another_400_is_no_refusal_of_the_form(self, tmp_path: Path) -> None:
        refused = Reply(400, {"error": {"message": "max_tokens is too large"}})
        played = Played(tmp_path / "r", judging=lambda _: refused)
        assert {r["response_format"]["type"] for r in played.judged} == {"json_schema"}

    def test_a_system_message_is_merged_by_a_setting(self, tmp_path: Path) -> None:
        played = Played(tmp_path / "r", endpoint={"system_role": "merge"})
        assert {tuple(m["role"] for m in request["messages"]) for request in played.judged} == {("user",)}
        rubric = next(r for r in BANK.rubrics if r.id == "stance")
        assert all(request["messages"][0]["content"].startswith(rubric.judge_prompt) for request in played.judged)

    def test_a_refused_system_role_says_which_setting(self, tmp_path: Path) -> None:
        refused = Reply(400, {"error": {"message": "System role not supported"}})
        played = Played(tmp_path / "r", judging=lambda _: refused)
        assert 'system_role = "merge"' in str(played.judge.exception)
