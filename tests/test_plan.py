"""run.toml: what is taken, and that each fault is refused with its place (contract: stages, "run.toml")."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from generator.schema.bank import Bank
from generator.schema.errors import InputError
from harness.eval.questions import bank_prompts
from harness.plan.records import Prices, RunPlan
from harness.plan.run_toml import check_pin, read_plan, run_folder
from tests.factories import make_bank
from tests.plans import callee, live_data, make_plan, simulated_data, write_run_toml


@pytest.fixture(scope="module")
def bank() -> Bank:
    return make_bank(("age", "control_tag"), quota={"stance": 1}, control_quota={"stance": 1})


def changed(data: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The data with the value at a dotted path replaced, or taken out when it is `...`."""
    data = copy.deepcopy(data)
    at: Any = data
    *parents, last = [int(part) if part.isdecimal() else part for part in path.split(".")]
    for part in parents:
        at = at[part]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return data


class TestLoadPlan:
    def test_a_plan_keeps_what_run_toml_says(self, bank: Bank) -> None:
        plan = make_plan(live_data(bank), run_id="2026-live")
        assert (plan.run_id, plan.kind, plan.date, plan.repeats) == ("2026-live", "live", "2026-11-30", 1)
        assert plan.judge_names.primary == ("judge-a/x", "judge-b/x")
        assert plan.added("alpha/one") == "2026-11-30"

    def test_what_is_published_of_the_parameters_holds_no_address_and_the_keys_still_do(self, bank: Bank) -> None:
        plan = make_plan(live_data(bank, "http://10.0.0.7:8000/v1"))
        own, shown = (f(plan.subject["alpha/one"]) for f in (plan.effective_params, plan.published_params))
        assert own == {**shown, "base_url": "http://10.0.0.7:8000/v1"}
        assert shown == {"temperature": 1.0, "max_tokens": 100, "api_model": "one"}

    # Each line: a place in run.toml, what is put there, and the words that the refusal must hold.
    @pytest.mark.parametrize(
        ("path", "value", "words"),
        [
            ("colour", 1, ["run.toml: colour: unknown key 'colour'", "allowed here: bank, caps, data_license, date"]),
            ("repeat", 3, ["unknown key 'repeat'", "did you mean 'repeats'?"]),
            ("endpoints.local.timeout", 3, ["endpoints.local.timeout: unknown key", "read_timeout"]),
            ("models.0.price", {}, ["models.0.price: unknown key", "did you mean 'prices'?"]),
            ("judges.primary.0.params", {"n": 2}, ["judges.primary.0 (judge-a/x).params: 'n' is set by the harness"]),
            ("models.0.prices", ..., ["models.0.prices: missing", "0 for what is free"]),
            ("models.0.prices.prompt_per_million", ..., ["prices.prompt_per_million: missing", "0 for what is free"]),
            ("judges.tiebreak.prices", ..., ["judges.tiebreak.prices: missing"]),
            ("models.0.prices.prompt_per_million", -1.0, ["prompt_per_million", "-1.0"]),
            ("models.0.prices.prompt_per_million", float("nan"), ["prompt_per_million", "finite"]),
            ("models.0.prices.prompt_per_million", 1e308, ["prompt_per_million", "less than or equal to 1000000"]),
            ("caps.run", 1e308, ["caps.run", "less than or equal to 1000000"]),
            ("endpoints.local.total_wait", 1e308, ["total_wait", "less than or equal to 86400"]),
            ("models.0.prices.prompt_per_million", "1", ["prompt_per_million", "'1'"]),
            ("models.0.model", "Alpha/One", ["models.0 (Alpha/One): model 'Alpha/One'", "api_model"]),
            ("models.0.model", "alpha/one:free", ["models.0 (alpha/one:free)", "lower case"]),
            ("models.0.model", "alpha/index", ["reserved file name"]),
            ("models.0.api_model", " ", ["models.0 (alpha/one).api_model: empty"]),
            ("models.0.endpoint", "else", ["endpoint: 'else' is not declared; [endpoints] has: local"]),
            ("models.0.params", {"top_k": 3}, ["'top_k' is no parameter that endpoint local knows"]),
            ("models.0.params", {"max_tokens": 0}, ["models.0 (alpha/one): max_tokens is 0"]),
            ("models.0.params", {"max_tokens": True}, ["max_tokens is True"]),
            ("models.0.added", "2026-13-01", ["models.0.added: '2026-13-01' is no day"]),
            ("models", [], ["models", "at least 1 item"]),
            ("params", {"temperature": 1.0}, ["models.0 (alpha/one): max_tokens is None"]),
            ("params.stop", [float("inf")], ["params.stop: [inf] has no JSON form"]),
            ("params.seed", -1, ["params"]),
            ("judges.tiebreak.model", "judge-a/y", ["share a vendor", "use three vendors"]),
            ("judges.primary", [], ["judges.primary"]),
            ("caps", ..., ["caps: Field required"]),
            ("caps.run", -5.0, ["caps.run"]),
            ("caps.models", {"alpha/two": 1.0}, ["caps.models: 'alpha/two' is none of this run's models: alpha/one"]),
            ("caps.judges", {"alpha/one": 1.0}, ["caps.judges: 'alpha/one' is none of this run's judges"]),
            ("date", "30.11.2026", ["date: '30.11.2026' is no day; use YYYY-MM-DD"]),
            ("repeats", 0, ["repeats"]),
            ("repeats", 3.0, ["repeats"]),
            ("kind", "real", ["kind", "'live' or 'simulated'"]),
            ("supersedes", "test-run", ["supersedes: test-run is this run itself"]),
            ("models.0.successor_of", "alpha/one", ["models.0 (alpha/one): successor_of: names the model itself"]),
            ("models.0.successor_of", "Alpha One", ["models.0 (alpha/one): successor_of: model 'Alpha One'"]),
            ("supersedes", "No Such", ["supersedes: run id 'No Such'"]),
            ("bank.sha256", "abc", ["bank.sha256: 'abc' is not 64 hex digits"]),
            ("seeds.audit", ..., ["seeds.audit"]),
            ("endpoints.local.base_url", "ftp://x/v1", ["base_url: 'ftp://x/v1' is no http or https address"]),
            ("endpoints.local.base_url", "http://x:y/v1", ["is no http or https address"]),
            ("endpoints.local.base_url", "https://me:secret@x/v1", ["leave out user, password"]),
            ("endpoints.local.key_env", "sk-or-v1-abc", ["key_env: give the name of an environment variable"]),
            ("endpoints.local.params", ["temperature"], ["endpoints.local.params: 'max_tokens' is missing"]),
            ("endpoints.local.params", ["max_tokens", "stream"], ["'stream' is set by the harness"]),
            ("endpoints.local.headers", {"Authorization": "x"}, ["headers: 'Authorization' is set by the harness"]),
            ("endpoints.local.base_url", "http://exämple/v1", ["is no http or https address"]),
            ("endpoints.local.headers", {"X-Title": "ü"}, ["headers: 'X-Title': 'ü' is no header that can be sent"]),
            ("endpoints.local.headers", {"X Title": "u"}, ["headers: 'X Title': 'u' is no header that can be sent"]),
            ("endpoints.local.concurrency", 0, ["endpoints.local.concurrency"]),
            ("endpoints.local.response_format", "xml", ["response_format"]),
        ],
    )  # fmt: skip
    def test_a_fault_is_refused_with_its_place(self, bank: Bank, path: str, value: Any, words: list[str]) -> None:
        if path == "params.seed":
            data = changed(live_data(bank), "endpoints.local.params", ["max_tokens", "seed"])
            words = ["models.0 (alpha/one): seed is -1"]
        else:
            data = live_data(bank)
        data["caps"].setdefault("models", {})
        with pytest.raises(InputError) as caught:
            make_plan(changed(data, path, value))
        assert [word for word in words if word not in str(caught.value)] == []

    def test_a_faulty_entry_does_not_make_its_list_too_short(self, bank: Bank) -> None:
        data = live_data(bank)
        del data["models"][0]["prices"]
        with pytest.raises(InputError) as caught:
            make_plan(data)
        assert len(caught.value.faults) == 1
        with pytest.raises(InputError, match="run.toml: models: .*at least 1 item"):  # noqa: RUF043 - a dot is a dot
            make_plan(live_data(bank, models=[]))

    def test_every_fault_is_shown_together(self, bank: Bank) -> None:
        data = live_data(bank, date="never", supersedes="test-run", models=[callee("alpha/one", params={"n": 1})])
        with pytest.raises(InputError) as caught:
            make_plan(data)
        assert len(caught.value.faults) == 4
        assert all(fault.startswith("run.toml: ") for fault in caught.value.faults)

    def test_a_model_twice_is_refused(self, bank: Bank) -> None:
        with pytest.raises(InputError, match="alpha/one is listed 2 times"):
            make_plan(live_data(bank, models=[callee("alpha/one"), callee("alpha/one")]))

    def test_a_subject_that_judges_keeps_one_routing(self, bank: Bank) -> None:
        subject = callee("judge-a/x", provider={"only": ["y"]})
        with pytest.raises(InputError, match="judge-a/x is a judge, too, with another provider"):
            make_plan(live_data(bank, models=[subject]))

    @pytest.mark.parametrize("run_id", ["Run", "a_b", "x" * 41, "-a", "con", "lpt1"])
    def test_a_malformed_run_id_is_refused(self, bank: Bank, run_id: str) -> None:
        with pytest.raises(InputError, match="rename the run's folder"):
            make_plan(live_data(bank), run_id=run_id)

    def test_zero_is_a_price(self, bank: Bank) -> None:
        free = callee("alpha/one", prices={"prompt_per_million": 0, "completion_per_million": 0})
        assert make_plan(live_data(bank, models=[free])).subject["alpha/one"].prices.cost(1000, 1000) == 0


