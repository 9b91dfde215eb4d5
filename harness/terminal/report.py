"""What eval and judge tell the operator besides progress: the forecast, amounts and counts in words, how it ended."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from generator.schema.bank import Bank
from generator.schema.errors import CapError, InputError
from harness.cache.answers import Cache
from harness.engine.cache_choice import cache_for, other_cache
from harness.engine.outcome import Outcome
from harness.eval.questions import bank_prompts, chosen
from harness.money.fresh import remembered_tokens
from harness.plan.records import SIMULATED, RunPlan
from harness.plan.run_toml import RUN_TOML, check_pin, read_plan
from harness.stages.forecast import Forecaster
from harness.stages.session import unsent_lines

INTERRUPTED = 130


def chosen_cache(folder: Path, named: Path | None) -> Path:
    """Return the cache that a stage of a run uses; says so where it is another than before."""
    if before := other_cache(folder, named):
        click.echo(
            f"note: the answers of this run so far are in {before}; what {named} lacks is asked, and paid, again",
            err=True,
        )
    return cache_for(folder, named)


def show_forecast(
    folder: Path,
    bank: Bank,
    cache: Path,
    *,
    models: Sequence[str],
    concepts: Sequence[str],
    as_json: bool,
    fresh: bool = False,
) -> None:
    """Print what eval and judge would ask and cost; needs no key and writes nothing."""
    plan = read_plan(folder)
    check_pin(plan, bank, str(folder / RUN_TOML))
    plan = plan.model_copy(update={"fresh": _tokens(folder, plan, models, fresh=fresh)})
    for line in unsent_lines(plan):
        click.echo(line, err=True)
    prompts = bank_prompts(bank, chosen(concepts, list(bank.concept), "concept"))
    with Cache(cache if cache.exists() else Path(":memory:"), now=0) as answers:
        forecaster = Forecaster(plan, bank, answers)
        for model in chosen(models, list(plan.subject), "model"):
            forecaster.add(model, prompts)
    lines = [f.as_json() for f in (*forecaster.subjects.values(), *forecaster.judges.values())]
    total = {key: sum(float(line[key]) for line in lines) for key in ("calls", "expected_usd", "most_usd")}
    report = {"run_id": plan.run_id, "kind": plan.kind, "cap_usd": plan.caps.run, "total": total, "calls": lines}
    click.echo(json.dumps(report, indent=2) if as_json else "\n".join(forecast_lines(lines, total, plan)))


def _tokens(folder: Path, plan: RunPlan, models: Sequence[str], *, fresh: bool) -> dict[str, str]:
    """Return the tokens under which models would be asked; one that does not exist yet finds nothing in the cache."""
    known = remembered_tokens(folder)
    begun = {model: token for model, (token, done) in known.items() if not (fresh and done)}
    new = dict.fromkeys(models or plan.subject, "") if fresh else {}
    return {**{model: token for model, (token, _) in known.items()}, **new, **begun}


def forecast_lines(lines: Sequence[dict[str, Any]], total: dict[str, Any], plan: RunPlan) -> list[str]:
    """Return the forecast as a table in plain text."""
    width = max(len(str(line["model"])) for line in lines)
    head = f"{'role':8}{'model':{width}}{'cached':>9}{'calls':>9}{'prompt tokens':>15}{'answer tokens':>15}"
    rows = [
        f"{line['role']:8}{line['model']:{width}}{line['cached']:>9,}{line['calls']:>9,}{line['prompt_tokens']:>15,}"
        f"{line['completion_tokens']:>15,}{usd(line['expected_usd']):>12}{usd(line['most_usd']):>12}"
        for line in lines
    ]
    left = f"{'':8}{'together':{width}}{'':>9}{total['calls']:>9,.0f}{'':>30}"
    cap = f"cap of the run: {usd(plan.caps.run)}{unpaid(plan.kind)}."
    sums = f"{usd(total['expected_usd']):>12}{usd(total['most_usd']):>12}"
    return [
        f"{head}{'expected':>12}{'at most':>12}",
        *rows,
        left + sums,
        f"{cap} No call is made that could pass a cap, whatever this estimate says.",
        "At most: every try of every call at its worst case, those that fail included.",
    ]


def unpaid(kind: str) -> str:
    """Return what follows an amount of US dollars that nobody pays."""
    return " (simulated: nobody pays it)" if kind == SIMULATED else ""


def stage_name(name: str, kind: str) -> str:
    """Return the name of a stage or wave as its progress shows it, beside the money."""
    return f"{name}, simulated" if kind == SIMULATED else name


def spent_line(summary: dict[str, Any]) -> str:
    """Return what a run has spent so far, of what it may."""
    spent, cap = usd(summary["spent_usd"]), usd(summary["cap_usd"])
    return f"spent: {spent} of {cap} by the whole run so far{unpaid(summary['kind'])}"


def usd(amount: float) -> str:
    """Return an amount of US dollars: cents, and more digits below one cent."""
    return f"${amount:,.2f}" if amount >= 0.01 or amount == 0 else f"${amount:.6f}"


def counts(pairs: Iterable[tuple[str, int]]) -> str:
    """Return counts in words."""
    return ", ".join(f"{number:,} {name}" for name, number in pairs) or "none"


def failed_counts(failed: Mapping[str, int], reasons: Mapping[str, str]) -> str:
    """Return how many calls failed for good, by code, each with what the endpoint said last."""
    return "; ".join(
        f"{number:,} {code}" + (f" (the last: {reasons[code]})" if code in reasons else "")
        for code, number in failed.items()
    )


def overspent_lines(overspent: Mapping[str, int], overlong: Mapping[str, int]) -> list[str]:
    """Return a line for each model whose calls cost more than its declared prices, or its max_tokens, allow."""
    return [
        f"{number:,} calls of {model} cost more than its declared prices allow; check the prices in {RUN_TOML}"
        for model, number in sorted(overspent.items())
    ] + [
        f"{number:,} calls of {model} used more than max_tokens, which its endpoint does not hold; each of its calls"
        " reserves that much since"
        for model, number in sorted(overlong.items())
    ]


def exit_code(outcome: Outcome, again: str) -> int:
    """Return 0 or 130; raises CapError or InputError where a cap or a closed lane stopped calls, or none answered."""
    left = f"{len(outcome.left):,} calls are left; `{again}` goes on from here" if outcome.left else "no call is left"
    if outcome.interrupted:
        click.echo(f"interrupted: {left}", err=True)
        return INTERRUPTED
    if outcome.closures:
        raise InputError(*(f"{lane}: {c.why}; {c.remedy}" for lane, c in outcome.closures.items()), left)
    if outcome.capped:
        raise CapError(f"stopped at a spend cap ({', '.join(sorted(outcome.capped))}): {left}, with a higher cap")
    if outcome.barren:
        last = list(outcome.reasons.values())[-1]
        raise InputError(f"no call was answered, the last failed with: {last}", f"once that is mended: `{again}`")
    return 0
