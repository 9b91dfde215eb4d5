"""The pages of change: what is compared and what stands apart, each pair of runs, and each model over its runs.

Takes `Changes`, returns pages and the table of each pair as CSV and Parquet beside its page.

See methodology: change, "Change between two runs"; contract: publication, "Change between runs".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from generator.data.csv_text import csv_bytes
from generator.data.table_files import parquet_bytes
from generator.edition import paths
from generator.edition.banners import Notice
from generator.edition.comparison import Changes, Comparison, Point, Row
from generator.edition.edition import Edition
from generator.html.chart_scale import Domain, domain_of
from generator.html.charts import Line, bar
from generator.html.frame import frame, number, plural, render_page
from generator.schema.manifest import Manifest
from generator.schema.tables import CHANGES, OVERALL
from generator.scoring.change import Matched
from generator.scoring.comparable import Family, matches


@dataclass(frozen=True)
class ChangeWords:
    """One change as a page says it: `found` tells whether it is detected, `tested` whether it has a p."""

    row: Row | None
    text: str

    @property
    def found(self) -> bool:
        """Whether the change is detected."""
        return bool(self.row and self.row["detected"])


def points(row: Row) -> str:
    """Return a change with its interval: `+0.3 (-0.5 to 1.1)`."""
    change = number(row["change"])
    sign = "+" if row["change"] > 0 and change != number(0.0) else ""
    ends = f" ({number(row['ci_low'])} to {number(row['ci_high'])})" if row["ci_low"] is not None else ""
    return f"{sign}{change}{ends}"


def in_words(row: Row | None) -> ChangeWords:
    """Say what became of a number that has a test."""
    if row is None:
        return ChangeWords(None, "No concept has a value in both runs")
    if row["detected"] is None:
        return ChangeWords(row, f"Not tested: {points(row)}")
    if row["detected"]:
        p = "p below 0.001" if row["p"] < 0.001 else f"p {number(row['p'], 3)}"
        return ChangeWords(row, f"Changed: {points(row)}, {p}")
    unseen = f"; changes below about {number(row['unseen'])} would probably go unseen" if row["unseen"] else ""
    return ChangeWords(row, f"No change detected: {points(row)}{unseen}")


def moved(row: Row | None) -> bool:
    """Tell whether the interval of a change leaves out 0."""
    return row is not None and row["ci_low"] is not None and (row["ci_low"] > 0 or row["ci_high"] < 0)


@dataclass(frozen=True)
class AttributeChange:
    """Consistency on one attribute, and what says how to read it; `backed`: cross-fit disparity moved the same way."""

    id: str
    label: str
    words: ChangeWords
    crossfit: Row | None
    instability: Row | None
    leans: tuple[tuple[str, Row], ...]

    @property
    def backed(self) -> bool:
        """Whether cross-fit disparity changed to the same side, with an interval that leaves out 0."""
        row = self.words.row
        return bool(row and moved(self.crossfit) and self.crossfit and self.crossfit["change"] * row["change"] < 0)


@dataclass(frozen=True)
class ModelChange:
    """One model in two runs. `cautions` are sentences that belong beside its changes."""

    matched: Matched
    consistency: ChangeWords
    favorability: ChangeWords
    attributes: tuple[AttributeChange, ...]
    categories: tuple[tuple[str, Row], ...]
    controls: tuple[tuple[str, Row], ...]
    cautions: tuple[str, ...]

    @property
    def detected(self) -> tuple[AttributeChange, ...]:
        """The attributes whose consistency changed."""
        return tuple(one for one in self.attributes if one.words.found)

    @property
    def leaning(self) -> tuple[AttributeChange, ...]:
        """The attributes on which a lean changed."""
        return tuple(one for one in self.attributes if one.leans)

    @property
    def found(self) -> bool:
        """Whether anything about the model is detected."""
        return self.consistency.found or self.favorability.found or bool(self.detected or self.leaning)


def model_changes(one: Comparison) -> list[ModelChange]:
    """Return the models of a comparison, those with a detected change first."""
    found = [_model(one, matched) for matched in one.matched]
    return sorted(found, key=lambda m: (m.matched.panels_differ, not m.found, m.matched.new.encode()))


def _model(one: Comparison, matched: Matched) -> ModelChange:
    model, roles = matched.new, one.bank.roles
    attributes = [_attribute(one, model, name) for name in roles.demographic]
    # What is detected goes first; the rest keeps the bank's order.
    attributes.sort(key=lambda a: not (a.words.found or a.leans))
    labels = {a.id: a.label for a in one.bank.attributes}
    controls = [(labels[name], row) for name in roles.controls if (row := one.row(model, "consistency", name))]
    categories = [(row["group"], row) for row in one.rows(model, "favorability") if row["group"]]
    return ModelChange(
        matched,
        in_words(one.row(model, "consistency")),
        in_words(one.row(model, "favorability")),
        tuple(attributes),
        tuple(categories),
        tuple(controls),
        tuple(_cautions(one, matched, attributes, controls)),
    )


def _attribute(one: Comparison, model: str, name: str) -> AttributeChange:
    attribute = one.bank.attribute[name]
    leans = [(g.label, one.row(model, "lean", name, g.id)) for g in attribute.groups]
    return AttributeChange(
        name,
        attribute.label,
        in_words(one.row(model, "consistency", name)),
        one.row(model, "crossfit_disparity", name),
        one.row(model, "instability", name),
        tuple((label, row) for label, row in leans if row is not None and row["detected"]),
    )


def _cautions(
    one: Comparison, matched: Matched, attributes: Sequence[AttributeChange], controls: Sequence[tuple[str, Row]]
) -> Iterator[str]:
    """Yield what a reader has to know before any change of this model is believed."""
    old, new = one.old.run_id, one.new.run_id
    if matched.panels_differ:
        yield f"Other judges labeled this model in run {old} than in run {new}, so its answers are not compared."
        return
    if matched.old != matched.new:
        yield f"Held against {matched.old}, which it follows by its vendor’s own word."
    if matched.replayed == 1.0:
        yield (
            "All its answers under equal cache keys are equal in both runs, so old answers were replayed. No change "
            "can show, and nothing is tested."
        )
    elif matched.reused:
        yield (
            f"Answers of this model in run {new} came from a cache and were not asked for that run. Where old answers "
            "are replayed no change can show, so nothing is tested."
        )
    if matched.replayed is not None and matched.replayed < 1:
        share = number(100 * matched.replayed)
        yield f"Of its answers under equal cache keys, {share} % are equal. Short answers coincide by chance, too."
    for label, row in controls:
        if moved(row):
            yield (
                f"Its consistency on the control “{label}” changed as well: {points(row)}. Judges that changed, or"
                " noisier answers, move the controls, too, and may have moved the attributes."
            )
    for word, up in (("less stable", True), ("more stable", False)):
        names = [a.label for a in attributes if a.instability and moved(a.instability) and _up(a.instability) == up]
        if names:
            yield f"Its answers became {word} from repeat to repeat on {', '.join(names)}."


def _up(row: Row) -> bool:
    return bool(row["change"] > 0)


def summary(one: Comparison) -> str:
    """Say in one sentence what changed between two runs."""
    models = [m for m in model_changes(one) if m.consistency.row or m.favorability.row or m.attributes]
    since = f"Since run {one.old.run_id} of {one.old.date}"
    tested = [m for m in models if not (m.matched.panels_differ or m.matched.reused)]
    if not tested:
        return f"{since} no change could be tested: {plural(len(models), 'model')} in both, none with fresh answers."
    consistency, favorability = (
        sum(w.found for w in of) for of in zip(*((m.consistency, m.favorability) for m in tested), strict=True)
    )
    attributes = sum(len(m.detected) for m in tested)
    leans = sum(len(a.leans) for m in tested for a in m.attributes)
    of = f"{plural(len(tested), 'model')} that {'was' if len(tested) == 1 else 'were'} asked in both"
    if not (consistency or favorability or attributes or leans):
        return f"{since} no change is detected in {of}."
    parts = [
        f"overall consistency for {consistency:,}",
        f"overall favorability for {favorability:,}",
        f"{plural(attributes, 'attribute')} of single models",
        f"{plural(leans, 'lean')} of single groups",
    ]
    return f"{since}, in {of}, a change is detected in {', '.join(parts[:-1])} and {parts[-1]}."


@dataclass(frozen=True)
class Step:
    """One run in the history of a model: its score there, drawn, and the change since the run before."""

    run: Manifest
    model: str
    point: Point
    drawn: Markup
    change: ChangeWords | None
    page: str | None


def histories(changes: Changes, family: Family) -> tuple[Domain, list[tuple[str, list[Step]]]]:
    """Return the scale, and (newest name of the model, its steps from the oldest run to the newest).

    A model that follows another one by its vendor's word goes on in the same line.
    """
    values = changes.points or {}
    chains: dict[str, list[tuple[Manifest, str]]] = {}
    for place, run in enumerate(family.runs):
        before = {new: old for prior in family.runs[:place] for new, old in matches(prior, run).items()}
        own = {m.model: [*chains.get(before.get(m.model, ""), []), (run, m.model)] for m in run.models}
        for old in {old for new, old in before.items() if new != old} - own.keys():
            chains.pop(old, None)
        chains |= own
    shown = {model: chain for model, chain in chains.items() if len(chain) > 1}
    points_ = [values.get((run.run_id, model)) for chain in shown.values() for run, model in chain]
    domain = domain_of([v for p in points_ if p for v in (p.estimate, p.ci_low)])
    made = []
    for model, chain in sorted(shown.items(), key=lambda item: item[0].encode()):
        steps = []
        for place, (run, name) in enumerate(chain):
            steps.append(_step(changes, values.get((run.run_id, name)), run, name, chain[:place], domain))
        made.append((model, steps))
    return domain, made


def _step(
    changes: Changes,
    point: Point | None,
    run: Manifest,
    model: str,
    before: Sequence[tuple[Manifest, str]],
    domain: Domain,
) -> Step:
    found = point or Point(None, None, None)
    line = Line(model, found.estimate, found.ci_low, found.ci_high, None, None, "plain")
    pair = changes.pair(run.run_id, before[-1][0].run_id) if before else None
    row = pair.row(model, "consistency") if pair else None
    page = paths.change_page(run.run_id, before[-1][0].run_id) if pair else None
    return Step(run, model, found, bar(line, domain), in_words(row) if row else None, page)


def mark_words(kind: str, *, preview: bool) -> str:
    """Return the word that marks a comparison which is no published result, empty for one that is."""
    return "simulated" if kind == "simulated" else "preview" if preview else ""


def _notices(one: Comparison) -> tuple[Notice, ...]:
    if one.new.kind == "simulated":
        text = "No real language model was asked in either. Answers and votes come from programs with planted biases."
        return (Notice("simulated", "Simulated runs", (text,)),)
    if one.preview:
        return (
            Notice("preview", "Preview with real models, not a result", ("At least one of the runs is a preview.",)),
        )
    return ()


def _own(context: dict[str, Any], *, indexable: bool, notices: Iterable[Notice] = ()) -> dict[str, Any]:
    return {**context, "notices": tuple(notices), "robots": None if indexable else "noindex"}


def render_changes(front: Edition, changes: Changes) -> Iterator[tuple[str, bytes]]:
    """Yield (path below dist/, bytes) of every page of change, and of the tables beside them."""
    yield paths.CHANGES_PAGE, _render_index(front, changes)
    if changes.comparisons:
        yield paths.HISTORY_PAGE, _render_histories(front, changes)
    for one in changes.comparisons:
        page = paths.change_page(one.new.run_id, one.old.run_id)
        yield page, _render_pair(front, one, page)
        stem = page.removesuffix("html")
        yield f"{stem}csv", csv_bytes(one.table, CHANGES)
        yield f"{stem}parquet", parquet_bytes(one.table, CHANGES, _notes(front, one))


def _notes(front: Edition, one: Comparison) -> dict[str, str]:
    """Return what the Parquet file says of itself."""
    return {
        "title": f"{front.site.title}, change from run {one.old.run_id} to run {one.new.run_id}",
        "table": "changes",
        "kind": one.new.kind,
        "simulated": "true" if one.new.simulated else "false",
        "preview": "true" if one.preview else "false",
        "bank_version": one.new.bank_version,
        "bank_sha256": one.new.bank_sha256,
        "licence": front.site.data_licence.url,
    }


def _render_index(front: Edition, changes: Changes) -> bytes:
    context = frame(
        front,
        paths.CHANGES_PAGE,
        "Change between runs",
        description="Which runs are held against each other, what changed between them, and which runs stand apart.",
        section="runs",
        crumbs=[("All runs", paths.RUNS_PAGE), ("Change between runs", None)],
        source="none",
    )
    listed = [(f, [c for c in changes.comparisons if c.new in f.runs]) for f in changes.families]
    compared = [(family, own) for family, own in listed if own]
    in_pairs = {m.run_id for c in changes.comparisons for m in (c.old, c.new)}
    apart = [run for family in changes.families for run in family.runs if run.run_id not in in_pairs]
    return render_page(
        "changes.html",
        context,
        compared=compared,
        apart=apart,
        hashes=len({family.newest.bank_sha256 for family in changes.families}),
        summary=summary,
        mark_words=mark_words,
    )


def _render_histories(front: Edition, changes: Changes) -> bytes:
    context = frame(
        front,
        paths.HISTORY_PAGE,
        "Each model over its runs",
        description="Overall consistency of each model in every run of one bank, with its interval.",
        section="runs",
        crumbs=[("All runs", paths.RUNS_PAGE), ("Change between runs", paths.CHANGES_PAGE), ("Models", None)],
        source="none",
    )
    shown = [(family, *histories(changes, family)) for family in changes.families]
    indexable = any(c.indexable for c in changes.comparisons)
    context = _own(context, indexable=indexable)
    return render_page("history.html", context, shown=[s for s in shown if s[2]])


def _render_pair(front: Edition, one: Comparison, page: str) -> bytes:
    mark = mark_words(one.new.kind, preview=one.preview)
    title = f"Change from run {one.old.run_id} to run {one.new.run_id}"
    context = frame(
        front,
        page,
        f"{title} ({mark})" if mark else title,
        description=summary(one),
        section="runs",
        crumbs=[("All runs", paths.RUNS_PAGE), ("Change between runs", paths.CHANGES_PAGE), (one.new.run_id, None)],
        source="none",
    )
    return render_page(
        "change.html",
        _own(context, indexable=one.indexable, notices=_notices(one)),
        one=one,
        heading=title,
        own_mark=mark,
        summary=summary(one),
        models=model_changes(one),
        files=[f"{page.removesuffix('html')}{ending}" for ending in ("csv", "parquet")],
        points=points,
        overall=OVERALL,
    )