class TestKinds:
    def test_a_simulated_vendor_in_a_live_run_is_refused(self, bank: Bank) -> None:
        with pytest.raises(InputError, match=r"models.0 \(sim-alpha/one\): a vendor that begins 'sim-' in a live run"):
            make_plan(live_data(bank, models=[callee("sim-alpha/one")]))

    def test_the_simulated_endpoint_in_a_live_run_is_refused(self, bank: Bank) -> None:
        with pytest.raises(InputError, match="endpoint 'simulated' in a live run"):
            make_plan(live_data(bank, models=[callee("alpha/one", "simulated")]))

    def test_a_real_vendor_in_a_simulated_run_is_refused(self, bank: Bank) -> None:
        with pytest.raises(InputError, match="takes only vendors that begin 'sim-'"):
            make_plan(simulated_data(bank, "alpha/one"))

    def test_a_real_endpoint_in_a_simulated_run_is_refused(self, bank: Bank) -> None:
        data = simulated_data(bank, models=[callee("sim-alpha/one", "local")])
        with pytest.raises(InputError, match="endpoint 'local' in a simulated run"):
            make_plan(data)

    def test_no_endpoint_may_be_called_simulated(self, bank: Bank) -> None:
        data = simulated_data(bank)
        data["endpoints"] = {"simulated": live_data(bank)["endpoints"]["local"]}
        with pytest.raises(InputError, match=r"endpoints\.simulated: 'simulated' is built in"):
            make_plan(data)


