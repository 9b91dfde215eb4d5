"""Stage eval: the rows that a run plans, the calls behind them, and the command (contract: stages, "eval")."""

from __future__ import annotations

import json
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from generator.schema.bank import Bank
from generator.schema.canonical import hash_json
from generator.schema.errors import InputError
from harness.bank.reader import read_bank_folder
from harness.calls.call import Answer
from harness.engine.lock import stage_lock
from harness.eval.questions import bank_prompts, blank, chosen, planned_rows, response_calls
from tests.factories import make_bank
from tests.plans import callee, live_data, make_plan, simulated_data, write_run_toml
from tests.programs import invoke, run, start
from tests.scripted_server import Reply, ScriptedServer, chat

CONCEPTS = 2


@pytest.fixture(scope="module")
def bank() -> Bank:
    return make_bank(("religion", "age", "control_tag"), quota={"stance": 2}, control_quota={"stance": 1})


@pytest.fixture(scope="module")
def working() -> Bank:
    return read_bank_folder()


class TestPlannedRows:
    def test_every_concept_framing_group_and_repeat_in_the_order_of_a_shard(self, bank: Bank) -> None:
        plan = make_plan(live_data(bank, repeats=2))
        rows = list(planned_rows(plan, "alpha/one", bank_prompts(bank)))
        order = [
            (r.prompt.concept.attribute, r.prompt.concept.id, r.prompt.framing, r.prompt.group.id, r.repeat)
            for r in rows
        ]
        assert len(set(order)) == 5 * 2 * 5 * 2
        assert order == sorted(order)

    def test_a_rows_key_is_that_of_its_call_and_as_the_specification_says(self, bank: Bank) -> None:
        plan = make_plan(live_data(bank))
        prompts = bank_prompts(bank)
        row = next(planned_rows(plan, "alpha/one", prompts))
        call = next(response_calls(plan, "alpha/one", prompts))
        params = {"temperature": 1.0, "max_tokens": 100, "api_model": "one", "base_url": "http://127.0.0.1:9/v1"}
        parts = {"model": "alpha/one", "prompt_sha256": row.prompt.sha256, "params": params, "repeat": 0}
        assert row.key == call.key == hash_json(parts)
        assert call.request.messages[0].content == row.prompt.rendered.text

    def test_no_two_rows_share_a_key(self) -> None:
        bank = make_bank(("age",), quota={"stance": 2})
        plan = make_plan(live_data(bank, repeats=3, models=[callee("alpha/one"), callee("beta/two", api_model="one")]))
        keys = [r.key for m in plan.subject for r in planned_rows(plan, m, bank_prompts(bank))]
        assert len(set(keys)) == len(keys) == 2 * 2 * 2 * 5 * 3

    def test_a_changed_parameter_of_one_model_changes_only_its_keys(self, bank: Bank) -> None:
        def keys(**params: Any) -> dict[str, set[str]]:
            models = [callee("alpha/one", params=params), callee("beta/two")]
            plan = make_plan(live_data(bank, models=models))
            return {m: {r.key for r in planned_rows(plan, m, bank_prompts(bank))} for m in plan.subject}

        before, after = keys(), keys(temperature=0.5)
        assert (before["alpha/one"] & after["alpha/one"], before["beta/two"]) == (set(), after["beta/two"])


class TestBlank:
    @pytest.mark.parametrize("text", ["", " ", "\n\t\r", "\u00a0\u2003"])
    def test_white_space_cannot_be_used(self, text: str) -> None:
        assert blank(Answer(text)) == "empty"

    def test_text_can(self) -> None:
        assert blank(Answer(" x ")) is None

    def test_a_filters_empty_answer_is_an_answer(self) -> None:
        assert blank(Answer("", "filtered")) is None


class TestChosen:
    def test_nothing_chosen_means_all(self) -> None:
        assert chosen((), ["b", "a"], "model") == ["b", "a"]

    def test_a_choice_keeps_the_plans_order(self) -> None:
        assert chosen(("a", "b"), ["b", "a"], "model") == ["b", "a"]

    def test_an_unknown_name_is_refused(self) -> None:
        with pytest.raises(InputError, match="--model c: not in this run; it has: b, a"):
            chosen(("c",), ["b", "a"], "model")


