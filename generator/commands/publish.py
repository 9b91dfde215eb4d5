"""`aibiasbench publish [RUN...]`: build the static site."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--out", default="dist", show_default=True, type=click.Path(path_type=Path), help="Folder of the site.")
@click.option(
    "--content", default="content", show_default=True, type=click.Path(path_type=Path), help="Runs and prose."
)
@click.option("--base-url", help="Where the site will live: adds canonical links, sitemap and feed.")
@click.option("--preview", is_flag=True, help="Build a run that is not publishable, marked as a preview.")
@click.option("--withhold", is_flag=True, help="Publish without the categories whose judges fail the gate.")
def command(
    runs: tuple[str, ...], out: Path, content: Path, base_url: str | None, preview: bool, withhold: bool
) -> None:
    """Build the static site: every run, or the RUNs named, the others kept as they are."""
    from generator.publish import Options, publish

    publish(Options(out, runs, content, base_url, preview, withhold))
    print(f"published to {out}")
