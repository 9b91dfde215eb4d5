"""Row pages, set pages and plain lists of receipts: Jinja templates rendered in bulk.

Reads a shard batch by batch, renders whole sets at a time and writes pages into a fresh tree. One `ReceiptTask` is one
model; it holds all that it needs, so that it runs in this process, in another or on another machine.

See contract: publication, "Receipt pages".
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from generator.edition import paths
from generator.edition.edition import Edition
from generator.edition.import_words import masking_words
from generator.html.assets import assets
from generator.html.bulk import Holes, Part, compile_template, constants, plain, render_columns, write_slices
from generator.html.frame import environment, frame, number
from generator.receipts.page_columns import DICTIONARIES, row_columns
from generator.receipts.sets import neighbours, row_page_columns, set_columns
from generator.runs.redactions import Redactions
from generator.schema.bank import Bank
from generator.schema.columns import as_latest

BATCH_ROWS = 2_048


@dataclass(frozen=True)
class ReceiptTask:
    """All receipt pages of one model: where from, where to, and the compiled templates.

    row_parts is None where rows have no pages, set_parts where sets have none either; then nothing is written.
    """

    shard: str
    out: str
    bank: Bank
    row_parts: tuple[Part, ...] | None
    set_parts: tuple[Part, ...] | None
    redactions: Redactions
    withheld: frozenset[str]
    means: Mapping[tuple[str, str, str], str]
    disparities: Mapping[tuple[str, str], tuple[str, str]]

    @property
    def templates(self) -> str:
        """The compiled templates as text, for the hash that says whether pages must be made again."""
        return "".join(constants(parts) for parts in (self.set_parts, self.row_parts) if parts)


@dataclass(frozen=True)
class Written:
    """What a task wrote."""

    files: int
    bytes: int


def parameters_text(params: Mapping[str, Any]) -> str:
    """Return a model's effective parameters as one line: `max_tokens 400, temperature 1.0`."""
    return ", ".join(f"{key} {json.dumps(value)}" for key, value in sorted(params.items()))


# Receipt pages load their style and script under names that do not change with the content: a changed stylesheet must
# not touch 60,000 pages. The files lie beside the pages, are copies of the hashed assets, and are small.
OWN_FILES = {"site.css": ("style.css", ("site.css", "receipts.css")), "site.js": ("script.js", ("site.js", "ticks.js"))}


def receipt_assets(run_id: str) -> Iterator[tuple[str, bytes]]:
    """Yield (path below dist/, bytes) of what a run's receipt pages load."""
    for name, sources in OWN_FILES.values():
        yield _own_file(run_id, name), b"".join(assets()[source].data for source in sources)


def _own_file(run_id: str, name: str) -> str:
    return f"runs/{run_id}/receipts/{name}"


def _context(edition: Edition, model: str, page: str, title: str, *last: tuple[str, str | None]) -> dict[str, Any]:
    run_id = edition.run_id
    crumbs = (
        (edition.run_name, paths.run_index(run_id)),
        (model, paths.model_page(run_id, model)),
        ("Receipts", paths.receipts_list(run_id, model)),
        *last,
    )
    base = frame(
        edition,
        page,
        title,
        description=f"{title}: prompt, answer, votes and final label.",
        section="receipts",
        crumbs=crumbs,
        scripts=("site.js",),
    )
    entry, imported = edition.run.manifest.model(model), edition.run.manifest.imported
    start = f"{edition.base_url}/" if edition.base_url else ""
    folder = paths.set_page(run_id, model, "-").removesuffix("-/index.html")
    hashed = base["asset"]

    def asset(name: str) -> str:
        own = OWN_FILES.get(name)
        return paths.relative(page, _own_file(run_id, own[0])) if own else str(hashed(name))

    return {
        **base,
        "asset": asset,
        "card": None,  # the run's picture is of its leaderboard, not of an answer
        "model": model,
        "api_model": entry.api_model,
        "endpoint": entry.endpoint,
        "parameters": parameters_text(entry.params),
        "masking": masking_words(imported) if imported else None,
        "permalink_base": start + folder,
    }


def row_context(edition: Edition, model: str, row: Holes | Mapping[str, Any]) -> dict[str, Any]:
    """Return what a row page's template needs besides `row`; titles and addresses hold values of the row."""
    concept, shown, anchor = row["concept"], row["title"], row["anchor"]
    page = paths.set_page(edition.run_id, model, concept).removesuffix("index.html") + f"{anchor}.html"
    title = f"{model}, {shown}, {anchor}"
    return _context(
        edition, model, page, title, (shown, paths.set_page(edition.run_id, model, concept)), (anchor, None)
    )


def set_context(edition: Edition, model: str, row: Holes | Mapping[str, Any]) -> dict[str, Any]:
    """Return what a set page's template needs besides `row`."""
    concept, shown = row["concept"], row["title"]
    return _context(edition, model, paths.set_page(edition.run_id, model, concept), f"{model}, {shown}", (shown, None))


def receipt_task(edition: Edition, model: str, out: Path) -> ReceiptTask:
    """Return the task that writes a model's row and set pages below `out`."""
    env = environment()
    for_row, for_set = (functools.partial(context, edition, model) for context in (row_context, set_context))
    row = compile_template(env, "receipt.html", for_row) if edition.mode == "row" else None
    means, disparities = model_numbers(edition, model)
    return ReceiptTask(
        shard=str(edition.run.shard_path(model)),
        out=str(out / paths.receipts_list(edition.run_id, model).removesuffix("/index.html")),
        bank=edition.run.bank,
        row_parts=row,
        set_parts=None if edition.mode == "files" else compile_template(env, "set.html", for_set),
        redactions=edition.redactions,
        withheld=frozenset(edition.standing.withheld),
        means=means,
        disparities=disparities,
    )