class TestParams:
    def plan(self, bank: Bank, **changes: Any) -> RunPlan:
        return make_plan(live_data(bank, params={"temperature": 1.0, "top_k": 5, "max_tokens": 100}, **changes))

    def test_a_default_that_the_endpoint_does_not_know_is_not_sent(self, bank: Bank) -> None:
        plan = self.plan(bank)
        assert plan.sent_params(plan.models[0]) == {"temperature": 1.0, "max_tokens": 100}

    def test_a_models_own_parameter_wins(self, bank: Bank) -> None:
        plan = self.plan(bank, models=[callee("alpha/one", params={"max_tokens": 7})])
        assert plan.sent_params(plan.models[0])["max_tokens"] == 7

    def test_judges_have_their_own_defaults(self, bank: Bank) -> None:
        plan = self.plan(bank)
        assert plan.sent_params(plan.judge["judge-a/x"]) == {"temperature": 0.0, "max_tokens": 50}

    def test_effective_params_name_model_and_place(self, bank: Bank) -> None:
        plan = self.plan(bank)
        assert plan.effective_params(plan.models[0]) == {
            "temperature": 1.0,
            "max_tokens": 100,
            "api_model": "one",
            "base_url": "http://127.0.0.1:9/v1",
        }

    def test_effective_params_of_the_simulator_name_version_and_seed(self, bank: Bank) -> None:
        plan = make_plan(simulated_data(bank))
        found = plan.effective_params(plan.models[0])
        assert (found["simulated"], found["simulated_seed"]) == ("1", 1)

    def test_provider_routing_is_part_of_them_only_where_configured(self, bank: Bank) -> None:
        routing = {"only": ["x"], "allow_fallbacks": False}
        plan = self.plan(bank, models=[callee("alpha/one", provider=routing), callee("alpha/two")])
        found = [plan.effective_params(model).get("provider") for model in plan.models]
        assert found == [routing, None]

    def test_a_judges_response_format_is_part_of_them(self, bank: Bank) -> None:
        plan = self.plan(bank)
        assert plan.effective_params(plan.judge["judge-a/x"])["response_format"] == "json_schema"


