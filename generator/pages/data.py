"""The Data page: every file with its hash, how to fetch it and how to load it, and the schema.org record.

See contract: publication, "Data files".
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from generator.data import citation, croissant
from generator.data.description import description, keywords
from generator.data.dictionary import OTHER_TABLES, TABLE_NOTES
from generator.data.table_files import DataFile, stem_of
from generator.edition import paths
from generator.edition.edition import Edition
from generator.html.frame import frame, render_page

BASE = "$BASE"  # the address of the data folder where the site's own is not known; the page's script fills it in
# What the page shows in this order; a table's own note comes from the dictionary.
SECTIONS = {
    "tables": "Tables",
    "receipts": "Receipts",
    "bootstrap_weights": "Bootstrap weights",
    "notebooks": "Notebooks",
    "every_eval_ever": "Records for Every Eval Ever",
    "": "Description, hashes and programs",
}
SECTION_NOTES = {
    "tables": "What the pages show, and what it was computed from.",
    "receipts": OTHER_TABLES["receipts"],
    "bootstrap_weights": OTHER_TABLES["bootstrap_weights"],
    "notebooks": "One for each question, with this run's address filled in. They need the Python package aibiasbench.",
    "every_eval_ever": "One JSON record a model in the layout of Every Eval Ever, schema 0.3.0, for other tools.",
    "": "The run as the harness described it, the bank, metadata, and four programs that recompute the scores.",
}


BY_MODEL = ("receipts", "every_eval_ever")  # the sections that hold files of every model


@dataclass(frozen=True)
class Example:
    """A three-line program that loads one file."""

    language: str
    code: str


@dataclass(frozen=True)
class DataItem:
    """One line of the page: a file, or the two forms of a table, with commands and examples."""

    title: str
    description: str
    files: tuple[DataFile, ...]
    commands: str
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class Section:
    """A part of the page. `listed`: every file where the models are many; the items then are an example."""

    id: str
    heading: str
    note: str
    items: tuple[DataItem, ...]
    listed: tuple[DataFile, ...] = ()


def folder_address(edition: Edition) -> str:
    """Return the absolute address of the data folder, or `$BASE` when the site's address is not known."""
    return f"{edition.base_url}/runs/{edition.run_id}/data" if edition.base_url else BASE


def download_command(edition: Edition, file: DataFile) -> str:
    """Return the command that fetches one file into the same place below the working folder."""
    return f'curl -fL --create-dirs -o "{file.name}" "{folder_address(edition)}/{file.name}"'


def download_all(edition: Edition) -> str:
    """Return the commands that fetch and check everything."""
    base = folder_address(edition)
    first = "" if edition.base_url else 'BASE="the address of this folder, without the last slash"\n'
    return (
        f'{first}curl -fLO "{base}/SHA256SUMS"\n'
        f'cut -c 67- SHA256SUMS | while read -r f; do curl -fsSL --create-dirs -o "$f" "{base}/$f"; done\n'
        "sha256sum -c --quiet SHA256SUMS"
    )


def examples(parquet: str, csv: str) -> tuple[Example, ...]:
    """Return the load examples of a table: Parquet wherever the language reads it, CSV for base R."""
    return (
        Example("pandas", f'import pandas as pd\nrows = pd.read_parquet("{parquet}")\nprint(rows.head())'),
        Example("DuckDB", f"SELECT *\nFROM '{parquet}'\nLIMIT 5;"),
        Example(
            "R",
            f'rows <- read.csv("{csv}", na.strings = "", encoding = "UTF-8", check.names = FALSE)\n'
            "print(dim(rows))\nstr(rows, vec.len = 1)",
        ),
        Example(
            "JavaScript",
            'import { asyncBufferFromFile, parquetReadObjects } from "hyparquet"; import { decompress } from "fzstd";\n'
            f'const file = await asyncBufferFromFile("{parquet}");\n'
            "console.log(await parquetReadObjects({ file, rowEnd: 5, compressors: { ZSTD: (b) => decompress(b) } }));",
        ),
    )


