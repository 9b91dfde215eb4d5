"""What the plans of a content folder need before they can be asked: a bank without faults, a right pin, keys.

A key is told by the name of its variable, never by its value.

See contract: stages, "Doctor".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from generator.schema.bank import Bank
from generator.schema.checkup import Finding, Looked
from generator.schema.errors import InputError
from harness.bank.reader import BANK_FOLDER, read_bank_folder
from harness.plan.records import EndpointPlan, RunPlan
from harness.plan.run_toml import BANK, RUN_TOML, RUNS, check_pin, read_plan

MANIFEST = "manifest.json"


def findings(looked: Looked) -> Iterator[Finding]:
    """Yield what was found of the bank, then of each run with a plan, in the order of their names."""
    folder = looked.content / BANK_FOLDER.name
    bank: Bank | None = None
    if folder.is_dir():
        bank, found = bank_finding(folder)
        yield found
    plans = sorted((looked.content / RUNS.name).glob(f"*/{RUN_TOML}"))
    if not plans:
        do = f"write {looked.content / RUNS.name}/NAME/{RUN_TOML}, or begin with: aibiasbench init DIR"
        yield Finding("runs", False, "there is no run with a plan", do)
    for path in plans:
        yield from run_findings(path.parent, bank, looked.environment)


def bank_finding(folder: Path) -> tuple[Bank | None, Finding]:
    """Return the bank of a folder, None where it has faults, and what to say of it."""
    do = f"aibiasbench bank check --folder {folder}"
    try:
        bank = read_bank_folder(folder)
    except InputError as error:
        return None, Finding("bank", False, f"{len(error.faults):,} faults, the first: {error.faults[0]}", do)
    return bank, Finding("bank", True, f"version {bank.version}, {len(bank.concepts):,} concepts")


def run_findings(folder: Path, bank: Bank | None, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what a run needs that is not there yet; a finished run needs nothing."""
    what = f"run {folder.name}"
    try:
        plan = read_plan(folder)
        if bank is not None and not (folder / BANK).exists():
            check_pin(plan, bank, str(folder / RUN_TOML))
    except InputError as error:
        seen = f"{len(error.faults):,} faults, the first: {error.faults[0]}"
        yield Finding(what, False, seen, f"mend {folder / RUN_TOML}; for the pin: aibiasbench bank hash")
        return
    done = (folder / MANIFEST).exists()
    yield Finding(what, True, f"{plan.kind}, {len(plan.models)} models{', judged' if done else ''}")
    if not done:
        yield from (key_finding(what, name, user, environment) for name, user in keys_needed(plan).items())


def keys_needed(plan: RunPlan) -> dict[str, str]:
    """Return the names of the variables that a plan's endpoints read, each with the endpoint that needs it first."""
    used = {callee.endpoint for callee in (*plan.models, *plan.judges.all)}
    found: dict[str, str] = {}
    for endpoint, limits in plan.endpoints.items():
        for name in variables_of(limits) if endpoint in used else ():
            found.setdefault(name, endpoint)
    return found


def variables_of(limits: EndpointPlan) -> list[str]:
    """Return the names of the environment's variables that an endpoint reads."""
    return [name for name in (limits.key_env, *limits.header_env.values()) if name is not None]


def key_finding(what: str, name: str, endpoint: str, environment: Mapping[str, str]) -> Finding:
    """Say whether a variable is set; its value is never looked at further."""
    is_set = bool(environment.get(name, "").strip())
    return Finding(f"{what}, key {name} of endpoint {endpoint}", is_set, "set" if is_set else "not set",
                   f"export {name}=...")  # fmt: skip
