"""Options that several commands share, each written once (contract: stages, "Commands")."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from harness.bank.reader import BANK_DEFAULT, bank_folder
from harness.cache.answers import DEFAULT_CACHE
from harness.plan.run_toml import RUNS

runs_option = click.option(
    "--runs-dir", type=click.Path(path_type=Path), default=RUNS, show_default=True, help="Where runs live."
)
bank_option = click.option(
    "--bank",
    "bank_path",
    type=click.Path(path_type=Path),
    default=bank_folder,
    help=f"The working bank; a run that holds a bank.json goes by that one. [default: {BANK_DEFAULT}]",
)
cache_option = click.option(
    "--cache",
    type=click.Path(path_type=Path),
    help=f"Paid answers. [default: the file that the run used before, else {DEFAULT_CACHE}]",
)
forecast_option = click.option("--dry-run", is_flag=True, help="Say what eval and judge would cost, and ask nothing.")
summary_option = click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")


def tell(data: Mapping[str, Any], *lines: str, as_json: bool) -> None:
    """Print what a command did: as one line of JSON, or in words."""
    for line in (json.dumps(data, ensure_ascii=False, allow_nan=False),) if as_json else lines:
        click.echo(line)
