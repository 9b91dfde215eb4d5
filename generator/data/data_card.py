"""`README.md` of the data folder: a data card as the Hugging Face Hub and `datasets.load_dataset` read it.

The block at its head names the Parquet files of each table as a configuration; below stand what the data are and what
every column means.

See contract: publication, "Data card".
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

from generator.data import citation
from generator.data.description import description, keywords
from generator.data.dictionary import OTHER_TABLES, TABLE_NOTES, type_name
from generator.data.table_files import DataFile
from generator.edition.edition import Edition
from generator.schema.columns import Column

NAME = "README.md"
SPLIT = "test"  # answers are there to be read and not to learn from
_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))


def card(edition: Edition, files: Sequence[DataFile]) -> bytes:
    """Return the card of the Parquet files among `files`; a table without rows is in no configuration."""
    tables = list(_tables(files))
    head = "".join(f"{key}: {_yaml(value)}\n" for key, value in _head(edition, tables).items())
    parts = [f"---\n{head}---\n", f"# {citation.title(edition)}\n", f"{_escaped(description(edition))}\n"]
    if edition.simulated:
        parts.insert(2, "**Simulated: these answers come from programs and say nothing about any real model.**\n")
    parts.append(_loading(tables))
    parts += [_columns(name, own) for name, own in tables]
    parts.append(_ending(edition))
    return "\n".join(parts).encode()


def _tables(files: Sequence[DataFile]) -> Iterator[tuple[str, list[DataFile]]]:
    """Yield (configuration, Parquet files): one a table, and one for the weights of each attribute."""
    parquet = [file for file in files if file.ending == "parquet"]
    for name, group in itertools.groupby(parquet, key=_configuration):
        own = list(group)
        if any(file.rows for file in own):
            yield name, own


def _configuration(file: DataFile) -> str:
    if file.table == "bootstrap_weights":
        return file.name.removesuffix(".parquet").replace("/", "_")
    return file.table


def _head(edition: Edition, tables: Sequence[tuple[str, list[DataFile]]]) -> dict[str, Any]:
    licence = edition.site.data_licence
    rows = sum(file.rows or 0 for name, own in tables if name == "receipts" for file in own)
    size = next((text for most, text in _SIZES if rows < most), "n>10M")
    # The Hub knows licenses by the SPDX id in small letters; any other is "other", with its name and address.
    terms = {"license": licence.spdx.lower()} if licence.spdx else {"license": "other", "license_name": licence.name}
    return {
        "pretty_name": citation.title(edition),
        **terms,
        "license_link": licence.url,
        "language": [edition.run.bank.rules.language],
        "tags": keywords(edition),
        "size_categories": [size],
        "configs": [_config(name, own, default=name == "scores") for name, own in tables],
    }


def _config(name: str, own: Sequence[DataFile], *, default: bool) -> dict[str, Any]:
    paths = [file.name for file in own]
    found: dict[str, Any] = {"config_name": name, "data_files": [{"split": SPLIT, "path": paths}]}
    return {**found, "default": True} if default else found


def _yaml(value: Any) -> str:
    """Return a value as JSON, which YAML reads alike."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _loading(tables: Sequence[tuple[str, list[DataFile]]]) -> str:
    lines = [
        "## Load",
        "",
        "```python",
        "from datasets import load_dataset",
        "",
        f'scores = load_dataset("FOLDER_OR_NAME", "scores", split="{SPLIT}")',
        "```",
        "",
        f"There is one split, `{SPLIT}`: these data are there to be read, and no model should learn from them. The",
        "files in `csv/` hold the same tables for other programs. `manifest.json` names the SHA-256 of every file.",
        "",
        "| Configuration | Rows | Holds |",
        "|---|---|---|",
        *(f"| `{name}` | {sum(f.rows or 0 for f in own):,} | {_cell(_about(name))} |" for name, own in tables),
    ]
    return "\n".join(lines) + "\n"


def _about(name: str) -> str:
    if name.startswith("bootstrap_weights_"):
        return OTHER_TABLES["bootstrap_weights"]
    return TABLE_NOTES.get(name) or OTHER_TABLES[name]


def _columns(name: str, own: Sequence[DataFile]) -> str:
    """Return the columns of a table; the weights have a column a concept, all alike."""
    if name.startswith("bootstrap_weights_"):
        return f"## Columns of {name}\n\nA column for each concept: how often it was drawn in that resample.\n"
    rows = "\n".join(_row(column) for column in own[0].fields)
    return f"## Columns of {name}\n\n| Column | Type | Unit | Meaning | Null |\n|---|---|---|---|---|\n{rows}\n"


def _row(column: Column) -> str:
    cells = (column.unit, column.description, column.null)
    return f"| `{column.name}` | {type_name(column.type)} | {' | '.join(map(_cell, cells))} |"


def _ending(edition: Edition) -> str:
    licence = edition.site.data_licence
    lines = [
        "## License and citation",
        "",
        f"[{_escaped(licence.name)}]({licence.url}). Please cite the run:",
        "",
        "```bibtex",
        citation.bibtex(edition).decode().rstrip(),
        "```",
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return _escaped(text).replace("|", "\\|")


def _escaped(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    for mark in "\\`*_[]<>#":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())
