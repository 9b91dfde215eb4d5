"""`manifest.json` as the harness hands it over (contract: run-folder, "manifest.json")."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from generator.schema.bank import Frozen, validation_faults
from generator.schema.columns import FORMATS, LATEST_FORMAT
from generator.schema.errors import InputError, raise_faults
from generator.schema.json_files import read_json, without_schema
from generator.schema.names import model_fault, run_id_fault, successor_fault
from generator.schema.panel import Judges, Panel, judge_faults
from generator.schema.plain_text import control_faults


class Seeds(Frozen):
    """The seeds of the run and of its audit draw."""

    run: int
    audit: int


class ManifestModel(Frozen):
    """One subject: what it is called where, its effective parameters and its panel.

    `endpoint` is the endpoint's name in run.toml. `successor_of` is the slug of the model that it follows by its
    vendor's own word. `from_cache` is the share of its answers, 0-1, that were in the cache already and were not asked
    for this run; None where that is not known (format 1, imported).
    """

    model: str
    api_model: str
    endpoint: str
    params: dict[str, Any]
    added: str
    panel: Panel
    successor_of: str | None = None
    from_cache: float | None = Field(default=None, strict=False, ge=0, le=1)


class Imported(Frozen):
    """Where the answers of an imported run come from, and which steps of the method were not taken on them.

    `matched_by`: whether the prompts of a set differ in one word, or only treat the same topic.
    """

    collected_by: str
    source: str
    matched_by: Literal["word", "topic"]
    not_done: tuple[Literal["masking", "second_judge", "repeats", "audit"], ...] = Field(strict=False)


class Planted(Frozen):
    """One planted effect of a simulated subject or judge.

    `attribute`, `group` and `category` say where it acts, None for everywhere; `size` is in `unit`, None where the
    effect has no size. `text` says it in words.
    """

    who: str
    role: Literal["subject", "judge"]
    effect: str
    attribute: str | None
    group: str | None
    category: str | None
    size: float | None = Field(strict=False)
    unit: str | None
    text: str


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
    """A run's manifest, exactly the keys of (contract: run-folder, "manifest.json").

    A manifest of format 1 lacks the keys that have a default here.
    """

    format: Literal[1, 2] = 1
    run_id: str
    kind: Literal["live", "simulated", "imported"]
    imported: Imported | None = None
    planted: tuple[Planted, ...] | None = Field(default=None, strict=False)
    partial: bool | None = None  # whether planned rows are absent; format 1 does not say
    date: str
    bank_version: str
    bank_sha256: str
    repeats: int = Field(ge=1, le=32767)
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


# What format 2 added: keys of the manifest, and of each of its models.
SINCE_2 = (("imported", "planted", "partial"), ("successor_of", "from_cache"))


def _format_faults(data: Any) -> list[str]:
    """Say what of a manifest does not fit the format that it names; without a name it is of format 1."""
    if not isinstance(data, dict):
        return []
    found = data.get("format", 1)
    if found not in FORMATS or isinstance(found, bool | float):
        known = " and ".join(map(str, FORMATS))
        return [f"format {str(found)[:40]} is not known to this release (it knows {known})"]
    models = data.get("models")
    places: list[tuple[str, Any, tuple[str, ...]]] = [("", data, SINCE_2[0])]
    places += [(f"models.{i}: ", m, SINCE_2[1]) for i, m in enumerate(models if isinstance(models, list) else [])]
    listed = [(where, item, key) for where, item, keys in places if isinstance(item, dict) for key in keys]
    if found == LATEST_FORMAT:
        return [f"{where}{key}: missing; format {found} needs it" for where, item, key in listed if key not in item]
    return [f"{where}{key}: format {found} has no such key" for where, item, key in listed if key in item]


def _kind_faults(manifest: Manifest) -> list[str]:
    """Say which keys do not fit the kind of run."""
    if manifest.format < LATEST_FORMAT:
        return ["kind: format 1 has no imported runs"] if manifest.kind == "imported" else []
    faults = []
    for key, kind in (("imported", "imported"), ("planted", "simulated")):
        if (getattr(manifest, key) is None) == (manifest.kind == kind):
            rule = "must not be" if manifest.kind == kind else "must be"
            faults.append(f"{key}: {rule} null in a run of kind {manifest.kind}")
    for model in manifest.models:
        if (model.from_cache is None) != (manifest.kind == "imported"):
            rule = "must be null" if manifest.kind == "imported" else "is null; it is a share from 0 to 1"
            faults.append(f"model {model.model}: from_cache {rule} in a run of kind {manifest.kind}")
        if "base_url" in model.params:
            faults.append(f"model {model.model}: params hold base_url; the manifest names the endpoint and no address")
    return faults


def _model_faults(manifest: Manifest) -> list[str | None]:
    slugs = [m.model for m in manifest.models]
    found = [model_fault(s) for s in slugs]
    found += [f"model {s} is listed twice" for s in sorted({s for s in slugs if slugs.count(s) > 1})]
    for model in manifest.models:
        before = model.successor_of
        if before is not None and (fault := successor_fault(model.model, before)):
            found.append(f"model {model.model}: successor_of: {fault}")
    return found


def load_manifest(data: Any, where: str) -> Manifest:
    """Validate a parsed manifest; raises InputError with every fault of format, shape, name, text or date."""
    if faults := _format_faults(data):
        raise InputError(*(f"{where}: {fault}" for fault in faults))
    try:
        manifest = Manifest.model_validate(without_schema(data))
    except ValidationError as error:
        raise InputError(*validation_faults(error, where)) from None
    found = [run_id_fault(manifest.run_id), *_model_faults(manifest), *_kind_faults(manifest)]
    found += judge_faults(manifest.judges, imported=manifest.kind == "imported")
    found += [
        f"date {d!r}: use YYYY-MM-DD" for d in (manifest.date, *(m.added for m in manifest.models)) if not _is_date(d)
    ]
    if manifest.supersedes is not None:
        itself = manifest.supersedes == manifest.run_id
        found += ["supersedes: names the run itself" if itself else run_id_fault(manifest.supersedes)]
    raise_faults([*(f"{where}: {fault}" for fault in found if fault), *control_faults(data, where, {"params"})])
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
