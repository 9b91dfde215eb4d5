"""`aibiasbench withdraw RUN`: note in `content/history.toml` that a run is published no more.

See contract: publication, "History".
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from generator.machine.options import date_option, history_option, json_option


@click.command("withdraw")
@click.argument("run")
@date_option
@click.option("--reason", required=True, help="Why, in a sentence for readers; it stands at the run's address.")
@history_option
@json_option
def command(run: str, date: str, reason: str, content: Path, *, as_json: bool) -> None:
    """Note that RUN is published no more. The next `publish` puts a tombstone with date and reason in its place."""
    from generator.edition.history import HISTORY, add_entry
    from generator.publishing.plan import check_known

    check_known(content, run)
    entry = {"run": run, "date": date, "reason": reason}
    add_entry(content / HISTORY, "withdrawn", entry)
    if as_json:
        print(json.dumps({"file": str(content / HISTORY), **entry}))
        return
    print(f"{content / HISTORY}: run {run} is withdrawn; next: git add {content / HISTORY}, then aibiasbench publish")