class TestPanel:
    def test_a_primary_of_the_subjects_vendor_is_replaced_by_the_tiebreak(self, bank: Bank) -> None:
        plan = make_plan(live_data(bank, models=[callee("judge-b/other")]))
        panel = plan.panel("judge-b/other")
        assert (panel.primary, panel.tiebreak) == (("judge-a/x", "judge-c/x"), None)

    def test_a_tiebreak_of_the_subjects_vendor_is_dropped(self, bank: Bank) -> None:
        plan = make_plan(live_data(bank, models=[callee("judge-c/other")]))
        panel = plan.panel("judge-c/other")
        assert (panel.primary, panel.tiebreak) == (("judge-a/x", "judge-b/x"), None)


class TestPrices:
    def test_a_cost_is_exact_to_the_picodollar(self) -> None:
        prices = Prices(prompt_per_million=0.15, completion_per_million=0.6, request=0.0001)
        assert prices.cost(1_000, 100) == 150_000_000 + 60_000_000 + 100_000_000

    def test_a_fraction_of_a_picodollar_is_rounded_up(self) -> None:
        prices = Prices(prompt_per_million=0.0000015, completion_per_million=0)
        assert (prices.cost(1, 0), prices.cost(2, 0)) == (2, 3)


class TestReadPlan:
    def test_a_run_toml_is_read_from_its_folder(self, bank: Bank, tmp_path: Path) -> None:
        folder = write_run_toml(tmp_path / "my-run", live_data(bank))
        assert read_plan(folder) == make_plan(live_data(bank), run_id="my-run")

    def test_a_toml_date_is_taken_as_well(self, bank: Bank, tmp_path: Path) -> None:
        folder = write_run_toml(tmp_path / "my-run", live_data(bank))
        path = folder / "run.toml"
        path.write_text(path.read_text().replace('"2026-11-30"', "2026-11-30"))
        assert read_plan(folder).date == "2026-11-30"

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (None, "run.toml: not found"),
            (b"kind = ", "not TOML: Invalid value"),
            (b"kind = '\xff'", "not UTF-8 at byte 8"),
            (b"run_id = 'x'", "run_id: leave it out"),
            (b"repeats = " + b"9" * 5000, "not TOML: Exceeds the limit"),
            (b"params = " + b"[" * 50_000, "run.toml: not TOML"),
            (
                b".".join([b"a"] * 5000) + b" = 1",
                "run.toml: not TOML that is read: line 1: a name of more than 32 parts",
            ),
        ],
    )
    def test_an_unreadable_file_is_refused(self, tmp_path: Path, content: bytes | None, words: str) -> None:
        if content is not None:
            (tmp_path / "run.toml").write_bytes(content)
        with pytest.raises(InputError, match=words):
            read_plan(tmp_path)


class TestCheckPin:
    def test_the_planned_bank_passes(self, bank: Bank) -> None:
        check_pin(make_plan(live_data(bank)), bank, "run.toml")

    def test_another_bank_is_refused_with_both_hashes(self, bank: Bank) -> None:
        other = make_bank(("age",), quota={"stance": 1}, version="0.0.2")
        with pytest.raises(InputError) as caught:
            check_pin(make_plan(live_data(bank)), other, "run.toml")
        assert "bank.version is '0.0.1', the working bank is '0.0.2'" in caught.value.faults[0]
        assert bank.sha256 in caught.value.faults[1]
        assert other.sha256 in caught.value.faults[1]

    def test_repeats_of_which_no_shard_holds_the_rows_are_refused(self) -> None:
        bank = make_bank(("age", "gender"), groups=6, quota={"stance": 6, "regard": 6})
        size = len(bank_prompts(bank))
        check_pin(make_plan(live_data(bank) | {"repeats": 1_000_000 // size}), bank, "run.toml")
        with pytest.raises(InputError, match=r"run.toml: repeats: .* at most 1,000,000 are read"):
            check_pin(make_plan(live_data(bank) | {"repeats": 1_000_000 // size + 1}), bank, "run.toml")


class TestRunFolder:
    def test_an_id_means_a_folder_below_the_runs(self, tmp_path: Path) -> None:
        (tmp_path / "my-run").mkdir()
        assert run_folder("my-run", tmp_path) == tmp_path / "my-run"

    def test_a_path_means_itself(self, tmp_path: Path) -> None:
        (tmp_path / "my-run").mkdir()
        assert run_folder(str(tmp_path / "my-run"), tmp_path / "none") == tmp_path / "my-run"

    def test_an_unknown_run_is_refused_with_the_known_ones(self, bank: Bank, tmp_path: Path) -> None:
        write_run_toml(tmp_path / "my-run", live_data(bank))
        with pytest.raises(InputError, match="runs there: my-run"):
            run_folder("your-run", tmp_path)
