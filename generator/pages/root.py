"""The site's root: newest leaderboard, list of runs, 404, and the files for robots, hosts, search engines and readers.

Takes the front edition and a card of every published run. Sitemaps and feed exist only with a base address and list
only runs that may be indexed. Dates come from manifests, never from a clock. See contract: publication, "The tree".
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from markupsafe import Markup, escape

from generator.edition import paths
from generator.edition.comparison import Changes
from generator.edition.edition import Edition, Site
from generator.edition.run_name import run_name
from generator.html.frame import environment, frame, render_page
from generator.pages.changes import render_changes, summary
from generator.pages.leaderboard import render_leaderboard
from generator.pages.views import View
from generator.scoring.reasons import in_words

SITEMAP_SIZE = 50_000


@dataclass(frozen=True)
class RunCard:
    """What the list of runs says of one run; also made for runs that stay as they were published."""

    run_id: str
    kind: str
    date: str
    state: str
    reasons: tuple[str, ...]
    models: int
    rows: int
    bank_version: str
    bank_sha256: str
    supersedes: str | None
    superseded_by: str | None
    manifest_sha256: str = ""

    @property
    def name(self) -> str:
        """What the run is headed by: its models and its month."""
        return run_name(self.models, self.date)

    @property
    def indexable(self) -> bool:
        """Whether search engines and the feed may list it."""
        return self.kind == "live" and self.state != "preview"


def card_of(edition: Edition) -> RunCard:
    """Return an edition's card."""
    manifest, standing = edition.run.manifest, edition.standing
    return RunCard(
        run_id=edition.run_id,
        kind=manifest.kind,
        date=manifest.date,
        state=standing.state,
        reasons=tuple(map(in_words, standing.reasons)),
        models=len(manifest.models),
        rows=sum(shard.rows for shard in manifest.shards),
        bank_version=manifest.bank_version,
        bank_sha256=manifest.bank_sha256,
        supersedes=manifest.supersedes,
        superseded_by=edition.superseded_by,
        manifest_sha256=edition.manifest_sha256,
    )


_SECTIONS = (
    ("Published", "Live runs of real models that met every condition, or say what they leave out."),
    (
        "Previews",
        "Live runs that did not meet a condition: shown with the reason, and kept out of search engines.",
    ),
    ("Simulated", "Runs without any real model, for trying out the whole path from prompt to page."),
)


def _section(card: RunCard) -> str:
    if card.kind == "simulated":
        return "Simulated"
    return "Previews" if card.state == "preview" else "Published"


def render_runs(front: Edition, cards: Sequence[RunCard], removed: Sequence[str] = ()) -> bytes:
    """Render the list of all runs, newest first, previews with their reasons."""
    newest = sorted(cards, key=lambda card: (card.date, card.rows, card.run_id), reverse=True)
    sections = [(name, text, [card for card in newest if _section(card) == name]) for name, text in _SECTIONS]
    entries = [(run, front.site.history.withdrawal(run)) for run in sorted(removed)]
    context = frame(
        front,
        paths.RUNS_PAGE,
        "All runs",
        description=f"Every published run of {front.site.title}, previews and simulated runs among them.",
        section="runs",
        crumbs=[("Leaderboard", "index.html"), ("All runs", None)],
        source="none",
    )
    return render_page("runs.html", context, sections=[s for s in sections if s[2]], removed=entries)


def render_tombstone(site: Site, run_id: str, base_url: str | None = None) -> bytes:
    """Render the page that stays at a removed run's address."""
    page = paths.run_index(run_id)
    entry = site.history.withdrawal(run_id)
    word = "withdrawn" if entry else "removed"
    context = frame(None, page, f"Run {run_id} was {word}", site=site, base_url=base_url)
    return render_page("tombstone.html", {**context, "robots": "noindex"}, run_id=run_id, entry=entry, word=word)


# 404.html stands alone, so its few rules are in the page; its policy admits exactly these by their hash.
_ALONE = Markup(
    ":root{color-scheme:light dark;--paper:#fdfcf9;--ink:#1b1c1f;--link:#1b4f8f}"
    "@media(prefers-color-scheme:dark){:root{--paper:#15171b;--ink:#e9e7e1;--link:#9cc3f5}}"
    "html{background:var(--paper);color:var(--ink);font:100%/1.6 ui-sans-serif,system-ui,sans-serif}"
    "main{max-width:36rem;margin:12vh auto;padding:0 1rem}h1{font:700 2rem/1.2 Charter,Cambria,Georgia,serif}"
    "a{color:var(--link);display:inline-block;padding:.2rem 0}"
)


