"""`aibiasbench export hf|archive RUN TARGET`: a published run as a folder to push, or as one file.

See contract: publication, "Archives" and "Data card".
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from generator.machine.options import json_option
from generator.schema.errors import InputError

if TYPE_CHECKING:
    from generator.reading.run import PublishedRun

_site = click.option(
    "--site", default="dist", show_default=True, type=click.Path(path_type=Path), help="The site that RUN is an id of."
)
_pin = click.option("--pin", metavar="HASH", help="The SHA-256 of manifest.json that you kept from before.")


@click.group("export")
def command() -> None:
    """Write a published run for another place: RUN is an id in --site, an address, a folder or an archive."""


@command.command("hf")
@click.argument("run")
@click.argument("folder", type=click.Path(path_type=Path))
@_site
@_pin
@json_option
def hugging_face(run: str, folder: Path, site: Path, pin: str | None, *, as_json: bool) -> None:
    """Write the data folder of RUN into FOLDER as a data set repository takes it.

    README.md in it is the data card. Each file is held against its hash first. `hf upload NAME FOLDER --repo-type
    dataset` pushes it.
    """
    found = _published(run, site, pin)
    if "README.md" not in found.files:
        raise InputError(f"{run}: has no data card, because an earlier release published it; publish it again")
    found.save(folder)
    _told(as_json, folder, found, f"{folder}: {len(found.files) + 2:,} files; push it with: hf upload NAME {folder}")


@command.command("archive")
@click.argument("run")
@click.argument("file", type=click.Path(path_type=Path))
@_site
@_pin
@json_option
def archive(run: str, file: Path, site: Path, pin: str | None, *, as_json: bool) -> None:
    """Write every data file of RUN into FILE, a .tar.zst, and print its SHA-256.

    The same publication gives the same bytes. `aibiasbench.load` reads the archive as it is.
    """
    from generator.reading.archive import ENDING, write_archive

    if not file.name.endswith(ENDING):
        raise InputError(f"{file}: give a name that ends in {ENDING}")
    if not file.parent.is_dir():
        raise InputError(f"{file.parent}: no such folder")
    found = _published(run, site, pin)
    files = ((f"{found.run_id}/{name}", data) for name, data in found.contents())
    digest = write_archive(files, found.manifest["run"]["date"], file)
    _told(as_json, file, found, f"{digest}  {file}", sha256=digest)


def _published(run: str, site: Path, pin: str | None) -> PublishedRun:
    from generator.reading.run import load

    by_id = site / "runs" / run
    return load(by_id if "/" not in run and by_id.is_dir() else run, pin=pin)


def _told(as_json: bool, place: Path, found: PublishedRun, line: str, **more: str) -> None:
    if as_json:
        print(json.dumps({"out": str(place), "run_id": found.run_id, "pin": found.pin, **more}))
        return
    print(line)
    print(f"Pin of run {found.run_id}: {found.pin}")
