"""Options that several commands share, each written once (contract: stages, "Commands")."""

from __future__ import annotations

import click

jobs_option = click.option("--jobs", type=click.IntRange(1), help="Processes to use [default: one a processor].")
