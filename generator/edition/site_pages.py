"""The one list of a site's pages: which there are, and of which kind each is.

`run_pages` and `root_pages` say what this program makes of an edition. Publish makes exactly these, and verify reports
those that are missing. `site_pages` lists what lies in a finished tree, whoever made it: for the sitemap, the links,
the search and the check of numbers.

See contract: publication, "Pages".
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from generator.edition import paths
from generator.edition.edition import FEW_MODELS
from generator.machine.walk import file_names

if TYPE_CHECKING:
    from generator.edition.edition import Edition

Kind = Literal[
    "front", "runs", "methodology", "prose", "search", "not_found",
    "leaderboard", "board", "findings", "pairs", "side", "planted", "judging", "audit", "run", "model", "numbers",
    "attribute", "attribute_part",
    "changes", "history", "change",
    "concept", "embed", "data", "dictionary", "explorer", "reader", "list", "set", "row", "other",
]  # fmt: skip
# Every address of a page; a part in braces stands for one name. The first that fits decides.
_ADDRESSES: tuple[tuple[Kind, str], ...] = (
    ("front", "index.html"),
    ("not_found", "404.html"),
    ("search", paths.SEARCH_PAGE),
    *(("prose", page) for page in paths.PROSE),
    ("runs", "runs/index.html"),
    ("changes", paths.CHANGES_PAGE),
    ("history", paths.HISTORY_PAGE),
    ("change", "changes/{name}"),
    ("methodology", "methodology/{name}"),
    ("leaderboard", "runs/{run}/index.html"),
    ("findings", "runs/{run}/findings.html"),
    ("pairs", "runs/{run}/pairs.html"),
    ("side", "runs/{run}/side.html"),
    ("planted", "runs/{run}/planted.html"),
    ("judging", "runs/{run}/judging.html"),
    ("audit", "runs/{run}/audit.html"),
    ("run", "runs/{run}/run.html"),
    ("model", "runs/{run}/models/{vendor}/{name}"),
    ("numbers", "runs/{run}/models/{vendor}/{name}/numbers.html"),
    ("attribute", "runs/{run}/attributes/{name}"),
    ("concept", "runs/{run}/concepts/{name}"),
    ("board", "runs/{run}/board/{name}"),
    ("attribute_part", "runs/{run}/attributes/{attribute}/{name}"),
    ("embed", "runs/{run}/charts/models/{vendor}/{name}"),
    ("embed", "runs/{run}/charts/attributes/{name}"),
    ("data", "runs/{run}/data/index.html"),
    ("dictionary", "runs/{run}/data/DATA_DICTIONARY.html"),
    ("explorer", "runs/{run}/receipts/index.html"),
    ("reader", "runs/{run}/receipts/set.html"),
    ("list", "runs/{run}/receipts/{vendor}/{model}/index.html"),
    ("set", "runs/{run}/receipts/{vendor}/{model}/{concept}/index.html"),
    ("row", "runs/{run}/receipts/{vendor}/{model}/{concept}/{name}"),
)
BULK: frozenset[Kind] = frozenset(("set", "row"))  # made from one template each, tens of thousands of them
NOT_LISTED: frozenset[Kind] = frozenset(("not_found", "search", "reader", "embed", "other"))  # in no sitemap


@dataclass(frozen=True)
class SitePage:
    """One page, by its path below `dist/`.

    `names` are the parts of its address that stand for names: run, model, concept, row. `kind` is `other` for a page
    that this program does not make.
    """

    path: str
    kind: Kind
    names: tuple[str, ...] = ()

    @property
    def run(self) -> str | None:
        """The id of the run whose page it is; None for a page of the root."""
        return self.names[0] if self.path.startswith("runs/") and self.kind != "runs" and self.names else None

    @property
    def name(self) -> str:
        """The last name in the address: a model's slug, the id of an attribute or concept, the anchor of a row."""
        return "/".join(self.names[1:]) if self.kind in ("model", "numbers", "list") else self.names[-1]


def _table() -> dict[int, list[tuple[Kind, list[str]]]]:
    table = defaultdict[int, list[tuple[Kind, list[str]]]](list)
    for kind, address in _ADDRESSES:
        parts = address.split("/")
        table[len(parts)].append((kind, parts))
    return table


_BY_LENGTH = _table()


def page_at(path: str) -> SitePage:
    """Return what a path is; a path that this program gives to no page is of kind `other`."""
    folder, _, name = path.rpartition("/")
    for kind, last, names in _pages_of(folder):
        if last == name:
            return SitePage(path, kind, names)
        if last[0] == "{":
            return SitePage(path, kind, (*names, name.removesuffix(".html")))
    # What lies below runs/ belongs to a run even where this program makes no such page.
    parts = path.split("/")
    return SitePage(path, "other", tuple(parts[1:2]) if parts[0] == "runs" else ())


@functools.lru_cache(maxsize=1024)
def _pages_of(folder: str) -> tuple[tuple[Kind, str, tuple[str, ...]], ...]:
    """Return (kind, last part of the address, names in the parts before) of the pages that a folder may hold."""
    parts = folder.split("/") if folder else []
    return tuple(
        (kind, address[-1], tuple(b.removesuffix(".html") for a, b in zip(address, parts, strict=False) if a[0] == "{"))
        for kind, address in _BY_LENGTH.get(len(parts) + 1, ())
        if all(a == b or a[0] == "{" for a, b in zip(address, parts, strict=False))
    )


def run_page_names(edition: Edition) -> tuple[str, ...]:
    """Return the names of the pages that a run has once; planted effects are known of a simulated run only."""
    planted = ("planted",) if edition.run.manifest.planted else ()
    return ("findings", "pairs", "side", *planted, "judging", "audit", "run")


def run_pages(edition: Edition) -> Iterator[SitePage]:
    """Yield every page that this program makes of a run, except its row pages (`row_pages`).

    Concepts of withheld categories have none.
    """
    run, bank = edition.run_id, edition.run.bank
    kept = [c.id for c in bank.concepts if c.category not in edition.standing.withheld]
    addresses = [
        paths.run_index(run),
        *(paths.run_page(run, name) for name in run_page_names(edition)),
        *(paths.model_page(run, model) for model in edition.run.models),
        *(paths.numbers_page(run, model) for model in edition.run.models),
        *(paths.attribute_page(run, attribute.id) for attribute in bank.attributes),
        *_parts(edition),
        *(f"{place}.html" for place in figure_places(edition)),
        *(paths.concept_page(run, concept) for concept in kept),
        paths.data_page(run),
        paths.data_file(run, "DATA_DICTIONARY.html"),
        paths.explorer_page(run),
        *(paths.receipts_list(run, model) for model in edition.run.models),
        *_set_pages(edition, kept),
    ]
    yield from map(page_at, addresses)


def figure_places(edition: Edition) -> Iterator[str]:
    """Yield where the figures of a run lie, without an ending: the charts of its models and attributes."""
    yield from (paths.figure(edition.run_id, f"models/{model}") for model in edition.run.models)
    yield from (paths.figure(edition.run_id, f"attributes/{attribute.id}") for attribute in edition.run.bank.attributes)


def part_count(models: int) -> int:
    """Return on how many pages a list of so many models stands."""
    return max(1, -(-models // FEW_MODELS))


def _parts(edition: Edition) -> Iterator[str]:
    """Yield the later parts of the pages that list all models."""
    run = edition.run_id
    whole = (paths.run_index(run), *(paths.attribute_page(run, a.id) for a in edition.run.bank.attributes))
    for page in whole:
        yield from (paths.part_page(page, n) for n in range(2, part_count(len(edition.run.models)) + 1))


def _set_pages(edition: Edition, concepts: Iterable[str]) -> Iterator[str]:
    run = edition.run_id
    if edition.mode == "files":
        yield paths.set_reader(run)
    else:
        yield from (paths.set_page(run, model, concept) for model in edition.run.models for concept in concepts)


def row_pages(run: str, model: str, rows: Iterable[tuple[str, str]]) -> Iterator[SitePage]:
    """Yield the pages of a model's rows in row mode.

    Args:
        run: id of the run.
        model: slug of the model.
        rows: (concept, anchor) of each row; see `paths.row_anchor`.
    """
    for concept, anchor in rows:
        yield page_at(paths.set_page(run, model, concept).removesuffix("index.html") + f"{anchor}.html")


def root_pages(removed: Iterable[str] = (), pairs: Sequence[tuple[str, str]] = ()) -> Iterator[SitePage]:
    """Yield every page that belongs to no run, and the tombstones of removed runs.

    Args:
        removed: ids of the runs that were removed.
        pairs: (older, newer) ids of the runs that are held against each other.
    """
    addresses = [
        "index.html",
        paths.RUNS_PAGE,
        paths.CHANGES_PAGE,
        *([paths.HISTORY_PAGE] if pairs else []),
        *(paths.change_page(new, old) for old, new in pairs),
        "404.html",
        paths.SEARCH_PAGE,
        *paths.PROSE,
        *(paths.methodology_page(name) for name in paths.METHODOLOGY),
        *(paths.run_index(run) for run in removed),
    ]
    yield from map(page_at, addresses)


def site_pages(root: Path) -> Iterator[SitePage]:
    """Yield every page of a finished tree, in the order of their paths."""
    yield from map(page_at, sorted(name for name in file_names(root) if name.endswith(".html")))


def typical_pages(pages: Iterable[SitePage]) -> Iterator[SitePage]:
    """Yield every ordinary page, and of each run one page of each kind that is made in bulk."""
    seen = set[tuple[str | None, Kind]]()
    for page in pages:
        if page.kind not in BULK or (page.run, page.kind) not in seen:
            seen.add((page.run, page.kind))
            yield page
