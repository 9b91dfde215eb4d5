"""Receipt pages by the ordinary Jinja render, a page at a time: the plain definition that the bulk path must equal."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from generator.edition import paths
from generator.edition.edition import Edition
from generator.html.bulk import plain_environment
from generator.html.favor import favor
from generator.html.frame import breakable, concept_title, environment, visible
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
from generator.receipts.page_columns import FILTER_WORD, SHORT
from generator.receipts.pages import model_numbers, row_context, set_context
from generator.runs.reader import read_shard


def heading(framing):
    """How a framing is headed."""
    return framing.replace("_", " ").capitalize()


def marked(text: str, spans: list[tuple[int, int]], css: str) -> Markup:
    """Text with its spans in marks."""
    html, place = Markup(), 0
    for start, end in spans:
        html += visible(text[place:start]) + Markup('<mark class="{}"><span>').format(css)
        html += visible(text[start:end]) + Markup("</span></mark>")
        place = end
    return html + visible(text[place:])


def vote_view(vote: dict[str, Any]) -> dict[str, Any]:
    """What a template reads of a vote."""
    return {
        "judge": vote["judge"],
        "role": vote["role"],
        "said": vote_text(vote),
        "agrees": matches_text(vote["verdict_matches_prose"]),
        "evidence": "–" if vote["evidence"] is None else visible(vote["evidence"]),
        "reading": reading_text(vote["unwrapped"], vote["evidence_cut"]),
        "key": vote["key"] or "–",
    }


def filter_told(word: str | None) -> Markup:
    """The vendor's word for its filter where it has one."""
    return Markup() if word is None else Markup(FILTER_WORD[0]) + visible(word) + Markup(FILTER_WORD[1])


def dash(value: Any) -> str:
    """A value as text, a dash for null."""
    return "–" if value is None else str(value)


def row_view(row: dict[str, Any], edition: Edition) -> dict[str, Any]:
    """What a template reads of a row."""
    bank = edition.run.bank
    attribute = bank.attribute[row["attribute"]]
    spans = [(s["start"], s["end"]) for s in row["mask_spans"] or ()]
    response = row["response"]
    absent = Markup('<em class="none">{}</em>').format(NO_RESPONSE if row["outcome"] in (None, "failed") else NO_TEXT)
    no_prompt = Markup('<em class="none">{}</em>').format(NO_TEXT)
    swap = [] if row["swap_start"] is None else [(row["swap_start"], row["swap_end"])]
    return {
        **{k: row[k] for k in ("attribute", "concept", "category", "rubric", "rubric_sha256", "framing", "group")},
        **{k: row[k] for k in ("status", "receipt_id")},
        "anchor": paths.row_anchor(row["framing"], row["group"], row["repeat"]),
        "group_label": next(g.label for g in attribute.groups if g.id == row["group"]),
        "attribute_label": attribute.label,
        "repeat": str(row["repeat"]),
        "title": concept_title(row["concept"]),
        "shown": breakable(row["concept"]),
        "prompt": no_prompt if row["prompt"] is None else marked(row["prompt"], swap, "swap"),
        "response": absent if response is None else marked(response, spans, "mask"),
        "votes": [vote_view(v) for v in row["votes"]],
        "label": row["final_label"] or NO_LABEL,
        "value": value_text(row["value"]),
        "favor": favor(row["value"], row["polarity"]),
        "why": why(row),
        "finish": visible(dash(row["finish_reason"])),
        "served": visible(dash(row["served_by"])),
        "outcome_words": outcome_text(row["outcome"], row["failure"]),
        "filter_told": filter_told(row["filter_word"]),
        "thinking": thinking_text(row["reasoning_tokens"]),
        "prompt_tokens": dash(row["prompt_tokens"]),
        "completion_tokens": dash(row["completion_tokens"]),
        "cost": f"{row['cost_usd']:.6f}",
        "prompt_sha256": dash(row["prompt_sha256"]),
        "prompt_short": dash(row["prompt_sha256"])[:SHORT],
        "response_key": dash(row["response_key"]),
        "response_short": dash(row["response_key"])[:SHORT],
        "how": how_text(row["status"]),
        "favours": "higher" if row["polarity"] > 0 else "lower",
    }


