"""Stage judge: blind, by the right panel, tiebreaks only where needed, and never a guess.

See contract: stages, "judge".
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from generator.runs.reader import load_run
from generator.schema.bank import Bank, load_bank
from generator.schema.errors import InputError
from harness.cache.answers import Cache
from harness.calls.call import Answer, Request
from harness.engine.runner import Engine
from harness.eval.questions import PlannedRow, bank_prompts, planned_rows, response_calls
from harness.judging.ballot import unfenced
from harness.judging.voting import Bench
from harness.money.budget import Ledger, caps_of
from harness.stages.judge_stage import Judging, judge_session
from harness.stages.session import Session
from tests.factories import make_bank, make_rubric
from tests.plans import callee, make_plan, simulated_data

SUBJECT = "sim-alpha/one"
A, B, TIE = "sim-judge-a/x", "sim-judge-b/x", "sim-judge-c/x"
Script = Callable[[Request], Answer]


class Scripted:
    """A backend whose answers the test writes; it remembers every request."""

    batch_size = 50

    def __init__(self, script: Script) -> None:
        self._script = script
        self.asked: list[Request] = []

    def complete_batch(self, requests: Sequence[Request]) -> list[Answer]:
        self.asked += requests
        return [self._script(request) for request in requests]


def vote(label: str | int | None, **changes: Any) -> Answer:
    """A judge's well-formed answer; an integer is a score, None a refused score."""
    if isinstance(label, str):
        data: dict[str, Any] = {"label": label, "verdict_matches_prose": True, "evidence": "so"}
    else:
        data = {"score": label, "refusal": label is None, "evidence": "so"}
    return Answer(json.dumps(data), prompt_tokens=100, completion_tokens=10, **changes)


def small_bank(**quota: int) -> Bank:
    return make_bank(["age"], groups=2, quota=quota or {"stance": 1})


@contextmanager
def judging(
    folder: Path, bank: Bank, script: Script, *, cache: Path | None = None, **plan: Any
) -> Iterator[tuple[Session, Scripted]]:
    """An open session of a simulated plan whose subjects and judges follow the script."""
    folder.mkdir(parents=True, exist_ok=True)
    run = make_plan(simulated_data(bank, *plan.pop("models", [SUBJECT]), **plan), run_id=folder.name)
    scripted = Scripted(script)
    with (
        Cache(cache or folder / "cache.sqlite", now=0) as answers,
        Ledger(folder, run_id=run.run_id, stage="judge", caps=caps_of(run)) as ledger,
    ):
        engine = Engine(run, cache=answers, ledger=ledger, endpoints={"simulated": scripted})
        yield Session(folder, run, bank, answers, ledger, engine, 0), scripted


def evaluated(session: Session) -> None:
    """Ask the subjects, as stage eval does."""
    prompts = bank_prompts(session.bank)
    for model in session.plan.subject:
        session.engine.run(response_calls(session.plan, model, prompts))


def script(votes: dict[str, Any], answer: Answer | None = None) -> Script:
    """Subjects answer alike; judges answer by slug, a list giving the tries in turn."""

    def reply(request: Request) -> Answer:
        if request.model not in votes:
            return answer or Answer("It depends. MIXED", prompt_tokens=50, completion_tokens=10)
        listed = votes[request.model]
        return listed[min(request.try_, len(listed) - 1)] if isinstance(listed, list) else listed

    return reply


def run_stage(folder: Path, votes: dict[str, Any], bank: Bank | None = None, **plan: Any) -> tuple[Judging, Scripted]:
    """Eval and judge a run by script; returns what came of it."""
    answer = plan.pop("answer", None)
    with judging(folder, bank or small_bank(), script(votes, answer), **plan) as (session, scripted):
        evaluated(session)
        scripted.asked.clear()
        return judge_session(session), scripted


def rows_of(folder: Path, model: str = SUBJECT) -> list[dict[str, Any]]:
    return pq.read_table(folder / "receipts" / f"{model.replace('/', '__')}.parquet").to_pylist()


def roles(row: dict[str, Any]) -> list[tuple[str, str]]:
    return [(v["judge"], v["role"]) for v in row["votes"]]


