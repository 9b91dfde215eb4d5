"""`aibiasbench doctor`: what is missing on this machine and in this folder, and what to type.

Each part of the program says itself what it needs: a module of CHECKS has `findings(looked)`.

See contract: stages, "Doctor".
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from generator.schema.checkup import Finding, Looked
from generator.schema.shown import shown
from harness.terminal.options import json_option

CHECKS = ("generator.machine.checkup", "harness.plan.checkup", "generator.publishing.checkup")


@click.command("doctor")
@click.option("--content", default="content", show_default=True, type=click.Path(path_type=Path),
              help="Folder of site.toml, bank/ and runs/.")  # fmt: skip
@click.option("--out", default="dist", show_default=True, type=click.Path(path_type=Path), help="Folder of the site.")
@json_option
def command(content: Path, out: Path, as_json: bool) -> int:
    """Say what is missing here, and what to type: Python, packages, disk, bank, runs, keys by name, host limits.

    Writes nothing and asks nothing of the network. Exit 1 when something is missing.
    """
    found = list(findings(Looked(content, out, os.environ)))
    lacking = sum(not finding.ok for finding in found)
    if as_json:
        rows = [asdict(finding) for finding in found]
        click.echo(json.dumps({"ok": not lacking, "findings": rows}, indent=2, ensure_ascii=False))
    else:
        for line in lines(found):
            click.echo(line)
    return 1 if lacking else 0


def findings(looked: Looked) -> Iterator[Finding]:
    """Yield the findings of every part of the program, in the order of a benchmark's life."""
    for name in CHECKS:
        yield from importlib.import_module(name).findings(looked)


def lines(found: list[Finding]) -> list[str]:
    """Return findings in words, what to type below each thing that is missing, and the sum last."""
    told = []
    for finding in found:
        told.append(f"{'ok     ' if finding.ok else 'MISSING'}  {shown(finding.what)}: {shown(finding.seen)}")
        if not finding.ok:
            told.append(f"         do: {shown(finding.do)}")
    lacking = sum(not finding.ok for finding in found)
    return [
        *told,
        f"{lacking:,} of {len(found):,} missing" if lacking else f"nothing is missing ({len(found):,} looked at)",
    ]
