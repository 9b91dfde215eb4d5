"""`manifest.json` as the harness hands it over (contract: run-folder, "manifest.json")."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from generator.schema.bank import Frozen, validation_faults
from generator.schema.errors import InputError
from generator.schema.json_files import read_json
from generator.schema.names import model_fault, run_id_fault
from generator.schema.panel import Judges, Panel


class Seeds(Frozen):
    """The seeds of the run and of its audit draw."""

    run: int
    audit: int


class ManifestModel(Frozen):
    """One subject: what it is called where, its effective parameters and its panel."""

    model: str
    api_model: str
    endpoint: str
    params: dict[str, Any]
    added: str
    panel: Panel


class Spend(Frozen):
    """US dollars spent."""

    subjects_usd: float = Field(strict=False, ge=0)
    judges_usd: float = Field(strict=False, ge=0)
    total_usd: float = Field(strict=False, ge=0)


class Counts(Frozen):
    """Rows by status."""

    scored: int
    refused: int
    contested: int
    error: int


class ShardEntry(Frozen):
    """One receipts shard."""

    file: str
    model: str
    rows: int
    sha256: str


class Manifest(Frozen):
    """A run's manifest, exactly the keys of (contract: run-folder, "manifest.json")."""

    run_id: str
    kind: Literal["live", "simulated"]
    date: str
    bank_version: str
    bank_sha256: str
    repeats: int = Field(ge=1)
    seeds: Seeds
    harness_sha: str
    judges: Judges
    supersedes: str | None
    models: tuple[ManifestModel, ...] = Field(strict=False)
    spend: Spend
    counts: Counts
    shards: tuple[ShardEntry, ...] = Field(strict=False)

    @property
    def simulated(self) -> bool:
        """Whether the run's answers are simulated."""
        return self.kind == "simulated"

    def model(self, slug: str) -> ManifestModel:
        """Return the entry of a model; raises KeyError when the run has none of that slug."""
        for entry in self.models:
            if entry.model == slug:
                return entry
        raise KeyError(slug)


def load_manifest(data: Any, where: str) -> Manifest:
    """Validate a parsed manifest; raises InputError with every fault of shape, name or date."""
    try:
        manifest = Manifest.model_validate(data)
    except ValidationError as error:
        raise InputError(*validation_faults(error, where)) from None
    slugs = [m.model for m in manifest.models]
    found = [run_id_fault(manifest.run_id), *(model_fault(s) for s in slugs)]
    found += [
        f"date {d!r}: use YYYY-MM-DD" for d in (manifest.date, *(m.added for m in manifest.models)) if not _is_date(d)
    ]
    if manifest.supersedes is not None:
        itself = manifest.supersedes == manifest.run_id
        found += ["supersedes: names the run itself" if itself else run_id_fault(manifest.supersedes)]
    found += [f"model {s} is listed twice" for s in sorted({s for s in slugs if slugs.count(s) > 1})]
    faults = [f"{where}: {fault}" for fault in found if fault]
    if faults:
        raise InputError(*faults)
    return manifest


def _is_date(text: str) -> bool:
    try:
        return dt.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def read_manifest(path: Path) -> Manifest:
    """Read and validate a run's `manifest.json`."""
    absent = f"is {path.parent} a run folder whose judge stage has finished?"
    return load_manifest(read_json(path, absent), str(path))
