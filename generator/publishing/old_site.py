"""What the site that stands says of its runs: read for those that a publish keeps (`plan` decides which).

Of a run that is kept everything is read from its own published `data/manifest.json`, never from the working copy.

See contract: publication, "Publish".
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from generator.edition import paths
from generator.pages.all import RunCard
from generator.schema.canonical import sha256_hex
from generator.schema.errors import InputError
from generator.schema.manifest import Manifest, load_manifest
from generator.scoring.gate import Standing
from generator.scoring.reasons import in_words, load_reasons


@dataclass(frozen=True)
class Published:
    """A run as it stands in the old tree."""

    manifest: Manifest
    standing: Standing
    manifest_sha256: str = ""

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.manifest.run_id

    def card(self, superseded_by: str | None) -> RunCard:
        """Return what the list of runs says of it."""
        own = self.manifest
        return RunCard(
            run_id=own.run_id,
            kind=own.kind,
            date=own.date,
            state=self.standing.state,
            reasons=tuple(map(in_words, self.standing.reasons)),
            models=len(own.models),
            rows=sum(shard.rows for shard in own.shards),
            bank_version=own.bank_version,
            bank_sha256=own.bank_sha256,
            supersedes=own.supersedes,
            superseded_by=superseded_by,
            manifest_sha256=self.manifest_sha256,
        )


def read_published(out: Path, runs: Iterable[str]) -> dict[str, Published]:
    """Return some runs of an existing site by id; raises InputError where one's data manifest cannot be read."""
    found = {}
    for run in sorted(runs):
        file = out / paths.data_file(run, "manifest.json")
        try:
            body = file.read_bytes()
            data: dict[str, Any] = json.loads(body)
            manifest = load_manifest(data["run"], str(file))
            standing = Standing(data["standing"], load_reasons(data["reasons"]), frozenset(data["withheld"]))
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(
                f"{file}: not a manifest of this program; publish that run anew, or take it away with --remove"
            ) from None
        found[manifest.run_id] = Published(manifest, standing, sha256_hex(body))
    return found


def front_key(manifest: Manifest, standing: Standing) -> tuple[bool, bool, bool, str, int, str]:
    """Order runs by their claim to the root: live before simulated, previews last of their kind, then the newest.

    Of two runs of one day the one with more answers goes first. An imported run goes after all others.
    """
    public = standing.state != "preview"
    rows = sum(shard.rows for shard in manifest.shards)
    own = manifest.kind != "imported"
    return (manifest.kind == "live" and public, own, public, manifest.date, rows, manifest.run_id)


def front_run(claims: Mapping[str, tuple[Manifest, Standing]], named: str) -> str:
    """Return the run that the root shows: the one that site.toml names if it is there, else the strongest claim."""
    return named if named in claims else max(claims, key=lambda run: front_key(*claims[run]))


def recovered_folder(out: Path, run_id: str, into: Path) -> Path:
    """Rebuild a run folder from a site's published files, for a kept run whose own folder is gone or has changed.

    Raises InputError when its shards were not published byte for byte.
    """
    data = out / paths.data_file(run_id, "")
    entries = json.loads((data / "manifest.json").read_bytes())["receipts"]
    if not all(entry["unchanged"] for entry in entries):
        raise InputError(
            f"run {run_id} is the one that the site's root shows, and its receipts were not published as they are; "
            f"name it, too: publish ... {run_id}"
        )
    folder = into / run_id
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "receipts").mkdir(parents=True)
    shutil.copyfile(data / "run_manifest.json", folder / "manifest.json")
    shutil.copyfile(data / "bank.json", folder / "bank.json")
    for entry in entries:
        shutil.copyfile(data / entry["files"][0], folder / entry["harness_file"])
    labels = pq.read_table(data / "human_audit.parquet", columns=["receipt_id", "human_label"]).to_pylist()
    if labels:
        lines = ["receipt_id,label", *(f"{row['receipt_id']},{row['human_label']}" for row in labels)]
        (folder / "audit.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder
