"""Which rows stand together: sets, framings, groups, repeats and neighbours of a batch, as offsets.

See contract: publication, "Receipt pages".
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from generator.html.bulk import Html, Nested, PageColumn, Text, plain
from generator.html.frame import concept_title
from generator.html.receipt_words import framing_label
from generator.html.text_bytes import Ints
from generator.receipts.page_columns import mapped

CURRENT = ' aria-current="page"'


class Numbers(Protocol):
    """The published numbers that a set page prints."""

    @property
    def means(self) -> Mapping[tuple[str, str, str], str]:
        """Cell means by (concept, framing, group)."""
        ...

    @property
    def disparities(self) -> Mapping[tuple[str, str], tuple[str, str]]:
        """(Disparity, number of scoreable groups) by (concept, framing)."""
        ...


@dataclass(frozen=True)
class Places:
    """Where rows of a batch lie: starts of sets, framings and groups, and what stands before and after the batch."""

    concepts: list[str]
    framings: list[str]
    groups: list[str]
    anchors: list[str]
    row_concepts: list[str]
    set_starts: Ints
    framing_starts: Ints
    group_starts: Ints
    rows: int
    before: list[str]
    after: list[str]

    @property
    def row_files(self) -> list[str]:
        """Each row's page below the model's folder."""
        return [f"{c}/{a}.html" for c, a in zip(self.row_concepts, self.anchors, strict=True)]


def neighbours(table: pa.Table, before: list[str], after: list[str]) -> Places:
    """Return the places of a batch; `before` and `after` are [concept, anchor] of the rows around it, or empty."""
    concept, framing, group = (plain(table[n]) for n in ("concept", "framing", "group"))
    codes = [c.indices.to_numpy() for c in (concept, framing, group)]
    changes = [np.append(True, np.diff(code) != 0) for code in codes]
    framing_change = changes[0] | changes[1]
    starts = [np.flatnonzero(c).astype(np.int32) for c in (changes[0], framing_change, framing_change | changes[2])]
    texts = [c.dictionary.take(c.indices) for c in (concept, framing, group)]
    repeat = pc.cast(plain(table["repeat"]), pa.string())
    row_concepts = texts[0].to_pylist()
    return Places(
        concepts=[row_concepts[i] for i in starts[0].tolist()],
        framings=texts[1].to_pylist(),
        groups=texts[2].to_pylist(),
        anchors=pc.binary_join_element_wise(texts[1], texts[2], repeat, ".").to_pylist(),
        row_concepts=row_concepts,
        set_starts=starts[0],
        framing_starts=starts[1],
        group_starts=starts[2],
        rows=table.num_rows,
        before=before,
        after=after,
    )


def taken(columns: Mapping[str, PageColumn], rows: Ints, names: tuple[str, ...]) -> dict[str, PageColumn]:
    """Return some columns for chosen rows."""
    chosen: dict[str, PageColumn] = {}
    for name in names:
        column = columns[name]
        assert not isinstance(column, Nested)
        chosen[name] = Html(column.html.take(pa.array(rows)))
    return chosen


def _inner(starts: Ints, outer: Ints, total: int) -> Ints:
    """Return offsets of items (beginning at `starts`) within lists beginning at `outer`."""
    return np.append(np.searchsorted(starts, outer), total).astype(np.int32)


def set_columns(columns: Mapping[str, PageColumn], places: Places, numbers: Numbers) -> dict[str, PageColumn]:
    """Return the columns of the batch's set pages: sets of framings of groups of rows."""
    group_keys = [(places.row_concepts[i], places.framings[i], places.groups[i]) for i in places.group_starts.tolist()]
    groups = taken(columns, places.group_starts, ("concept", "framing", "group", "group_label", "prompt"))
    groups["mean"] = Text(pa.array([numbers.means.get(key, "–") for key in group_keys], pa.string()))
    groups["rows"] = Nested(np.append(places.group_starts, places.rows).astype(np.int32), columns)
    framing_keys = [(places.row_concepts[i], places.framings[i]) for i in places.framing_starts.tolist()]
    framings = taken(columns, places.framing_starts, ("concept", "framing"))
    shown = [numbers.disparities.get(key, ("–", "0")) for key in framing_keys]
    framings["disparity"] = Text(pa.array([text for text, _ in shown], pa.string()))
    framings["scoreable"] = Text(pa.array([text for _, text in shown], pa.string()))
    framings["framing_label"] = Text(pa.array([framing_label(f) for _, f in framing_keys], pa.string()))
    framings["groups"] = Nested(_inner(places.group_starts, places.framing_starts, len(group_keys)), groups)
    sets = taken(
        columns,
        places.set_starts,
        ("concept", "title", "shown", "attribute", "attribute_label", "category", "rubric", "favours"),
    )
    sets["framings"] = Nested(_inner(places.framing_starts, places.set_starts, len(framing_keys)), framings)
    edges = [*places.set_starts.tolist(), places.rows]
    counts = [len(set(places.groups[a:b])) for a, b in itertools.pairwise(edges)]
    sets["count"] = Text(pa.array([str(count) for count in counts], pa.string()))
    around = [places.before[:1], *([c] for c in places.concepts), places.after[:1]]
    sets["previous"] = _links(around[:-2])
    sets["following"] = _links(around[2:])
    return sets


