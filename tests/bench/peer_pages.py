"""One way of making the common page, as a program of its own: `python -m tests.bench.peer_pages ENGINE ROWS OUT`.

ENGINE: `bulk` (generator.html.bulk), `jinja` (a call a page), `loop` (pages made before the clock, then written).
Prints the seconds that the engine itself measured, for `loop` the only ones that count.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from generator.html.bulk import (
    Nested,
    PageColumn,
    Text,
    compile_template,
    list_offsets,
    plain,
    plain_environment,
    render_columns,
    write_slices,
)

TEXTS = (
    "id", "path", "model", "attribute", "concept", "category", "framing", "group", "repeat", "status", "before",
    "swap", "after", "response", "label", "value", "previous", "following",
)  # fmt: skip
REPEATING = ("model", "attribute", "concept", "category", "framing", "group", "repeat", "status", "label", "value")
TEMPLATES = Path(__file__).parent / "templates"


def environment() -> Environment:
    """The templates of the bench."""
    loader = FileSystemLoader(TEMPLATES)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True)


def columns_of(table: pa.Table) -> dict[str, PageColumn]:
    """The page's columns of one row group."""
    votes = plain(table["votes"])
    flat = votes.flatten()
    of_votes = {name: Text(flat.field(name)) for name in ("judge", "label", "evidence")}
    columns: dict[str, PageColumn] = {name: Text(plain(table[name])) for name in TEXTS}
    return {**columns, "votes": Nested(list_offsets(votes), of_votes)}


def rendered(file: pq.ParquetFile, group: int, parts: tuple) -> tuple[list[str], pa.Array]:
    """Names and pages of one row group."""
    table = file.read_row_group(group, use_threads=False)
    names = [f"{path}.html" for path in table["path"].to_pylist()]
    return names, render_columns(parts, columns_of(table), table.num_rows)


def opened(rows: Path) -> pq.ParquetFile:
    """The rows, repeating columns as dictionaries."""
    return pq.ParquetFile(rows / "rows.parquet", read_dictionary=list(REPEATING))


def bulk(rows: Path, out: str, groups: range) -> None:
    """All pages of some row groups, in bulk."""
    parts = compile_template(environment(), "page.html", {})
    file = opened(rows)
    for group in groups:
        write_slices(out, *rendered(file, group, parts))


def jinja(rows: Path, out: str) -> None:
    """All pages, a template call each."""
    template = plain_environment(environment()).get_template("page.html")
    for row in pq.read_table(rows / "rows.parquet").to_pylist():
        Path(f"{out}/{row['path']}.html").write_text(template.render(row=row), encoding="utf-8")


def loop(rows: Path, out: str) -> float:
    """Seconds that open, write and close take for finished pages."""
    parts = compile_template(environment(), "page.html", {})
    file = opened(rows)
    made = [rendered(file, group, parts) for group in range(file.num_row_groups)]
    start = time.perf_counter()
    for names, pages in made:
        write_slices(out, names, pages)
    return time.perf_counter() - start


def in_processes(rows: Path, out: str, processes: int) -> None:
    """The bulk engine, row groups dealt out to processes."""
    groups = opened(rows).num_row_groups
    children = []
    for number in range(1, processes):
        child = os.fork()
        if child == 0:
            bulk(rows, out, range(number, groups, processes))
            os._exit(0)
        children.append(child)
    bulk(rows, out, range(0, groups, processes))
    if any(os.waitpid(child, 0)[1] for child in children):
        raise SystemExit("a process failed")


def main() -> None:
    """Run one engine."""
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=("bulk", "jinja", "loop"))
    parser.add_argument("rows", type=Path)
    parser.add_argument("out")
    parser.add_argument("--processes", type=int, default=1)
    asked = parser.parse_args()
    Path(asked.out, "receipts").mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    seconds = None
    if asked.engine == "loop":
        seconds = loop(asked.rows, asked.out)
    elif asked.engine == "jinja":
        jinja(asked.rows, asked.out)
    elif asked.processes > 1:
        in_processes(asked.rows, asked.out, asked.processes)
    else:
        bulk(asked.rows, asked.out, range(opened(asked.rows).num_row_groups))
    print(f"SECONDS {time.perf_counter() - start if seconds is None else seconds:.4f}")


if __name__ == "__main__":
    main()
