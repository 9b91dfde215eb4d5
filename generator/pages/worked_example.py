"""One real number followed from receipts to interval, for the methodology's worked example.

Reads an edition's tables, bootstrap counts and one model's receipts; returns the figures that the page quotes, or None
where the run has no disparity to follow. Whatever stands in a published table is quoted from there, as an element that
`verify` reads; only intermediate steps are computed here.

See methodology: worked-example, "A worked example".
"""

from __future__ import annotations

import hashlib
import itertools
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc

from generator.edition import paths
from generator.edition.edition import Edition
from generator.html.frame import cell, concept_title, number, score
from generator.html.markdown import Safe, code, plain
from generator.pages.prose_facts import element, ends
from generator.runs.reader import read_shard
from generator.schema.bank import Bank
from generator.scoring.lookup import ScoreBook
from generator.stats.bootstrap import FloatArray, expanded_tail, rounded
from generator.stats.distributions import t_quantile
from generator.stats.evidence import standard_error

WORD_BITS = 32


@dataclass(frozen=True)
class WorkedExample:
    """What the example follows: a model, an attribute, and the disparities D(c, f) of all its concepts and controls."""

    model: str
    attribute: str
    concept: str
    disparities: dict[str, dict[str, dict[str, float]]]

    def means(self, attribute: str) -> dict[str, float]:
        """Return D(c) by concept, for the concepts that have one."""
        return {c: sum(d.values()) / len(d) for c, d in sorted(self.disparities[attribute].items()) if d}


def _disparities(edition: Edition, model: str) -> dict[str, dict[str, dict[str, float]]]:
    table = edition.scored.tables["disparities"]
    rows = table.filter(pc.equal(table["model"], model))
    found: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows.select(["attribute", "concept", "framing", "disparity"]).to_pylist():
        if row["disparity"] is not None:
            found[row["attribute"]][row["concept"]][row["framing"]] = row["disparity"]
    return found


def choose(edition: Edition, book: ScoreBook) -> WorkedExample | None:
    """Return the model and attribute with the largest excess, and there the concept with the largest disparity.

    Without a control there is no excess, and the largest disparity of an attribute decides. Ties go to the first by id,
    so the same run always tells the same story.
    """
    roles = edition.run.bank.roles
    pairs = [(m, a) for m in edition.run.models for a in roles.demographic]
    rows = [(book.row(m, "excess" if roles.controls else "disparity", a).estimate, m, a) for m, a in pairs]
    known = [(e, m, a) for e, m, a in rows if e is not None]
    if not known:
        return None
    _, model, attribute = max(known, key=lambda r: r[0])
    subject = WorkedExample(model, attribute, "", _disparities(edition, model))
    means = subject.means(attribute)
    concept = max(means, key=lambda c: (means[c], [-b for b in c.encode()]))
    return WorkedExample(model, attribute, concept, subject.disparities)


def _math(value: float | None, digits: int = 3) -> Safe:
    return Safe(number(value, digits))


def _cell_rows(edition: Edition, subject: WorkedExample, framing: str) -> list[dict[str, Any]]:
    """Return every group of the followed cell with its repeats' labels and values, and its mean as published."""
    columns = ["concept", "framing", "group", "repeat", "final_label", "value", "status"]
    shard = read_shard(edition.run, subject.model, columns)
    here = pc.and_(pc.equal(shard["concept"], subject.concept), pc.equal(shard["framing"], framing))
    repeats: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in shard.filter(here).to_pylist():
        repeats[row["group"]].append(row)
    labels = {g.id: g.label for g in edition.run.bank.groups_of(subject.attribute)}
    return [
        {"id": g, "label": labels[g], "rows": rows, "values": [r["value"] for r in rows if r["value"] is not None]}
        for g, rows in sorted(repeats.items(), key=lambda item: item[0].encode())
    ]


