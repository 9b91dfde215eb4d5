"""The leaderboard: tiers with intervals and bands, the attribute matrix, the models that are not ranked.

See contract: publication, "Pages"; methodology: tiers, "The rule".
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from generator.data.description import times
from generator.html.charts import Line, bar
from generator.html.frame import frame, plural, render_page
from generator.pages.group_refusals import GroupRefusals
from generator.pages.views import Footnotes, View
from generator.schema.bank import FRAMINGS
from generator.schema.tables import OVERALL, RUN_WIDE
from generator.scoring.lookup import ScoreRow
from generator.stats.tiers import MOST_ERRORS, too_many_errors


@dataclass(frozen=True)
class LeaderboardRow:
    """One ranked model: its numbers, and its interval drawn against its own band."""

    model: str
    rank: int
    overall: ScoreRow
    low: ScoreRow
    high: ScoreRow
    evidence: dict[str, int]
    refusing: tuple[GroupRefusals, ...]
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


def _ranked(view: View) -> list[tuple[int, list[LeaderboardRow]]]:
    rows = [row for row in view.tiers if row["rank"] is not None]
    rows.sort(key=lambda row: row["rank"])
    return [(tier, [_entry(view, row) for row in group]) for tier, group in groupby(rows, key=lambda row: row["tier"])]


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
        bar=bar(line, view.board_domain),
    )


def unranked(view: View) -> list[tuple[str, str]]:
    """Return (model, why it has no rank), in slug order."""
    found = []
    for row in view.tiers:
        if row["rank"] is None:
            model = row["model"]
            lacking = [a.label for a in view.demographic if view.book.row(model, "consistency", a.id).estimate is None]
            absent = view.edition.run.absent.get(model, 0)
            reason = f"no score for {', '.join(lacking)}" if lacking else _error_words(view, model)
            found.append((model, f"{reason}{f'; {absent:,} planned answers are absent' if absent else ''}"))
    return sorted(found, key=lambda pair: pair[0].encode())


def _error_words(view: View, model: str) -> str:
    """Return why a model with every score has no rank: too many of its planned rows are in error."""
    cover = view.asked[model]
    if not too_many_errors(cover.error, cover.planned):
        return "no interval for its overall consistency"
    share = cover.error / cover.planned
    return (
        f"{cover.error:,} of {cover.planned:,} planned answers ({share:.1%}) are in error, more than {MOST_ERRORS:.0%}"
    )


def matrix(view: View) -> list[MatrixRow]:
    """Return every model over all attributes, in rank order, unranked models last."""
    order = sorted(view.tiers, key=lambda row: (row["rank"] is None, row["rank"] or 0, row["model"].encode()))
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


def _sample(view: View) -> Markup:
    """Return the worked figure of the reading guide: one line left of its band, each named above it."""
    domain = view.board_domain
    # Invented places, in percent of the scale: estimate, interval, band. No model's numbers stand in the figure.
    shares = (38, 25, 52, 64, 84)
    at = [domain.low + (domain.high - domain.low) * share / 100 for share in shares]
    words = Markup("").join(
        Markup('<text x="{}%" y="-0.5em">{}</text>').format(place, word)
        for place, word in ((shares[0], "score"), ((shares[3] + shares[4]) / 2, "own band"))
    )
    drawn = bar(Line("", at[0], at[1], at[2], at[3], at[4], "plain"), domain)
    return Markup(
        '<div class="sample">{}<svg class="sample-words" aria-hidden="true" focusable="false">{}</svg></div>'
    ).format(drawn, words)


def answered(view: View) -> str:
    """Say how many of the bank's prompts the models answered: `the same 1,520 prompts`, `148 of the 1,520 prompts`."""
    prompts = sum(len(FRAMINGS) * len(view.bank.attribute[c.attribute].groups) for c in view.bank.concepts)
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


def render_leaderboard(view: View, page: str) -> bytes:
    """Render the leaderboard at a path: the run's own index, or the root's."""
    edition = view.edition
    title = edition.site.title if page == "index.html" else f"Leaderboard of run {view.run_id}"
    context = frame(
        edition,
        page,
        title,
        description=f"{edition.site.tagline} {len(view.models)} models, each read against its own control band.",
        section="leaderboard",
        scripts=("site.js",),
    )
    return render_page(
        "leaderboard.html",
        context,
        view=view,
        fn=Footnotes(page),
        ranked=_ranked(view),
        unranked=unranked(view),
        matrix=matrix(view),
        refusing=any(view.group_refusals.values()),
        sample=_sample(view),
        mean_band=mean_band(view),
        answered=answered(view),
        asked_times=times(view.edition),
        rows_total=sum(s.rows for s in view.manifest.shards),
    )