class TestCommand:
    """The command against a scripted server, on a slice of the working bank."""

    def folder(self, tmp_path: Path, data: dict[str, Any]) -> Path:
        return write_run_toml(tmp_path / "my-run", data)

    def args(self, folder: Path, bank: Bank, concepts: int = CONCEPTS) -> list[str]:
        slice_ = [word for c in bank.concepts[:concepts] for word in ("--concept", c.id)]
        return ["eval", str(folder), "--cache", str(folder.parent / "c.sqlite"), *slice_]

    def planned(self, bank: Bank) -> int:
        return sum(2 * len(bank.attribute[c.attribute].groups) for c in bank.concepts[:CONCEPTS])

    def left(self, folder: Path, bank: Bank) -> str:
        rest = sum(2 * len(bank.attribute[c.attribute].groups) for c in bank.concepts[CONCEPTS:])
        return f"({rest:,} planned rows have no answer yet; aibiasbench eval {folder} asks them)"

    def test_a_run_twice(self, tmp_path: Path, working: Bank) -> None:
        with ScriptedServer() as server:
            folder = self.folder(tmp_path, live_data(working, server.url))
            first, second = (invoke(*self.args(folder, working), "--json") for _ in range(2))
        number = self.planned(working)
        found = [json.loads(done.stdout) for done in (first, second)]
        assert [done.returncode for done in (first, second)] == [0, 0]
        assert [(f["asked"], f["from_cache"]) for f in found] == [(number, 0), (0, number)]
        assert (len(server.requests), found[0]["spent_usd"]) == (number, found[1]["spent_usd"])

    def test_in_words_it_says_what_comes_next(self, tmp_path: Path, working: Bank) -> None:
        with ScriptedServer() as server:
            done = invoke(*self.args(self.folder(tmp_path, live_data(working, server.url)), working))
        assert done.stdout.startswith(f"eval of my-run: {self.planned(working)} answers planned, 0 from the cache")
        assert done.stdout.endswith(
            f"next: aibiasbench judge {tmp_path}/my-run --partial {self.left(tmp_path / 'my-run', working)}\n"
        )

    def test_a_changed_parameter_asks_only_that_model_again(self, tmp_path: Path, working: Bank) -> None:
        models = [callee("alpha/one"), callee("beta/two")]
        with ScriptedServer() as server:
            folder = self.folder(tmp_path, live_data(working, server.url, models=models))
            invoke(*self.args(folder, working))
            before = len(server.requests)
            models[1] = callee("beta/two", params={"temperature": 0.1})
            write_run_toml(folder, live_data(working, server.url, models=models))
            invoke(*self.args(folder, working))
        assert before == 2 * self.planned(working)
        assert {(r["model"], r["temperature"]) for r in server.requests[before:]} == {("two", 0.1)}
        assert len(server.requests) - before == self.planned(working)

    def test_a_cap_stops_with_exit_3_and_says_what_is_left(self, tmp_path: Path, working: Bank) -> None:
        with ScriptedServer() as server:
            folder = self.folder(tmp_path, live_data(working, server.url, caps={"run": 0.002}))
            done = invoke(*self.args(folder, working))
        assert done.returncode == 3
        assert "error: stopped at a spend cap (run): " in done.stderr
        assert f"calls are left; `aibiasbench eval {folder}` goes on from here" in done.stderr
        assert 0 < len(server.requests) < self.planned(working)

    def test_an_endpoint_that_is_down_is_one_error(self, tmp_path: Path, working: Bank) -> None:
        folder = self.folder(tmp_path, live_data(working, "http://127.0.0.1:1/v1"))
        done = run(*self.args(folder, working))
        assert done.returncode == 2
        assert "error: alpha/one: no connection" in done.stderr
        assert "base_url of endpoint local in run.toml right?" in done.stderr
        assert "Traceback" not in done.stderr

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"colour": "red"}, "run.toml: colour: unknown key 'colour'"),
            ({"bank": {"version": "9", "sha256": "0" * 64}}, "run.toml: bank.version is '9', the working bank is"),
            ({"models": [{**callee("alpha/one"), "model": "Bad"}]}, "run.toml: models.0 (Bad): model 'Bad'"),
        ],
    )
    def test_a_bad_plan_is_refused_and_nothing_is_written(
        self, tmp_path: Path, working: Bank, changes: dict[str, Any], words: str
    ) -> None:
        folder = self.folder(tmp_path, {**live_data(working), **changes})
        done = invoke(*self.args(folder, working))
        assert (done.returncode, done.stdout) == (2, "")
        assert words in done.stderr
        assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["run.toml"]

    def test_a_missing_key_is_refused_and_nothing_is_written(self, tmp_path: Path, working: Bank) -> None:
        data = live_data(working)
        data["endpoints"]["local"]["key_env"] = "AIBIASBENCH_TEST_KEY"
        done = invoke(*self.args(self.folder(tmp_path, data), working))
        assert done.returncode == 2
        assert "endpoint local: the environment variable AIBIASBENCH_TEST_KEY is not set" in done.stderr
        assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["run.toml"]

    def test_a_key_is_in_no_file_and_no_output(self, tmp_path: Path, working: Bank) -> None:
        with ScriptedServer(lambda _, n: Reply(401 if n else 200, chat())) as server:
            data = live_data(working, server.url)
            data["endpoints"]["local"]["key_env"] = "AIBIASBENCH_TEST_KEY"
            folder = self.folder(tmp_path, data)
            done = invoke(*self.args(folder, working), AIBIASBENCH_TEST_KEY="sk-very-secret")
        assert server.headers[0]["authorization"] == "Bearer sk-very-secret"
        assert "the key in AIBIASBENCH_TEST_KEY was refused" in done.stderr
        written = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
        assert "sk-very" not in done.stdout + done.stderr
        assert b"sk-very" not in written

    def test_a_dry_run_counts_and_writes_nothing(self, tmp_path: Path, working: Bank) -> None:
        folder = self.folder(tmp_path, live_data(working, repeats=3))
        done = invoke(*self.args(folder, working), "--dry-run", "--json")
        calls = {line["model"]: line for line in json.loads(done.stdout)["calls"]}
        number = 3 * self.planned(working)
        assert calls["alpha/one"]["calls"] == number
        assert [calls[f"judge-{j}/x"]["most_calls"] for j in "abc"] == [number] * 3
        assert calls["judge-c/x"]["calls"] == round(number / 4)
        assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["run.toml"]

    def test_a_dry_run_does_not_count_what_is_cached(self, tmp_path: Path, working: Bank) -> None:
        with ScriptedServer() as server:
            folder = self.folder(tmp_path, live_data(working, server.url))
            invoke(*self.args(folder, working, concepts=1))
            done = invoke(*self.args(folder, working), "--dry-run", "--json")
        line = json.loads(done.stdout)["calls"][0]
        first = 2 * len(working.attribute[working.concepts[0].attribute].groups)
        assert (line["cached"], line["calls"]) == (first, self.planned(working) - first)

    def test_a_dry_run_never_falls_short(self, tmp_path: Path, working: Bank) -> None:
        with ScriptedServer() as server:
            folder = self.folder(tmp_path, live_data(working, server.url))
            most = json.loads(invoke(*self.args(folder, working), "--dry-run", "--json").stdout)["calls"][0]["most_usd"]
            spent = json.loads(invoke(*self.args(folder, working), "--json").stdout)["spent_usd"]
        assert 0 < spent <= most

    def test_ctrl_c_stops_at_once_and_says_what_is_left(self, tmp_path: Path, working: Bank) -> None:
        """The server would take a minute over each answer: only an interrupt can end this within the time limit."""
        arrived = threading.Event()

        def slow(_: dict[str, Any], number: int) -> Reply:
            if number >= 3:
                arrived.set()
                time.sleep(15)
            return Reply(body=chat())

        with ScriptedServer(slow) as server:
            data = live_data(working, server.url)
            data["endpoints"]["local"]["read_timeout"] = 60.0
            folder = self.folder(tmp_path, data)
            process = start(*self.args(folder, working))
            assert arrived.wait(30)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=12)
        assert process.returncode == 130
        assert "interrupted: " in err
        assert "goes on from here" in err
        assert "Traceback" not in err
        assert "is the worst case of calls whose cost is unknown" in out

    def test_ctrl_c_while_rows_are_planned_says_how_to_go_on(
        self, tmp_path: Path, working: Bank, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("harness.commands.eval.response_calls", interrupt)
        folder = self.folder(tmp_path, live_data(working))
        done = invoke(*self.args(folder, working))
        words = f"interrupted: no answer is lost; `aibiasbench eval {folder}` goes on from here\n"
        assert (done.returncode, done.stderr) == (130, words)

    def test_lost_calls_are_settled_by_the_operator(self, tmp_path: Path, working: Bank) -> None:
        with ScriptedServer([Reply(body=chat(), cut=3), Reply(body=chat())]) as server:
            folder = self.folder(tmp_path, live_data(working, server.url))
            lost = json.loads(invoke(*self.args(folder, working), "--json").stdout)
            slip = invoke(*self.args(folder, working), "--settle-lost", "0", "--model", "alpha/on")
            done = invoke(*self.args(folder, working), "--json", "--settle-lost", "0")
            again = invoke(*self.args(folder, working), "--settle-lost", "0")
        assert (slip.returncode, "calls of unknown cost" in slip.stderr) == (2, False)
        assert lost["unknown_cost_usd"] > 0
        assert "calls of unknown cost: 1, booked at $0.00 together" in done.stderr
        assert "there is no call of unknown cost: nothing was booked" in again.stderr
        settled = json.loads(done.stdout)
        assert settled["unknown_cost_usd"] == 0
        assert settled["spent_usd"] == pytest.approx(lost["spent_usd"] - lost["unknown_cost_usd"])

    def test_a_second_run_goes_on_with_the_cache_of_the_first(self, tmp_path: Path, working: Bank) -> None:
        with ScriptedServer() as server:
            folder = self.folder(tmp_path, live_data(working, server.url))
            with_cache = self.args(folder, working)
            without = [word for word in with_cache if word not in ("--cache", str(tmp_path / "c.sqlite"))]
            first, second = (json.loads(invoke(*args, "--json").stdout) for args in (with_cache, without))
        assert (second["asked"], second["from_cache"]) == (0, first["asked"])
        assert second["spent_usd"] == first["spent_usd"]

    def test_what_failed_is_told_in_the_endpoints_words(self, tmp_path: Path, working: Bank) -> None:
        answered = self.planned(working) - 4
        blocked = Reply(422, {"error": {"message": "moderated"}})
        with ScriptedServer([Reply(body=chat())] * answered + [blocked]) as server:
            folder = self.folder(tmp_path, live_data(working, server.url))
            done = invoke(*self.args(folder, working))
        assert done.returncode == 0
        words = "HTTP status 422: moderated"
        assert f"failed for good: 4 http_status (the last: {words})\n" in done.stdout
        again = (
            f"aibiasbench eval {folder} asks what failed again; aibiasbench judge {folder} --partial takes it as errors"
        )
        # The four that failed have come to an end, and are not among the rows that are left.
        assert done.stdout.endswith(f"next: {again} {self.left(folder, working)}\n")

    def test_a_run_of_which_nothing_is_answered_is_no_success(self, tmp_path: Path, working: Bank) -> None:
        with ScriptedServer([Reply(400, b"no such model")]) as server:
            folder = self.folder(tmp_path, live_data(working, server.url))
            done = invoke(*self.args(folder, working, concepts=1))
        assert done.returncode == 2
        assert done.stderr == (
            "error: no call was answered, the last failed with: HTTP status 400: no such model\n"
            f"once that is mended: `aibiasbench eval {folder}`\n"
        )

    def test_answers_of_nothing_say_how_to_ask_again(self, tmp_path: Path, working: Bank) -> None:
        with ScriptedServer([Reply(body=chat(" "))]) as server:
            folder = self.folder(tmp_path, live_data(working, server.url))
            done = invoke(*self.args(folder, working, concepts=1))
            invoke("cache", "prune", "--cache", tmp_path / "c.sqlite", "--outcome", "unusable")
            server.script = lambda *_: Reply(body=chat())
            again = invoke(*self.args(folder, working, concepts=1), "--json")
        prune = f"to ask again: aibiasbench cache prune --cache {tmp_path}/c.sqlite --outcome unusable\n"
        assert prune in done.stdout
        assert json.loads(again.stdout)["outcomes"] == {"answered": 10}

    def test_a_price_declared_too_low_is_one_warning_and_a_count(self, tmp_path: Path, working: Bank) -> None:
        usage = {"prompt_tokens": 9, "completion_tokens": 5, "cost": 0.5}
        with ScriptedServer([Reply(body=chat(usage=usage))]) as server:
            done = invoke(*self.args(self.folder(tmp_path, live_data(working, server.url)), working, concepts=1))
        assert done.stderr.count("warning: ") == 1
        assert "10 calls of alpha/one cost more than its declared prices allow; check the prices in" in done.stdout

    def test_an_unknown_concept_is_proposed_a_near_one(self, tmp_path: Path, working: Bank) -> None:
        done = invoke("eval", self.folder(tmp_path, live_data(working)), "--concept", "age_apartment")
        assert done.stderr == (
            "error: --concept age_apartment: not in this run; did you mean age_apartment_no_history?"
            " it has 132 concepts, which `aibiasbench bank show` lists\n"
        )

    def test_it_says_where_to_look_further(self, tmp_path: Path, working: Bank) -> None:
        with ScriptedServer() as server:
            done = invoke(*self.args(self.folder(tmp_path, live_data(working, server.url)), working))
        assert f"look further: aibiasbench cache list --cache {tmp_path}/c.sqlite\n" in done.stdout

    def test_money_that_nobody_pays_is_marked(self, tmp_path: Path, working: Bank) -> None:
        folder = self.folder(tmp_path, simulated_data(working))
        done, dry = invoke(*self.args(folder, working)), invoke(*self.args(folder, working), "--dry-run")
        money = [
            line for line in (done.stdout + dry.stdout).splitlines() if "by the whole run" in line or "cap of" in line
        ]
        assert [line.count("(simulated: nobody pays it)") for line in money] == [1, 1]

    def test_plain_lines_hold_no_terminal_codes(self, tmp_path: Path, working: Bank) -> None:
        with ScriptedServer() as server:
            done = invoke(*self.args(self.folder(tmp_path, live_data(working, server.url)), working))
        assert "\x1b" not in done.stdout + done.stderr


class TestTwoProcesses:
    def test_the_second_is_refused(self, tmp_path: Path, working: Bank) -> None:
        folder = write_run_toml(tmp_path / "my-run", simulated_data(working))
        with stage_lock(folder, "eval"):
            done = run("eval", folder, "--cache", tmp_path / "c.sqlite")
        assert done.returncode == 2
        assert f"{folder}: another process is running eval on this run" in done.stderr

    def test_another_stage_is_not(self, tmp_path: Path) -> None:
        with stage_lock(tmp_path, "eval"), stage_lock(tmp_path, "judge"):
            pass

    def test_a_lock_whose_holder_was_killed_is_free(self, tmp_path: Path, working: Bank) -> None:
        arrived = threading.Event()

        def hang(*_: Any) -> Reply:
            arrived.set()
            time.sleep(3)
            return Reply(body=chat())

        with ScriptedServer(hang) as server:
            folder = write_run_toml(tmp_path / "my-run", live_data(working, server.url))
            process = start("eval", folder, "--cache", tmp_path / "c.sqlite")
            assert arrived.wait(30)
            process.kill()
            process.communicate()
        with stage_lock(folder, "eval"):
            pass

    def test_two_at_once_end_as_one(self, tmp_path: Path, working: Bank) -> None:
        """Whoever comes second is refused or finds everything done; nothing is asked twice."""
        with ScriptedServer(lambda *_: Reply(body=chat(), delay=0.01)) as server:
            folder = write_run_toml(tmp_path / "my-run", live_data(working, server.url))
            args = ["eval", folder, "--cache", tmp_path / "c.sqlite", "--concept", working.concepts[0].id]
            both = [start(*args) for _ in range(2)]
            codes = sorted(process.wait() for process in both)
            errors = "".join(process.communicate()[1] for process in both)
        assert codes in ([0, 2], [0, 0])
        assert "Traceback" not in errors
        assert len(server.requests) == 2 * len(working.attribute[working.concepts[0].attribute].groups)
