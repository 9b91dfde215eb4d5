"""The shapes that the JSON files of a data folder must have before anything is read of what they say.

A stranger's file may be a number where a list belongs. It is refused here, by file and place, so that whoever reads on
can rely on the shape. Members that no check reads may be anything.

See contract: publication, "Data files".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from generator.schema import json_files
from generator.schema.bank import validation_faults
from generator.schema.errors import InputError
from generator.stats.bootstrap import RESAMPLES


class _Told(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True, strict=True)


class _File(_Told):
    name: str
    bytes: int
    sha256: str
    rows: int | None = None


class _Redaction(_Told):
    receipt_id: str
    reason: str
    date: str


class _Receipts(_Told):
    model: str
    files: list[str] = Field(min_length=1)
    harness_file: str
    harness_sha256: str
    unchanged: bool
    redactions: list[_Redaction]


class _Gate(_Told):
    rubric: str


class ToldManifest(_Told):
    """The generator's `manifest.json`. More resamples than a publication has would only cost time and memory."""

    run: dict[str, Any]
    simulated: bool
    standing: str
    reasons: list[Any]
    withheld: list[str]
    resamples: int = Field(ge=0, le=RESAMPLES)
    gate: list[_Gate]
    receipts: list[_Receipts]
    files: list[_File]
    generator_version: str


class _Shard(_Told):
    model: str


class ToldRun(_Told):
    """As much of the harness's manifest as laying a run folder out takes; `load_run` checks the rest."""

    kind: Literal["live", "simulated", "imported"]
    shards: list[_Shard]


class _Distributed(_Told):
    name: str
    contentUrl: str  # noqa: N815 - Croissant's own name
    sha256: str


class _FileSet(_Told):
    """The receipts of all models as one: they have their hashes as objects of their own."""

    type: Literal["cr:FileSet"] = Field(alias="@type")
    includes: Literal["receipts/*.parquet"]


class ToldCroissant(_Told):
    """`croissant.json`."""

    distribution: list[_FileSet | _Distributed]


class _Resource(_Told):
    path: str
    hash: str


class ToldPackage(_Told):
    """`datapackage.json`."""

    resources: list[_Resource]


class _Bounds(_Told):
    lower: float | None = None
    upper: float | None = None


class _Uncertainty(_Told):
    confidence_interval: _Bounds = _Bounds()


class _Score(_Told):
    score: float | None
    uncertainty: _Uncertainty = _Uncertainty()


class _Result(_Told):
    evaluation_result_id: str
    score_details: _Score


class _Model(_Told):
    id: str


class ToldRecord(_Told):
    """An Every Eval Ever record."""

    model_info: _Model
    evaluation_results: list[_Result]


def read_told(path: Path, shape: type[_Told]) -> dict[str, Any]:
    """Return what a JSON file of a data folder holds.

    Raises InputError naming the file when it is absent, no JSON or of another shape; then every fault with its place.
    """
    return checked_told(json_files.read_json(path, "a data folder has it"), shape, str(path))


def checked_told(data: Any, shape: type[_Told], where: str) -> dict[str, Any]:
    """Return what was parsed of a JSON file; raises InputError with every fault of its shape, `where` before each."""
    try:
        shape.model_validate(data)
    except ValidationError as error:
        raise InputError(*validation_faults(error, where)) from None
    found: dict[str, Any] = data
    return found
