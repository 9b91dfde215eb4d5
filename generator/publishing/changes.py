"""Holds the runs of a site against each other: which pairs there are, and their tables, kept from publish to publish.

All comes from the runs as they are published: publish and verify call the same function on the same files.

See methodology: change, "What can be compared"; contract: publication, "Change between runs".
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from generator.edition import paths
from generator.edition.comparison import Changes, Comparison, Point
from generator.machine.kept_files import kept_bytes
from generator.publishing.fingerprints import text_hash
from generator.publishing.old_site import Published
from generator.runs.reader import Run
from generator.runs.redactions import Redactions
from generator.schema.bank import read_bank
from generator.schema.errors import raise_faults
from generator.schema.manifest import Manifest
from generator.schema.tables import OVERALL, RUN_WIDE
from generator.scoring.change import Matched, change_rows
from generator.scoring.comparable import families, pairs_of

_PAIRS = b"matched"
Tables = tuple[pa.Table, list[Matched]]


def changes_of(
    root: Path,
    published: Mapping[str, Published],
    run_of: Callable[[str], Run],
    redactions: Redactions,
    kept: tuple[Path, str] | None = None,
) -> Changes:
    """Return all that the site says of change between its runs.

    Args:
        root: the tree, with the data folders of all runs.
        published: every run of the site by id.
        run_of: reads a run by its id; called only for pairs whose table is not kept.
        redactions: texts that were withdrawn.
        kept: the folder in which tables are kept, and the hash of the code; None makes every table.
    """
    found = families(p.manifest for p in published.values())
    pairs = [pair for family in found for pair in pairs_of(family)]
    _check_addresses(pairs)
    redacted = frozenset(redactions.by_id)
    made = []
    for old, new in pairs:
        sides = [published[run.run_id] for run in (old, new)]
        withheld = frozenset(chain.from_iterable(side.standing.withheld for side in sides))

        def make(old: Manifest = old, new: Manifest = new, withheld: frozenset[str] = withheld) -> Tables:
            return change_rows(run_of(old.run_id), run_of(new.run_id), withheld=withheld, redacted=redacted)

        table, matched = _kept(old, new, withheld, redacted, make, *kept) if kept else make()
        bank = read_bank(root / paths.data_file(new.run_id, "bank.json"))
        preview = any(side.standing.state == "preview" for side in sides)
        made.append(Comparison(old, new, bank, table, tuple(matched), preview))
    shown = {m.run_id for pair in pairs for m in pair}
    return Changes(tuple(found), tuple(made), _points(root, sorted(shown)))


def _check_addresses(pairs: Iterable[tuple[Manifest, Manifest]]) -> None:
    """Raise InputError where two pairs would have one address: `a--b` and `c`, `a` and `b--c`."""
    seen = dict[str, str]()
    faults = []
    for old, new in pairs:
        page, own = paths.change_page(new.run_id, old.run_id), f"{new.run_id} with {old.run_id}"
        if page in seen:
            faults.append(f"{page}: {seen[page]} and {own} would share this address; rename one of these runs")
        seen[page] = own
    raise_faults(faults)


def _kept(
    old: Manifest,
    new: Manifest,
    withheld: frozenset[str],
    redacted: frozenset[str],
    make: Callable[[], Tables],
    folder: Path,
    code: str,
) -> Tables:
    """Return a pair's table as this very code made it of the same receipts before, or make and keep it."""
    file = folder / f"{new.run_id}--{old.run_id}.arrow"
    manifests = [json.dumps(m.model_dump(mode="json"), sort_keys=True) for m in (old, new)]
    key = text_hash(code, *manifests, repr(sorted(withheld)), repr(sorted(redacted)))
    return _unpacked(kept_bytes(file, key, lambda: _packed(*make())))


def _packed(table: pa.Table, matched: list[Matched]) -> bytes:
    out = io.BytesIO()
    pairs = json.dumps([asdict(one) for one in matched], allow_nan=False).encode()
    whole = table.replace_schema_metadata({_PAIRS: pairs}).combine_chunks()
    with pa.ipc.new_stream(out, whole.schema) as stream:
        stream.write_table(whole)
    return out.getvalue()


def _unpacked(data: bytes) -> Tables:
    table = pa.ipc.open_stream(data).read_all()
    matched = [Matched(**one) for one in json.loads(table.schema.metadata[_PAIRS])]
    return table.replace_schema_metadata(None), matched


def _points(root: Path, runs: Iterable[str]) -> dict[tuple[str, str], Point]:
    """Return overall consistency by run and model, as the runs publish it."""
    columns = ["model", "metric", "attribute", "estimate", "ci_low", "ci_high"]
    found = {}
    for run in runs:
        # A large table is split into files by attribute.
        for file in sorted((root / paths.data_file(run, "")).glob("scores*.parquet")):
            table = pq.read_table(file, columns=columns, partitioning=None)
            wanted = pc.and_(pc.equal(table["metric"], "consistency"), pc.equal(table["attribute"], OVERALL))
            for row in table.filter(wanted).to_pylist():
                if row["model"] != RUN_WIDE:
                    found[run, row["model"]] = Point(row["estimate"], row["ci_low"], row["ci_high"])
    return found
