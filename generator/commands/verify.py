"""`aibiasbench verify`: exit 0 when everything published follows from the receipts, 1 with each mismatch otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import click

from generator.findings import Findings


@click.command("verify")
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("--url", help="Fetch and check a served site, or one run's data folder, instead of PATH.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.pass_context
def command(context: click.Context, path: Path | None, url: str | None, *, as_json: bool) -> None:
    """Recompute a publication from its receipts and report each mismatch.

    PATH is a run folder, a downloaded data folder, or a whole site. Every hash, every table, the bootstrap counts and
    every number on the pages is held against what the receipts come to.
    """
    from generator.verify import verify_path, verify_url

    if (path is None) == (url is None):
        raise click.UsageError("give PATH or --url, one of the two")
    findings = verify_path(path) if path is not None else verify_url(str(url))
    if as_json:
        print(json.dumps(findings.as_json(), indent=1, ensure_ascii=False))
    else:
        _print(findings)
    context.exit(1 if findings.mismatches else 0)


def _print(findings: Findings) -> None:
    for mismatch in findings.mismatches:
        print(mismatch)
    counts = ", ".join(f"{count:,} {what}" for what, count in sorted(findings.checked.items()))
    print(f"{len(findings.mismatches)} mismatches. Checked: {counts or 'nothing'}.")
