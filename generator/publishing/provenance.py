"""`publication.json` at the site's root: what decides the pages' bytes and stands in no data file.

`publish` writes it, one record a run and one for the root; `verify` reads it, makes the pages anew and compares bytes.
A run that a publish keeps as it stands keeps its record, too.

See contract: publication, "publication.json".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from generator.edition.edition import Edition, Mode
from generator.runs.operator_notes import AUDIT_RECORD, NOTE_FILE, read_note, reviewer
from generator.schema.bank import Frozen, validation_faults
from generator.schema.errors import InputError
from generator.schema.json_schemas import PUBLISHED

PUBLICATION = "publication.json"
FORMAT: Literal[1] = 1
SCHEMA = f"publication.{FORMAT}.schema.json"


class Making(Frozen):
    """How one run's pages, or those of the root, were made.

    `sources`: the hash of program, templates and words (`incremental.sources_version`). `linked`: of the runs that it
    supersedes or is superseded by, those that have a page. `note` and `reviewer`: what the operator's own files in the
    run folder say; no data file holds them.
    """

    sources: str
    mode: Mode
    base_url: str | None
    superseded_by: str | None
    linked: tuple[str, ...]
    note: tuple[str, ...]
    reviewer: str

    @classmethod
    def of(cls, edition: Edition, sources: str) -> Making:
        """Return the record of an edition's pages."""
        related = {edition.run.manifest.supersedes, edition.superseded_by} - {None}
        return cls(
            sources=sources,
            mode=edition.mode,
            base_url=edition.base_url,
            superseded_by=edition.superseded_by,
            linked=tuple(sorted(run for run in related if run is not None and edition.links_to(run))),
            note=read_note(edition.run.folder),
            reviewer=reviewer(edition.run.folder),
        )

    def write_words(self, folder: Path) -> None:
        """Put note and reviewer into a run folder, where the pages look for them, in the place of any other."""
        (folder / AUDIT_RECORD).parent.mkdir(exist_ok=True)
        (folder / NOTE_FILE).write_text("\n\n".join(self.note), encoding="utf-8")
        (folder / AUDIT_RECORD).write_text(json.dumps({"reviewer": self.reviewer}), encoding="utf-8")


class Publication(Frozen):
    """The whole file."""

    schema_address: str = Field(default=f"{PUBLISHED}/{SCHEMA}", alias="$schema")
    format: Literal[1]
    root: Making
    runs: dict[str, Making]


def render_publication(
    front: Edition, editions: Sequence[Edition], kept: Mapping[str, Making], sources: str
) -> tuple[str, bytes]:
    """Return (path below dist/, bytes) of the file; `kept` are the records of runs that stay as they stand."""
    runs = {**kept, **{edition.run_id: Making.of(edition, sources) for edition in editions}}
    # No page of the root shows a note. Of the mode it shows only where a set is read: alike in row and folded mode.
    mode = "files" if front.mode == "files" else "row"
    root = Making.of(front, sources).model_copy(update={"note": (), "mode": mode})
    found = Publication(format=FORMAT, root=root, runs=dict(sorted(runs.items())))
    return PUBLICATION, json.dumps(
        found.model_dump(mode="json", by_alias=True), indent=1, ensure_ascii=False
    ).encode() + b"\n"


def read_publication(dist: Path) -> Publication | None:
    """Read a site's file, None where it has none; raises InputError with every fault of its shape."""
    file = dist / PUBLICATION
    try:
        return Publication.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise InputError(*validation_faults(error, str(file))) from None


def kept_makings(dist: Path, runs: Sequence[str]) -> dict[str, Making]:
    """Return the records of some runs of an old tree; those of an older program have none."""
    try:
        found = read_publication(dist)
    except InputError:
        return {}  # of another format: such a run cannot be made anew, and verify says so
    return {run: found.runs[run] for run in runs if run in found.runs} if found else {}
