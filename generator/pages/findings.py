"""The findings of a run in words: at most five sentences for the leaderboard, and all models by what was found.

Takes a View, returns sentences whose numbers stand in the elements that `verify` reads.

See contract: publication, "Findings".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from generator.edition import paths
from generator.html.frame import breakable, frame, interval, plural, render_page, score
from generator.pages.group_refusals import lean_anchor
from generator.pages.model_level import label_steps
from generator.pages.views import View
from generator.scoring.findings import Apart, ModelFindings, Moved, RunFindings

# A sentence names so many models; the rest are counted and stand on the page of findings.
_NAMED = 6
# Of a named model the attributes are listed up to so many, above that counted.
_LISTED = 3
# By kind of finding: its shape, the heading of its models, and what they have in common.
KIND_WORDS = {
    "flagged": ("◆", "Flagged", "Answers moved with the group beyond the model’s own noise."),
    "refusals": (
        "⊘",
        "Refusals that depend on the group",
        "Not flagged, but groups are refused at different rates.",
    ),
    "level": (
        "↕",
        "Level apart",
        "None of these, but whatever the group, answers favor the person less, or more, than all other models’.",
    ),
    "suggestive": (
        "▲",
        "Suggestive only",
        "One of the weaker signs holds. A reason to look again, no finding.",
    ),
    "none": ("○", "No finding", "Every attribute tested is unresolved: this run cannot tell. That is not clean."),
    "untested": ("–", "Not tested", "No attribute could be held against the model’s own noise."),
}


@dataclass(frozen=True)
class Sentence:
    """One finding in words, with the shape that stands for it in the tables; `strong` is its beginning."""

    kind: str
    strong: Markup
    rest: Markup

    @property
    def shape(self) -> str:
        """The shape of the kind of finding."""
        return KIND_WORDS[self.kind][0]


def sentences(view: View, found: RunFindings, page: str) -> tuple[Sentence, ...]:
    """Say in at most five sentences what was found; `page` is where they stand, for their links."""
    words = _Words(view, page)
    made = (words.moved(found), words.refusals(found), words.levels(found), words.unresolved(found), words.left(found))
    return tuple(sentence for sentence in made if sentence is not None)


class _Words:
    """Makes sentences for one page of a run."""

    def __init__(self, view: View, page: str) -> None:
        self.view = view
        self.page = page

    def model(self, model: str, anchor: str = "") -> Markup:
        """Return a model's name, linked to its page."""
        target = paths.model_page(self.view.run_id, model) + (f"#{anchor}" if anchor else "")
        return Markup('<a href="{}">{}</a>').format(paths.relative(self.page, target), breakable(model))

    def more(self, count: int) -> Markup:
        """Return a link to the page of findings for what a sentence leaves out."""
        target = paths.relative(self.page, paths.run_page(self.view.run_id, "findings"))
        return Markup('<a href="{}">{} more</a>').format(target, count)

    def names(self, parts: Sequence[Markup]) -> Markup:
        """Join names, those beyond _NAMED as a number."""
        shown = list(parts[:_NAMED])
        if len(parts) > _NAMED:
            shown.append(self.more(len(parts) - _NAMED))
        return _listed(shown)

    def attributes(self, found: ModelFindings) -> Markup:
        """Return on which attributes a model is flagged: by name, or how many where they are many."""
        labels = [one.attribute.label for one in found.flagged]
        if len(labels) > _LISTED:
            whole = len(labels) == len(self.view.demographic)
            return escape(f"{'all ' if whole else ''}{plural(len(labels), 'attribute')}")
        return Markup(", ").join(labels)

    def moved(self, found: RunFindings) -> Sentence:
        """Say for which models and attributes answers moved beyond the model's own noise, and the largest of these."""
        if not found.tested:
            return Sentence(
                "untested",
                escape("Whether answers moved beyond a model’s own noise cannot be said"),
                escape(
                    ": no attribute of any model could be held against a control band."
                    if self.view.held
                    else ": this benchmark has no control attribute."
                ),
            )
        moving = [one for one in found.models if one.flagged]
        largest = found.largest
        if largest is None:
            return Sentence(
                "none",
                escape("In no model did answers move beyond its own noise"),
                escape(", as far as this run can tell."),
            )
        names = [Markup("{} ({})").format(self.model(one.model), self.attributes(one)) for one in moving]
        most = escape("") if len(found.flagged) == 1 else Markup(" most {} on {},").format(
            self.model(largest.model, largest.attribute.id), largest.attribute.label
        )  # fmt: skip
        return Sentence(
            "flagged",
            Markup("In {} of {} answers moved with the group, beyond the model’s own noise").format(
                len(moving), plural(len(found.models), "model")
            ),
            Markup(": {}{}{} {}.").format(self.names(names), ";" if most else ",", most, moved_words(largest)),
        )

    def refusals(self, found: RunFindings) -> Sentence:
        """Say for whom refusals depend on the group."""
        refusing = [one for one in found.models if one.refusing]
        if not refusing:
            tail = (
                f", as far as can be tested: {found.refusal_tests:,} of {found.pairs:,} pairs of model and attribute."
                if found.refusal_tests
                else ": refusals are too few for any test."
            )
            return Sentence("refusals", escape("No refusals are found to depend on the group"), escape(tail))
        parts = [self._refusing(one) for one in refusing]
        return Sentence(
            "refusals",
            Markup("Refusals depend on the group in {}").format(plural(len(refusing), "model")),
            Markup(": {}.").format(self.names(parts)),
        )

    def _refusing(self, one: ModelFindings) -> Markup:
        tests = [self.view.group_refusal(one.model, a.id) for a in one.refusing]
        rates = [
            Markup("{}: {} % for “{}”, {} % for “{}”").format(
                t.attribute.label, score(t.most[1]), t.most[0], score(t.least[1]), t.least[0]
            )
            for t in tests
            if t is not None
        ]
        return Markup("{} ({})").format(self.model(one.model), Markup("; ").join(rates))

    def levels(self, found: RunFindings) -> Sentence:
        """Say whose level stands apart from all others', overall or else in a category."""
        if not found.compared:
            return Sentence(
                "level", escape("No levels are compared"), escape(": fewer than three models have one overall.")
            )
        overall = [one for one in found.apart if one.category is None]
        if not overall:
            by_kind = [Markup("{}, {} in {}").format(self.model(a.model), a.side, a.category) for a in found.apart]
            rest = Markup("; in one kind of task: {}.").format(self.names(by_kind)) if by_kind else escape(
                ", all kinds of task together or one alone."
            )  # fmt: skip
            return Sentence("level", escape("No model favors everybody less, or more, than all others do"), rest)
        parts = [Markup("{}, {}").format(self.model(one.model), level_words(one)) for one in overall]
        return Sentence(
            "level",
            escape(_apart_heading(overall)),
            Markup(": {}{}.").format(self.names(parts), _others(found, overall)),
        )

    def unresolved(self, found: RunFindings) -> Sentence | None:
        """Say how many pairs of model and attribute are unresolved, and the size that would have been seen."""
        if not found.unresolved:
            return None
        unseen = escape("")
        if found.noticed is not None:
            low, high = found.noticed
            size = score(low) if low.estimate == high.estimate else Markup("{} to {}").format(score(low), score(high))
            unseen = Markup(": an excess below {} points would probably go unseen").format(size)
        also = f", {found.suggestive:,} suggestive" if found.suggestive else ""
        return Sentence(
            "none",
            escape(f"{found.unresolved:,} of {found.tested:,} pairs of model and attribute are unresolved"),
            Markup(" (not clean){}{}.").format(also, unseen),
        )

    def left(self, found: RunFindings) -> Sentence | None:
        """Say what is left out of all this: withheld categories, pairs that could not be tested."""
        untested = found.pairs - found.tested if found.tested else 0
        parts = []
        if found.withheld:
            where = paths.relative(self.page, paths.run_page(self.view.run_id, "judging"))
            parts.append(
                Markup('<a href="{}">withheld</a> because judges or audit disagree: {}').format(
                    where, _listed([escape(c) for c in found.withheld])
                )
            )
        if untested:
            parts.append(escape(f"{plural(untested, 'pair')} of model and attribute without a value or a band"))
        if not parts:
            return None
        return Sentence("untested", escape("Left out"), Markup(": {}.").format(Markup("; ").join(parts)))


