"""The Open Graph card of a run: a PNG of 1200 x 630 with the first models, against their bands where they have one.

Drawn in this process from an SVG of our own. Only a publication with a base address has one: a card's address must be
absolute.

See contract: publication, "Pages".
"""

from __future__ import annotations

from markupsafe import Markup

from generator.html.charts import Line, short_name
from generator.pages.views import View
from generator.schema.tables import OVERALL

WIDTH, HEIGHT = 1200, 630
_ROWS = 7
_PAPER, _INK, _SOFT, _BAND, _EDGE, _POINT = "#fdfcf9", "#1b1c1f", "#57564f", "#e2d8bd", "#a08f5f", "#14375e"
_LEFT, _RIGHT, _TOP, _STEP = 500, 1130, 235, 48


def _text(x: float, y: float, size: int, text: str, *, ink: str = _INK, weight: int = 400) -> Markup:
    return Markup(
        '<text x="{}" y="{}" font-family="sans-serif" font-size="{}" font-weight="{}" fill="{}">{}</text>'
    ).format(x, y, size, weight, ink, text)


def _row(view: View, line: Line, place: int) -> Markup:
    y = _TOP + place * _STEP
    parts = [_text(60, y + 8, 25, short_name(line.name, 30))]

    def x(value: float) -> float:
        return round(_LEFT + (_RIGHT - _LEFT) * view.board_domain.share(value) / 100, 1)

    if line.band_low is not None and line.band_high is not None:
        a, b = x(line.band_low), x(line.band_high)
        rect = Markup('<rect x="{}" y="{}" width="{}" height="{}" fill="{}" stroke="{}"/>')
        parts.append(rect.format(a, y - 19, max(3.0, round(b - a, 1)), 38, _BAND, _EDGE))
    if line.ci_low is not None and line.ci_high is not None:
        rule = Markup('<path d="M{} {}H{}" stroke="{}" stroke-width="5"/>')
        parts.append(rule.format(x(line.ci_low), y, x(line.ci_high), _POINT))
    if line.estimate is not None:
        parts.append(Markup('<circle cx="{}" cy="{}" r="10" fill="{}"/>').format(x(line.estimate), y, _POINT))
    return Markup().join(parts)


def card_svg(view: View) -> str:
    """Return the card as SVG."""
    shown = [row["model"] for row in view.tiers[:_ROWS]]
    lines = [view.line(model, OVERALL, model, kind="plain") for model in shown]
    kind = "simulated run" if view.edition.simulated else "run"
    more = len(view.models) - len(shown)
    band = "each against its own control band, " if view.bands else ""
    foot = f"{f'and {more} more; ' if more > 0 else ''}{band}with 95 % intervals"
    body = [
        Markup('<rect width="{}" height="{}" fill="{}"/>').format(WIDTH, HEIGHT, _PAPER),
        _text(60, 92, 46, view.edition.site.title, weight=700),
        _text(60, 146, 29, view.edition.site.tagline),
        _text(60, 188, 22, f"{kind} {view.run_id}, {view.manifest.date}", ink=_SOFT),
        *(_row(view, line, place) for place, line in enumerate(lines)),
        _text(60, 600, 22, foot, ink=_SOFT),
    ]
    head = Markup('<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}">')
    return head.format(WIDTH, HEIGHT) + Markup().join(body) + Markup("</svg>")


def render_card(view: View) -> bytes:
    """Return the card as PNG."""
    import vl_convert  # heavy, and needed only where the site has an address

    png: bytes = vl_convert.svg_to_png(card_svg(view), scale=1)
    return png
