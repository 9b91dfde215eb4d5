"""`aibiasbench supersede OLD --by NEW`: note in `content/history.toml` that one run replaces another.

See contract: publication, "History".
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from generator.machine.options import date_option, history_option, json_option


@click.command("supersede")
@click.argument("old")
@click.option("--by", required=True, metavar="NEW", help="The run that replaces it.")
@date_option
@history_option
@json_option
def command(old: str, by: str, date: str, content: Path, *, as_json: bool) -> None:
    """Note that the run OLD is replaced by NEW. Both stay published; every page of OLD then names NEW."""
    from generator.edition.history import HISTORY, add_entry
    from generator.publishing.plan import check_known

    check_known(content, old, by)
    entry = {"run": old, "by": by, "date": date}
    add_entry(content / HISTORY, "superseded", entry)
    if as_json:
        print(json.dumps({"file": str(content / HISTORY), **entry}))
        return
    print(f"{content / HISTORY}: {by} supersedes {old}; next: git add {content / HISTORY}, then aibiasbench publish")
