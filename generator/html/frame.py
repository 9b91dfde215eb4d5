"""From values to HTML: the Jinja environment, the page frame and hashed assets (contract: publication, "Pages").

Every page extends `base.html` and is rendered by `render_page(template, frame(...), **values)`. What a frame holds, and
so what every template may use:

`site`         the Site: title, tagline, publisher, contact, mismatch, data_licence…
`edition`      the Edition, or None on a page of no run (404, an empty run list)
`run`          its manifest, or None
`page`         this page's path below dist/
`title`        the page's own title (without the site's name); `description` one sentence for cards and search
`link(target)` the relative address of another path below dist/, one of generator.edition.paths (an anchor may follow)
`paths`        the module generator.edition.paths, so `link(paths.model_page(run.run_id, slug))`
`asset(name)`  the relative address of a file of site_templates/static/ under its content-hashed name
`own_assets`   addresses of what the site's settings add, by name: `colors.css` and `logo`, where there are any
`nav`          tuple of NavItem(label, href, current); `crumbs` tuple of Crumb(label, href or None)
`notices`      tuple of Notice(kind, heading, lines): simulated, preview, withheld, supersedes, superseded, source
`source`       "run": a page of the edition's run; a page of the root quotes its "figures" or "none" of them
`mark`         "simulated" or "preview", empty for a publication; titles, kickers and the footer show it
`robots`       "noindex" or None; `canonical`, `card` (picture) absolute addresses or None; `feed` the feed's
`picture`      (path, words) of the card where it is a figure, else None
`csp`          the page's Content-Security-Policy; `scripts` assets loaded deferred (these run from file:// too);
               `modules` assets loaded as ES modules, but not from file://, where a browser refuses them

Blocks of base.html: `head` (extra head elements), `main` (inside <main id="main">), `main_attributes`. Filters:
`num(digits=1)` (a number or –), `visible` (untrusted text, escaped, control and bidi characters shown),
`plural(singular, plural)`, `in_letters(singular, plural)` (`two framings`), `breakable` (ids and slugs may wrap after
_, / and -), `concept_title` and `framing_label` (ids for readers), `bytesize`, `short(length)`.

`words` is the module generator.html.code_words, so `words.GATE[row.gate]`.
Functions: `score`, `interval` and `cell` (generator.edition.numbers), `marked` (generator.edition.untrusted).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from generator.edition import paths
from generator.edition.banners import Notice, Source, mark_of, notices
from generator.edition.edition import Edition, Site
from generator.edition.numbers import NULL, SCORE_COLUMNS, TABLE_KEYS, cell, in_letters, interval, number, plural, score
from generator.edition.settings import BUILT_IN
from generator.edition.untrusted import HIDDEN_POINTS, marked, visible
from generator.html import code_words
from generator.html.assets import TEMPLATES, assets, own_assets
from generator.html.kept_templates import kept_templates
from generator.html.receipt_words import framing_label
from generator.scoring.reasons import in_words

# What templates and page modules need comes from here, whichever module it lives in.
__all__ = [
    "HIDDEN_POINTS",
    "NULL",
    "SCORE_COLUMNS",
    "TABLE_KEYS",
    "Crumb",
    "NavItem",
    "Notice",
    "breakable",
    "bytesize",
    "card_path",
    "cell",
    "concept_title",
    "content_security_policy",
    "environment",
    "frame",
    "interval",
    "marked",
    "notices",
    "number",
    "plural",
    "render_page",
    "score",
    "short",
    "visible",
]


# <wbr> and not a soft hyphen: a name that is copied must hold nothing that its reader did not see.
_BREAKS = re.compile(r"([_/-])(?=.)")


def breakable(name: str) -> Markup:
    """Return an id or slug with places where a narrow column may break it: after _, / and -."""
    return Markup(_BREAKS.sub(r"\1<wbr>", str(escape(name))))  # noqa: S704 - escaped


def concept_title(concept: str) -> str:
    """Return how a concept is headed, from its id: `Food truck loan` for `age_food_truck_loan`.

    An id begins with the short name of its attribute (content/bank/README.md), which stands wherever a title does. The
    id stays the name to cite, so pages print it, too.
    """
    words = concept.split("_")
    matter = " ".join(word for word in (words[1:] or words) if word)
    return matter[:1].upper() + matter[1:] if matter else concept


def bytesize(count: int) -> str:
    """Return a file's size in decimal units: `512 B`, `1.4 MB`."""
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def short(text: str, length: int = 12) -> str:
    """Return the start of a hash."""
    return text[:length]


@functools.cache
def environment() -> Environment:
    """Return the one Jinja environment: autoescape always, an undefined name is an error."""
    env = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        bytecode_cache=kept_templates(),
    )
    env.filters.update(num=number, visible=visible, plural=plural, breakable=breakable, bytesize=bytesize, short=short)
    env.filters.update(concept_title=concept_title, in_words=in_words)
    env.filters.update(in_letters=in_letters, framing_label=framing_label)
    env.globals.update(
        paths=paths, score=score, interval=interval, cell=cell, marked=marked, NULL=NULL, words=code_words
    )
    return env


