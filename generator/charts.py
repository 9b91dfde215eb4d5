"""Static charts: Altair specifications drawn to SVG in this process, with title, description and role (SPEC 6, DESIGN).

Takes rows of numbers, returns `Chart` with a wide and a narrow drawing of the same rows. A specification is compiled to
Vega once a shape (kind, width, number of rows, scale); each chart only swaps its data, which is ten times cheaper.
Colours are CSS variables of the page, so a drawing follows the theme. Names stand at fixed places with room measured in
characters, because the drawing library measures text in another font than the browser.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert
from markupsafe import Markup, escape

WIDE, NARROW = 1000, 340
_GUTTER = {WIDE: 250, NARROW: 0}  # room for names left of the plot; the narrow drawing puts them above their line
_STEP = {WIDE: 34, NARROW: 46}
_NAME_LENGTH = {WIDE: 34, NARROW: 40}
_NOTE = {WIDE: 150, NARROW: 0}
_FONT = "ui-sans-serif, system-ui, sans-serif"
MARKS = {
    "flagged": ("diamond", "var(--flagged)", "◆"),
    "suggestive": ("triangle-up", "var(--suggestive)", "▲"),
    "unresolved": ("circle", "var(--unresolved)", "○"),
}
_PLAIN = ("circle", "var(--point)", "●")
_CONTROL = ("square", "var(--band-edge)", "■")


@dataclass(frozen=True)
class Line:
    """One row of a chart, on presentation scale; None where there is no number.

    `band_low`, `band_high`: the model's own control band, shaded behind it. `kind`: an evidence tier, control or plain.
    """

    name: str
    estimate: float | None
    ci_low: float | None
    ci_high: float | None
    band_low: float | None
    band_high: float | None
    kind: str
    note: str = ""


@dataclass(frozen=True)
class Chart:
    """A chart in two widths, ready to stand in a page; exactly one is shown at a time by the style sheet."""

    wide: Markup
    narrow: Markup


@dataclass(frozen=True)
class Domain:
    """The horizontal scale of a run's charts; shared by all of them, so that pages can be compared."""

    low: float
    high: float
    step: float

    @property
    def ticks(self) -> tuple[float, ...]:
        """The labelled values from low to high."""
        count = round((self.high - self.low) / self.step)
        return tuple(self.low + i * self.step for i in range(count + 1))

    def share(self, value: float) -> float:
        """Return a value's place on the scale in percent, clipped to its ends."""
        return min(100.0, max(0.0, 100 * (value - self.low) / (self.high - self.low)))


def domain_of(values: Sequence[float | None]) -> Domain:
    """Return a scale from just below the smallest value to 100, in steps of 5 or 10."""
    known = [v for v in values if v is not None]
    lowest = min(known, default=80.0)
    low = max(0.0, math.floor((lowest - 0.5) / 5) * 5.0)
    step = 5.0 if 100 - low <= 35 else 10.0
    return Domain(math.floor(low / step) * step, 100.0, step)


def short_name(name: str, length: int) -> str:
    """Return a name with its middle left out where it is longer than its room."""
    if len(name) <= length:
        return name
    tail = (length - 1) // 2
    return f"{name[: length - 1 - tail]}…{name[-tail:]}"


def _records(lines: Sequence[Line], width: int) -> list[dict[str, Any]]:
    step, above = _STEP[width], width == NARROW
    found = []
    # One model's band is drawn through; bands of different models stay apart, and so does a name above its line.
    gap = 0 if width == WIDE and len({(line.band_low, line.band_high) for line in lines}) == 1 else 2
    for place, line in enumerate(lines):
        shape, ink, _ = MARKS.get(line.kind, _CONTROL if line.kind == "control" else _PLAIN)
        center = place * step + step * (0.68 if above else 0.5)
        found.append(
            {
                **asdict(line),
                "name": short_name(line.name, _NAME_LENGTH[width] - (len(line.note) + 3 if above else 0)),
                "shape": shape,
                "ink": ink,
                "fill": "var(--paper)" if line.kind == "unresolved" else ink,
                "y": center,
                "top": place * step + (step * 0.42 if above else gap),
                "bottom": (place + 1) * step - gap,
                "note_ink": ink if line.kind in MARKS else "var(--soft)",
                "label_y": place * step + 11 if above else center,
            }
        )
    return found


