"""`aibiasbench bank`: check, hash, show and measure the prompt bank (SPEC 1 and 7)."""

from __future__ import annotations

import click

from harness.bank import BANK_FOLDER, read_bank_folder


@click.group()
def command() -> None:
    """Check, hash, show and measure the prompt bank."""


@command.command("hash")
def hash_command() -> None:
    """Print the version and the hash that a run.toml pins."""
    bank = read_bank_folder(BANK_FOLDER)
    click.echo(f"{bank.version} {bank.sha256}")
