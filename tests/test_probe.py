"""`aibiasbench eval --probe`: what works, what was refused, and the lines of run.toml that mend it."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from harness.bank.reader import read_bank_folder
from harness.eval.questions import bank_prompts
from harness.stages.mends import toml_table
from harness.stages.probe import made_up_answer
from tests.plans import callee, live_data, write_run_toml
from tests.programs import invoke
from tests.scripted_server import Reply, ScriptedServer, chat

BANK = Path(__file__).parent.parent / "content" / "bank"
WORKING = read_bank_folder(BANK)
RUBRICS = len(WORKING.rubrics)


def verdict(request: dict[str, Any]) -> str:
    """The verdict that the prompt asks for; its last lines name the keys."""
    asked = request["messages"][-1]["content"]
    if '"score"' in asked:
        return json.dumps({"score": 60, "refusal": False, "evidence": "ends with 60"})
    label = asked.rpartition('{"label": "')[2].partition('"')[0]
    return json.dumps({"label": label, "verdict_matches_prose": True, "evidence": "the last word"})


def refused(message: str) -> Reply:
    return Reply(400, {"error": {"message": message, "type": "invalid_request_error"}})


def vendor(request: dict[str, Any], _: int) -> Reply:
    """Five models with habits of their own."""
    name, judging = request["model"], any("label" in m["content"] for m in request["messages"])
    if name == "thinks":
        if "max_tokens" in request:
            return refused("Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.")
        if "temperature" in request:
            return refused("Unsupported value: 'temperature' does not support 0.7 with this model.")
        if request["max_completion_tokens"] < 400:
            spent = request["max_completion_tokens"]
            body = chat("", usage={"prompt_tokens": 20, "completion_tokens": spent, "total_tokens": 20 + spent})
            body["choices"][0]["finish_reason"] = "length"
            body["usage"]["completion_tokens_details"] = {"reasoning_tokens": spent}
            return Reply(body=body)
    if name == "no-schema" and request.get("response_format", {}).get("type") == "json_schema":
        return refused("response_format of type json_schema is not supported")
    if name == "no-system" and request["messages"][0]["role"] == "system":
        return refused("This model does not support system messages: role 'system' is not allowed")
    if name == "gone":
        return Reply(404, {"error": {"message": "The model `gone` does not exist"}})
    return Reply(body=chat(verdict(request) if judging else "I agree. SUPPORT"))


def plan(url: str, **changes: Any) -> dict[str, Any]:
    data = live_data(WORKING, url, models=[callee("alpha/fine"), callee("beta/thinks", "thinker")])
    own = data["endpoints"]["local"]
    data["endpoints"] = {name: dict(own) for name in ("local", "thinker", "free", "plain")}
    data["params"] = {"temperature": 0.7, "max_tokens": 100}
    data["judges"] |= {
        "primary": [callee("judge-a/no-schema", "free"), callee("judge-b/no-system", "plain")],
        "tiebreak": callee("judge-c/fine"),
    }
    return {**data, **changes}


class TestProbe:
    @pytest.fixture
    def words(self, tmp_path: Path) -> tuple[Any, ...]:
        return (tmp_path / "r", "--bank", BANK, "--cache", tmp_path / "c.sqlite", "--probe")

    def test_it_names_what_is_refused_and_the_lines_that_were_tried_and_work(
        self, tmp_path: Path, words: tuple[Any, ...]
    ) -> None:
        with ScriptedServer(vendor) as server:
            data = plan(server.url)
            write_run_toml(tmp_path / "r", data)
            done = invoke("eval", *words)
            shown = json.loads(invoke("eval", *words, "--json").stdout)
            lines = {(m["table"], m["line"].partition("  #")[0]) for each in shown for m in each["run_toml"]}
            assert lines == {
                ("[endpoints.thinker]", 'max_tokens_name = "max_completion_tokens"'),
                ("the table of beta/thinks", 'drop = ["temperature"]'),
                ("the table of beta/thinks", "params = { max_tokens = 400 }"),
                ("[endpoints.free]", 'response_format = "json_object"'),
                ("[endpoints.plain]", 'system_role = "merge"'),
            }
            assert all(each["works"] for each in shown)
            assert done.returncode == 2
            for _, line in lines:
                assert line in done.stdout
            # The lines, written into run.toml, make it work as it stands.
            data["endpoints"]["thinker"]["max_tokens_name"] = "max_completion_tokens"
            data["endpoints"]["free"]["response_format"] = "json_object"
            data["endpoints"]["plain"]["system_role"] = "merge"
            data["models"][1] |= {"drop": ["temperature"], "params": {"max_tokens": 400}}
            write_run_toml(tmp_path / "r", data)
            again = invoke("eval", *words)
        assert again.returncode == 0, again.stdout + again.stderr
        assert "works after changes below" not in again.stdout

    def test_one_call_a_model_and_one_a_judge_and_rubric(self, tmp_path: Path, words: tuple[Any, ...]) -> None:
        with ScriptedServer(lambda r, n: vendor({**r, "model": "fine"}, n)) as server:
            write_run_toml(tmp_path / "r", plan(server.url))
            shown = json.loads(invoke("eval", *words, "--json").stdout)
        assert len(shown) == len(server.requests) == 2 + 3 * RUBRICS
        assert all(each["calls"] == 1 and each["works"] and each["cost_usd"] > 0 for each in shown)

    def test_the_prompts_answer_is_kept_for_eval(self, tmp_path: Path, words: tuple[Any, ...]) -> None:
        with ScriptedServer(lambda r, n: vendor({**r, "model": "fine"}, n)) as server:
            write_run_toml(tmp_path / "r", plan(server.url))
            invoke("eval", *words)
            before = len(server.requests)
            first = bank_prompts(WORKING)[0].concept.id
            summary = json.loads(invoke("eval", *words[:-1], "--concept", first, "--json").stdout)
        assert summary["from_cache"] == 2
        assert len(server.requests) - before == summary["asked"]

    def test_what_no_line_mends_is_said_in_the_vendors_words(self, tmp_path: Path, words: tuple[Any, ...]) -> None:
        with ScriptedServer(vendor) as server:
            write_run_toml(tmp_path / "r", plan(server.url, models=[callee("alpha/gone")]))
            done = invoke("eval", *words)
        assert done.returncode == 2
        assert "failed: alpha/gone: " in done.stdout
        assert "The model `gone` does not exist" in done.stdout

    def test_a_cap_holds_for_a_probe_too(self, tmp_path: Path, words: tuple[Any, ...]) -> None:
        with ScriptedServer(vendor) as server:
            write_run_toml(tmp_path / "r", plan(server.url, caps={"run": 0.0}))
            done = invoke("eval", *words)
        assert server.requests == []
        assert done.returncode == 3
        assert "failed" not in done.stdout
        assert done.stdout.count("not asked") == 2 + 3 * RUBRICS
        assert done.stderr.count("the run's cap") == 1

    def test_the_cap_that_it_names_is_enough_and_a_smaller_one_is_not(
        self, tmp_path: Path, words: tuple[Any, ...]
    ) -> None:
        with ScriptedServer(lambda r, n: vendor({**r, "model": "fine"}, n)) as server:
            write_run_toml(tmp_path / "r", plan(server.url, caps={"run": 0.0}))
            least = float(re.search(r"at least ([0-9.]+) dollars", invoke("eval", *words).stderr)[1])  # type: ignore[index]
            write_run_toml(tmp_path / "r", plan(server.url, caps={"run": least}))
            enough = invoke("eval", *words)
        assert least > 0
        assert enough.returncode == 0, enough.stdout + enough.stderr
        assert len(server.requests) == 2 + 3 * RUBRICS

    def test_a_verdict_of_no_use_is_quoted_safely_with_the_forms_that_are_accepted(
        self, tmp_path: Path, words: tuple[Any, ...]
    ) -> None:
        prose = "\x1b[31mI would say " + "x" * 200
        with ScriptedServer(lambda _r, _n: Reply(body=chat(prose))) as server:
            write_run_toml(tmp_path / "r", plan(server.url))
            done = invoke("eval", *words)
        failed = [line for line in done.stdout.splitlines() if line.startswith("failed: judge-c/fine")]
        assert len(failed) == RUBRICS
        for line in failed:
            assert "one JSON object, alone, in one fence, or after one leading thought" in line
            assert line.endswith("what came: \\u001b[31mI would say " + "x" * (100 - 17) + "...")
        rows = [line.split() for line in done.stdout.splitlines() if line.split()[:2] == ["judge", "judge-c/fine"]]
        assert [(row[3], row[4]) for row in rows] == [("failed", "-")] * RUBRICS

    def test_a_simulated_run_has_nothing_to_probe(self, tmp_path: Path, words: tuple[Any, ...]) -> None:
        from tests.plans import simulated_data

        write_run_toml(tmp_path / "r", simulated_data(WORKING))
        done = invoke("eval", *words)
        assert done.returncode == 2
        assert "there is nothing to probe" in done.stderr


def test_a_made_up_answer_ends_with_a_label_of_its_rubric():
    for rubric in WORKING.rubrics:
        last = made_up_answer(rubric).splitlines()[-1]
        assert last == "SCORE: 60" if rubric.scale == "score" else last in {item.label for item in rubric.labels}


def test_an_inline_table_is_toml():
    values = {"max_tokens": 400, "stop": ["a", "b\n"], "thinking": {"type": "disabled"}, "two words": 1.5, "on": True}
    assert tomllib.loads(f"params = {toml_table(values)}") == {"params": values}
