"""Which parts of a site can be made anew, and the order in which they are held against it.

A run whose receipts cannot be read, or whose pages another release made, is named as not compared: it is no mismatch.

See contract: publication, "Verify".
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from generator.edition.edition import Edition
from generator.machine.workers import Inline, Workers
from generator.publishing.old_site import front_run, read_published
from generator.publishing.provenance import PUBLICATION, Making, Publication, read_publication, render_publication
from generator.schema.errors import InputError
from generator.verify.bytes import Held
from generator.verify.data import Recomputed
from generator.verify.findings import Findings
from generator.verify.remake import Words, edition_of, not_comparable, remake_run
from generator.verify.root import remake_root


def remake_site(
    dist: Path,
    found: Mapping[str, Recomputed],
    content: Path,
    place: Path,
    findings: Findings,
    workers: Workers | None = None,
) -> frozenset[str]:
    """Make anew whatever this program made, and hold it; returns the files that were compared.

    `found`: the runs scored anew, by id, in folders that still stand. `place`: a new folder for what is made. `workers`
    make the receipt pages; without them this process does.
    """
    held = Held(dist, findings)
    try:
        publication = read_publication(dist)
    except InputError as error:
        findings.faults(line.removeprefix(f"{dist}/") for line in error.faults)
        return frozenset()
    if publication is None:
        findings.notes.append(f"pages: the site has no {PUBLICATION}, so an older release made it")
        return frozenset()
    words = Words.read(content)
    records = {run: making for run, making in publication.runs.items() if (dist / "runs" / run / "data").is_dir()}
    for run_id, recomputed in sorted(found.items()):
        making = records.get(run_id)
        why = not_comparable(making, words)
        if making is None or why is not None:
            findings.notes.append(f"runs/{run_id}, its pages and descriptions: {why}")
            continue
        edition = edition_of(dist / "runs" / run_id / "data", recomputed, making, words)
        records[run_id] = Making.of(edition, words.sources)
        remake_run(edition, held, place / run_id, workers or Inline())
    front = _remake_root(publication, words, found, held)
    if front is not None:
        held.hold(*render_publication(front, [], records, words.sources))
        held.hold_rest("", beside={f"runs/{run}" for run in _standing(dist)})
    return frozenset(held.seen)


def _standing(dist: Path) -> list[str]:
    return sorted(data.parent.name for data in (dist / "runs").glob("*/data"))


def _remake_root(publication: Publication, words: Words, found: Mapping[str, Recomputed], held: Held) -> Edition | None:
    """Hold the root's files; returns the run that it shows as it was made for it, None where nothing was compared."""
    dist = held.dist
    why = not_comparable(publication.root, words)
    standing = _standing(dist)
    unread = [run for run in standing if run not in found]
    if why is None and unread:
        why = f"run {unread[0]} cannot be read"
    if why is not None:
        held.findings.notes.append(f"the root's pages: {why}")
        return None
    try:
        published = read_published(dist, standing)
    except InputError as error:
        held.findings.faults(line.removeprefix(f"{dist}/") for line in error.faults)
        return None
    front = front_run({run: (p.manifest, p.standing) for run, p in published.items()}, words.site.front)
    edition = edition_of(dist / "runs" / front / "data", found[front], publication.root, words)
    remake_root(edition, published, {run: one.run for run, one in found.items()}, held)
    return edition
