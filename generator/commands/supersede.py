"""`aibiasbench supersede OLD --by NEW`: note in `content/history.toml` that one run replaces another.

See contract: publication, "History".
"""

from __future__ import annotations

from pathlib import Path

import click

from generator.machine.options import date_option, history_option


@click.command("supersede")
@click.argument("old")
@click.option("--by", required=True, metavar="NEW", help="The run that replaces it.")
@date_option
@history_option
def command(old: str, by: str, date: str, content: Path) -> None:
    """Note that the run OLD is replaced by NEW. Both stay published; every page of OLD then names NEW."""
    from generator.edition.history import HISTORY, add_entry
    from generator.publishing.plan import check_known

    check_known(content, old, by)
    add_entry(content / HISTORY, "superseded", {"run": old, "by": by, "date": date})
    print(f"{content / HISTORY}: {by} supersedes {old}; next: git add {content / HISTORY}, then aibiasbench publish")