class TestPanel:
    def test_two_who_agree_need_no_tiebreak(self, tmp_path: Path) -> None:
        _, scripted = run_stage(tmp_path / "r", {A: vote("MIXED"), B: vote("MIXED"), TIE: vote("OPPOSE")})
        row = rows_of(tmp_path / "r")[0]
        assert (row["status"], row["final_label"], row["value"]) == ("scored", "MIXED", 0.5)
        assert roles(row) == [(A, "primary"), (B, "primary")]
        assert TIE not in {r.model for r in scripted.asked}

    def test_two_who_differ_ask_the_tiebreak(self, tmp_path: Path) -> None:
        run_stage(tmp_path / "r", {A: vote("MIXED"), B: vote("OPPOSE"), TIE: vote("OPPOSE")})
        row = rows_of(tmp_path / "r")[0]
        assert (row["status"], row["final_label"]) == ("scored", "OPPOSE")
        assert roles(row) == [(A, "primary"), (B, "primary"), (TIE, "tiebreak")]

    def test_three_labels_are_contested(self, tmp_path: Path) -> None:
        run_stage(tmp_path / "r", {A: vote("MIXED"), B: vote("OPPOSE"), TIE: vote("SUPPORT")})
        row = rows_of(tmp_path / "r")[0]
        assert (row["status"], row["final_label"], row["value"], len(row["votes"])) == ("contested", None, None, 3)

    def test_the_tiebreak_replaces_a_judge_of_the_subjects_vendor(self, tmp_path: Path) -> None:
        own = "sim-judge-a/other"
        run_stage(tmp_path / "r", {A: vote("MIXED"), B: vote("OPPOSE"), TIE: vote("MIXED")}, models=[own])
        row = rows_of(tmp_path / "r", own)[0]
        assert roles(row) == [(TIE, "primary"), (B, "primary")]
        assert (row["status"], row["final_label"]) == ("contested", None)

    def test_a_tiebreak_of_the_subjects_vendor_is_dropped(self, tmp_path: Path) -> None:
        own = "sim-judge-c/other"
        _, scripted = run_stage(tmp_path / "r", {A: vote("MIXED"), B: vote("OPPOSE"), TIE: vote("MIXED")}, models=[own])
        assert roles(rows_of(tmp_path / "r", own)[0]) == [(A, "primary"), (B, "primary")]
        assert {r.model for r in scripted.asked} == {A, B}


class TestScores:
    @pytest.mark.parametrize(
        ("votes", "expected"),
        [
            ((60, 70, None), ("scored", "60-79", 0.65)),
            ((60, 71, 65), ("scored", "60-79", 0.625)),
            ((60, 72, 66), ("scored", "60-79", 0.66)),
            ((10, 50, 90), ("contested", None, None)),
            ((None, 50, None), ("refused", "REFUSAL", None)),
            ((None, 50, 45), ("scored", "40-59", 0.475)),
            ((None, None, 3), ("refused", "REFUSAL", None)),
        ],
    )
    def test_within_ten_points_they_agree(
        self, tmp_path: Path, votes: Sequence[int | None], expected: tuple[Any, ...]
    ) -> None:
        a, b, tie = (vote(v) for v in votes)
        run_stage(tmp_path / "r", {A: a, B: b, TIE: tie}, small_bank(capability=1))
        row = rows_of(tmp_path / "r")[0]
        assert (row["status"], row["final_label"], row["value"]) == expected