def siblings(own: dict[str, Any], views: list[dict[str, Any]], other: str, name: str) -> list[dict[str, Any]]:
    """The rows of a set that differ from `own` in `other` at most, in the shard's order."""
    keys = [k for k in ("concept", "framing", "group", "repeat") if k != other]
    return [
        {
            **v,
            "name": heading(v["framing"]).lower() if name == "framing" else v[name],
            "current": Markup(' aria-current="page"') if v is own else "",
        }
        for v in views
        if all(v[k] == own[k] for k in keys)
    ]


def set_view(views: list[dict[str, Any]], edition: Edition, model: str) -> dict[str, Any]:
    """What the template of a set reads, without its neighbours."""
    means, disparities = model_numbers(edition, model)
    framings = []
    for framing, of_framing in itertools.groupby(views, key=lambda v: v["framing"]):
        groups = []
        for group, of_group in itertools.groupby(of_framing, key=lambda v: v["group"]):
            rows = list(of_group)
            mean = means.get((rows[0]["concept"], framing, group), "–")
            groups.append({**rows[0], "mean": mean, "rows": rows})
        shown, count = disparities.get((groups[0]["concept"], framing), ("–", "0"))
        framings.append(
            {
                "framing": framing,
                "framing_label": heading(framing),
                "concept": groups[0]["concept"],
                "disparity": shown,
                "scoreable": count,
                "groups": groups,
            }
        )
    return {**views[0], "framings": framings, "count": str(len({v["group"] for v in views}))}


def plain_pages(edition: Edition, model: str) -> Iterator[tuple[str, bytes]]:
    """Yield (path below dist/, bytes) of a model's row and set pages, each rendered on its own."""
    env = plain_environment(environment())
    table = edition.redactions.apply(read_shard(edition.run, model))
    rows = [r for r in table.to_pylist() if r["category"] not in edition.standing.withheld]
    views = [row_view(r, edition) for r in rows]
    sets = [list(found) for _, found in itertools.groupby(views, key=lambda v: v["concept"])]
    concepts = [s[0]["concept"] for s in sets]
    for i, found in enumerate(sets):
        links = {
            "previous": [{"name": concept_title(c), "href": f"../{c}/index.html"} for c in concepts[max(0, i - 1) : i]],
            "following": [{"name": concept_title(c), "href": f"../{c}/index.html"} for c in concepts[i + 1 : i + 2]],
        }
        row = {**set_view(found, edition, model), **links}
        text = env.get_template("set.html").render({**set_context(edition, model, row), "row": row})
        yield paths.set_page(edition.run_id, model, concepts[i]), text.encode()
    if edition.mode == "folded":
        return
    by_set = {s[0]["concept"]: s for s in sets}
    for i, own in enumerate(views):
        row = {
            **own,
            "groups": siblings(own, by_set[own["concept"]], "group", "group_label"),
            "repeats": siblings(own, by_set[own["concept"]], "repeat", "repeat"),
            "framings": siblings(own, by_set[own["concept"]], "framing", "framing"),
            "previous": [_link(own, v) for v in views[max(0, i - 1) : i]],
            "following": [_link(own, v) for v in views[i + 1 : i + 2]],
        }
        text = env.get_template("receipt.html").render({**row_context(edition, model, row), "row": row})
        page = paths.set_page(edition.run_id, model, own["concept"]).removesuffix("index.html")
        yield f"{page}{own['anchor']}.html", text.encode()


def _link(own: dict[str, Any], other: dict[str, Any]) -> dict[str, str]:
    if own["concept"] == other["concept"]:
        return {"name": other["anchor"], "href": f"{other['anchor']}.html"}
    return {
        "name": f"{concept_title(other['concept'])}, {other['anchor']}",
        "href": f"../{other['concept']}/{other['anchor']}.html",
    }
