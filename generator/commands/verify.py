"""`aibiasbench verify`: exit 0 when everything published follows from the receipts, 1 with each mismatch otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import click

from generator.machine.options import jobs_option
from generator.schema.errors import InputError
from generator.schema.names import SHA256
from generator.verify.findings import Findings


@click.command("verify")
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("--url", help="Fetch and check the data folders of a served site, or one of them, instead of PATH.")
@click.option("--deadline", default=3600.0, show_default=True, type=click.FloatRange(min=1), help="Seconds for --url.")
@click.option("--pin", "pins", multiple=True, metavar="HASH", help="A hash that you kept of a publication; repeatable.")
@click.option(
    "--signer",
    "signers",
    multiple=True,
    metavar="KEY",
    help="Every publication must be signed by this key: ssh-ed25519 AAAA…, or a file of such keys; repeatable.",
)
@click.option("--strict", is_flag=True, help="Exit 1, too, when a part could not be compared.")
@jobs_option
@click.option(
    "--content",
    default="content",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder of the site's site.toml and pages/; without a site.toml there, the project's own.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.pass_context
def command(
    context: click.Context,
    path: Path | None,
    url: str | None,
    deadline: float,
    pins: tuple[str, ...],
    signers: tuple[str, ...],
    *,
    strict: bool,
    jobs: int | None,
    content: Path,
    as_json: bool,
) -> None:
    """Recompute a publication from its receipts and report each mismatch.

    PATH is a run folder, a downloaded data folder, or a whole site. Every hash, every table and the bootstrap counts
    are held against what the receipts come to. Files of a site that were built by the installed release are
    rebuilt and compared byte for byte; files built by any other release are listed as not compared, and their numbers
    and answers are read. Whoever forges the receipts, too, and publishes them again passes: only a pin that was kept
    from before can tell, so each is printed.
    """
    from generator.machine.workers import processors
    from generator.verify.publication import check_pins, verify_path, verify_url
    from generator.verify.signature import check_signers, read_signers

    if (path is None) == (url is None):
        raise click.UsageError("give PATH or --url, one of the two")
    wanted, keys = [checked_pin(pin) for pin in pins], read_signers(signers)
    jobs = jobs or processors()
    findings = verify_path(path, content, jobs=jobs) if path is not None else verify_url(str(url), deadline)
    check_pins(wanted, findings)
    check_signers(keys, findings)
    if as_json:
        print(json.dumps(findings.as_json(), indent=1, ensure_ascii=False))
    else:
        _print(findings)
    context.exit(1 if findings.mismatches or (strict and findings.notes) else 0)


def checked_pin(pin: str) -> str:
    """Return a pin as it is printed; raises InputError when it is no SHA-256."""
    if SHA256.fullmatch(pin.lower()) is None:
        raise InputError(f"--pin {pin}: not a hash of 64 hex digits; `verify`, `publish` and the Data page print it")
    return pin.lower()


def _print(findings: Findings) -> None:
    for mismatch in findings.mismatches:
        print(mismatch)
    counts = ", ".join(f"{count:,} {what}" for what, count in sorted(findings.checked.items()))
    found = len(findings.mismatches)
    print(f"{found:,} mismatch{'' if found == 1 else 'es'}. Checked: {counts or 'nothing'}.")
    for name, digest in sorted(findings.pins.items()):
        print(f"Pin of {name}: {digest}")
    for name, key in sorted(findings.signed.items()):
        print(f"Signed: {name} by {key}")
    for note in findings.notes:
        print(f"Not compared: {note}.")