def model_numbers(
    edition: Edition, model: str
) -> tuple[dict[tuple[str, str, str], str], dict[tuple[str, str], tuple[str, str]]]:
    """Return the published cell means (0 to 1) and disparities (0 to 100) of a model as the set pages print them."""
    tables = edition.scored.tables
    cells = tables["cells"].filter(pc.equal(tables["cells"]["model"], model)).to_pylist()
    disparities = tables["disparities"].filter(pc.equal(tables["disparities"]["model"], model)).to_pylist()
    return (
        {(c["concept"], c["framing"], c["group"]): number(c["mean_value"], 2) for c in cells},
        {(d["concept"], d["framing"]): (_hundredfold(d["disparity"]), str(d["n_groups"])) for d in disparities},
    )


def _hundredfold(disparity: float | None) -> str:
    return number(None if disparity is None else disparity * 100, 1)


def set_batches(shard: str, withheld: frozenset[str], rows: int) -> Iterator[tuple[pa.Table, list[str]]]:
    """Yield tables of complete sets in the shard's order, with the (concept, anchor) of the row that follows each.

    Memory stays flat: a set is held back until its end has been seen.
    """
    held: pa.Table | None = None
    known = set(pq.read_schema(shard).names)  # a run of an earlier format lacks some
    with pq.ParquetFile(shard, read_dictionary=[name for name in DICTIONARIES if name in known]) as file:
        for batch in file.iter_batches(batch_size=rows, use_threads=False):
            table = as_latest(pa.Table.from_batches([batch]))
            if withheld:
                table = table.filter(pc.invert(pc.is_in(table["category"], value_set=pa.array(sorted(withheld)))))
            if table.num_rows == 0:
                continue
            held = table if held is None else pa.concat_tables([held, table]).unify_dictionaries()
            start = _last_set_start(held)
            if start:
                yield held.slice(0, start), first_key(held.slice(start, 1))
                held = held.slice(start)
    if held is not None:
        yield held, []


def _last_set_start(table: pa.Table) -> int:
    codes = plain(table["concept"]).indices.to_numpy()
    changes = np.flatnonzero(np.diff(codes))
    return int(changes[-1]) + 1 if len(changes) else 0


def first_key(row: pa.Table) -> list[str]:
    """Return [concept, anchor] of a one-row table."""
    item = row.select(["concept", "framing", "group", "repeat"]).to_pylist()[0]
    return [item["concept"], paths.row_anchor(item["framing"], item["group"], item["repeat"])]


@dataclass(frozen=True)
class RenderedBatch:
    """A batch as pages: file names below the model's folder and their texts, sets and (in row mode) rows."""

    rows: int
    concepts: list[str]
    set_names: list[str]
    sets: pa.Array
    row_names: list[str]
    row_pages: pa.Array | None


def render_batch(task: ReceiptTask, table: pa.Table, before: list[str], after: list[str]) -> RenderedBatch:
    """Render a batch of complete sets; `before` and `after` are [concept, anchor] of the rows around it, or empty."""
    assert task.set_parts is not None
    table = task.redactions.apply(table)
    columns = row_columns(table, task.bank)
    places = neighbours(table, before, after)
    pages = set_columns(columns, places, task)
    rows = None
    if task.row_parts:
        rows = render_columns(task.row_parts, row_page_columns(table, columns, places), table.num_rows)
    return RenderedBatch(
        rows=table.num_rows,
        concepts=places.concepts,
        set_names=[f"{concept}/index.html" for concept in places.concepts],
        sets=render_columns(task.set_parts, pages, len(places.concepts)),
        row_names=places.row_files if task.row_parts else [],
        row_pages=rows,
    )


def write_receipts(task: ReceiptTask) -> Written:
    """Write all row and set pages of one model; running it again gives the same files."""
    if task.set_parts is None:
        return Written(0, 0)
    Path(task.out).mkdir(parents=True, exist_ok=True)
    files = size = 0
    before: list[str] = []
    for table, after in set_batches(task.shard, task.withheld, BATCH_ROWS):
        made = render_batch(task, table, before, after)
        for concept in made.concepts:
            Path(task.out, concept).mkdir(exist_ok=True)
        size += write_slices(task.out, made.set_names, made.sets)
        if made.row_pages is not None:
            size += write_slices(task.out, made.row_names, made.row_pages)
        files += len(made.set_names) + len(made.row_names)
        before = first_key(table.slice(table.num_rows - 1, 1))
    return Written(files, size)


@dataclass(frozen=True)
class PageSizes:
    """Bytes of the pages of a model's first set."""

    rows: int
    row_bytes: int
    set_bytes: int


def sample_sizes(task: ReceiptTask) -> PageSizes:
    """Render a model's first set in memory and return its sizes."""
    for table, after in set_batches(task.shard, task.withheld, rows=64):
        made = render_batch(task, table, [], after)
        rows = 0 if made.row_pages is None else _bytes_of(made.row_pages)
        return PageSizes(made.rows, rows, _bytes_of(made.sets))
    return PageSizes(0, 0, 0)


def _bytes_of(texts: pa.Array) -> int:
    return int(pc.sum(pc.binary_length(texts)).as_py() or 0)
