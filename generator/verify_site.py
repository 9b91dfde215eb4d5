"""Which parts of a site can be made anew, and the order in which they are held against it (SPEC 7).

A run whose receipts cannot be read, or whose pages another release made, is named as not compared: it is no mismatch.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from generator.catalogue import front_key, read_published
from generator.findings import Findings
from generator.publication import PUBLICATION, Publication, read_publication
from generator.schema.errors import InputError
from generator.verify_bytes import Held
from generator.verify_data import Recomputed
from generator.verify_remake import Words, edition_of, not_comparable, remake_run
from generator.verify_root import remake_root


def remake_site(
    dist: Path, found: Mapping[str, Recomputed], content: Path, place: Path, findings: Findings
) -> frozenset[str]:
    """Make anew whatever this program made, and hold it; returns the files that have the same bytes.

    `found`: the runs scored anew, by id, in folders that still stand. `place`: a new folder for what is made.
    """
    held = Held(dist, findings)
    try:
        publication = read_publication(dist)
        words = Words.read(content)
    except InputError as error:
        findings.faults(line.removeprefix(f"{dist}/") for line in error.faults)
        return frozenset()
    if publication is None:
        findings.notes.append(f"pages: the site has no {PUBLICATION}, so an older release made it")
        return frozenset()
    for run_id, recomputed in sorted(found.items()):
        making = publication.runs.get(run_id)
        why = not_comparable(making, words)
        if making is None or why is not None:
            findings.notes.append(f"runs/{run_id}, its pages and descriptions: {why}")
            continue
        data = dist / "runs" / run_id / "data"
        remake_run(edition_of(data, recomputed, making, words), held, place / run_id)
    _remake_root(publication, words, found, held)
    return frozenset(held.equal)


def _remake_root(publication: Publication, words: Words, found: Mapping[str, Recomputed], held: Held) -> None:
    dist, runs = held.dist, held.dist / "runs"
    why = not_comparable(publication.root, words)
    standing = sorted(p.parent.name for p in runs.glob("*/data"))
    unread = [run for run in standing if run not in found]
    if why is None and unread:
        why = f"run {unread[0]} cannot be read"
    if why is not None:
        held.findings.notes.append(f"the root's pages: {why}")
        return
    published = read_published(dist, standing)
    front = max(published, key=lambda run: front_key(published[run].manifest, published[run].standing))
    edition = edition_of(runs / front / "data", found[front], publication.root, words)
    remake_root(edition, published, held)
    held.hold_rest("", beside={f"runs/{run}" for run in standing})
