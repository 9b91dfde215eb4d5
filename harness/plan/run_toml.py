"""Reads `run.toml`: parsed, checked whole, frozen (contract: stages, "run.toml").

Every fault is found before any work starts and named with file, place, what was seen and what is allowed.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from generator.schema.bank import Bank, read_bank, validation_faults
from generator.schema.errors import InputError, raise_faults
from generator.schema.layout import Layout
from generator.schema.plain_text import control_faults
from generator.schema.toml_files import read_toml
from harness.plan.checks import plan_faults
from harness.plan.records import RunPlan

RUN_TOML = "run.toml"
BANK = "bank.json"  # the snapshot, there once the run is judged
RUNS = Path("content/runs")
OUTSIDE = {"run_id", "fresh"}  # fields of a plan that its run.toml does not hold


def read_run_bank(folder: Path, working: Callable[[], Bank]) -> Bank:
    """Return the bank that a run goes by: its own snapshot, or the working bank while it has none.

    Args:
        folder: the run's folder.
        working: reads the working bank; not called for a run with a snapshot, so that bank may be another or broken.

    Raises:
        InputError: the bank does not read, or is not the one that run.toml pins (contract: stages, "run.toml").
    """
    snapshot = folder / BANK
    plan, own = read_plan(folder), snapshot.exists()
    bank = read_bank(snapshot) if own else working()
    check_pin(plan, bank, str(folder / RUN_TOML), named=f"the run's own {BANK}" if own else "the working bank")
    return bank


def check_pin(plan: RunPlan, bank: Bank, where: str, *, named: str = "the working bank") -> None:
    """Refuse a plan for another bank, called `named`, or of too many rows (contract: stages, "run.toml")."""
    faults = []
    if plan.bank.version != bank.version:
        faults.append(f"{where}: bank.version is {plan.bank.version!r}, {named} is {bank.version!r}")
    if plan.bank.sha256 != bank.sha256:
        faults.append(
            f"{where}: bank.sha256 is {plan.bank.sha256}, {named} hashes to {bank.sha256}; use the bank"
            " that this run was planned for, or plan a new run"
        )
    raise_faults([*faults, *(f"{where}: repeats: {fault}" for fault in Layout(bank, plan.repeats).faults)])


def load_plan(data: Any, *, run_id: str, where: str) -> RunPlan:
    """Validate a parsed run.toml; raises InputError with every fault."""
    try:
        plan = RunPlan.model_validate({**data, "run_id": run_id, "fresh": {}})
    except ValidationError as error:
        raise InputError(*_shape_faults(error, where)) from None
    faults = [f"{where}: {fault}" for fault in plan_faults(plan)]
    raise_faults([*faults, *control_faults(data, where, {"params", "provider"})])
    return plan


def read_plan(folder: Path) -> RunPlan:
    """Read and validate the run.toml of a run folder; the folder's name is the run id."""
    path = folder / RUN_TOML
    try:
        data = read_toml(path)
    except FileNotFoundError:
        raise InputError(f"{path}: not found; a run is a folder with a hand-written {RUN_TOML}") from None
    if "run_id" in data:
        raise InputError(f"{path}: run_id: leave it out; the folder's name is the run id")
    if "fresh" in data:
        raise InputError(f"{path}: fresh: leave it out; `aibiasbench eval RUN --fresh` asks anew")
    try:
        return load_plan(data, run_id=folder.resolve().name, where=str(path))
    except RecursionError:
        raise InputError(f"{path}: tables are nested too deep; a run.toml needs four levels") from None


def run_folder(run: str, runs: Path = RUNS) -> Path:
    """Return the folder that RUN on a command line means: an id below `runs`, or a path."""
    by_id = runs / run
    if "/" not in run and by_id.is_dir():
        return by_id
    path = Path(run)
    if path.is_dir():
        return path
    known = ", ".join(sorted(p.parent.name for p in runs.glob(f"*/{RUN_TOML}"))) or "none"
    raise InputError(f"run {run!r}: no such folder in {runs} and no such path; runs there: {known}")


def _shape_faults(error: ValidationError, where: str) -> list[str]:
    """Word a shape error; an unknown key comes with the keys that are known there."""
    items = error.errors()
    faults = validation_faults(error, where)
    for i, item in enumerate(items):
        if item["type"] == "extra_forbidden":
            *parents, key = item["loc"]
            known = _keys_at(parents)
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            place = ".".join(str(part) for part in item["loc"])
            faults[i] = f"{where}: {place}: unknown key {str(key)!r}; allowed here: {', '.join(known)}{hint}"
        elif item["type"] == "missing" and "prices" in item["loc"]:
            place = ".".join(str(part) for part in item["loc"])
            faults[i] = f"{where}: {place}: missing; every price is declared in US dollars, 0 for what is free"
    # A list whose entries are at fault is said to be too short as well, for lack of good ones.
    inside = {item["loc"][:depth] for item in items for depth in range(1, len(item["loc"]))}
    return [
        fault
        for fault, item in zip(faults, items, strict=True)
        if item["type"] != "too_short" or item["loc"] not in inside
    ]


def _keys_at(parents: list[int | str]) -> list[str]:
    """Return the keys that run.toml knows at a place, found by walking the records."""
    record: type[BaseModel] = RunPlan
    for part in parents:
        if isinstance(part, str) and part in record.model_fields:
            record = _record_in(record.model_fields[part].annotation) or record
    return sorted(set(record.model_fields) - OUTSIDE)


def _record_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in getattr(annotation, "__args__", ()) if (found := _record_in(part))), None)