def _links(concepts: list[list[str]]) -> Nested:
    offsets = np.cumsum([0, *(len(c) for c in concepts)]).astype(np.int32)
    names = [name for found in concepts for name in found]
    hrefs = [f"../{name}/index.html" for name in names]
    return Nested(
        offsets,
        {
            "name": Text(pa.array([concept_title(name) for name in names], pa.string())),
            "href": Text(pa.array(hrefs, pa.string())),
        },
    )


def row_page_columns(table: pa.Table, columns: Mapping[str, PageColumn], places: Places) -> dict[str, PageColumn]:
    """Return the columns of the batch's row pages: the row, its siblings, the rows before and after it."""
    codes = {n: plain(table[n]).indices.to_numpy().astype(np.int64) for n in ("concept", "framing", "group")}
    codes["repeat"] = plain(table["repeat"]).to_numpy().astype(np.int64)
    framing = columns["framing"]
    assert isinstance(framing, Text)
    named = {
        "group": columns["group_label"],
        "repeat": columns["repeat"],
        "framing": Text(mapped(framing.array, _framing)),
    }
    page = dict(columns)
    for key, other in (("groups", "group"), ("repeats", "repeat"), ("framings", "framing")):
        rest = [codes[n] for n in codes if n != other]
        page[key] = _siblings(rest, columns, named[other])
    keys = [
        *([places.before] if places.before else [[]]),
        *map(list, zip(places.row_concepts, places.anchors, strict=True)),
        places.after,
    ]
    page["previous"] = _row_links(places.row_concepts, keys[:-2])
    page["following"] = _row_links(places.row_concepts, keys[2:])
    return page


def _framing(text: str) -> str:
    return framing_label(text).lower()


def _siblings(keys: list[np.ndarray[Any, Any]], columns: Mapping[str, PageColumn], name: PageColumn) -> Nested:
    """Return for each row the rows (itself among them, as current) that share all `keys`, in the batch's order."""
    combined = np.zeros(len(keys[0]), np.int64)
    for key in keys:
        combined = combined * (int(key.max()) + 1) + key
    order = np.argsort(combined, kind="stable")
    _, inverse, counts = np.unique(combined, return_inverse=True, return_counts=True)
    begins = np.cumsum(counts) - counts
    lengths = counts[inverse]
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int32)
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    rows = order[np.repeat(begins[inverse], lengths) + within].astype(np.int32)
    current = rows == np.repeat(np.arange(len(combined)), lengths)
    found = taken({**columns, "name": name}, rows, ("anchor", "group_label", "label", "name"))
    marks = pa.array(["", CURRENT]).take(pa.array(current.astype(np.int8)))
    return Nested(offsets, {**found, "current": Html(marks)})


def _row_links(concepts: list[str], keys: list[list[str]]) -> Nested:
    offsets = np.cumsum([0, *(bool(k) for k in keys)]).astype(np.int32)
    pairs = [(own, *key) for own, key in zip(concepts, keys, strict=True) if key]
    hrefs = [f"{a}.html" if c == own else f"../{c}/{a}.html" for own, c, a in pairs]
    names = [a if c == own else f"{concept_title(c)}, {a}" for own, c, a in pairs]
    return Nested(offsets, {"name": Text(pa.array(names, pa.string())), "href": Text(pa.array(hrefs, pa.string()))})