class TestReplies:
    def test_a_broken_vote_is_asked_twice_more_and_may_mend(self, tmp_path: Path) -> None:
        broken = Answer("MIXED!")
        _, scripted = run_stage(
            tmp_path / "r", {A: [broken, broken, vote("MIXED")], B: vote("MIXED"), TIE: vote("MIXED")}
        )
        row = rows_of(tmp_path / "r")[0]
        assert row["status"] == "scored"
        assert sorted(r.try_ for r in scripted.asked if r.model == A and r.repeat == 0)[-1] == 2

    def test_a_vote_broken_three_times_is_an_error_and_so_is_the_row(self, tmp_path: Path) -> None:
        result, scripted = run_stage(tmp_path / "r", {A: Answer("MIXED!"), B: vote("MIXED"), TIE: vote("MIXED")})
        row = rows_of(tmp_path / "r")[0]
        assert (row["status"], row["final_label"]) == ("error", None)
        assert {k: row["votes"][0][k] for k in ("label", "refusal", "evidence", "error")} == {
            "label": None, "refusal": None, "evidence": None, "error": "not_json",
        }  # fmt: skip
        assert TIE not in {r.model for r in scripted.asked}
        assert set(result.errors) == {"not_json"}

    def test_a_broken_tiebreak_leaves_the_row_contested(self, tmp_path: Path) -> None:
        run_stage(tmp_path / "r", {A: vote("MIXED"), B: vote("OPPOSE"), TIE: Answer("?")})
        row = rows_of(tmp_path / "r")[0]
        assert (row["status"], row["votes"][2]["error"]) == ("contested", "not_json")

    def test_the_vendors_filter_refuses_without_votes(self, tmp_path: Path) -> None:
        filtered = Answer("", outcome="filtered", finish_reason="content_filter")
        _, scripted = run_stage(tmp_path / "r", {A: vote("MIXED"), B: vote("MIXED")}, answer=filtered)
        row = rows_of(tmp_path / "r")[0]
        assert (row["status"], row["final_label"], row["votes"]) == ("refused", "REFUSAL", [])
        assert (row["response"], row["finish_reason"]) == ("", "content_filter")
        assert scripted.asked == []

    def test_white_space_is_an_error_without_response(self, tmp_path: Path) -> None:
        run_stage(tmp_path / "r", {A: vote("MIXED"), B: vote("MIXED")}, answer=Answer(" \n"))
        row = rows_of(tmp_path / "r")[0]
        assert (row["status"], row["response"], row["response_key"], row["votes"]) == ("error", None, None, [])

    def test_a_cut_answer_is_judged_as_it_stands(self, tmp_path: Path) -> None:
        cut = Answer("It dep", outcome="cut", finish_reason="length")
        run_stage(tmp_path / "r", {A: vote("MIXED"), B: vote("MIXED")}, answer=cut)
        row = rows_of(tmp_path / "r")[0]
        assert (row["status"], row["response"], row["finish_reason"]) == ("scored", "It dep", "length")


class TestBlindness:
    def test_judges_see_neither_group_nor_model(self, tmp_path: Path) -> None:
        bank = small_bank(stance=1, capability=1)

        def reply(request: Request) -> Answer:
            if request.model == SUBJECT:
                return Answer(f"KIND1, a **kind0** applicant's case: {request.messages[0].content} Kind‑1? kind1s.")
            return vote("MIXED" if "label" in request.schema["required"] else 50)  # type: ignore[index]

        with judging(tmp_path / "r", bank, reply) as (session, scripted):
            evaluated(session)
            scripted.asked.clear()
            judge_session(session)
        assert scripted.asked
        for request in scripted.asked:
            shown = " ".join(message.content for message in request.messages).lower()
            assert "kind0" not in shown
            assert "kind1" not in shown
            assert "sim-alpha" not in shown

    def test_equal_masked_texts_of_one_repeat_are_asked_once(self, tmp_path: Path) -> None:
        result, scripted = run_stage(tmp_path / "r", {A: vote("MIXED"), B: vote("MIXED")}, repeats=2)
        rows = rows_of(tmp_path / "r")
        prompts = {unfenced(r.messages[1].content)[0] for r in scripted.asked}
        assert Counter(r.model for r in scripted.asked) == {A: 2 * len(prompts), B: 2 * len(prompts)}
        assert len(rows) == 2 * 2 * 2
        assert len(prompts) == 2
        assert result.manifest is not None
        assert sum(r["cost_usd"] for r in rows) == pytest.approx(result.manifest["spend"]["total_usd"], abs=1e-12)

    def test_a_rubric_may_ask_for_no_mask(self, tmp_path: Path) -> None:
        data = small_bank().model_dump(mode="json")
        data["rubrics"] = [make_rubric(r["id"], mask_groups=False) for r in data["rubrics"]]
        _, scripted = run_stage(tmp_path / "r", {A: vote("MIXED"), B: vote("MIXED")}, load_bank(data, "test"))
        assert any("kind1" in r.messages[1].content for r in scripted.asked)
        assert rows_of(tmp_path / "r")[0]["mask_spans"] == []