@dataclass(frozen=True)
class NavItem:
    """A link of the main navigation."""

    label: str
    href: str
    current: bool


@dataclass(frozen=True)
class Crumb:
    """A step of the way from the site's start to this page; the last has no address."""

    label: str
    href: str | None


def _nav(site: Site, edition: Edition | None, page: str, section: str) -> tuple[NavItem, ...]:
    """Return the main menu: the program's own, or what the site's settings name; without a run, none of its pages."""
    own = {name: (label, target) for name, label, target in _menu(edition)}
    if not site.menu:
        chosen = [(name, *own[name]) for name in own if name != "about"]
    else:
        chosen = []
        for entry in site.menu:
            if entry.page in own:
                label, target = own[entry.page]
                chosen.append((entry.page, entry.label or label, target))
            elif entry.page not in BUILT_IN:
                chosen.append((entry.page, entry.label, entry.page))
    return tuple(
        NavItem(label, paths.relative(page, target), name in (section, page)) for name, label, target in chosen
    )


def _menu(edition: Edition | None) -> list[tuple[str, str, str]]:
    """Return (name, label, path) of every page of the program that a menu may hold."""
    targets: list[tuple[str, str, str]] = []
    if edition:
        run_id = edition.run_id
        targets += [
            ("leaderboard", "Leaderboard", paths.run_index(run_id)),
            ("receipts", "Receipts", paths.explorer_page(run_id)),
            ("judging", "Judging", paths.run_page(run_id, "judging")),
            ("audit", edition.audit_name, paths.run_page(run_id, "audit")),
            ("run", "This run", paths.run_page(run_id, "run")),
            ("data", "Data", paths.data_page(run_id)),
        ]
    targets += [
        ("methodology", "Methodology", "methodology/index.html"),
        ("runs", "All runs", "runs/index.html"),
        ("search", "Search", paths.SEARCH_PAGE),
        ("about", "About", "about.html"),
    ]
    return targets


def content_security_policy(*, wasm: bool = False) -> str:
    """Return a page's policy: own files only, nothing inline; `wasm` lets a page compile WebAssembly (search)."""
    scripts = "'self' 'wasm-unsafe-eval'" if wasm else "'self'"
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'self'; img-src 'self'; font-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'self'"
    )


def frame(
    edition: Edition | None,
    page: str,
    title: str,
    *,
    site: Site | None = None,
    description: str = "",
    section: str = "",
    crumbs: Sequence[tuple[str, str | None]] = (),
    scripts: Sequence[str] = ("site.js",),
    modules: Sequence[str] = (),
    wasm: bool = False,
    base_url: str | None = None,
    source: Source = "run",
    picture: tuple[str, str] | None = None,
) -> dict[str, Any]:
    """Return the context that `base.html` needs for one page (names: the module's docstring).

    `section` marks the current entry of the navigation: leaderboard, receipts, judging, audit, run, data, methodology
    or runs. `crumbs` are (label, path below dist/ or None). `site` and `base_url` are for pages without an edition.
    `picture` is (path, words) of a figure that stands for the page where it is shared; None for the run's card.
    `source` says what the edition is to the page: its "run", or a page of the root that quotes its "figures" or "none".
    """
    own_site = edition.site if edition else site
    if own_site is None:
        raise ValueError(f"{page}: a page without an edition needs its site")
    base = edition.base_url if edition else base_url
    indexable = edition is None or edition.indexable
    # Addresses are relative, so that a site works below any path and from a folder on a disk.
    link: Callable[[str], str] = functools.partial(paths.relative, page)
    files = assets()
    return {
        "site": own_site,
        "edition": edition,
        "run": edition.run.manifest if edition else None,
        "run_name": edition.run_name if edition else None,
        "page": page,
        "title": title,
        "description": description or own_site.description,
        "link": link,
        "asset": lambda name: link(files[name].path),
        "own_assets": {name: link(asset.path) for name, asset in own_assets(own_site).items()},
        "nav": _nav(own_site, edition, page, section),
        "crumbs": tuple(Crumb(label, None if target is None else link(target)) for label, target in crumbs),
        "notices": notices(edition, page, source),
        "source": source,
        "mark": mark_of(edition),
        "robots": None if indexable else "noindex",
        "canonical": f"{base}/{page}" if base else None,
        "feed": link("feed.xml") if base and edition and edition.indexable else None,
        "card": f"{base}/{picture[0] if picture else card_path(edition)}" if base and edition else None,
        "picture": picture,
        "csp": content_security_policy(wasm=wasm),
        "scripts": tuple(scripts),
        "modules": tuple(modules),
    }


def card_path(edition: Edition) -> str:
    """Return the path of the run's Open Graph card below dist/."""
    return f"runs/{edition.run_id}/card.png"


def render_page(template: str, context: dict[str, Any], **values: Any) -> bytes:
    """Render one page with its frame; returns UTF-8 bytes."""
    return environment().get_template(template).render(**context, **values).encode()
