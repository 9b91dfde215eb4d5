"""`aibiasbench cache list|prune`: what has been paid for, and how to throw some of it away.

See contract: stages, "Cache".
"""

from __future__ import annotations

import datetime as dt
import json
import time
from pathlib import Path
from typing import get_args

import click

from generator.schema.errors import InputError
from generator.schema.names import simulated
from harness.cache.answers import DEFAULT_CACHE, Cache, CacheLine
from harness.calls.call import AnswerOutcome
from harness.engine.cache_choice import cache_words
from harness.money.budget import dollars
from harness.terminal.options import json_option, tell

OUTCOMES = get_args(AnswerOutcome)
_OUTCOME_WIDTH = max(map(len, OUTCOMES))
_DAY = 86_400

cache_option = click.option(
    "--cache", type=click.Path(path_type=Path), default=DEFAULT_CACHE, show_default=True, help="The cache file."
)


@click.group("cache")
def command() -> None:
    """List or prune the cache of paid answers."""


@command.command("list", short_help="Show what the cache holds, and what it cost.")
@cache_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(cache: Path, as_json: bool) -> None:
    """Show what the cache holds: answers by role, model and outcome, what they cost, when they came."""
    with _opened(cache) as answers:
        lines = answers.lines()
    rows = [_as_json(line) for line in lines]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    width = max((len(line.model) for line in lines), default=5)
    click.echo(
        f"{'role':9}{'model':{width}}  {'outcome':{_OUTCOME_WIDTH}}{'answers':>9}{'cost':>14}  oldest      newest"
    )
    for row in rows:
        cost = f"${row['cost_usd']:,.4f}"
        click.echo(
            f"{row['role']:9}{row['model']:{width}}  {row['outcome']:{_OUTCOME_WIDTH}}{row['answers']:>9,}{cost:>14}"
            f"  {row['oldest']}  {row['newest']}"
        )
    total, unpaid = sum(line.cost for line in lines), sum(line.cost for line in lines if simulated(line.model))
    mark = f" (${dollars(unpaid):,.2f} of it simulated: nobody paid it)" if unpaid else ""
    click.echo(f"{sum(line.answers for line in lines):,} answers, ${dollars(total):,.2f}{mark}, {cache}")


@command.command("prune")
@cache_option
@click.option("--model", help="Only answers of this model or judge.")
@click.option("--role", type=click.Choice(["subject", "judge"]), help="Only answers of subjects, or of judges.")
@click.option("--outcome", type=click.Choice(OUTCOMES), help="Only answers with this outcome.")
@click.option("--older-than", type=click.IntRange(min=1), metavar="DAYS", help="Only answers at least DAYS old.")
@click.option("--all", "everything", is_flag=True, help="All answers.")
@click.option("--dry-run", is_flag=True, help="Say how many it would be, and keep them.")
@json_option
def prune(
    cache: Path, model: str | None, role: str | None, outcome: str | None, older_than: int | None,
    everything: bool, dry_run: bool, as_json: bool,
) -> None:  # fmt: skip
    """Delete answers that fit every condition given. A run that needs one again pays for it again."""
    if everything == any((model, role, outcome, older_than)):
        raise click.UsageError("say which answers: --model, --role, --outcome, --older-than, or --all")
    # No answer is older than the epoch, however many days are asked for.
    before = max(0, int(time.time()) - older_than * _DAY) if older_than is not None else None
    with _opened(cache) as answers:
        gone = answers.prune(model=model, role=role, outcome=outcome, before=before, dry_run=dry_run)
    tell(
        {"cache": str(cache), "answers": gone, "deleted": not dry_run},
        f"{gone:,} answers {'would be deleted' if dry_run else 'deleted'}",
        as_json=as_json,
    )
    if not gone:
        click.echo(f"no answer fits; what there is: aibiasbench cache list{cache_words(cache)}", err=True)


def _opened(path: Path) -> Cache:
    if not path.exists():
        raise InputError(f"{path}: no cache there yet; eval makes it, or name another with --cache")
    return Cache(path, now=int(time.time()))


def _as_json(line: CacheLine) -> dict[str, str | int | float]:
    return {
        "role": line.role,
        "model": line.model,
        "outcome": line.outcome,
        "answers": line.answers,
        "cost_usd": dollars(line.cost),
        "oldest": _day(line.oldest),
        "newest": _day(line.newest),
    }


def _day(seconds: int) -> str:
    return dt.datetime.fromtimestamp(seconds, tz=dt.UTC).date().isoformat()
