"""The leaderboard: tiers with intervals and bands, the attribute matrix, the models that are not ranked.

See contract: publication, "Pages"; methodology: tiers, "The rule".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from markupsafe import Markup

from generator.data.description import times
from generator.edition import paths
from generator.html.charts import bar
from generator.html.frame import frame, plural, render_page
from generator.pages.findings import sentences
from generator.pages.group_refusals import GroupRefusals
from generator.pages.model_level import label_steps
from generator.pages.parts import ListPart, part_of
from generator.pages.views import Footnotes, View
from generator.schema.tables import OVERALL, RUN_WIDE
from generator.scoring.lookup import ScoreRow
from generator.stats.tiers import MOST_ERRORS, too_many_errors

BESIDE_BAND = ", each read against its own control band"
_NEAR = 12.0  # percent of the figure's width


@dataclass(frozen=True)
class LeaderboardRow:
    """One ranked model: its numbers, and its interval drawn against its own band.

    level: its overall favorability. apart: lower or higher where that stands apart from all other models'.
    """

    model: str
    rank: int
    overall: ScoreRow
    low: ScoreRow
    high: ScoreRow
    evidence: dict[str, int]
    refusing: tuple[GroupRefusals, ...]
    level: ScoreRow
    apart: str | None
    bar: Markup


@dataclass(frozen=True)
class MatrixCell:
    """One attribute of one model."""

    attribute: str
    consistency: ScoreRow
    evidence: str | None
    refusing: bool


@dataclass(frozen=True)
class MatrixRow:
    """One model over all demographic attributes."""

    model: str
    overall: ScoreRow
    cells: tuple[MatrixCell, ...]


TierRow = dict[str, Any]


def standing_order(view: View) -> list[TierRow]:
    """Return every model's row of `tiers`, in rank order, unranked models last, in slug order."""
    return sorted(view.tiers, key=lambda row: (row["rank"] is None, row["rank"] or 0, row["model"].encode()))


def _ranked(view: View, order: Sequence[TierRow]) -> list[tuple[int, list[LeaderboardRow]]]:
    rows = [row for row in order if row["rank"] is not None]
    return [(tier, [_entry(view, row) for row in group]) for tier, group in groupby(rows, key=lambda row: row["tier"])]


@dataclass(frozen=True)
class TierShare:
    """One tier of the whole run: how many models it has, and the part in which it begins."""

    tier: int
    models: int
    part: int


def _tiers(order: Sequence[TierRow], part: ListPart) -> list[TierShare]:
    found: dict[int, TierShare] = {}
    for place, row in enumerate(order):
        if row["rank"] is not None:
            seen = found.get(row["tier"]) or TierShare(row["tier"], 0, part.number_at(place))
            found[row["tier"]] = TierShare(row["tier"], seen.models + 1, seen.part)
    return list(found.values())


def _directory(order: Sequence[TierRow]) -> list[tuple[str, list[TierRow]]]:
    """Return (vendor, its models' rows) in the order of the alphabet."""
    rows = sorted(order, key=lambda row: row["model"].encode())
    return [(vendor, list(own)) for vendor, own in groupby(rows, key=lambda row: row["model"].partition("/")[0])]


def _entry(view: View, row: dict[str, object]) -> LeaderboardRow:
    model = str(row["model"])
    low, high = view.band(model)
    line = view.line(model, OVERALL, model, kind="plain")
    return LeaderboardRow(
        model=model,
        rank=int(str(row["rank"])),
        overall=view.book.row(model, "consistency"),
        low=low,
        high=high,
        evidence=view.evidence_counts(model),
        refusing=view.group_refusals[model],
        level=view.book.row(model, "favorability"),
        apart=view.book.row(model, "favorability_gap").evidence,
        bar=bar(line, view.board_domain),
    )


def unranked(view: View, order: Sequence[TierRow]) -> list[tuple[str, str]]:
    """Return (model, why it has no rank) of those that have none."""
    found = []
    for row in order:
        if row["rank"] is None:
            model = row["model"]
            lacking = [a.label for a in view.demographic if view.book.row(model, "consistency", a.id).estimate is None]
            absent = view.edition.run.absent.get(model, 0)
            reason = f"no score for {', '.join(lacking)}" if lacking else _error_words(view, model)
            found.append((model, f"{reason}{f'; {absent:,} planned answers are absent' if absent else ''}"))
    return found


def _error_words(view: View, model: str) -> str:
    """Return why a model with every score has no rank: too many of its planned rows are in error."""
    cover = view.asked[model]
    if not too_many_errors(cover.error, cover.planned):
        return "no interval for its overall consistency"
    share = cover.error / cover.planned
    return (
        f"{cover.error:,} of {cover.planned:,} planned answers ({share:.1%}) are in error, more than {MOST_ERRORS:.0%}"
    )


