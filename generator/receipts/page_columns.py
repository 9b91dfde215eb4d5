"""From receipt rows to the columns of their pages, a batch of whole sets at a time.

A batch is an Arrow table of complete sets (all rows of a concept) in the shard's order. What a page shows of a row is
either a column taken as it is, a sentence made once per distinct input, or text cut at its spans without a copy.

See contract: publication, "Receipt pages".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from generator.html.bulk import Html, Nested, PageColumn, Text, collapsed, escaped, list_offsets, plain
from generator.html.favor import favor
from generator.html.frame import HIDDEN_POINTS, breakable, concept_title, visible
from generator.html.receipt_words import (
    NO_LABEL,
    NO_RESPONSE,
    NO_TEXT,
    how_text,
    matches_text,
    outcome_text,
    reading_text,
    thinking_text,
    value_text,
    vote_text,
    why,
)
from generator.html.text_bytes import Ints, byte_places, cut, edges_of, holding
from generator.schema.bank import Bank

# Plain columns that repeat within a shard: read as dictionaries, escaped once per distinct value.
DICTIONARIES = (
    "attribute", "concept", "category", "rubric", "rubric_sha256", "framing", "group", "group_np",
    "finish_reason", "served_by", "outcome", "failure", "filter_word", "final_label", "status",
)  # fmt: skip
_UNUSUAL = frozenset(HIDDEN_POINTS)  # everything that `visible` shows as a code point
# Hex digits of a hash where its whole is one link away: hashes are what compresses least on a page of 36 answers.
SHORT = 8
OPEN = {"swap": '<mark class="swap"><span>', "mask": '<mark class="mask"><span>'}
CLOSE = "</span></mark>"
ABSENT = '<em class="none">{}</em>'
FILTER_WORD = (", in its own word <bdi>", "</bdi>")


def mapped(array: pa.DictionaryArray, function: Callable[[Any], str]) -> pa.DictionaryArray:
    """Return a dictionary column with its distinct values replaced by what `function` makes of them."""
    values = pa.array([function(value) for value in array.dictionary.to_pylist()], pa.string())
    return pa.DictionaryArray.from_arrays(array.indices, values)


def by_distinct(table: pa.Table, keys: Sequence[pa.Array], function: Callable[[dict[str, Any]], str]) -> pa.Array:
    """Return `function(row)` as a dictionary column, called once for each distinct combination of `keys`."""
    codes, first = np.zeros(table.num_rows, np.int64), np.zeros(min(table.num_rows, 1), np.int64)
    for key in keys:
        # By number, not by joined text: no text may pass for two others.
        plain_key = key.dictionary_decode() if isinstance(key, pa.DictionaryArray) else key
        own = pc.fill_null(plain_key.dictionary_encode().indices, -1).to_numpy(zero_copy_only=False)
        _, first, codes = np.unique(codes * (table.num_rows + 1) + own + 1, return_index=True, return_inverse=True)
    made = [function(row) for row in table.take(pa.array(first)).to_pylist()]
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(made, pa.string()))


def visible_html(array: pa.Array) -> pa.Array:
    """Return untrusted text as `render.visible` does: Arrow escapes, Python sees only texts with unusual characters."""
    html = escaped(array)
    odd = holding(array, _UNUSUAL)
    if not odd.any():
        return html
    mask = pa.array(odd)
    shown = [str(visible(text)) for text in array.filter(mask).to_pylist()]
    return pc.replace_with_mask(html, mask, pa.array(shown, pa.string()))


def marked_html(texts: pa.Array, span_offsets: Ints, starts: Ints, ends: Ints, css: str) -> pa.Array:
    """Return untrusted texts with their spans (code points) in marks, everything else as `visible_html`.

    `span_offsets` (rows + 1, from 0) say which spans belong to which text. The cut copies nothing: pieces are finer
    offsets into the same bytes.
    """
    rows = len(texts)
    edges = edges_of(texts)
    owner = np.repeat(np.arange(rows), np.diff(span_offsets))
    spans = np.arange(len(starts)) - span_offsets[owner] if len(starts) else np.zeros(0, np.int64)
    home = np.arange(rows) + 2 * span_offsets[:-1]
    cuts = np.empty(rows + 2 * len(starts) + 1, np.int32)
    cuts[home] = edges[:-1]
    cuts[home[owner] + 1 + 2 * spans] = byte_places(texts, owner, starts)
    cuts[home[owner] + 2 + 2 * spans] = byte_places(texts, owner, ends)
    cuts[-1] = edges[-1]
    pieces = cut(texts, cuts)
    inside = np.zeros(len(pieces), np.int8)
    inside[home[owner] + 1 + 2 * spans] = 1
    before, after = pa.array(["", OPEN[css]]), pa.array(["", CLOSE])
    choose = pa.array(inside)
    html = pc.binary_join_element_wise(before.take(choose), visible_html(pieces), after.take(choose), "")
    return collapsed(html, np.append(home, len(pieces)).astype(np.int32))


def prompt_html(table: pa.Table) -> pa.Array:
    """Return the prompts, the swapped words marked; an imported run may have neither.

    Repeats of a prompt follow each other, and each prompt is made once.
    """
    columns = [plain(table[name]) for name in ("prompt", "swap_start", "swap_end")]
    new = np.ones(table.num_rows, np.bool_)
    new[1:] = False
    for column in columns:
        same = pc.fill_null(pc.equal(column.slice(1), column.slice(0, max(len(column) - 1, 0))), False)
        new[1:] |= ~same.to_numpy(zero_copy_only=False)
    texts, starts, ends = (column.filter(pa.array(new)) for column in columns)
    known = pc.and_(texts.is_valid(), pc.and_(starts.is_valid(), ends.is_valid()))
    offsets = np.append(0, np.cumsum(known.to_numpy(zero_copy_only=False))).astype(np.int32)
    first, last = (edges.filter(known).to_numpy() for edges in (starts, ends))
    html = marked_html(pc.fill_null(texts, ""), offsets, first, last, css="swap")
    return pc.if_else(texts.is_valid(), html, ABSENT.format(NO_TEXT)).take(pa.array(np.cumsum(new) - 1))


def response_html(table: pa.Table) -> pa.Array:
    """Return the responses, what the judges saw as `[PERSON]` marked; a failed call and a missing text say so."""
    masks = pc.fill_null(plain(table["mask_spans"]), [])
    spans = masks.flatten()
    texts = plain(table["response"])
    html = marked_html(
        pc.fill_null(texts, ""),
        list_offsets(masks),
        spans.field("start").to_numpy(),
        spans.field("end").to_numpy(),
        css="mask",
    )
    failed = pc.equal(pc.fill_null(_decoded(plain(table["outcome"])), "failed"), "failed")
    absent = pc.if_else(failed, ABSENT.format(NO_RESPONSE), ABSENT.format(NO_TEXT))
    return pc.if_else(texts.is_valid(), html, absent)


def vote_columns(votes: pa.ListArray) -> dict[str, PageColumn]:
    """Return the columns of all votes of a batch, one item a vote."""
    flat = votes.flatten()
    table = pa.Table.from_arrays(flat.flatten(), names=[f.name for f in flat.type])
    said = by_distinct(table, [table[n].combine_chunks() for n in ("label", "score", "error")], vote_text)
    agrees = by_distinct(
        table,
        [table["verdict_matches_prose"].combine_chunks()],
        lambda vote: matches_text(vote["verdict_matches_prose"]),
    )
    evidence = visible_html(plain(table["evidence"]))
    return {
        "judge": Text(plain(table["judge"]).dictionary_encode()),
        "role": Text(plain(table["role"]).dictionary_encode()),
        "said": Text(said),
        "agrees": Text(agrees),
        "evidence": Html(pc.fill_null(evidence, "–")),
        "reading": Text(
            by_distinct(
                table,
                [table[n].combine_chunks() for n in ("unwrapped", "evidence_cut")],
                lambda vote: reading_text(vote["unwrapped"], vote["evidence_cut"]),
            )
        ),
        "key": Text(pc.fill_null(plain(table["key"]), "–")),
    }


def why_texts(table: pa.Table) -> pa.Array:
    """Return every row's sentence on how it ended."""
    votes = plain(table["votes"])
    flat = votes.flatten()
    fields = [pc.fill_null(pc.cast(flat.field(n), pa.string()), "\x1e") for n in ("judge", "label", "score", "error")]
    each = pc.binary_join_element_wise(*fields, "\x1d")
    lists = pa.ListArray.from_arrays(pa.array(list_offsets(votes)), each)
    keys = [
        plain(table["status"]),
        plain(table["final_label"]),
        plain(table["outcome"]),
        plain(table["failure"]),
        plain(table["response"]).is_null(),
        pc.binary_join(lists, "\x1c"),
    ]
    needed = table.select(["status", "final_label", "outcome", "failure", "response", "votes"])
    return by_distinct(needed, keys, why)