def render_not_found(site: Site, base_url: str | None) -> bytes:
    """Render 404.html: no asset, absolute links only, because a host serves it at any depth."""
    home = urlsplit(base_url).path.rstrip("/") if base_url else ""
    digest = base64.b64encode(hashlib.sha256(_ALONE.encode()).digest()).decode()
    context = {"site": site, "home": home, "style": _ALONE, "style_hash": digest}
    return environment().get_template("404.html").render(context).encode()


def robots(base_url: str | None) -> bytes:
    """Return robots.txt: everything may be read; pages that may not be indexed say so themselves.

    `base_url` is the address below which the sitemap lies, None where there is none.
    """
    lines = ["User-agent: *", "Allow: /"]
    if base_url:
        lines += ["", f"Sitemap: {base_url}/sitemap.xml"]
    return ("\n".join(lines) + "\n").encode()


# What no other site may frame, as `_headers` names paths: every page but those of figures.
_UNFRAMED = (
    "/",
    "/:page",
    "/methodology/*",
    "/runs/",
    "/runs/:run",
    "/runs/:run/",
    "/runs/:run/:page",
    *(f"/runs/:run/{folder}/*" for folder in ("board", "models", "attributes", "concepts", "data", "receipts")),
)


def headers() -> bytes:
    """Return `_headers` for hosts that read it.

    What a page's own policy cannot say, how long to keep assets, and that any site's script may read the data files, in
    parts too. A path takes a single `*`, so the run is a placeholder. Not every host lets a rule take back what
    another says, so the pages that may not be framed are named.
    """
    lines = [
        "/*",
        "  X-Content-Type-Options: nosniff",
        "  Referrer-Policy: no-referrer",
        "  Permissions-Policy: camera=(), geolocation=(), microphone=()",
        "  Cross-Origin-Opener-Policy: same-origin",
        "",
        *(line for path in _UNFRAMED for line in (path, "  Content-Security-Policy: frame-ancestors 'none'", "")),
        "/assets/*",
        "  Cache-Control: public, max-age=31536000, immutable",
        "",
        "/runs/:run/data/*",
        "  Access-Control-Allow-Origin: *",
        "  Access-Control-Expose-Headers: Accept-Ranges, Content-Length, Content-Range, ETag",
        "",
    ]
    return "\n".join(lines).encode()


_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'


def _urlset(base_url: str, pages: Sequence[tuple[str, str]]) -> bytes:
    body = "".join(
        f"<url><loc>{escape(f'{base_url}/{page}')}</loc><lastmod>{date}</lastmod></url>\n" for page, date in pages
    )
    return f'{_XML}<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{body}</urlset>\n'.encode()


def render_sitemaps(base_url: str, pages: Iterable[tuple[str, str]]) -> Iterator[tuple[str, bytes]]:
    """Yield sitemap.xml over (page, date), split at 50,000 with an index in front; nothing for none.

    Pass pages of indexable runs and of the root only.
    """
    listed = sorted(pages)
    if not listed:
        return
    if len(listed) <= SITEMAP_SIZE:
        yield "sitemap.xml", _urlset(base_url, listed)
        return
    parts = [listed[start : start + SITEMAP_SIZE] for start in range(0, len(listed), SITEMAP_SIZE)]
    entries = []
    for number, part in enumerate(parts, 1):
        yield f"sitemap-{number}.xml", _urlset(base_url, part)
        entries.append(f"<sitemap><loc>{escape(base_url)}/sitemap-{number}.xml</loc></sitemap>\n")
    index = "".join(entries)
    text = f'{_XML}<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{index}</sitemapindex>\n'
    yield "sitemap.xml", text.encode()


@dataclass(frozen=True)
class FeedEntry:
    """One entry of the feed: its address below the site, unique, and the date of what it tells."""

    title: str
    page: str
    date: str
    text: str