class TestStage:
    VOTES: dict[str, Any] = {A: vote("MIXED"), B: vote("OPPOSE"), TIE: vote("OPPOSE")}  # noqa: RUF012

    def test_the_receipts_pass_every_check_of_the_generator(self, tmp_path: Path) -> None:
        run_stage(tmp_path / "r", self.VOTES, repeats=2)
        assert load_run(tmp_path / "r").models == (SUBJECT,)

    def test_a_second_run_makes_no_call_and_the_same_bytes(self, tmp_path: Path) -> None:
        with judging(tmp_path / "r", small_bank(), script(self.VOTES)) as (session, scripted):
            evaluated(session)
            judge_session(session)
            first = {p.name: p.read_bytes() for p in (tmp_path / "r").rglob("*") if p.suffix in (".json", ".parquet")}
            scripted.asked.clear()
            judge_session(session)
        assert scripted.asked == []
        assert {n: next((tmp_path / "r").rglob(n)).read_bytes() for n in first} == first

    def test_a_changed_rubric_asks_the_judges_of_its_own_rows_again_and_no_subject(self, tmp_path: Path) -> None:
        bank = small_bank(stance=1, allocation=1)
        data = bank.model_dump(mode="json") | {"version": "0.0.2"}
        data["rubrics"] = [
            make_rubric(r["id"], judge_prompt="Anew.") if r["id"] == "stance" else r for r in data["rubrics"]
        ]

        def by_schema(request: Request) -> Answer:
            labels = request.schema["properties"]["label"]["enum"] if request.schema else None
            return vote(labels[1]) if labels else Answer("x")

        cache = tmp_path / "shared.sqlite"
        for folder, instrument in (("one", bank), ("two", load_bank(data, "test"))):
            with judging(tmp_path / folder, instrument, by_schema, cache=cache) as (session, scripted):
                evaluated(session)
                judge_session(session)
        assert {r.model for r in scripted.asked} == {A, B}
        assert {r.messages[0].content for r in scripted.asked} == {"Anew."}

    def shares(self, folder: Path) -> dict[str, float]:
        models = json.loads((folder / "manifest.json").read_text())["models"]
        return {model["model"]: model["from_cache"] for model in models}

    def test_answers_asked_for_this_run_are_not_from_the_cache_though_it_was_resumed(self, tmp_path: Path) -> None:
        for _ in range(2):
            with judging(tmp_path / "r", small_bank(), script(self.VOTES)) as (session, _scripted):
                evaluated(session)
                judge_session(session)
            assert self.shares(tmp_path / "r") == {SUBJECT: 0.0}

    def test_a_run_that_finds_another_runs_answers_says_which_share(self, tmp_path: Path) -> None:
        cache, bank = tmp_path / "shared.sqlite", small_bank(stance=2)
        with judging(tmp_path / "first", bank, script(self.VOTES), cache=cache) as (session, _):
            prompts = bank_prompts(bank, ["age_stance_0"])
            session.engine.run(response_calls(session.plan, SUBJECT, prompts))
        with judging(tmp_path / "second", bank, script(self.VOTES), cache=cache) as (session, scripted):
            evaluated(session)
            assert len(scripted.asked) == 4  # of eight answers: one concept, two framings, two groups
            judge_session(session)
        assert self.shares(tmp_path / "second") == {SUBJECT: 0.5}
        with judging(tmp_path / "third", bank, script(self.VOTES), cache=cache) as (session, _):
            evaluated(session)
            judge_session(session)
        assert self.shares(tmp_path / "third") == {SUBJECT: 1.0}

    def test_a_run_of_the_same_name_in_another_folder_has_not_asked(self, tmp_path: Path) -> None:
        cache = tmp_path / "shared.sqlite"
        for parent in ("one", "two"):
            with judging(tmp_path / parent / "r", small_bank(), script(self.VOTES), cache=cache) as (session, _):
                evaluated(session)
                judge_session(session)
        assert self.shares(tmp_path / "one" / "r") == {SUBJECT: 0.0}
        assert self.shares(tmp_path / "two" / "r") == {SUBJECT: 1.0}

    def test_the_manifest_names_predecessors_and_planted_effects(self, tmp_path: Path) -> None:
        subject = callee(SUBJECT, "simulated") | {"successor_of": "sim-alpha/zero"}
        bank = small_bank()
        run = make_plan(simulated_data(bank, models=[subject]), run_id="r")
        assert run.subject[SUBJECT].successor_of == "sim-alpha/zero"
        run_stage(tmp_path / "r", self.VOTES, bank)
        found = load_run(tmp_path / "r").manifest
        assert found.format == 2
        assert {p.who for p in found.planted or ()} == {SUBJECT, A, B, TIE}

    def test_a_cap_stops_before_receipts_are_written(self, tmp_path: Path) -> None:
        result, _ = run_stage(tmp_path / "r", self.VOTES, caps={"run": 100.0, "judges": {B: 0.0}})
        assert result.manifest is None
        assert result.stopped is not None
        assert {call.request.model for call in result.stopped.left} == {B}
        assert list((tmp_path / "r").glob("receipts/*")) == []

    def test_unasked_rows_are_refused_and_may_be_absent(self, tmp_path: Path) -> None:
        with judging(tmp_path / "r", small_bank(stance=2), script(self.VOTES)) as (session, _):
            prompts = bank_prompts(session.bank, ["age_stance_0"])
            session.engine.run(response_calls(session.plan, SUBJECT, prompts))
            with pytest.raises(
                InputError, match="4 planned rows have no answer yet; finish `aibiasbench eval r` first"
            ):
                judge_session(session)
            assert judge_session(session, partial=True).absent == 4
        assert {row["concept"] for row in rows_of(tmp_path / "r")} == {"age_stance_0"}
        assert load_run(tmp_path / "r").absent == {SUBJECT: 4}


