"""`aibiasbench publish [RUN...]`: build the static site, or bring it up to date (contract: publication, "Publish")."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from generator.edition.settings import HOST_NAMES, PublishSettings
from generator.machine.options import jobs_option

if TYPE_CHECKING:
    from generator.data.ssh_signature import Signer


@click.command("publish")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--out", default="dist", show_default=True, type=click.Path(path_type=Path), help="Folder of the site.")
@click.option("--base-url", help="Where the site will live: adds canonical links, cards, sitemap and feed.")
@click.option("--host", type=click.Choice(HOST_NAMES), help="Whose limits to keep.")
@click.option(
    "--mode",
    type=click.Choice(("auto", "row", "folded", "files")),
    help="A page a row, rows on their set's page only, no page of a set, or what the host has room for.",
)
@click.option(
    "--preview/--no-preview", default=None, help="Build live runs that are not publishable, too, marked as previews."
)
@click.option(
    "--withhold/--no-withhold", default=None, help="Publish without the categories whose judges or audit fail."
)
@click.option("--remove", multiple=True, metavar="RUN", help="Take a run away and leave a tombstone; repeatable.")
@click.option(
    "--sign",
    type=click.Path(path_type=Path),
    metavar="KEY",
    help="Sign each data manifest with this Ed25519 key; a passphrase is read from AIBIASBENCH_SIGN_PASSPHRASE.",
)
@jobs_option
@click.option("--dask", metavar="ADDRESS", help="Render receipts on a Dask cluster: tcp://HOST:PORT.")
@click.option(
    "--content",
    default="content",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder of site.toml, runs/ and pages/; a page of prose that it lacks is the project's own.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
def command(
    runs: tuple[str, ...],
    out: Path,
    base_url: str | None,
    host: str | None,
    mode: str | None,
    preview: bool | None,
    withhold: bool | None,
    remove: tuple[str, ...],
    sign: Path | None,
    jobs: int | None,
    dask: str | None,
    content: Path,
    as_json: bool,
) -> None:
    """Build the static site: every run, or the RUNs named while the others stay as they are.

    Only what changed is made again. The site in place is replaced in one step, and only when the new one is whole.
    Address, host, mode, previews and withholding are those of site.toml under [publish]; an option overrides one.
    """
    from generator.edition.settings import checked_base_url, read_site
    from generator.machine.workers import checked_dask_address, processors
    from generator.publishing.hosts import HOSTS, Size, next_step
    from generator.publishing.publish import Options, publish

    given = {"base_url": base_url, "host": host, "mode": mode, "preview": preview, "withhold": withhold}
    asked = {name: value for name, value in given.items() if value is not None}
    if base_url:
        asked["base_url"] = checked_base_url(base_url)
    settings = read_site(content / "site.toml").publish.model_copy(update=asked)
    options = Options(
        out=out,
        runs=runs,
        content=content,
        base_url=settings.base_url.rstrip("/") or None,
        host=settings.host,
        mode=None if settings.mode == "auto" else settings.mode,
        preview=settings.preview,
        withhold=settings.withhold,
        remove=remove,
        jobs=jobs or processors(),
        dask=None if dask is None else checked_dask_address(dask),
        sign=_signer(sign),
    )
    told = iter([used(settings, asked)])  # once, before the first thing that is built

    def report(*lines: str) -> None:
        for line in (*told, *lines):
            print(line, file=sys.stderr, flush=True)

    outcome = publish(options, report)
    report()
    if as_json:
        print(json.dumps({"out": str(out), **asdict(outcome)}))
        return
    size = f"{outcome.files:,} files, {outcome.bytes / 1e6:,.0f} MB"
    if outcome.changed:
        print(f"{out}: {size}; built {', '.join(outcome.built) or 'no run'}; the root shows {outcome.front}")
        for word, found in (("kept", outcome.kept), ("removed", outcome.removed)):
            if found:
                print(f"{word}: {', '.join(found)}")
    else:
        print(f"{out} is up to date ({size})")
    for run, digest in outcome.pins.items():
        print(f"Pin of run {run}: {digest}")
    for line in next_step(HOSTS[options.host], out, Size(outcome.files, outcome.bytes), outcome.largest):
        print(line)


def used(settings: PublishSettings, asked: Collection[str]) -> str:
    """Say how this publish publishes, and which of that an option decided."""
    told = {
        "host": settings.host,
        "mode": settings.mode,
        "base_url": settings.base_url or "none",
        "preview": "yes" if settings.preview else "no",
        "withhold": "yes" if settings.withhold else "no",
    }
    return "publishing with " + ", ".join(
        f"{name} {value}{' (by option)' if name in asked else ''}" for name, value in told.items()
    )


def _signer(path: Path | None) -> Signer | None:
    if path is None:
        return None
    from generator.data.ssh_signature import read_signer

    return read_signer(path, os.environ.get("AIBIASBENCH_SIGN_PASSPHRASE"))
