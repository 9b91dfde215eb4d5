"""Markdown to HTML for our own prose: tables, footnotes, heading anchors and LaTeX turned into MathML at build time.

Reads the text of a page of content/pages after its facts were filled in; returns its title, its HTML and its headings.
No script is needed to read a formula, and no inline style leaves here: the site's content security policy bans both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.token import Token
from markupsafe import escape
from mdit_py_plugins.anchors import anchors_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin

from generator.schema.errors import InputError

# Every ASCII punctuation mark may follow a backslash in Markdown; escaping all of them leaves a fact no syntax at all.
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
# Upright, as LaTeX sets them; slanted ones come from another font than their neighbors where no font for formulas is.
_CAPITAL_GREEK = re.compile(r"<mi>(&#x003(?:9[1-9A-F]|A[0-9]);)</mi>")
# Signs between two terms that the converter takes for letters: an operator has room on both sides.
_SIGNS = re.compile(r"<mi>(&#x000B1;|:)</mi>")
_ALIGN = re.compile(r"text-align:(left|center|right)")


class Safe(str):
    """Markdown or HTML that we made ourselves: it enters a page as it stands."""

    __slots__ = ()


@dataclass(frozen=True)
class Heading:
    """A second-level heading: its anchor and its text."""

    anchor: str
    text: str


@dataclass(frozen=True)
class Converted:
    """A page of prose: title (its one h1, which `html` no longer holds), first paragraph as text, HTML, headings."""

    title: str
    summary: str
    html: str
    headings: tuple[Heading, ...]


def plain(text: str) -> Safe:
    """Escape a fact so that Markdown shows it letter by letter."""
    return Safe(_PUNCTUATION.sub(r"\\\1", text).replace("\n", " "))


def code(text: str) -> Safe:
    """Return a fact as inline code."""
    return Safe(f"<code>{plain(text)}</code>")


@lru_cache(maxsize=4096)
def mathml(latex: str, *, block: bool = False) -> str:
    """Return a LaTeX formula as MathML; raises InputError naming the formula when it cannot be read."""
    try:
        found: str = convert(latex.strip(), display="block" if block else "inline")
    except Exception as error:
        raise InputError(f"formula {latex.strip()!r}: {type(error).__name__}: {error}") from error
    if "\\" in found:  # the converter passes what it does not know through as text
        raise InputError(f"formula {latex.strip()!r}: a command in it is not supported; see {found!r}")
    found = found.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "", 1)
    # A bar beside a tall sum would grow as tall as the sum, and only the closing one.
    found = found.replace("<mo>&#x0007C;</mo>", '<mo stretchy="false">&#x0007C;</mo>')
    found = _SIGNS.sub(r"<mo>\1</mo>", found)
    return _CAPITAL_GREEK.sub(r'<mi mathvariant="normal">\1</mi>', found)


def _block(latex: str) -> str:
    # Focusable, so that a keyboard can scroll a formula wider than a phone.
    return f'<div class="formula" role="group" aria-label="Formula" tabindex="0">{mathml(latex, block=True)}</div>\n'


def _render_inline_math(_: RendererProtocol, tokens: Sequence[Token], index: int, *__: Any) -> str:
    return mathml(tokens[index].content)


def _render_block_math(_: RendererProtocol, tokens: Sequence[Token], index: int, *__: Any) -> str:
    return _block(tokens[index].content)


def _render_table_open(*_: Any) -> str:
    return '<div class="scroll" role="group" aria-label="Table" tabindex="0"><table>\n'


def _render_table_close(*_: Any) -> str:
    return "</table></div>\n"


def _render_cell(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:  # noqa: ARG001
    token = tokens[index]
    align = _ALIGN.search(str(token.attrs.get("style", "")))
    cls = ' class="n"' if align is not None and align.group(1) == "right" else ""
    scope = ' scope="col"' if token.tag == "th" else ""
    return f"<{token.tag}{scope}{cls}>"


def _footnote_number(token: Token) -> int:
    return int(token.meta["id"]) + 1


def _render_footnote_ref(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:  # noqa: ARG001
    number, sub = _footnote_number(tokens[index]), int(tokens[index].meta.get("subId", 0))
    here = f"fnref{number}" + (f"-{sub}" if sub else "")
    return (
        f'<sup class="footnote-ref"><a href="#fn{number}" id="{here}" aria-label="Footnote {number}">{number}</a></sup>'
    )


def _render_footnotes_open(*_: Any) -> str:
    return '<section class="footnotes" aria-label="Footnotes">\n<ol>\n'


def _render_footnotes_close(*_: Any) -> str:
    return "</ol>\n</section>\n"


def _render_footnote_open(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:  # noqa: ARG001
    return f'<li id="fn{_footnote_number(tokens[index])}">'


def _render_footnote_anchor(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:  # noqa: ARG001
    number, sub = _footnote_number(tokens[index]), int(tokens[index].meta.get("subId", 0))
    back = f"fnref{number}" + (f"-{sub}" if sub else "")
    return f' <a href="#{back}" class="footnote-back" aria-label="Back to the text of footnote {number}">↩</a>'


def _render_html(_: RendererProtocol, tokens: Sequence[Token], index: int, *__: Any) -> str:
    """Render HTML that stands in the page's source; Markdown leaves it alone, so the facts in it are escaped here."""
    return _ESCAPED.sub(lambda found: escape(found[1]), tokens[index].content)


RULES = {
    "html_block": _render_html,
    "html_inline": _render_html,
    "math_inline": _render_inline_math,
    "math_block": _render_block_math,
    "table_open": _render_table_open,
    "table_close": _render_table_close,
    "th_open": _render_cell,
    "td_open": _render_cell,
    "footnote_ref": _render_footnote_ref,
    "footnote_block_open": _render_footnotes_open,
    "footnote_block_close": _render_footnotes_close,
    "footnote_open": _render_footnote_open,
    "footnote_anchor": _render_footnote_anchor,
}


def slug(text: str) -> str:
    """Return a heading's anchor: lower case, words joined by hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "section"


def _parser() -> MarkdownIt:
    # Curly quotes in our own words; a quote that came in with a fact is escaped, and the rule leaves it as it is.
    parser = MarkdownIt("commonmark", {"html": True, "typographer": True}).enable(["table", "smartquotes"])
    parser.use(footnote_plugin, inline=False).use(anchors_plugin, min_level=2, max_level=3, slug_func=slug)
    parser.use(dollarmath_plugin, allow_labels=False, double_inline=False)
    for name, rule in RULES.items():
        parser.add_render_rule(name, rule)
    return parser


def _text(token: Token) -> str:
    words = [child.content for child in token.children or () if child.type in ("text", "code_inline")]
    return " ".join("".join(words).split())


def convert_page(source: str, where: str) -> Converted:
    """Convert one page of prose; raises InputError naming file and place when it has not exactly one title."""
    parser = _parser()
    tokens = parser.parse(source)
    titles = [i for i, token in enumerate(tokens) if token.type == "heading_open" and token.tag == "h1"]
    if titles != [0]:
        raise InputError(f"{where}: {len(titles)} lines begin with '# ', use one, the first line of the file")
    title = _text(tokens[1])
    body = tokens[3:]
    summary = next((_text(body[i + 1]) for i, t in enumerate(body) if t.type == "paragraph_open"), "")
    headings = tuple(
        Heading(str(token.attrs["id"]), _text(body[i + 1]))
        for i, token in enumerate(body)
        if token.type == "heading_open" and token.tag == "h2"
    )
    return Converted(title, summary, parser.renderer.render(body, parser.options, {}), headings)