def number_text(array: pa.Array) -> pa.Array:
    """Return whole numbers as text, a dash for null."""
    return pc.fill_null(pc.cast(array, pa.string()), "–")


def row_columns(table: pa.Table, bank: Bank) -> dict[str, PageColumn]:
    """Return the columns that both the page of a row and its place on the set page show."""
    concept_of = bank.concept
    names = {name: _coded(plain(table[name])) for name in DICTIONARIES}
    repeat = pc.cast(plain(table["repeat"]), pa.string())
    framing, group = (names[n].dictionary.take(names[n].indices) for n in ("framing", "group"))
    votes = plain(table["votes"])
    columns: dict[str, PageColumn] = {name: Text(array) for name, array in names.items()}
    values = plain(table["value"]).dictionary_encode(null_encoding="encode")
    prompt_hash, response_key = (pc.fill_null(plain(table[n]), "–") for n in ("prompt_sha256", "response_key"))
    return columns | {
        "title": Text(mapped(names["concept"], concept_title)),
        "shown": Html(mapped(names["concept"], breakable)),
        "anchor": Text(pc.binary_join_element_wise(framing, group, repeat, ".")),
        "group_label": Text(group_labels(names["attribute"], names["group"], bank)),
        "attribute_label": Text(mapped(names["attribute"], lambda a: bank.attribute[a].label)),
        "repeat": Text(repeat),
        "prompt": Html(prompt_html(table)),
        "response": Html(response_html(table)),
        "votes": Nested(list_offsets(votes), vote_columns(votes)),
        "label": Text(pc.fill_null(_decoded(names["final_label"]), NO_LABEL)),
        "value": Text(mapped(values, value_text)),
        "favor": Text(
            by_distinct(
                table,
                [plain(table["value"]), names["concept"]],
                lambda row: favor(row["value"], concept_of[row["concept"]].polarity),
            )
        ),
        "why": Text(why_texts(table)),
        "finish": Html(_told(names["finish_reason"])),
        "served": Html(_told(names["served_by"])),
        "outcome_words": Text(
            by_distinct(
                table,
                [plain(table["outcome"]), plain(table["failure"])],
                lambda row: outcome_text(row["outcome"], row["failure"]),
            )
        ),
        "filter_told": Html(filter_html(names["filter_word"])),
        "prompt_tokens": Text(number_text(plain(table["prompt_tokens"]))),
        "completion_tokens": Text(number_text(plain(table["completion_tokens"]))),
        "thinking": Text(
            by_distinct(table, [plain(table["reasoning_tokens"])], lambda row: thinking_text(row["reasoning_tokens"]))
        ),
        "cost": Text(mapped(plain(table["cost_usd"]).dictionary_encode(), "{:.6f}".format)),
        "receipt_id": Text(plain(table["receipt_id"])),
        "prompt_sha256": Text(prompt_hash),
        "prompt_short": Text(pc.utf8_slice_codeunits(prompt_hash, 0, SHORT)),
        "response_key": Text(response_key),
        "response_short": Text(pc.utf8_slice_codeunits(response_key, 0, SHORT)),
        "how": Text(mapped(names["status"], how_text)),
        "favours": Text(mapped(names["concept"], lambda c: "higher" if concept_of[c].polarity > 0 else "lower")),
    }


