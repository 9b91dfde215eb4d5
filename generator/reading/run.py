"""`load` and what it returns: a published run whose every file is held against the manifest before it is read.

See contract: publication, "From Python".
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from generator.machine.site_tree import fresh_tree
from generator.schema import bounded_files
from generator.schema.bank import Bank, load_bank
from generator.schema.canonical import canonical_json, sha256_hex
from generator.schema.errors import InputError
from generator.schema.manifest import Manifest, load_manifest
from generator.schema.names import SHA256, shard_name
from generator.schema.parquet_files import TABLE, read_parquet
from generator.schema.tables import TABLES
from generator.stats.bootstrap import RESAMPLES

from .frames import bank_frame, columns_frame, frame, matched_set
from .kept_files import default_cache, read_kept, write_kept
from .recomputed import RecomputedScore, model_rows, recomputed
from .sources import MANIFEST, RunSource, open_source

if TYPE_CHECKING:
    from generator.verify.findings import Findings

_SUMS, _SIGNATURE = "SHA256SUMS", "manifest.json.sig"


def load(
    where: str | Path, *, pin: str | None = None, cache: str | Path | None = None, deadline: float = 600.0
) -> PublishedRun:
    """Open a published run.

    Args:
        where: the address of a run (`https://…/runs/2026-12`) or of its data folder, the folder of either, or a ZIP or
            tar archive that holds one of them. Nothing but `manifest.json` is read yet.
        pin: the SHA-256 of `manifest.json` that you kept from before.
        cache: the folder for files that come over HTTP, kept by their hash; without it `$AIBIASBENCH_CACHE`, or
            `aibiasbench` in the user's cache folder.
        deadline: seconds that one file may take over HTTP.

    Raises:
        InputError: no published run is there, its manifest has another shape, or the pin is another one.
    """
    source, data = open_source(where, deadline)
    seen = sha256_hex(data)
    if pin is not None and pin.strip().lower() != seen:
        raise InputError(f"{source.where}/{MANIFEST}: SHA-256 is {seen}; the pin is {pin}: another publication")
    return PublishedRun(source, data, Path(cache) if cache is not None else default_cache())


class PublishedRun:
    """A published run. Frames are made when they are first asked for; those of one name are the same object.

    Every method raises InputError when a file is absent, or is not the one that the manifest names.
    """

    def __init__(self, source: RunSource, manifest: bytes, cache: Path) -> None:
        self._source, self._data, self._cache = source, manifest, cache
        self.manifest = _checked_manifest(manifest, f"{source.where}/{MANIFEST}")
        self.pin = sha256_hex(manifest)
        self._files: dict[str, dict[str, Any]] = {entry["name"]: entry for entry in self.manifest["files"]}
        self._made: dict[str, pd.DataFrame] = {}
        self._rescored: dict[str, pa.Table] = {}

    def __repr__(self) -> str:
        mark = ", simulated" if self.simulated else ""
        return f"<run {self.run_id}{mark}: {len(self.models)} models, {self._source.where}>"

    @cached_property
    def _run_manifest(self) -> Manifest:
        return load_manifest(self.manifest["run"], f"{self._source.where}/{MANIFEST}: run")

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self._run_manifest.run_id

    @property
    def simulated(self) -> bool:
        """Whether the answers are simulated, so say nothing of any real model."""
        return self._run_manifest.simulated

    @property
    def models(self) -> tuple[str, ...]:
        """The slugs of the models, sorted as bytes."""
        return tuple(sorted((m.model for m in self._run_manifest.models), key=str.encode))

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the data files, as `read` takes them."""
        return tuple(self._files)

    def read(self, name: str) -> bytes:
        """Return a data file, held against the hash in the manifest."""
        entry = self._files.get(name)
        if entry is None:
            raise InputError(f"{self._source.where}: the manifest lists no file {name!r}; see `files`")
        kept = read_kept(self._cache, entry["sha256"]) if self._source.remote else None
        if kept is not None:
            return kept
        try:
            data = self._source.read(name, min(entry["bytes"], TABLE.file))
        except FileNotFoundError:
            raise InputError(f"{self._source.where}: {name} is not there; the manifest lists it") from None
        if (seen := sha256_hex(data)) != entry["sha256"]:
            raise InputError(
                f"{self._source.where}: {name}: SHA-256 is {seen}; the manifest says {entry['sha256']}: fetch it again"
            )
        if self._source.remote:
            write_kept(self._cache, entry["sha256"], data)
        return data

    def table(self, name: str) -> pd.DataFrame:
        """Return a published table by its name, such as `cells` (contract: tables, "Published tables")."""
        if name not in TABLES:
            raise InputError(f"table {name!r}: there is none of that name; the tables are {', '.join(TABLES)}")
        return self._frames(name)

    @property
    def scores(self) -> pd.DataFrame:
        """Every score, one row each."""
        return self.table("scores")

    @property
    def tiers(self) -> pd.DataFrame:
        """The leaderboard: rank and tier of each model."""
        return self.table("tiers")

    @property
    def comparisons(self) -> pd.DataFrame:
        """Every two models, overall and by attribute."""
        return self.table("comparisons")

    @property
    def agreement(self) -> pd.DataFrame:
        """The agreement of the judges by rubric."""
        return self.table("agreement")

    @cached_property
    def bank(self) -> pd.DataFrame:
        """The prompt bank, one row a prompt."""
        return bank_frame(self._bank)

    @cached_property
    def _bank(self) -> Bank:
        return load_bank(_parsed(self.read("bank.json"), f"{self._source.where}: bank.json"), "bank.json")

    def receipts(self, model: str) -> pd.DataFrame:
        """Return every answer of a model with its votes (contract: receipts, "Columns")."""
        return self._frames(f"receipts/{self._known(model)}")

    def columns(self, name: str) -> pd.DataFrame:
        """Describe the columns of a table or of `receipts`: `column`, `type`, `description`, `unit`, `null`."""
        if name == "receipts":
            name = f"receipts/{shard_name(self.models[0])}"
        elif name not in TABLES:
            raise InputError(f"table {name!r}: there is none of that name; they are {', '.join((*TABLES, 'receipts'))}")
        return columns_frame(self._parts(name)[0].schema)

    def matched_set(self, model: str, concept: str) -> pd.DataFrame:
        """Return a model's answers to one concept: prompts that differ in nothing but the group, side by side."""
        if concept not in self._bank.concept:
            raise InputError(f"concept {concept!r}: the bank has none of that id; see `run.bank.concept.unique()`")
        return matched_set(self.receipts(model), concept)

    def chart(self, model: str) -> Any:
        """Return an Altair chart of a model: consistency by attribute, with the control band."""
        from .chart import consistency_chart

        self._known(model)
        mark = " (simulated)" if self.simulated else ""
        return consistency_chart(self.scores, model, f"{model}, run {self.run_id}{mark}")

    def recompute(self, metric: str, model: str, attribute: str, group: str | None = None) -> RecomputedScore:
        """Work one row of `scores` out anew from the model's receipts.

        Args:
            metric: such as `consistency` (contract: tables, "Scores").
            model: slug.
            attribute: id, or `overall`.
            group: id, for a metric that has a row for each group.

        Raises:
            InputError: there is no such row, or other models' receipts enter it; `verify` works out those, too.
        """
        self._known(model)
        key = {"model": model, "metric": metric, "attribute": attribute, "group": group}
        rows = pa.concat_tables([part.replace_schema_metadata(None) for part in self._parts("scores")]).to_pylist()
        published = next((row for row in rows if all(row[name] == value for name, value in key.items())), None)
        if published is None:
            raise InputError(f"scores: no row of {', '.join(f'{k} {v}' for k, v in key.items() if v is not None)}")
        found = recomputed(self._scored(model), published)
        if found is None:
            raise InputError(f"{metric}: other models' receipts enter it; run.verify() works it out with all others")
        return found

    def verify(self) -> Findings:
        """Read every file, hold it against its hash, and every table against what the receipts come to.

        Returns the findings of `aibiasbench verify DATA_FOLDER`: `mismatches` is empty where all is right.
        """
        from generator.verify.data import verify_data

        with tempfile.TemporaryDirectory(prefix="aibiasbench-") as temporary:
            return verify_data(self.save(Path(temporary, "data")))[0]

    def save(self, folder: str | Path) -> Path:
        """Write every data file below a new folder, each as it was published; returns the folder."""
        target = Path(folder)
        if target.exists():
            raise InputError(f"{target}: is there already; give a folder that is not")
        with fresh_tree(target) as folder:
            for name, data in self.contents():
                place = folder / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(data)
        return target

    def contents(self) -> Iterator[tuple[str, bytes]]:
        """Yield (name, bytes) of every file of the data folder as it was published, in the order of their names."""
        try:
            sums = self._source.read(_SUMS, bounded_files.JSON)
        except FileNotFoundError:
            raise InputError(f"{self._source.where}: {_SUMS} is not there; a data folder has it") from None
        own = {MANIFEST: self._data, _SUMS: sums}
        with suppress(FileNotFoundError):  # few publishers sign
            own[_SIGNATURE] = self._source.read(_SIGNATURE, bounded_files.TOML)
        for name in sorted({*self._files, *own}, key=str.encode):
            yield name, own[name] if name in own else self.read(name)

    def _known(self, model: str) -> str:
        """Return the name of a model's files; raises InputError when the run has no such model."""
        if model not in self.models:
            raise InputError(f"model {model!r}: the run has {', '.join(self.models)}")
        return shard_name(model)

    def _frames(self, stem: str) -> pd.DataFrame:
        if stem not in self._made:
            found = frame(self._parts(stem))
            found.attrs.update(run_id=self.run_id, simulated=self.simulated, table=stem)
            self._made[stem] = found
        return self._made[stem]

    def _parts(self, stem: str) -> list[pa.Table]:
        """Return the parts of a table in their order."""
        from generator.verify.tables import table_files

        names = table_files(self.files, stem)
        if not names:
            raise InputError(f"{self._source.where}: the manifest lists no {stem}.parquet")
        return [read_parquet(self.read(name), f"{self._source.where}: {name}", bounds=TABLE) for name in names]

    def _scored(self, model: str) -> pa.Table:
        """Return a model's rows of `scores` from its receipts alone."""
        if model not in self._rescored:
            self._rescored[model] = model_rows(
                self._run_manifest,
                self._bank,
                model,
                pa.concat_tables(self._parts(f"receipts/{shard_name(model)}")),
                withheld=frozenset(self.manifest["withheld"]),
                resamples=self.manifest["resamples"] or RESAMPLES,
            )
        return self._rescored[model]


def _parsed(data: bytes, where: str) -> Any:
    """Return what JSON bytes hold, to the same bounds as a JSON file of a run."""
    if len(data) > bounded_files.JSON:
        raise InputError(f"{where}: {len(data):,} bytes; at most {bounded_files.JSON:,} are read")
    try:
        found = json.loads(data)
        canonical_json(found)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not JSON: {error}") from None
    return found


def _checked_manifest(data: bytes, where: str) -> dict[str, Any]:
    """Return a data manifest whose shape was checked, every file name in it a path below its folder."""
    from generator.verify.hashes import safe_name
    from generator.verify.told import ToldManifest, checked_told

    found = checked_told(_parsed(data, where), ToldManifest, where)
    for entry in found["files"]:
        if not safe_name(entry["name"]):
            raise InputError(f"{where}: files: {entry['name']!r} is no name below the data folder")
        if SHA256.fullmatch(entry["sha256"]) is None or entry["bytes"] < 0:
            raise InputError(f"{where}: files: {entry['name']}: no SHA-256 of 64 hex digits, or a size below 0")
    return found
