"""Every page of a run below runs/<run_id>/ but receipts, explorer and data, and the site's root (SPEC 6)."""

from __future__ import annotations

from collections.abc import Iterator

from generator.card import render_card
from generator.pages_attribute import attribute_pages, concept_pages
from generator.pages_leaderboard import leaderboard_pages
from generator.pages_model import model_pages
from generator.pages_root import RunCard, card_of, render_root, render_sitemaps, render_tombstone
from generator.pages_run import run_pages
from generator.render import card_path
from generator.site import Edition
from generator.views import View

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
