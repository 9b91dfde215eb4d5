"""What eval and judge open alike: plan, bank, lock, cache, ledger, endpoints, engine (contract: stages, "eval").

with open_session(folder, stage="judge", bank=bank, cache=path, now=now) as session:
    outcome = session.engine.run(calls, watch=...)
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from generator.schema.bank import Bank
from generator.schema.errors import CheckError
from harness.batches.connect import batch_lane, open_journal
from harness.cache.answers import Cache
from harness.calls.call import BatchEndpoint, Endpoint
from harness.calls.client import HttpEndpoint, keys_of
from harness.engine.cache_choice import path_from
from harness.engine.desk import OwnLane
from harness.engine.lock import stage_lock
from harness.engine.runner import Engine
from harness.money.budget import Ledger, caps_of
from harness.money.fresh import FreshTokens
from harness.plan.records import SIMULATED, RunPlan
from harness.plan.run_toml import RUN_TOML, check_pin, read_plan


@dataclass(frozen=True)
class Session:
    """An open stage; `lost` counts the calls that a crash left unsettled."""

    folder: Path
    plan: RunPlan
    bank: Bank
    cache: Cache
    ledger: Ledger
    engine: Engine
    lost: int


def connect(plan: RunPlan, bank: Bank, environment: Mapping[str, str]) -> dict[str, Endpoint | BatchEndpoint | OwnLane]:
    """Return the endpoints that a plan's models and judges use, by name; raises InputError where a key is missing."""
    used = {callee.endpoint for callee in (*plan.models, *plan.judges.all)}
    if plan.kind == SIMULATED:
        from harness.simulated.endpoint import Simulated

        return {SIMULATED: Simulated(bank, plan.seeds.run)}
    callees = (*plan.models, *plan.judges.all)
    found: dict[str, Endpoint | BatchEndpoint | OwnLane] = {}
    secrets = keys_of(plan.endpoints.values(), environment)
    for name, limits in plan.endpoints.items():
        own = [c for c in callees if c.endpoint == name]
        if name in used and limits.mode == "batch":
            found[name] = batch_lane(name, limits, own, environment, clock=time.time)
        elif name in used:
            found[name] = HttpEndpoint(name, limits, own, environment, secrets=secrets)
    return found


def with_paths_from(plan: RunPlan, folder: Path) -> RunPlan:
    """Return a plan whose CA files are found from the run's folder."""
    found = {
        name: limits if limits.ca_file is None else limits.model_copy(update={"ca_file": str(folder / limits.ca_file)})
        for name, limits in plan.endpoints.items()
    }
    return plan.model_copy(update={"endpoints": found})


@contextmanager
def open_session(
    folder: Path, *, stage: str, bank: Bank, cache: Path, now: int, environment: Mapping[str, str]
) -> Iterator[Session]:
    """Check the plan against the bank, then hold the stage's lock while it runs.

    Raises InputError when the plan is bad, was made for another bank, a key is missing, or the stage runs already.
    """
    plan = read_plan(folder)
    check_pin(plan, bank, str(folder / RUN_TOML))
    plan = with_paths_from(plan, folder)
    endpoints = connect(plan, bank, environment)
    local = frozenset(c.model for c in (*plan.models, *plan.judges.all) if c.endpoint == SIMULATED)
    with (
        stage_lock(folder, stage),
        Cache(cache, now=now) as answers,
        Ledger(folder, run_id=plan.run_id, stage=stage, caps=caps_of(plan)) as ledger,
        open_journal(folder, stage, endpoints.values()) as elsewhere,
    ):
        ledger.remember_cache(path_from(folder, cache))
        lost = ledger.recover(answers, local, elsewhere)
        if faults := ledger.faults():
            raise CheckError(*faults)
        plan = plan.model_copy(update={"fresh": FreshTokens(ledger).by_model()})
        engine = Engine(plan, cache=answers, ledger=ledger, endpoints=endpoints)
        yield Session(folder, plan, bank, answers, ledger, engine, lost)


def asking_anew(session: Session, models: Sequence[str], token: str) -> tuple[Session, list[str]]:
    """Return the session under new tokens for these models, and the models that still are asked under an older one."""
    tokens = FreshTokens(session.ledger)
    open_ = tokens.begin(models, token)
    return replace(session, plan=session.plan.model_copy(update={"fresh": tokens.by_model()})), open_


def unsent_lines(plan: RunPlan) -> list[str]:
    """Return a line for each model or judge that is not sent a default, with what to do about it."""
    unsent = [(callee, plan.unsent_params(callee)) for callee in (*plan.models, *plan.judges.all)]
    return [
        f"note: {callee.model} is not sent {', '.join(names)}: endpoint {callee.endpoint} does not list it; add it to"
        f" endpoints.{callee.endpoint}.params, or say so with drop = {json.dumps(names)} at the model"
        for callee, names in unsent
        if names
    ]