def _layers(domain: Domain, width: int) -> alt.LayerChart | alt.FacetChart:
    plot = width - _GUTTER[width] - _NOTE[width] - 28
    x_scale = alt.Scale(domain=[domain.low, domain.high], nice=False)
    axis = alt.Axis(
        values=list(domain.ticks), title=None, orient="bottom", format="d", tickSize=0, labelPadding=6, labelFlush=False
    )
    base = alt.Chart(alt.NamedData("rows"))

    def x(field: str) -> alt.X:
        return alt.X(f"{field}:Q", scale=x_scale, axis=axis)

    def y(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", scale=None, axis=None)

    known = base.transform_filter("isValid(datum.estimate)")
    spread = known.transform_filter("isValid(datum.ci_low)")
    band = base.transform_filter("isValid(datum.band_low)").mark_rect(color="var(--band)")
    edges = [
        base.transform_filter("isValid(datum.band_low)")
        .mark_rule(color="var(--band-edge)", strokeWidth=1)
        .encode(x=x(edge), y=y("top"), y2="bottom:Q")
        for edge in ("band_low", "band_high")
    ]
    ink = alt.Color("ink:N", scale=None)
    return alt.layer(
        band.encode(x=x("band_low"), x2="band_high:Q", y=y("top"), y2="bottom:Q"),
        *edges,
        spread.mark_rule(strokeWidth=2.5).encode(x=x("ci_low"), x2="ci_high:Q", y=y("y"), color=ink),
        known.mark_point(size=110, strokeWidth=2.2, opacity=1).encode(
            x=x("estimate"),
            y=y("y"),
            stroke=alt.Stroke("ink:N", scale=None),
            fill=alt.Fill("fill:N", scale=None),
            shape=alt.Shape("shape:N", scale=None),
        ),
        *_texts(base, plot, width),
    ).properties(width=plot)


def _texts(base: alt.Chart, plot: int, width: int) -> list[alt.Chart]:
    y = alt.Y("label_y:Q", scale=None, axis=None)
    style: dict[str, Any] = {"font": _FONT, "fontSize": 13, "baseline": "middle", "limit": 0}
    wide = width == WIDE
    left = -_GUTTER[width] - 14 if wide else 0
    name = base.mark_text(align="left", color="var(--ink)", **style).encode(x=alt.value(left), y=y, text="name:N")
    note = base.mark_text(align="left" if wide else "right", **style).encode(
        x=alt.value(plot + 14 if wide else plot), y=y, text="note:N", color=alt.Color("note_ink:N", scale=None)
    )
    return [name, note]


@functools.lru_cache(maxsize=32)
def _compiled(domain: Domain, width: int, rows: int) -> dict[str, Any]:
    """Return the Vega form of a shape of chart, its data still to be filled in."""
    chart = _layers(domain, width).properties(height=rows * _STEP[width], autosize=alt.AutoSizeParams(type="none"))
    chart = chart.properties(padding={"left": _GUTTER[width] + 14, "right": _NOTE[width] + 14, "top": 4, "bottom": 30})
    chart = chart.configure(background="transparent", font=_FONT).configure_view(stroke=None)
    chart = chart.configure_axis(
        gridColor="var(--line)", domain=False, labelColor="var(--soft)", labelFontSize=12, labelFont=_FONT
    )
    vega: dict[str, Any] = vl_convert.vegalite_to_vega(chart.to_dict())
    return vega


def _filled(vega: dict[str, Any], records: list[dict[str, Any]]) -> dict[str, Any]:
    found = copy.deepcopy(vega)
    for source in found["data"]:
        if source["name"] == "rows":
            source["values"] = records
    return found


# Inside an image with one name, the marks' own roles and labels would be read out as clutter (and are not valid HTML).
_ARIA = re.compile(r' (?:role|aria-[a-z]+|pointer-events)="[^"]*"|<path class="background"[^>]*/>')


def _named(svg: str, name: str, title: str, description: str, css: str) -> Markup:
    body = _ARIA.sub("", svg).partition(">")[2]
    size = re.search(r'viewBox="0 0 (\d+) (\d+)"', svg)
    if size is None:
        raise ValueError("the drawing library gave an SVG without a viewBox")
    head = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" class="chart {}" viewBox="0 0 {} {}" role="img" '
        'aria-labelledby="{}-t {}-d"><title id="{}-t">{}</title><desc id="{}-d">{}</desc>'
    ).format(css, size[1], size[2], name, name, name, title, name, description)
    return head + Markup(body)  # noqa: S704 - drawn by the library from escaped data