def feed_entries(site: Site, cards: Sequence[RunCard], changes: Changes, removed: Sequence[str]) -> list[FeedEntry]:
    """Return what the feed tells, newest first: runs, what changed between them, what became of any.

    A run is dated by its manifest, a change by the newer run, a withdrawal or replacement by the history's own date.
    """
    listed = {card.run_id for card in cards if card.indexable}
    found = [
        FeedEntry(f"Run {card.run_id}", paths.run_index(card.run_id), card.date, _card_words(card))
        for card in cards
        if card.indexable
    ]
    for one in changes.comparisons:
        if one.indexable and changes.since_the_last(one.new.run_id) is one:
            page = paths.change_page(one.new.run_id, one.old.run_id)
            title = f"Change from run {one.old.run_id} to run {one.new.run_id}"
            found.append(FeedEntry(title, page, one.new.date, summary(one)))
    for gone in site.history.withdrawn:
        if gone.run in removed:
            title = f"Run {gone.run} was withdrawn"
            found.append(FeedEntry(title, f"{paths.run_index(gone.run)}#withdrawn", gone.date, gone.reason))
    for entry in site.history.superseded:
        if entry.run in listed and entry.by in listed:
            title = f"Run {entry.run} was superseded by run {entry.by}"
            text = f"Run {entry.by} replaces it; both stay published."
            found.append(FeedEntry(title, f"{paths.run_index(entry.run)}#superseded", entry.date, text))
    return sorted(found, key=lambda entry: (entry.date, entry.page), reverse=True)


def _card_words(card: RunCard) -> str:
    text = f"{card.models} models, {card.rows:,} answers, bank {card.bank_version}."
    if card.manifest_sha256:
        text += f" SHA-256 of data/manifest.json, which pins every file: {card.manifest_sha256}."
    return text


def render_feed(site: Site, base_url: str, listed: Sequence[FeedEntry]) -> bytes:
    """Render feed.xml (Atom) from its entries, the newest first; at least one."""
    entries = "".join(_entry(base_url, entry) for entry in listed)
    text = (
        f'{_XML}<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="{escape(site.language)}">\n'
        f"<title>{escape(site.title)}</title>\n"
        f"<subtitle>{escape(site.description)}</subtitle>\n<id>{escape(base_url)}/</id>\n"
        f'<link rel="self" href="{escape(base_url)}/feed.xml"/>\n<link href="{escape(base_url)}/index.html"/>\n'
        f"<author><name>{escape(site.publisher)}</name></author>\n<updated>{listed[0].date}T00:00:00Z</updated>\n"
        f"{entries}</feed>\n"
    )
    return text.encode()


def _entry(base_url: str, entry: FeedEntry) -> str:
    address = escape(f"{base_url}/{entry.page}")
    return (
        f"<entry>\n<title>{escape(entry.title)}</title>\n<id>{address}</id>\n"
        f'<link href="{address.partition("#")[0]}"/>\n<updated>{entry.date}T00:00:00Z</updated>\n'
        f"<summary>{escape(entry.text)}</summary>\n</entry>\n"
    )


def render_root(
    front: Edition,
    editions: Sequence[Edition],
    *,
    kept: Sequence[RunCard] = (),
    removed: Sequence[str] = (),
    changes: Changes | None = None,
) -> Iterator[tuple[str, bytes]]:
    """Yield the root's own pages and files; sitemaps come from `render_sitemaps`, prose from generator.pages.prose.

    `front` is the run that the root shows; `kept` are runs that this publication leaves as they are; `changes` is what
    changed between the runs.
    """
    cards = [card_of(edition) for edition in editions] + list(kept)
    changes = changes or Changes()
    last = changes.since_the_last(front.run_id)
    changed = (summary(last), paths.change_page(last.new.run_id, last.old.run_id)) if last else None
    yield "index.html", render_leaderboard(View(front), "index.html", changed)
    yield from render_changes(front, changes)
    yield paths.RUNS_PAGE, render_runs(front, cards, removed)
    yield "404.html", render_not_found(front.site, front.base_url)
    # While nothing may be listed there is neither sitemap nor feed, and robots.txt names none.
    address = front.base_url if any(card.indexable for card in cards) else None
    yield "robots.txt", robots(address)
    yield "_headers", headers()
    yield ".nojekyll", b""
    if address:
        yield "feed.xml", render_feed(front.site, address, feed_entries(front.site, cards, changes, removed))