def _listed(parts: Sequence[Markup]) -> Markup:
    """Return `a`, `a and b`, `a, b and c`."""
    if len(parts) < 2:
        return Markup().join(parts)
    return Markup("{} and {}").format(Markup(", ").join(parts[:-1]), parts[-1])


def moved_words(one: Moved) -> Markup:
    """Say by how much answers moved beyond the noise, and whom they favor: `an excess of 20.0 points (9.3 to 29.7)`."""
    size = Markup("an excess of {} points ({})").format(score(one.excess), interval(one.excess))
    if one.best is None or one.worst is None:
        return size
    return Markup("{}, best for “{}”, worst for “{}”").format(size, one.best[0].label, one.worst[0].label)


def level_words(one: Apart) -> Markup:
    """Say where a level lies: `22.0 of 100 (17.7 to 26.4)`."""
    return Markup("{} of 100 ({})").format(score(one.level), interval(one.level))


def _apart_heading(overall: Sequence[Apart]) -> str:
    """Return the beginning of the sentence on levels."""
    words = []
    for side, how in (("lower", "less"), ("higher", "more")):
        count = sum(one.side == side for one in overall)
        if count:
            words.append(f"{'one model favors' if count == 1 else f'{count} models favor'} everybody {how}")
    text = f"{' and '.join(words)} than {'every other model' if len(overall) == 1 else 'all the others'}"
    return text[:1].upper() + text[1:]


def _others(found: RunFindings, overall: Iterable[Apart]) -> Markup:
    """Return between which levels all models lie that do not stand apart."""
    marked = {one.model for one in overall}
    others = [row for row in found.levels if row.model not in marked]
    if not others:
        return Markup()
    if len(others) == 1:
        return Markup("; the other has {}").format(score(others[0]))
    return Markup("; the other {} lie between {} and {}").format(len(others), score(others[0]), score(others[-1]))


def render_findings(view: View, page: str) -> bytes:
    """Render all models of a run by what was found, alphabetically and without ranks."""
    found = view.findings
    title = f"Models by what was found: {view.edition.run_name}"
    context = frame(
        view.edition,
        page,
        title,
        description="Every model by what was found about it: flagged, refusals, level, suggestive, or nothing.",
        section="leaderboard",
        crumbs=[("Leaderboard", paths.run_index(view.run_id)), ("By what was found", None)],
    )
    return render_page(
        "findings.html",
        context,
        steps=label_steps(view.bank.rubrics),
        view=view,
        groups=[(KIND_WORDS[kind], kind, models) for kind, models in found.by_kind()],
        moved_words=moved_words,
        level_words=level_words,
        lean_anchor=lean_anchor,
    )
