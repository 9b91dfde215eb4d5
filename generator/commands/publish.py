"""`aibiasbench publish [RUN...]`: build the static site, or bring it up to date (contract: publication, "Publish")."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click

HOST_NAMES = ("plain", "github-pages", "cloudflare-pages", "netlify", "s3")


@click.command("publish")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--out", default="dist", show_default=True, type=click.Path(path_type=Path), help="Folder of the site.")
@click.option("--base-url", help="Where the site will live: adds canonical links, cards, sitemap and feed.")
@click.option("--host", default="plain", show_default=True, type=click.Choice(HOST_NAMES), help="Whose limits to keep.")
@click.option("--mode", type=click.Choice(("row", "folded")), help="A page a row, or rows on their set's page only.")
@click.option("--preview", is_flag=True, help="Build live runs that are not publishable, too, marked as previews.")
@click.option("--withhold", is_flag=True, help="Publish without the categories whose judges or audit fail.")
@click.option("--remove", multiple=True, metavar="RUN", help="Take a run away and leave a tombstone; repeatable.")
@click.option("--jobs", type=click.IntRange(1), help="Processes to use [default: one a processor].")
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
    host: str,
    mode: str | None,
    preview: bool,
    withhold: bool,
    remove: tuple[str, ...],
    jobs: int | None,
    dask: str | None,
    content: Path,
    as_json: bool,
) -> None:
    """Build the static site: every run, or the RUNs named while the others stay as they are.

    Only what changed is made again. The site in place is replaced in one step, and only when the new one is whole.
    """
    from generator.machine.workers import checked_dask_address, processors
    from generator.publishing.publish import Options, publish

    if base_url is not None:
        from generator.edition.edition import checked_base_url

        base_url = checked_base_url(base_url)
    options = Options(
        out=out,
        runs=runs,
        content=content,
        base_url=base_url,
        host=host,
        mode="row" if mode == "row" else "folded" if mode else None,
        preview=preview,
        withhold=withhold,
        remove=remove,
        jobs=jobs or processors(),
        dask=None if dask is None else checked_dask_address(dask),
    )
    outcome = publish(options, lambda line: print(line, file=sys.stderr, flush=True))
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