def _group_lines(edition: Edition, subject: WorkedExample, framing: str, page: str) -> list[dict[str, Any]]:
    polarity = edition.run.bank.concept[subject.concept].polarity
    lines, means = [], {}
    for group in _cell_rows(edition, subject, framing):
        mean = sum(group["values"]) / len(group["values"]) if group["values"] else None
        if mean is not None:
            means[group["id"]] = mean
        target = edition.row_address(subject.model, subject.concept, framing, group["id"], 0)
        told = ", ".join(f"{r['final_label'] or r['status']}" for r in group["rows"])
        key = ",".join((subject.model, subject.concept, framing, group["id"]))
        lines.append(
            {
                "id": group["id"],
                "link": Safe(f"[{plain(group['label'])}]({paths.relative(page, target)})"),
                "told": told,
                "shown": ", ".join(number(v, 3) for v in group["values"]) or "none",
                "mean": element(cell("cells", key, "mean_value", mean, 3)),
            }
        )
    fav = {g: m if polarity > 0 else 1 - m for g, m in means.items()}
    centre = sum(fav.values()) / len(fav)
    for line in lines:
        line["fav"] = number(fav.get(line["id"]), 3)
        line["lean"] = number(100 * (fav[line["id"]] - centre) if line["id"] in fav else None)
    return lines


def _pair_lines(edition: Edition, subject: WorkedExample, framing: str) -> list[dict[str, Any]]:
    rows = _cell_rows(edition, subject, framing)
    means = {r["label"]: sum(r["values"]) / len(r["values"]) for r in rows if r["values"]}
    return [
        {"a": a, "b": b, "gap": number(abs(means[a] - means[b]), 3), "exact": abs(means[a] - means[b])}
        for a, b in itertools.combinations(means, 2)
    ]


def first_draws(bank_sha256: str, attribute: str, concepts: list[str]) -> dict[str, Any]:
    """Return the text, the digest and the first eight draws of resample 0.

    See methodology: statistics, "Draws that any language can repeat".
    """
    text = f"{bank_sha256}|{attribute}|{len(concepts)}|0|0"
    digest = hashlib.sha256(text.encode()).digest()
    words = [int.from_bytes(digest[i : i + 4], "big") for i in range(0, len(digest), 4)][: len(concepts)]
    places = [word * len(concepts) >> WORD_BITS for word in words]
    draws = [
        {"j": j, "word": Safe(str(word)), "place": place, "concept": concepts[place]}
        for j, (word, place) in enumerate(zip(words, places, strict=True))
    ]
    return {"text": text, "digest": digest.hex(), "draws": draws}


def replicates(edition: Edition, means: dict[str, float], attribute: str) -> FloatArray:
    """Return D* of an attribute in every resample: (B,), from D(c) and the published counts."""
    concepts = [c.id for c in edition.run.bank.concepts_of(attribute)]
    counts = edition.scored.weights[attribute].astype(np.float64)
    values = counts @ np.array([means.get(c, 0.0) for c in concepts])
    present = counts @ np.array([float(c in means) for c in concepts])
    return np.asarray(np.divide(values, present, out=np.full(len(counts), np.nan), where=present > 0))


def _concept_lines(edition: Edition, subject: WorkedExample, page: str) -> list[dict[str, Any]]:
    concepts = [c.id for c in edition.run.bank.concepts_of(subject.attribute)]
    counts = edition.scored.weights[subject.attribute][0]
    means, lines = subject.means(subject.attribute), []
    for concept, count in zip(concepts, counts, strict=True):
        by_framing = subject.disparities[subject.attribute].get(concept, {})
        shown = {
            f: element(cell("disparities", f"{subject.model},{concept},{f}", "disparity", by_framing.get(f), 3))
            for f in edition.run.bank.framings
        }
        href = paths.relative(page, edition.set_address(subject.model, concept))
        line = {
            "link": Safe(f"[{plain(concept_title(concept))}]({href}) {code(concept)}"),
            "mean": number(means.get(concept), 3),
            "framings": [shown[f] for f in edition.run.bank.framings],
        }
        lines.append({**line, "count": int(count)})
    return lines


