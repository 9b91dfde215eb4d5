"""The generator's `manifest.json` as a record, and its JSON Schema (contract: publication, "Data manifest")."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from generator.edition.edition import Licence
from generator.schema.bank import Frozen
from generator.schema.columns import FORMATS
from generator.schema.json_schemas import record_schema, run_manifest_schema, schema_of
from generator.schema.places import schema_address
from generator.schema.tables import TABLES

FORMAT: Literal[2] = 2
SCHEMA = f"data-manifest.{FORMAT}.schema.json"
ADDRESS = schema_address(SCHEMA)
Sha256 = Field(pattern="^[0-9a-f]{64}$")


class PublishedFile(Frozen):
    """One file of the data folder; rows and columns of tables."""

    name: str
    bytes: int = Field(ge=0)
    sha256: str = Sha256
    rows: int | None = Field(default=None, ge=0)
    columns: int | None = Field(default=None, ge=1)


class PublishedRedaction(Frozen):
    """A response that was withdrawn, with the hash of its text."""

    receipt_id: str
    reason: str
    date: str
    evidence_withdrawn: bool
    response_sha256: str = Sha256


class PublishedShard(Frozen):
    """How a model's receipts were published."""

    model: str
    files: tuple[str, ...] = Field(strict=False, min_length=1)
    harness_file: str
    harness_sha256: str = Sha256
    unchanged: bool
    redactions: tuple[PublishedRedaction, ...] = Field(strict=False)


class PublishedReason(Frozen):
    """What speaks against publication: its check, its figures, and a sentence."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)
    check: str
    text: str


class PublishedGate(Frozen):
    """The gate of one rubric."""

    rubric: str
    gate: Literal["kappa", "pabak", "fail", "insufficient"]
    warning: str | None
    kappa: float | None
    pabak: float | None


class AuditCoverage(Frozen):
    """Models that the audit draw covers, and models that came later."""

    covered: tuple[str, ...] = Field(strict=False)
    not_covered: tuple[str, ...] = Field(strict=False)


class PublishedRoles(Frozen):
    """What the attributes of the bank are for; of the controls that of the band's lower edge stands first."""

    demographic: tuple[str, ...] = Field(strict=False)
    controls: tuple[str, ...] = Field(strict=False)


class DataManifest(Frozen):
    """The whole file. `run` is the harness's manifest as it is; earlier releases published no `roles`."""

    format: Literal[2]
    generator_version: str
    run: dict[str, Any]
    simulated: bool
    standing: Literal["published", "preview", "withheld"]
    reasons: tuple[PublishedReason, ...] = Field(strict=False)
    withheld: tuple[str, ...] = Field(strict=False)
    resamples: int = Field(ge=0)
    roles: PublishedRoles | None = None
    mean_band: dict[str, Any]
    gate: tuple[PublishedGate, ...] = Field(strict=False)
    audit: tuple[dict[str, Any], ...] = Field(strict=False)
    audit_coverage: AuditCoverage | None
    receipts: tuple[PublishedShard, ...] = Field(strict=False)
    licence: Licence
    files: tuple[PublishedFile, ...] = Field(strict=False)


def data_manifest_schema() -> dict[str, Any]:
    """Return the JSON Schema of the file: the record, with run and audit rows described as what they are."""
    made = schema_of(DataManifest, SCHEMA, "manifest.json of a publication", "What was published of a run.")
    definitions = made["$defs"]
    formats = []
    for number in FORMATS:
        run = run_manifest_schema(number)
        # A reference inside a part that has an `$id` of its own is read against that part.
        definitions[f"run_{number}"] = {key: value for key, value in run.items() if key != "$schema"}
        formats.append({"$ref": f"#/$defs/run_{number}"})
    made["properties"]["run"] = {"oneOf": formats, "description": "The manifest of the harness, whole."}
    made["properties"]["audit"]["items"] = record_schema(TABLES["audit_summary"])
    return made
