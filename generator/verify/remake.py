"""Makes a run's files anew from its own receipts and holds them against the site, byte for byte.

This is the check of what stands in no element that names its number: words, labels and counts, charts, the plain lists,
the explorer's index, the descriptions of the data files. Only what this very program made can be held so;
`publication.json` says which did.

See contract: publication, "Verify".
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.data.folder import MANIFEST, manifest_sha256, write_downloads
from generator.data.receipts import PublishedReceipts, published_receipts, receipts_task, write_receipt_files
from generator.edition import paths
from generator.edition.edition import Edition, Site, read_site
from generator.machine.workers import Workers
from generator.pages.all import render_figures, render_pages
from generator.pages.data import render_data
from generator.publishing.fingerprints import sources_version
from generator.publishing.provenance import Making
from generator.receipts.explorer import render_explorer
from generator.receipts.lists import render_list
from generator.receipts.pages import (
    BATCH_ROWS,
    ReceiptTask,
    first_key,
    receipt_assets,
    receipt_task,
    render_batch,
    set_batches,
)
from generator.runs.redactions import Redactions, read_redactions
from generator.schema.errors import CheckError
from generator.schema.manifest import load_manifest
from generator.schema.places import own_folder
from generator.scoring.gate import Standing
from generator.scoring.reasons import Reason, load_reasons
from generator.verify.bytes import Held
from generator.verify.data import Recomputed, standing_now
from generator.verify.findings import Findings
from generator.verify.hashes import RUN_MANIFEST
from generator.verify.told import ToldManifest, ToldRun, read_told

Files = Iterator[tuple[str, bytes]]


@dataclass(frozen=True)
class Words:
    """What the site says beside its runs, from the folder of `site.toml`, and the hash of this program with it."""

    site: Site
    redactions: Redactions
    sources: str
    chart_cache: Path | None

    @classmethod
    def read(cls, content: Path) -> Words:
        """Read a content folder; one without a site.toml stands for the project's own."""
        given = (content / "site.toml").is_file()
        folder = content if given else own_folder("content")
        return cls(
            site=read_site(folder / "site.toml"),
            redactions=read_redactions(folder / "redactions.toml"),
            sources=sources_version(folder),
            chart_cache=content.resolve().parent / ".cache" / "charts" if given else None,  # as publish has it
        )


def edition_of(data: Path, found: Recomputed, making: Making, words: Words) -> Edition:
    """Return a run as it was published, with scores and standing that were recomputed."""
    making.write_words(found.run.folder)
    # Of a shard that was written anew the run folder names the published hash; pages show the harness's manifest.
    shutil.copyfile(data / RUN_MANIFEST, found.run.folder / MANIFEST)
    run = dataclasses.replace(found.run, manifest=load_manifest(read_told(data / RUN_MANIFEST, ToldRun), RUN_MANIFEST))
    manifest = read_told(data / MANIFEST, ToldManifest)
    return Edition(
        site=words.site,
        run=run,
        scored=found.as_published(manifest),
        standing=_standing(manifest, found),
        mode=making.mode,
        base_url=making.base_url,
        superseded_by=making.superseded_by,
        runs=frozenset(making.linked),
        chart_cache=words.chart_cache,
        redactions=words.redactions,
    )


def _standing(manifest: dict[str, Any], found: Recomputed) -> Standing:
    try:
        return standing_now(manifest, found)
    except CheckError:  # named already: this run should not have been published as it was
        return Standing(manifest.get("standing") or "published", _told(manifest), found.scored.withheld)


def _told(manifest: dict[str, Any]) -> tuple[Reason, ...]:
    """Return the reasons that a manifest lists, none where it is damaged: that is a finding elsewhere."""
    try:
        return load_reasons(manifest.get("reasons") or ())
    except (TypeError, ValueError):
        return ()


def remake_run(edition: Edition, held: Held, place: Path, workers: Workers) -> None:
    """Hold every file of a run; `place` takes the data files while they are described."""
    run_id, dist = edition.run_id, held.dist
    tasks = [receipt_task(edition, model, Path()) for model in edition.run.models]
    receipts = [workers.submit(held_receipts, task, dist) for task in tasks]
    manifest = read_told(dist / paths.data_file(run_id, MANIFEST), ToldManifest)
    for name, data in _data_and_pages(edition, manifest, held, place):
        held.hold(name, data)
    for name, data in (*render_explorer(edition), *receipt_assets(run_id)):
        held.hold(name, data)
    for model, own in zip(edition.run.models, receipts, strict=True):
        held.hold(*render_list(edition, model))
        held.merge(own.result())
    # A file in the data folder that no list names is a finding of the hashes.
    held.hold_rest(f"runs/{run_id}", beside={f"runs/{run_id}/data"})


def held_receipts(task: ReceiptTask, dist: Path) -> Held:
    """Hold all set and row pages of one model, here or in another process."""
    held = Held(dist, Findings())
    for name, data in remade_receipts(task):
        held.hold(f"{task.out}/{name}", data)
    return held


def _data_and_pages(edition: Edition, manifest: dict[str, Any], held: Held, place: Path) -> Files:
    """Yield the data files but unchanged receipts, and the pages that print the hash of their manifest."""
    receipts = [_receipts(edition, manifest, model, place, held.findings) for model in edition.run.models]
    files = write_downloads(edition, place, [found for found in receipts if found is not None])
    for file in files:
        if (place / file.name).is_file():
            yield paths.data_file(edition.run_id, file.name), (place / file.name).read_bytes()
    pinned = dataclasses.replace(edition, manifest_sha256=manifest_sha256(files))
    yield from render_data(pinned, files)
    yield from render_pages(pinned)
    yield from render_figures(pinned)


def _receipts(
    edition: Edition, manifest: dict[str, Any], model: str, place: Path, findings: Findings
) -> PublishedReceipts | None:
    """Return what belongs to a model's receipts in the manifest; receipts that were written anew are so again."""
    shard = next(s for s in edition.run.manifest.shards if s.model == model)
    try:
        published = published_receipts(manifest, model)
    except (KeyError, TypeError):
        name = paths.data_file(edition.run_id, MANIFEST)
        findings.add(name, f"receipts[{model}]", "no entry of the expected form", f"an entry of {shard.file}")
        return None
    entry = dataclasses.replace(published.entry, harness_file=shard.file, harness_sha256=shard.sha256)
    files = published.files
    if not entry.unchanged:
        files = write_receipt_files(receipts_task(edition, model, place)).files
    return PublishedReceipts(files, entry)


def remade_receipts(task: ReceiptTask) -> Files:
    """Yield (name below the model's folder, bytes) of all set and row pages of one model."""
    before: list[str] = []
    if task.set_parts is None:
        return
    for table, after in set_batches(task.shard, task.withheld, BATCH_ROWS):
        made = render_batch(task, table, before, after)
        pages = [(made.set_names, made.sets)]
        pages += [(made.row_names, made.row_pages)] if made.row_pages is not None else []
        for names, texts in pages:
            yield from zip(names, (bytes(text.as_buffer()) for text in texts), strict=True)
        before = first_key(table.slice(table.num_rows - 1, 1))


def not_comparable(making: Making | None, words: Words) -> str | None:
    """Say why pages cannot be made anew and compared; None where they can."""
    if making is None:
        return "publication.json has no record of how they were made"
    if making.sources != words.sources:
        return (
            f"they were made by sources {making.sources[:12]}, and this program with its templates, words and"
            f" libraries is {words.sources[:12]}"
        )
    return None
