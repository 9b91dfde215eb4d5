"""The reference of run.toml, its JSON Schema and the examples: current, and loaded as a user would load them."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from harness.bank.reader import read_bank_folder
from harness.plan.records import RunPlan
from harness.plan.reference import PAGE, SCHEMA, render_reference, render_schema, tables
from harness.plan.run_toml import OUTSIDE, check_pin, load_plan
from harness.stages.session import connect, unsent_lines

DOCS = Path(__file__).parent.parent / "docs"
EXAMPLES = sorted((DOCS / "examples").glob("*.toml"))


class TestReference:
    def test_page_and_schema_are_current(self) -> None:
        assert (DOCS / PAGE).read_text() == render_reference(), "type: make reference"
        assert (DOCS / SCHEMA).read_text() == render_schema(), "type: make reference"

    def test_every_key_has_a_meaning(self) -> None:
        missing = [
            f"{place}.{name}"
            for place, record in tables()
            for name, field in record.model_fields.items()
            if not field.description and not (record is RunPlan and name in OUTSIDE)
        ]
        assert missing == []

    def test_a_row_says_type_default_and_meaning(self) -> None:
        expected = "| `max_attempts` | whole number | `6` | Attempts at one call; status 429 does not count. |"
        assert expected in render_reference().splitlines()

    def test_what_no_run_toml_holds_is_in_neither(self) -> None:
        schema = json.loads(render_schema())
        assert OUTSIDE & set(schema["properties"]) == set()
        assert "| `run_id` |" not in render_reference()


class TestExamples:
    def test_there_is_one_for_each_kind_of_endpoint(self) -> None:
        kinds = ["anthropic", "azure", "gemini", "local", "openai", "openrouter"]
        assert [path.stem for path in EXAMPLES] == kinds

    @pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
    def test_it_loads_for_the_working_bank_and_sends_every_default(self, path: Path) -> None:
        bank = read_bank_folder()
        plan = load_plan(tomllib.loads(path.read_text()), run_id="example", where=path.name)
        check_pin(plan, bank, path.name)
        assert unsent_lines(plan) == []
        variables = re.findall(r"[A-Z_]+_KEY", path.read_text())
        assert connect(plan, bank, dict.fromkeys(variables, "key")).keys() == plan.endpoints.keys()

    @pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
    def test_it_leaves_a_model_room_to_think(self, path: Path) -> None:
        plan = load_plan(tomllib.loads(path.read_text()), run_id="example", where=path.name)
        least = 1_000 if path.stem == "local" else 4_000
        assert all(plan.sent_params(model)["max_tokens"] >= least for model in plan.models)
