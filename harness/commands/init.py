"""`aibiasbench init DIR`: a small benchmark that works at once (contract: stages, "A new benchmark")."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import click

from generator.schema.errors import InputError
from generator.schema.shown import shown
from harness.starter.files import Starter, name_fault, name_from, starter_files
from harness.terminal.options import json_option, tell

PROGRAM = "aibiasbench"


@click.command("init")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--name", help="Title of the benchmark. [default: made from the name of DIR]")
@json_option
def command(folder: Path, name: str | None, *, as_json: bool) -> None:
    """Write a small benchmark into DIR: bank, site.toml, pages, a simulated run, a workflow, a README.

    DIR is made where it does not exist, and may hold nothing but a .git folder. Nothing is asked of the network.
    """
    title = name_from(folder.resolve().name) if name is None else name
    if fault := name_fault(title):
        raise InputError(f"--{fault}")
    check_empty(folder)
    day = dt.datetime.now(tz=dt.UTC).date().isoformat()
    files = starter_files(Starter(title, day, requirement_of(PROGRAM)))
    write_files(folder, files)
    tell(
        {"out": str(folder), "name": title, "files": sorted(files)},
        f"{shown(str(folder))}: {len(files):,} files of a new benchmark, {shown(title)}",
        f"next: cd {shown(str(folder))} && {PROGRAM} doctor; README.md there has the rest, command by command",
        as_json=as_json,
    )


def check_empty(folder: Path) -> None:
    """Raise InputError where a folder holds anything that could be written over; a .git folder is no hindrance."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{shown(str(folder))}: is a file; name a folder that is new or empty")
    held = sorted(path.name for path in folder.iterdir() if path.name != ".git")
    if held:
        raise InputError(f"{shown(str(folder))}: holds {shown(held[0])}; name a folder that is new or empty")


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files below a folder; what could not be finished is taken away again."""
    written: list[Path] = []
    try:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                written.append(path)
                file.write(content)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise


def requirement_of(program: str) -> str:
    """Return the line by which pip installs this very program: its repository's commit, or its name and version.

    An address on this machine is left out, because nobody else has it.
    """
    found = metadata.distribution(program)
    text = found.read_text("direct_url.json")
    source = json.loads(text) if text else {}
    url, commit = str(source.get("url", "")), source.get("vcs_info", {}).get("commit_id")
    if url.startswith("https://"):
        return f"{program} @ git+{url}@{commit}" if commit else f"{program} @ {url}"
    return f"{program}=={found.version}"
