"""Every page of a run below runs/<run_id>/ but receipts, explorer and data, and the site's root.

See contract: publication, "The tree".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from generator.edition.edition import Edition
from generator.edition.site_pages import Kind, SitePage, run_pages
from generator.html.figure_svg import Figure
from generator.html.frame import card_path
from generator.pages.attribute import attribute_figure, render_attribute, render_concept
from generator.pages.card import render_card
from generator.pages.figures import render_figure
from generator.pages.findings import render_findings
from generator.pages.leaderboard import render_leaderboard
from generator.pages.model import model_figure, render_model
from generator.pages.model_groups import lean_domain
from generator.pages.model_numbers import render_numbers
from generator.pages.pairs import render_pairs, render_side
from generator.pages.planted import render_planted
from generator.pages.root import RunCard, card_of, render_root, render_sitemaps, render_tombstone
from generator.pages.run import render_audit, render_judging, render_run
from generator.pages.views import View

__all__ = ["RunCard", "card_of", "render_figures", "render_pages", "render_root", "render_sitemaps", "render_tombstone"]


def render_pages(edition: Edition) -> Iterator[tuple[str, bytes]]:
    """Yield (path below dist/, bytes): what _renderers makes, and the card."""
    view = View(edition)
    render = _renderers(view)
    yield from ((page.path, render[page.kind](page)) for page in run_pages(edition) if page.kind in render)
    if edition.base_url:
        yield card_path(edition), render_card(view)


def render_figures(edition: Edition) -> Iterator[tuple[str, bytes]]:
    """Yield (path below dist/, bytes) of every form of the run's figures."""
    view = View(edition)
    for figure in run_figures(view):
        yield from render_figure(view, figure)


def run_figures(view: View) -> Iterator[Figure]:
    """Yield every figure of a run (`site_pages.figure_places` says where they lie)."""
    yield from (model_figure(view, model) for model in view.models)
    yield from (attribute_figure(view, attribute) for attribute in view.bank.attributes)


def _renderers(view: View) -> Mapping[Kind, Callable[[SitePage], bytes]]:
    """Return what makes a page of each kind; figures, data and receipts have their own makers, a task each."""
    domain, bank = lean_domain(view), view.bank
    return {
        "leaderboard": lambda page: render_leaderboard(view, page.path),
        "board": lambda page: render_leaderboard(view, page.path),
        "model": lambda page: render_model(view, page.name, domain),
        "numbers": lambda page: render_numbers(view, page.name),
        "attribute": lambda page: render_attribute(view, bank.attribute[page.name]),
        "attribute_part": lambda page: render_attribute(view, bank.attribute[page.names[1]], page.path),
        "concept": lambda page: render_concept(view, bank.concept[page.name]),
        "findings": lambda page: render_findings(view, page.path),
        "pairs": lambda page: render_pairs(view, page.path),
        "side": lambda page: render_side(view, page.path),
        "planted": lambda page: render_planted(view, page.path),
        "judging": lambda page: render_judging(view, page.path),
        "audit": lambda page: render_audit(view, page.path),
        "run": lambda page: render_run(view, page.path),
    }
