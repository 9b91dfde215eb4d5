"""A figure that stands alone: an SVG with its title, source and license in it, its own colors, and a PNG of the same.

Takes a `Figure`, returns bytes. The drawing is that of the page (`charts.drawing`). Text is set in a font that the
drawing library brings along, so that a picture does not depend on the fonts of a machine.

See contract: publication, "Figures".
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from markupsafe import Markup

from generator.html.chart_scale import WIDE, Domain
from generator.html.charts import Line, body_of, drawing, hits, short_name, with_colors
from generator.html.kept_drawings import remembered, versioned

FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
SCALE = 1.5  # pixels of the PNG for one unit of the SVG
_MARGIN = 14
_TITLE = 70  # characters that fit at its size
_WORDS = 138  # the same of a line of small text
_FONTS = re.compile(r'font-family="[^"]*"')


@dataclass(frozen=True)
class Figure:
    """One figure with all that has to travel with it.

    place: path below `dist/` without an ending; each form adds its own. page: the page that shows it, path below
    `dist/`. head: what a line stands for, `attribute` or `model`. caption: how to read it.
    source: whose it is, of which run and date, under which license; a sentence each. colors: by
    name, those of the light scheme. pictured: whether it has a PNG, too. cache: folder for finished drawings, or None.
    """

    place: str
    page: str
    title: str
    head: str
    caption: str
    source: tuple[str, ...]
    lines: Sequence[Line]
    domain: Domain
    colors: Mapping[str, str] = field(default_factory=dict)
    cache: Path | None = None
    pictured: bool = True


def _text(y: int, size: int, words: str, ink: str, weight: int = 400) -> Markup:
    return Markup(
        '<text x="{}" y="{}" font-family="{}" font-size="{}" font-weight="{}" fill="var(--{})">{}</text>'
    ).format(_MARGIN, y, FONT, size, weight, ink, words)


def _wrapped(top: int, sentences: Sequence[str], ink: str) -> tuple[Markup, int]:
    """Return small text, a sentence begins a line, and how high it stands."""
    rows = [row for words in sentences for row in textwrap.wrap(words, _WORDS, break_on_hyphens=False) or [""]]
    return Markup().join(_text(top + 18 * (i + 1), 12, row, ink) for i, row in enumerate(rows)), 18 * len(rows)


def _plain(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield lines whose words need no font but the one that comes along: shapes are drawn, not written."""
    yield from (replace(line, note=line.kind if line.note.endswith(line.kind) else line.note) for line in lines)


def figure_svg(figure: Figure) -> bytes:
    """Return the figure as an SVG file that needs no page around it."""
    lines = list(_plain(figure.lines))
    body, width, height = body_of(drawing(lines, figure.domain, WIDE, figure.cache))
    caption, high = _wrapped(44, [figure.caption], "soft")
    top = 44 + high + 16
    source, low = _wrapped(top + height + 2, figure.source, "soft")
    total, across = top + height + low + 18, width + 2 * _MARGIN
    head = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="group" '
        'aria-labelledby="t" aria-describedby="d"><title id="t">{2}</title><desc id="d">{3}</desc>'
        '<rect width="{0}" height="{1}" fill="var(--paper)"/>'
    ).format(across, total, figure.title, " ".join((figure.caption, *figure.source)))
    parts = [
        head,
        _text(34, 22, short_name(figure.title, _TITLE), "ink", 700),
        caption,
        Markup('<g transform="translate({},{})"><g aria-hidden="true">').format(_MARGIN, top),
        Markup(_FONTS.sub(f'font-family="{FONT}"', body)),  # noqa: S704 - drawn by the library from escaped data
        Markup("</g>"),
        hits(lines, width, stops=True),
        Markup("</g>"),
        source,
        Markup("</svg>\n"),
    ]
    return with_colors(Markup().join(parts), figure.colors).encode()


def figure_png(figure: Figure, svg: bytes) -> bytes:
    """Return the figure's SVG as a PNG, half as large again, drawn once and kept by its content."""

    def draw() -> bytes:
        import vl_convert

        png: bytes = vl_convert.svg_to_png(svg.decode(), scale=SCALE)
        return png

    return remembered(figure.cache, versioned(f"{SCALE}|{svg.decode()}"), ".png", draw)
