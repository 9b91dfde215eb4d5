"""A notebook for each question that readers bring, with the address of the run filled in.

The notebooks stand in `docs/notebooks/` without outputs. A published one differs from its source in the cell `address`
alone.

See contract: publication, "Notebooks".
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from generator.edition.edition import Edition
from generator.schema.places import own_folder

FOLDER = own_folder("docs/notebooks")
NAMES = ("which-models-differ.ipynb", "the-answers-behind-a-number.ipynb", "recompute-it.ipynb")
BELOW = "notebooks"  # in the data folder
_ADDRESS = "address"  # the id of the cell that names the run


@dataclass(frozen=True)
class Notebook:
    """A published notebook: its name below the data folder, its heading, its bytes."""

    name: str
    heading: str
    data: bytes


def notebooks(edition: Edition) -> tuple[Notebook, ...]:
    """Return the notebooks of a run in the order of the questions.

    Where the address of the site is not known they read the data folder that they lie in.
    """
    where = f"{edition.base_url}/runs/{edition.run_id}/data" if edition.base_url else ".."
    return tuple(_published(name, json.loads((FOLDER / name).read_bytes()), where) for name in NAMES)


def _published(name: str, book: dict[str, Any], where: str) -> Notebook:
    cells = [_addressed(cell, where) for cell in book["cells"]]
    heading = "".join(cells[0]["source"]).partition("\n")[0].removeprefix("# ")
    text = json.dumps({**book, "cells": cells}, indent=1, ensure_ascii=False) + "\n"
    return Notebook(f"{BELOW}/{name}", heading, text.encode())


def _addressed(cell: dict[str, Any], where: str) -> dict[str, Any]:
    """Return a cell with the run's own address where it is the one that names it."""
    if cell["id"] != _ADDRESS:
        return cell
    *above, _ = cell["source"]
    return {**cell, "source": [*above, f"ADDRESS = {json.dumps(where)}"]}