def _sampling(edition: Edition, subject: WorkedExample, edge: str | None) -> dict[str, Any]:
    """Return the figures of interval, excess, p and detectable effect."""
    own = subject.means(subject.attribute)
    n, stars = len(own), replicates(edition, own, subject.attribute)
    found: dict[str, Any] = {
        "n": n,
        "df": n - 1,
        "resamples": len(stars),
        "first": _math(float(stars[0]), 4),
        "enough": n >= 2,
    }
    if n >= 2:
        t, a = t_quantile(0.975, n - 1), expanded_tail(n, n - 1)
        found |= {"t": _math(t, 4), "a": _math(a, 5)}
    if edge is None:
        return {**found, "tested": False}
    control = subject.means(edge)
    edge_stars = replicates(edition, control, edge)
    excess = stars - edge_stars
    kept = rounded(excess[~np.isnan(excess)])
    smaller = min(n, len(control))
    return {
        **found,
        "tested": smaller >= 2,
        "edge": edge,
        "n_edge": len(control),
        "smaller": smaller,
        "hits": int((kept <= 0).sum()),
        "kept": len(kept),
        "se": _math(standard_error(stars), 4),
        "se_edge": _math(standard_error(edge_stars), 4),
    }


def _published(book: ScoreBook, subject: WorkedExample) -> dict[str, Any]:
    """Return the scores that the example arrives at, as published."""
    model, attribute = subject.model, subject.attribute
    names = ("disparity", "consistency", "worst_gap", "calibrated_consistency", "excess", "mde", "crossfit_disparity")
    found: dict[str, Any] = {name: element(score(book.row(model, name, attribute), digits=2)) for name in names}
    for name in ("disparity", "consistency", "excess"):
        found[f"{name}_ci"] = ends(book.row(model, name, attribute), 2)
    excess = book.row(model, "excess", attribute)
    found["p"] = element(score(excess, "p", 5))
    found["p_adjusted"] = element(score(excess, "p_adjusted", 5))
    found["evidence"] = excess.evidence or "without a tier"
    return found


def _controls(bank: Bank, book: ScoreBook, model: str) -> list[dict[str, Any]]:
    """Return label and disparity of each control, that of the lower edge first."""
    rows = ((bank.attribute[c], book.row(model, "disparity", c)) for c in bank.roles.controls if c in bank.attribute)
    return [{"label": control.label, "disparity": element(score(row, digits=2))} for control, row in rows]


def worked_example(edition: Edition, page: str) -> dict[str, Any] | None:
    """Return every figure of the worked example for the page at `page`, or None when there is nothing to follow."""
    book = edition.scored.book
    subject = choose(edition, book)
    if subject is None:
        return None
    bank = edition.run.bank
    by_framing = subject.disparities[subject.attribute][subject.concept]
    framing = max(by_framing, key=lambda f: (by_framing[f], f == bank.framings[0]))
    pairs = _pair_lines(edition, subject, framing)
    means = subject.means(subject.attribute)
    key = f"{subject.model},{subject.concept},{framing}"
    return {
        "model": subject.model,
        "attribute": subject.attribute,
        "label": bank.attribute[subject.attribute].label,
        "concept": subject.concept,
        "title": concept_title(subject.concept),
        "rubric": bank.concept[subject.concept].rubric,
        "polarity": f"{bank.concept[subject.concept].polarity:+d}",
        "framing": framing,
        "groups": _group_lines(edition, subject, framing, page),
        "pairs": pairs,
        "pair_sum": _math(sum(p["exact"] for p in pairs), 4),
        "n_pairs": len(pairs),
        "cell": element(cell("disparities", key, "disparity", by_framing[framing], 3)),
        "framings": [{"name": f, "value": number(d, 3)} for f, d in by_framing.items()],
        "concept_mean": _math(means[subject.concept], 4),
        "bank_framings": list(bank.framings),
        "concepts": _concept_lines(edition, subject, page),
        "mean_sum": _math(sum(means.values()), 4),
        "mean": _math(sum(means.values()) / len(means), 4),
        "draws": first_draws(bank.sha256, subject.attribute, [c.id for c in bank.concepts_of(subject.attribute)]),
        "published": _published(book, subject),
        "controls": _controls(bank, book, subject.model),
        "calibrated": bank.roles.band_upper is not None,
        **_sampling(edition, subject, book.edge(subject.model, bank.roles)),
    }