def _section_of(file: DataFile) -> str:
    return "tables" if file.table in TABLE_NOTES else file.table


def sections(edition: Edition, files: Sequence[DataFile]) -> tuple[Section, ...]:
    """Group the files as the page shows them; the two forms of a table share a line."""
    found = []
    for key, heading in SECTIONS.items():
        own = [f for f in files if _section_of(f) == key]
        lines = []
        for stem, group in itertools.groupby(own, key=lambda f: f.name if f.rows is None else stem_of(f.name)):
            pair = tuple(group)
            commands = "\n".join(download_command(edition, f) for f in pair)
            shown = examples(pair[0].name, pair[1].name) if pair[0].rows is not None else ()
            lines.append(DataItem(stem, pair[0].description, pair, commands, shown))
        if lines and edition.crowded and key in BY_MODEL:
            found.append(Section(key, heading, SECTION_NOTES[key], tuple(lines[:1]), tuple(own)))
        elif lines:
            found.append(Section(key or "other", heading, SECTION_NOTES[key], tuple(lines)))
    return tuple(found)


def schema_org(edition: Edition, files: Sequence[DataFile]) -> dict[str, Any]:
    """Return the schema.org Dataset of the page; addresses are absolute where the site's own is known.

    Of many models it leaves out the files that each has; croissant.json and manifest.json name all.
    """
    manifest = edition.run.manifest
    base = f"{folder_address(edition)}/" if edition.base_url else ""
    found: dict[str, Any] = {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": citation.title(edition),
        "description": description(edition),
        "identifier": f"sha256:{manifest.bank_sha256}:{manifest.run_id}",
        "version": manifest.bank_version,
        "datePublished": manifest.date,
        "inLanguage": edition.run.bank.rules.language,
        "isAccessibleForFree": True,
        "license": edition.site.data_licence.url,
        "keywords": keywords(edition),
        "creator": {"@type": "Organization", "name": edition.site.publisher},
        "measurementTechnique": "paired prompts, two judges and a tiebreak, bootstrap over concepts",
        "variableMeasured": ["consistency", "disparity", "worst gap", "refusal asymmetry", "lean"],
        "distribution": [
            {
                "@type": "DataDownload",
                "name": f.name,
                "encodingFormat": croissant.ENCODINGS.get(f.ending, "text/plain"),
                "contentUrl": base + f.name,
                "contentSize": str(f.bytes),
                "sha256": f.sha256,
            }
            for f in files
            if not (edition.crowded and _section_of(f) in BY_MODEL)
        ],
    }
    if url := citation.address(edition):
        found["url"] = url
    return found


def script_json(value: Any) -> Markup:
    """Return JSON for the inside of a script element: no character in it can end the element or open another.

    Markup is safe here because every `<`, `>` and `&` is written as a JSON escape.
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, indent=1)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))  # noqa: S704


def render_data_page(edition: Edition, files: Sequence[DataFile]) -> bytes:
    """Return `runs/<run_id>/data/index.html` for the files that `write_downloads` wrote."""
    page = paths.data_page(edition.run_id)
    context = frame(
        edition,
        page,
        f"Data of run {edition.run_id}",
        description=f"Every file of run {edition.run_id} with its hash: scores, receipts, bootstrap weights, programs.",
        section="data",
        crumbs=((edition.run_name, paths.run_index(edition.run_id)), ("Data", None)),
        scripts=("data_page.js",),
    )
    by_name = {f.name: f for f in files}
    return render_page(
        "data.html",
        context,
        sections=sections(edition, files),
        manifest_file=by_name["manifest.json"],
        total=sum(f.bytes for f in files),
        count=len(files),
        download_all=download_all(edition),
        cited=citation.cite(edition, page),
        json_ld=script_json(schema_org(edition, files)),
        redactions=edition.redactions,
    )


def render_data(edition: Edition, files: Sequence[DataFile]) -> Iterator[tuple[str, bytes]]:
    """Yield (path below dist/, bytes) of the pages beside the files."""
    yield paths.data_page(edition.run_id), render_data_page(edition, files)
