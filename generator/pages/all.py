"""Every page of a run below runs/<run_id>/ but receipts, explorer and data, and the site's root.

See contract: publication, "The tree".
"""

from __future__ import annotations

from collections.abc import Iterator

from generator.edition.edition import Edition
from generator.html.frame import card_path
from generator.pages.attribute import attribute_pages, concept_pages
from generator.pages.card import render_card
from generator.pages.leaderboard import leaderboard_pages
from generator.pages.model import model_pages
from generator.pages.root import RunCard, card_of, render_root, render_sitemaps, render_tombstone
from generator.pages.run import run_pages
from generator.pages.views import View

__all__ = ["RunCard", "card_of", "render_pages", "render_root", "render_sitemaps", "render_tombstone"]


def render_pages(edition: Edition) -> Iterator[tuple[str, bytes]]:
    """Yield (path below dist/, bytes): leaderboard, models, attributes, concepts, judging, audit, run, and the card."""
    view = View(edition)
    yield from leaderboard_pages(view)
    yield from model_pages(view)
    yield from attribute_pages(view)
    yield from concept_pages(view)
    yield from run_pages(view)
    if edition.base_url:
        yield card_path(edition), render_card(view)