def _coded(array: pa.Array) -> pa.DictionaryArray:
    """Return a column as a dictionary; one that the run's format lacks was not read as such."""
    return array if isinstance(array, pa.DictionaryArray) else array.dictionary_encode()


def filter_html(words: pa.DictionaryArray) -> pa.Array:
    """Return the vendors' words for their filters, as untrusted as an answer, as HTML; nothing where there is none."""
    told = pc.binary_join_element_wise(FILTER_WORD[0], visible_html(words.dictionary), FILTER_WORD[1], "")
    return pc.fill_null(told.take(words.indices), "")


def _told(array: pa.DictionaryArray) -> pa.Array:
    """Return what an endpoint says of itself, as untrusted as its answer, as HTML; a dash where it said nothing."""
    return pc.fill_null(visible_html(array.dictionary).take(array.indices), "–")


def _decoded(array: pa.Array) -> pa.Array:
    return array.dictionary.take(array.indices) if isinstance(array, pa.DictionaryArray) else array


def group_labels(attribute: pa.DictionaryArray, group: pa.DictionaryArray, bank: Bank) -> pa.Array:
    """Return the labels of groups; a group's id is only unique within its attribute."""
    width = len(group.dictionary)
    codes = attribute.indices.to_numpy().astype(np.int64) * width + group.indices.to_numpy()
    distinct, places = np.unique(codes, return_inverse=True)
    attributes, groups = attribute.dictionary.to_pylist(), group.dictionary.to_pylist()
    labels: Mapping[tuple[str, str], str] = {(a.id, g.id): g.label for a in bank.attributes for g in a.groups}
    texts = [labels[attributes[code // width], groups[code % width]] for code in distinct.tolist()]
    return pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), pa.array(texts, pa.string()))
