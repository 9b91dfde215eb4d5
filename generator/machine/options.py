"""Options that several commands share, each written once (contract: stages, "Commands")."""

from __future__ import annotations

from pathlib import Path

import click

jobs_option = click.option("--jobs", type=click.IntRange(1), help="Processes to use [default: one a processor].")
date_option = click.option(
    "--date", required=True, metavar="YYYY-MM-DD", help="The day that it holds from; no clock is asked."
)
history_option = click.option(
    "--content",
    default="content",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder of site.toml, runs/ and history.toml.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON.")
