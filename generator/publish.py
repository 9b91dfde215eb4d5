"""Builds the whole publication (SPEC 6 and 7): every run checked and scored, every page and file, into a fresh tree.

Reads run folders and the site's content, writes one tree beside `out` and swaps it in.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator import paths
from generator.data_page import render_data
from generator.downloads import manifest_sha256, write_downloads
from generator.receipt_lists import render_list
from generator.receipt_pages import receipt_task, write_receipts
from generator.redactions import read_redactions
from generator.schema.errors import InputError
from generator.scores import score_run
from generator.shards import load_run
from generator.site import Edition, read_site
from generator.standing import standing_of
from generator.tree import fresh_tree, locked, write_page


@dataclass(frozen=True)
class Options:
    """What the command line asks for."""

    out: Path
    runs: tuple[str, ...] = ()
    content: Path = Path("content")
    base_url: str | None = None
    preview: bool = False
    withhold: bool = False
    mode: str = "row"


def run_folders(content: Path) -> dict[str, Path]:
    """Return the run folders whose judge stage has finished, by run id."""
    found = sorted(p.parent for p in (content / "runs").glob("*/manifest.json"))
    return {folder.name: folder for folder in found}


def edition_of(folder: Path, options: Options) -> Edition:
    """Load, score and judge the standing of one run."""
    run = load_run(folder)
    scored = score_run(run)
    standing = standing_of(run, scored, preview=options.preview, withhold=options.withhold)
    return Edition(
        site=read_site(options.content / "site.toml"),
        run=run,
        scored=scored,
        standing=standing,
        mode="folded" if options.mode == "folded" else "row",
        base_url=options.base_url,
        redactions=read_redactions(options.content / "redactions.toml"),
    )


def optional(module: str, function: str, *arguments: Any) -> Any:
    """Call a page module's function when the module is there."""
    if importlib.util.find_spec(module) is None:
        return ()
    found = getattr(importlib.import_module(module), function, None)
    return () if found is None else found(*arguments)


def write_run(edition: Edition, tree: Path) -> None:
    """Write everything below runs/<run_id>/."""
    data = tree / paths.data_file(edition.run_id, "")
    files = write_downloads(edition, data)
    # From here on pages can print the one hash that pins the whole publication.
    edition = dataclasses.replace(edition, manifest_sha256=manifest_sha256(files))
    write_all(tree, render_data(edition, files))
    write_all(tree, optional("generator.pages", "render_pages", edition))
    write_all(tree, optional("generator.explorer", "render_explorer", edition))
    for model in edition.run.models:
        write_receipts(receipt_task(edition, model, tree))
        write_all(tree, [render_list(edition, model)])


def write_all(tree: Path, pages: Iterable[tuple[str, bytes]]) -> None:
    """Write pages below the tree."""
    for page, data in pages:
        write_page(tree, page, data)


def publish(options: Options) -> None:
    """Build the publication and put it in place."""
    folders = run_folders(options.content)
    chosen = _chosen(options.runs, folders)
    editions = [edition_of(folders[run_id], options) for run_id in chosen]
    with locked(options.out), fresh_tree(options.out) as tree:
        for edition in editions:
            write_run(edition, tree)
        write_all(tree, root_pages(editions))
        optional("generator.search_index", "write_search", tree)


def _chosen(runs: Sequence[str], folders: dict[str, Path]) -> list[str]:
    unknown = [run for run in runs if run not in folders]
    if unknown:
        known = ", ".join(folders) or "none"
        raise InputError(*(f"run {run}: no finished run of that name; there are: {known}" for run in unknown))
    if not folders:
        raise InputError("content/runs: no finished run to publish; `aibiasbench demo` makes one")
    return list(runs) or list(folders)


def root_pages(editions: Sequence[Edition]) -> Iterator[tuple[str, bytes]]:
    """Yield the pages of the site's root."""
    newest = newest_of(editions)
    yield from optional("generator.pages", "render_root", newest, editions)
    yield from optional("generator.prose", "render_prose", newest)
    yield from optional("generator.render", "asset_files")


def newest_of(editions: Sequence[Edition]) -> Edition:
    """Return the run that the root shows: the newest publishable live run, a simulated one only when there is none."""
    return max(editions, key=lambda e: (e.indexable, e.standing.state != "preview", e.run.manifest.date, e.run_id))
