"""The plan of the demonstration run: every simulated model, written as the run.toml that an operator would write."""

from __future__ import annotations

import json
from dataclasses import dataclass

from generator.schema.bank import Bank
from harness.simulated.planted import JUDGES, RESPONDENTS, Respondent

MARK = "# Written by `aibiasbench demo`, which replaces this folder. Everything in it is simulated."
DATE = "2026-11-30"
RUN_SEED, AUDIT_SEED = 20261130, 1130
CAP_USD = 500
# Made-up prices, so that the books of a simulated run can be followed like those of a real one.
_PRICES = "{ prompt_per_million = 0.50, completion_per_million = 1.50 }"


@dataclass(frozen=True)
class Shape:
    """How large a demonstration is."""

    run_id: str
    repeats: int
    respondents: tuple[Respondent, ...]


FULL = Shape("demo", 3, RESPONDENTS)
_GLANCE = ("sim-auriga/aria", "sim-draco/delta", "sim-grus/garnet")
SMALL = Shape("demo-small", 2, tuple(r for r in RESPONDENTS if r.model in _GLANCE))


def run_toml(shape: Shape, bank: Bank) -> str:
    """Return the run.toml of a demonstration against a bank."""
    first, second, third = JUDGES
    models = "\n".join(_subject(respondent) for respondent in shape.respondents)
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


def _subject(who: Respondent) -> str:
    return f"""\
# {who.planted}
[[models]]
model = "{who.model}"
endpoint = "simulated"
api_model = "{who.model}"
prices = {_PRICES}
"""
