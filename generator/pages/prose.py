"""The pages of prose: methodology, about, changelog and search, with facts filled in from the run.

Reads pages/*.md beside the site's site.toml, where it has them, else content/pages/*.md of the project, and an edition;
yields (path below dist/, bytes). A page is a Jinja template between `<<` and `>>`, `<%` and `%>` (LaTeX keeps its
braces), then Markdown, then the site's frame. An unknown name, a heading that is missing or a formula that cannot be
read stops the build with the file's name.

See contract: publication, "Pages".
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Template, TemplateError, Undefined, meta

from generator.edition import paths
from generator.edition.banners import Source
from generator.edition.edition import Edition
from generator.edition.numbers import in_letters
from generator.edition.settings import own_pages
from generator.html.frame import frame, render_page
from generator.html.markdown import Converted, Safe, code, convert_page, plain
from generator.pages.prose_facts import Links, facts_of, verbatim
from generator.pages.prose_sandbox import ProseEnvironment
from generator.pages.worked_example import worked_example
from generator.schema import bounded_files
from generator.schema.bounded_files import read_text
from generator.schema.errors import InputError
from generator.schema.places import own_folder
from generator.schema.plain_text import control_character

CONTENT = own_folder("content") / "pages"


@dataclass(frozen=True)
class ContentsEntry:
    """One line of the methodology's own table of contents."""

    title: str
    href: str
    current: bool


def _finalize(value: Any) -> Any:
    """Escape every fact on its way into Markdown, unless we made it as Markdown ourselves."""
    if isinstance(value, (Safe, Undefined)):
        return value
    # A fact that is missing or a yes or no would print as None or True: the page must say it in words.
    if isinstance(value, bool) or value is None:
        raise TemplateError(f"a fact is {value!r}: choose its words with <% if %>")
    if isinstance(value, int):
        return f"{value:,}"
    return plain(str(value))


def _address(url: str) -> Safe:
    """Return a configured address as a Markdown link target."""
    return Safe(f"<{url.replace('<', '%3C').replace('>', '%3E')}>")


def _math(number: Any) -> Safe:
    """Return a number as a formula has it, without separators."""
    return Safe(str(number))


@functools.cache
def _environment() -> ProseEnvironment:
    helpers: dict[str, Callable[..., Any]] = {
        "code": code,
        "raw": Safe,
        "math": _math,
        "safe_url": _address,
        "in_letters": in_letters,
    }
    env = ProseEnvironment((*helpers.values(), Links.to, Links.link, verbatim), _finalize)
    env.globals.update(helpers)
    return env


@functools.lru_cache(maxsize=64)
def _template(source: str) -> tuple[Template, set[str]]:
    """Return a page's Markdown as a template, and the names that it takes from the facts."""
    parsed = _environment().parse(source)
    names = meta.find_undeclared_variables(parsed)
    return _environment().from_string(parsed), names


def filled(source: str, facts: dict[str, Any], where: str) -> str:
    """Return a page's Markdown with its facts; raises InputError naming the file and the name that it lacks."""
    try:
        return _template(source)[0].render(facts)
    except TemplateError as error:
        raise InputError(f"{where}: {error}") from error
    except KeyError as error:
        raise InputError(f"{where}: {error} is no page that prose can link to") from error
    except Exception as error:  # what a page computes is its author's: 1 / 0, or brackets without end
        said = " ".join(str(error).split())[:200]
        raise InputError(f"{where}: cannot be filled in: {type(error).__name__}: {said}") from error


# What a page may say without saying anything of the run.
_NO_FIGURES = frozenset({"to", "link", "site", "verbatim", *("code", "raw", "math", "safe_url", "in_letters")})


def quotes_run(source: str) -> bool:
    """Tell whether a page's Markdown names any fact of the run, so that its reader must know which run that is."""
    return bool(_template(source)[1] - _NO_FIGURES)


def _read(file: str, own: Path | None) -> tuple[str, str]:
    """Return a page's text and where it is from: the site's own folder of pages, or else the project's."""
    places = [(own / file, f"{own}/{file}", own)] if own else []
    for path, where, folder in (*places, (CONTENT / file, f"content/pages/{file}", None)):
        if path.is_file():
            if folder and not path.resolve().is_relative_to(folder.resolve()):
                raise InputError(f"{where}: a link that leads out of the folder; put the file itself there")
            text = read_text(path, bounded_files.PROSE)
            if found := control_character(text, prose=True):
                raise InputError(f"{where}: control character U+{ord(found):04X}; leave it out")
            return text, where
    raise InputError(f"content/pages/{file}: not found; every page of prose has its file there")


@functools.cache
def methodology_title(name: str, own: Path | None = None) -> str:
    """Return the title of a methodology page: its first line."""
    return _read(f"methodology/{name}.md", own)[0].partition("\n")[0].removeprefix("# ").strip()


def _contents(page: str, own: Path | None) -> tuple[ContentsEntry, ...]:
    targets = {name: paths.methodology_page(name) for name in paths.METHODOLOGY}
    return tuple(
        ContentsEntry(methodology_title(name, own), paths.relative(page, target), target == page)
        for name, target in targets.items()
    )


def _converted(file: str, own: Path | None, facts: dict[str, Any]) -> Converted:
    text, where = _read(file, own)
    return convert_page(filled(text, facts, where), where)


def _render(edition: Edition, page: str, file: str, name: str | None) -> bytes:
    facts = facts_of(edition, page)
    if name == "worked-example":
        facts["worked"] = worked_example(edition, page)
    own = edition.site.pages
    prose = _converted(file, own, facts)
    source: Source = "figures" if quotes_run(_read(file, own)[0]) else "none"
    order = paths.METHODOLOGY
    place = order.index(name) if name else -1
    here = _contents(page, own) if name else ()
    crumbs: list[tuple[str, str | None]] = [("Leaderboard", "index.html")]
    if name and name != "index":
        crumbs.append(("Methodology", paths.methodology_page()))
    context = frame(
        edition,
        page,
        prose.title,
        description=prose.summary[:300],
        section="methodology" if name else "",
        crumbs=[*crumbs, (prose.title, None)],
        source=source,
    )
    return render_page(
        "methodology.html",
        context,
        prose=prose,
        body=prose.html,
        contents=here,
        previous=here[place - 1] if place > 0 else None,
        following=here[place + 1] if name and place + 1 < len(order) else None,
    )


def render_search(edition: Edition) -> bytes:
    """Return the search page; its index is written by `search_index.write_search` once all pages stand."""
    context = frame(
        edition,
        paths.SEARCH_PAGE,
        "Search",
        description="Search the methodology and the pages of models, attributes and concepts.",
        section="search",
        crumbs=[("Leaderboard", "index.html"), ("Search", None)],
        scripts=(),
        modules=("search.js",),
        wasm=True,
        source="none",
    )
    return render_page("search.html", context, contents=_contents(paths.SEARCH_PAGE, edition.site.pages))


def render_prose(edition: Edition) -> Iterator[tuple[str, bytes]]:
    """Yield methodology/*.html, about.html, changelog.html, the site's own pages and search.html."""
    for name in paths.METHODOLOGY:
        yield (
            paths.methodology_page(name),
            _render(edition, paths.methodology_page(name), f"methodology/{name}.md", name),
        )
    for page, file in (paths.PROSE | own_pages(edition.site.pages)).items():
        yield page, _render(edition, page, file, None)
    yield paths.SEARCH_PAGE, render_search(edition)