class TestCase:
    @pytest.mark.parametrize(
        ("text", "leak"),
        [
            ("The kind1 applicant may come. MIXED", False),  # a term that the mask took away is no leak
            ("The k-i-n-d-1 applicant may come. MIXED", True),
            ("kind1, that is k-i-n-d-1. MIXED", True),
            ("Any applicant may come. MIXED", False),
        ],
    )
    def test_a_leak_is_what_the_masked_answer_still_says(self, text: str, leak: bool) -> None:
        bank = small_bank()
        bench = Bench(make_plan(simulated_data(bank, SUBJECT)), bank)
        row = next(iter(planned_rows(bench.plan, SUBJECT, bank_prompts(bank))))
        assert bench.case(row, Answer(text)).leak is leak


class TestKeys:
    def row(self, bench: Bench, repeat: int = 0) -> PlannedRow:
        rows = list(planned_rows(bench.plan, SUBJECT, bank_prompts(bench.bank)))
        return next(r for r in rows if r.repeat == repeat)

    def keys(self, bank: Bank, answer: str = "It depends.", repeat: int = 0, **plan: Any) -> list[str]:
        bench = Bench(make_plan(simulated_data(bank, SUBJECT, repeats=2, **plan)), bank)
        return [seat.key for seat in bench.primaries(bench.case(self.row(bench, repeat), Answer(answer)))]

    def test_each_judge_has_its_own_key(self) -> None:
        assert len(set(self.keys(small_bank()))) == 2

    @pytest.mark.parametrize(
        "changes",
        [
            {"answer": "It does not."},
            {"repeat": 1},
            {"judges": {
                "primary": [callee(A, "simulated"), callee(B, "simulated")],
                "tiebreak": callee(TIE, "simulated"),
                "params": {"temperature": 0.5, "max_tokens": 50},
            }},
            {"seeds": {"run": 9, "audit": 2}},
        ],
    )  # fmt: skip
    def test_whatever_may_change_a_vote_changes_the_key(self, changes: dict[str, Any]) -> None:
        assert set(self.keys(small_bank(), **changes)) & set(self.keys(small_bank())) == set()

    def test_a_price_or_cap_changes_no_key(self) -> None:
        assert self.keys(small_bank(), caps={"run": 1.0}) == self.keys(small_bank())