def _svg(vega: dict[str, Any], cache: Path | None) -> str:
    """Draw, or read an earlier drawing of the same specification by the same library."""
    text = json.dumps(vega, sort_keys=True, allow_nan=False)
    key = hashlib.sha256(f"{metadata.version('vl-convert-python')}|{text}".encode()).hexdigest()
    file = cache / f"{key}.svg" if cache else None
    if file and file.exists():
        return file.read_text(encoding="utf-8")
    svg: str = vl_convert.vega_to_svg(vega)
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        part.write_text(svg, encoding="utf-8")
        part.replace(file)
    return svg


def interval_chart(
    lines: Sequence[Line], domain: Domain, *, name: str, title: str, description: str, cache: Path | None = None
) -> Chart:
    """Draw one point and interval a line, each before the control band of its model.

    `name` starts the ids inside the drawings and must be unique on the page.
    """
    drawn = {}
    for width, css in ((WIDE, "chart-wide"), (NARROW, "chart-narrow")):
        vega = _filled(_compiled(domain, width, len(lines)), _records(lines, width))
        drawn[css] = _named(_svg(vega, cache), f"{name}-{css[6:]}", title, description, css)
    return Chart(drawn["chart-wide"], drawn["chart-narrow"])


def bar(line: Line, domain: Domain) -> Markup:
    """Return a line as a small fluid SVG for a table cell: places in percent, so it needs no fixed width.

    It repeats numbers that stand beside it and is hidden from screen readers.
    """
    shape, _, _ = MARKS.get(line.kind, _CONTROL if line.kind == "control" else _PLAIN)
    parts = [
        Markup('<line class="t" x1="{0:.2f}%" x2="{0:.2f}%" y1="0" y2="100%"/>').format(domain.share(t))
        for t in domain.ticks
    ]
    if line.band_low is not None and line.band_high is not None:
        a, b = domain.share(line.band_low), domain.share(line.band_high)
        parts.append(Markup('<rect class="b" x="{:.2f}%" width="{:.2f}%" y="0" height="100%"/>').format(a, b - a))
        parts += [
            Markup('<line class="e" x1="{0:.2f}%" x2="{0:.2f}%" y1="0" y2="100%"/>').format(edge) for edge in (a, b)
        ]
    if line.ci_low is not None and line.ci_high is not None:
        a, b = domain.share(line.ci_low), domain.share(line.ci_high)
        parts.append(Markup('<line class="i" x1="{:.2f}%" x2="{:.2f}%" y1="50%" y2="50%"/>').format(a, b))
    if line.estimate is not None:
        place = Markup('<svg x="{:.2f}%" y="50%" class="p">{}</svg>')
        parts.append(place.format(domain.share(line.estimate), _POINTS[shape]))
    return Markup('<svg class="ibar k-{}" aria-hidden="true" focusable="false">{}</svg>').format(
        escape(line.kind), Markup().join(parts)
    )


_POINTS = {
    "circle": Markup('<circle r="5"/>'),
    "diamond": Markup('<path d="M0-7 7 0 0 7-7 0z"/>'),
    "triangle-up": Markup('<path d="M0-6.5 6.5 5-6.5 5z"/>'),
    "square": Markup('<path d="M-5-5h10V5H-5z"/>'),
}