def matrix(view: View, order: Sequence[TierRow]) -> list[MatrixRow]:
    """Return models over all attributes, in their order."""
    return [
        MatrixRow(
            model=row["model"],
            overall=view.book.row(row["model"], "consistency"),
            cells=_cells(view, row["model"]),
        )
        for row in order
    ]


def _cells(view: View, model: str) -> tuple[MatrixCell, ...]:
    return tuple(
        MatrixCell(
            attribute=a.id,
            consistency=view.book.row(model, "consistency", a.id),
            evidence=view.evidence(model, a.id),
            refusing=view.group_refusal(model, a.id) is not None,
        )
        for a in view.demographic
    )


@dataclass(frozen=True)
class WorkedRow:
    """The worked figure of the reading guide: the first row of the page, its score and band named beside it."""

    model: str
    overall: ScoreRow
    low: ScoreRow
    high: ScoreRow
    drawn: Markup


def _sample(view: View, row: LeaderboardRow) -> WorkedRow:
    """Return the figure of a row, drawn as in the table, with a word above its point and one below its band."""
    domain = view.board_domain
    words = []
    if row.overall.estimate is not None:
        words.append((domain.share(row.overall.estimate), "-0.5em", "score"))
    if row.low.estimate is not None and row.high.estimate is not None:
        words.append(((domain.share(row.low.estimate) + domain.share(row.high.estimate)) / 2, "4.8em", "own band"))
    texts = Markup().join(
        # Words near an end are written inward, so that none leaves the figure.
        Markup('<text x="{:.2f}%" y="{}" class="{}">{}</text>').format(place, y, _anchor(place), word)
        for place, y, word in words
    )
    drawn = Markup(
        '<div class="sample">{}<svg class="sample-words" aria-hidden="true" focusable="false">{}</svg></div>'
    ).format(row.bar, texts)
    return WorkedRow(row.model, row.overall, row.low, row.high, drawn)


def _anchor(place: float) -> str:
    """Return the class of a word at a place in percent: where it starts, in its middle, or where it ends."""
    return "from" if place < _NEAR else "to" if place > 100 - _NEAR else "mid"


def answered(view: View) -> str:
    """Say how many of the bank's prompts the models answered: `the same 1,520 prompts`, `148 of the 1,520 prompts`."""
    prompts = sum(len(view.bank.framings) * len(view.bank.attribute[c.attribute].groups) for c in view.bank.concepts)
    # A model may have been added later or stopped early, so that not all were given the same prompts.
    given = sorted({one.prompts_given for one in view.asked.values()})
    whole = max((one.prompts for one in view.asked.values()), default=0)
    if given in ([], [whole]):
        return f"the same {plural(prompts, 'prompt')}"
    some = f"{given[0]:,}" if len(given) == 1 else f"between {given[0]:,} and {given[-1]:,}"
    return f"{some} of the {plural(whole, 'prompt')}"


def mean_band(view: View) -> tuple[ScoreRow, ScoreRow] | None:
    """Return the run's mean band, or None where no model has both controls."""
    low, high = view.book.row(RUN_WIDE, "band_low"), view.book.row(RUN_WIDE, "band_high")
    return None if low.estimate is None or high.estimate is None else (low, high)


def render_leaderboard(view: View, page: str, changed: tuple[str, str] | None = None) -> bytes:
    """Render the leaderboard at a path: the run's own index, the root's, or a later part of a run of many models.

    `changed`: what changed since the run before, in a sentence, and the page that tells it; the root's alone has it.
    """
    edition, whole = view.edition, standing_order(view)
    part = part_of(page, paths.run_index(view.run_id), len(whole))
    title = edition.site.title if page == "index.html" else f"Leaderboard: {edition.run_name}"
    order = part.cut(whole)
    ranked, found = _ranked(view, order), view.findings
    context = frame(
        edition,
        page,
        title if part.first else f"{title}, part {part.number}",
        description=f"{edition.site.tagline} {len(view.models)} models{BESIDE_BAND if view.bands else ''}.",
        section="leaderboard",
        scripts=("site.js",),
    )
    return render_page(
        "leaderboard.html",
        context,
        steps=label_steps(view.bank.rubrics),
        view=view,
        fn=Footnotes(page),
        part=part,
        tiers=_tiers(whole, part),
        directory=_directory(whole) if part.of > 1 and part.first else [],
        ranked=ranked,
        sentences=sentences(view, found, page),
        changed=changed,
        apart=any(row.apart for _, rows in ranked for row in rows),
        unranked=unranked(view, order),
        matrix=matrix(view, order),
        refusing=any(view.group_refusals.values()),
        sample=_sample(view, ranked[0][1][0]) if ranked else None,
        mean_band=mean_band(view),
        answered=answered(view),
        asked_times=times(view.edition),
        rows_total=sum(s.rows for s in view.manifest.shards),
    )
