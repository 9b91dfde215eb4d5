"""Makes the site's root anew and holds it against the site, byte for byte: front page, prose, lists, search, assets.

Everything comes from the runs' own published manifests and receipts, as in `build.write_root`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from generator.edition import paths
from generator.edition.comparison import Changes
from generator.edition.edition import Edition
from generator.html.assets import asset_files
from generator.pages.all import render_root, render_sitemaps, render_tombstone
from generator.pages.prose import render_prose
from generator.pages.search import FOLDER, search_files
from generator.publishing.build import indexable_pages
from generator.publishing.changes import changes_of
from generator.publishing.old_site import Published
from generator.runs.reader import Run
from generator.schema.errors import ToolError
from generator.schema.json_schemas import schema_files
from generator.verify.bytes import Held


def superseded(published: Mapping[str, Published]) -> dict[str, str]:
    """Return which run supersedes which, by the older one; the newest manifest that names it decides."""
    manifests = sorted((p.manifest for p in published.values()), key=lambda m: (m.date, m.run_id))
    return {m.supersedes: m.run_id for m in manifests if m.supersedes}


def remake_root(front: Edition, published: Mapping[str, Published], runs: Mapping[str, Run], held: Held) -> None:
    """Hold every file that belongs to no run; `front` is the run that the root shows, `runs` are all as read anew."""
    changes = changes_of(held.dist, published, runs.__getitem__, front.redactions)
    for name, data in _root_files(front, published, changes, held.dist):
        held.hold(name, data)
    _remake_search(held)


def _root_files(
    front: Edition, published: Mapping[str, Published], changes: Changes, dist: Path
) -> Iterator[tuple[str, bytes]]:
    newer = front.site.history.successors(superseded(published))
    cards = [found.card(newer.get(run)) for run, found in sorted(published.items())]
    removed = [p.name for p in sorted((dist / "runs").iterdir()) if p.is_dir() and p.name not in published]
    yield from render_root(front, [], kept=cards, removed=removed, changes=changes)
    yield from asset_files(front.site)
    yield from schema_files()
    for run in removed:
        yield paths.run_index(run), render_tombstone(front.site, run, front.base_url)
    yield from render_prose(front)
    if front.base_url:
        dates = {card.run_id: card.date for card in cards if card.indexable}
        yield from render_sitemaps(front.base_url, indexable_pages(dist, front, dates, changes))


def _remake_search(held: Held) -> None:
    """Index the pages as they lie in the site; what they say is held elsewhere."""
    try:
        for name, data in search_files(held.dist):
            held.hold(name, data)
    except ToolError as error:
        held.findings.notes.append(f"{FOLDER}: {error}")
        held.seen |= {p.relative_to(held.dist).as_posix() for p in (held.dist / FOLDER).rglob("*")}
