"""The plan of the demonstration run: every simulated model, written as the run.toml that an operator would write."""

from __future__ import annotations

import json
from dataclasses import dataclass

from generator.schema.bank import Bank
from harness.simulated.planted import JUDGES, PROFILES, described, respondent_for

MARK = "# Written by `aibiasbench demo`, which replaces this folder. Everything in it is simulated."
DATE = "2026-11-30"
RUN_SEED, AUDIT_SEED = 20261130, 1130
CAP_USD = 500
# Made-up prices, so that the books of a simulated run can be followed like those of a real one.
_PRICES = "{ prompt_per_million = 0.50, completion_per_million = 1.50 }"


@dataclass(frozen=True)
class Shape:
    """How large a demonstration is; the models are those of `harness.simulated.planted`."""

    run_id: str
    repeats: int
    models: tuple[str, ...]


FULL = Shape("demo", 3, tuple(profile.habits.model for profile in PROFILES))
SMALL = Shape("demo-small", 2, ("sim-auriga/aria", "sim-draco/delta", "sim-grus/garnet"))


def run_toml(shape: Shape, bank: Bank) -> str:
    """Return the run.toml of a demonstration against a bank."""
    first, second, third = JUDGES
    models = "\n".join(_subject(model, bank) for model in shape.models)
    return f"""\
{MARK}
kind = "simulated"
date = {DATE}
repeats = {shape.repeats}
params = {{ temperature = 1.0, max_tokens = 400 }}

[bank]
version = {json.dumps(bank.version)}
sha256 = "{bank.sha256}"

[seeds]
run = {RUN_SEED}
audit = {AUDIT_SEED}

[caps]
run = {CAP_USD}.0

[judges]
params = {{ temperature = 0.0, max_tokens = 200 }}
primary = [
  {_callee(first.model)},
  {_callee(second.model)},
]
tiebreak = {_callee(third.model)}

{models}"""


def _callee(model: str) -> str:
    return f'{{ model = "{model}", endpoint = "simulated", api_model = "{model}", prices = {_PRICES} }}'


def _subject(model: str, bank: Bank) -> str:
    return f"""\
# {described(respondent_for(model, bank), bank)}
[[models]]
model = "{model}"
endpoint = "simulated"
api_model = "{model}"
prices = {_PRICES}
"""
