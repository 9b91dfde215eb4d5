"""Static charts: numbers put into a kept shape (`chart_shapes`) and drawn to SVG, with title, description and role.

Takes rows of numbers, returns `Chart` with a wide and a narrow drawing of the same rows. A drawing that was made before
from the same numbers and shape is read from the cache. Colors are CSS variables of the page, so a drawing follows the
theme; each has a color to fall back to, so that a drawing which is copied out of its page looks right alone. Every line
of a chart says its numbers where a pointer or the keyboard's focus stands on it, without a script.

See contract: publication, "Pages".
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from generator.edition.colors import load_palettes
from generator.edition.numbers import number
from generator.html.assets import STATIC
from generator.html.chart_scale import NARROW, NOTE, STEP, TOP, WIDE, Domain
from generator.html.kept_drawings import remembered, versioned
from generator.schema.canonical import sha256_hex

# Characters of a name that fit: beside its line in the wide drawing, above it in the narrow one.
_NAME_LENGTH = {WIDE: 34, NARROW: 40}
# By evidence tier: the shape as the drawing library names it, its color, and the same shape as a character. Not colors
# alone tell tiers apart, so that print and readers who see few colors lose nothing.
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


def short_name(name: str, length: int) -> str:
    """Return a name with its middle left out where it is longer than its room."""
    if len(name) <= length:
        return name
    tail = (length - 1) // 2
    return f"{name[: length - 1 - tail]}…{name[-tail:]}"


def _records(lines: Sequence[Line], width: int) -> list[dict[str, Any]]:
    """Return what the chart's specification reads of each line; all places are pixels from the drawing's top."""
    step, above = STEP[width], width == NARROW  # `above`: a narrow drawing has the name over the line, not beside it
    found = []
    # One model's band is one shape behind all lines; bands of different models stay apart, and so does a name above its
    # line.
    through = width == WIDE and len({(line.band_low, line.band_high) for line in lines}) == 1
    gap = 0 if through else 2
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
                "bottom": len(lines) * step if through else (place + 1) * step - gap,
                **({"band_low": None, "band_high": None} if through and place else {}),
                "note_ink": ink if line.kind in MARKS else "var(--soft)",
                "label_y": place * step + 11 if above else center,
            }
        )
    return found


def with_numbers(
    shape: Mapping[str, Any], domain: Domain, height: int, records: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return a Vega specification: a kept shape with a chart's own scale, ticks, height and rows.

    Only what changes is made anew; the rest is shared with the shape and must not be written to.
    """
    scale, *scales = shape["scales"]
    ticks = list(domain.ticks)
    return {
        **shape,
        "height": height,
        "scales": [{**scale, "domain": [domain.low, domain.high]}, *scales],
        "axes": [{**axis, "values": ticks} for axis in shape["axes"]],
        "data": [{**s, "values": records} if s["name"] == "rows" else s for s in shape["data"]],
    }


# Inside a figure with one name, the marks' own roles and labels would be read out as clutter (and are not valid HTML).
_ARIA = re.compile(r' (?:role|aria-[a-z]+|pointer-events)="[^"]*"|<path class="background"[^>]*/>')
_COLOR = re.compile(r"var\(--([a-z-]+)\)")
FEW_LINES = 20  # a chart of more lines than these is no stop of the tab key at each; its table stands below it


@functools.cache
def light_colors() -> Mapping[str, str]:
    """Return the program's own colors of the light scheme by name."""
    return load_palettes((STATIC / "site.css").read_text(encoding="utf-8"))["light"]


def with_colors(svg: str, colors: Mapping[str, str]) -> str:
    """Return a drawing with fixed colors in the place of a page's variables."""
    return _COLOR.sub(lambda found: colors[found[1]], svg)


def _with_fallbacks(svg: str) -> str:
    return _COLOR.sub(lambda found: f"var(--{found[1]},{light_colors()[found[1]]})", svg)


def body_of(svg: str) -> tuple[str, int, int]:
    """Return what stands inside a drawing of the library, for an element of our own, with its width and height."""
    size = re.search(r'viewBox="0 0 (\d+) (\d+)"', svg)
    if size is None:
        raise ValueError("the drawing library gave an SVG without a viewBox")
    inside = _ARIA.sub("", svg).partition(">")[2].removesuffix("</svg>")
    return inside, int(size[1]), int(size[2])


def line_words(line: Line) -> str:
    """Say what a line of a chart shows: `Age: 88.0, 95 % interval 85.0 to 91.0; control band 92.0 to 96.0; flagged`."""
    parts = [f"{line.name}: {'no value' if line.estimate is None else number(line.estimate)}"]
    if line.ci_low is not None and line.ci_high is not None:
        parts[0] += f", 95 % interval {number(line.ci_low)} to {number(line.ci_high)}"
    if line.band_low is not None and line.band_high is not None:
        parts.append(f"control band {number(line.band_low)} to {number(line.band_high)}")
    return "; ".join([*parts, *([line.kind] if line.kind in (*MARKS, "control") else [])])


def hits(lines: Sequence[Line], width: int, *, stops: bool) -> Markup:
    """Return one transparent mark a line that says its numbers: as a title, and beside the line while it has focus.

    `stops`: the tab key halts at each.
    """
    step, wide = STEP[width], width == WIDE
    room, stop = NOTE[WIDE] if wide else width // 2, Markup(' tabindex="0"') if stops else ""
    found = []
    for place, line in enumerate(lines):
        top = TOP + place * step
        words = Markup(
            '<g class="hit" role="img"{}><title>{}</title><rect x="1" y="{}" width="{}" height="{}" fill-opacity="0"/>'
        )
        found.append(words.format(stop, line_words(line), top, width - 2, step))
        if line.ci_low is not None and line.ci_high is not None:
            ground = Markup('<g visibility="hidden"><rect x="{}" y="{}" width="{}" height="{}" fill="var(--paper)"/>')
            text = Markup('<text x="{}" y="{}" font-size="13" {}fill="var(--ink)">{}</text></g>')
            place_x, end = (width - room, "") if wide else (width - 14, Markup('text-anchor="end" '))
            baseline = top + (step // 2 + 5 if wide else 16)
            found.append(ground.format(width - room - 4, top + 1, room + 4, step - 2 if wide else 19))
            found.append(text.format(place_x, baseline, end, _short_words(line)))
        found.append(Markup("</g>"))
    return Markup().join(found)


def _short_words(line: Line) -> str:
    return f"{number(line.estimate)} ({number(line.ci_low)} to {number(line.ci_high)})"


def _named(svg: str, name: str, title: str, description: str, css: str, marks: Markup) -> Markup:
    body, width, height = body_of(svg)
    # Not an image as a whole: in it are marks that take the focus. What is drawn is hidden, since the marks say it.
    head = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" class="chart {}" viewBox="0 0 {} {}" role="group" '
        'aria-labelledby="{}-t" aria-describedby="{}-d"><title id="{}-t">{}</title><desc id="{}-d">{}</desc>'
        '<g aria-hidden="true">'
    ).format(css, width, height, name, name, name, title, name, description)
    drawn = _with_fallbacks(body)
    marked = Markup(_with_fallbacks(marks))  # noqa: S704 - escaped above
    return head + Markup(drawn) + Markup("</g>") + marked + Markup("</svg>")  # noqa: S704 - drawn from escaped data


@functools.cache
def _kept() -> str:
    return Path(__file__).with_name("chart_shapes.json").read_text(encoding="utf-8")


@functools.cache
def _shape(width: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_kept())[str(width)]
    return found


def vega_lite_shape() -> dict[str, Any]:
    """Return the kept Vega-Lite form of a chart, to be filled in: a copy of its own each time."""
    found: dict[str, Any] = json.loads(_kept())["vega_lite"]
    return found


def drawing(lines: Sequence[Line], domain: Domain, width: int, cache: Path | None) -> str:
    """Draw, or read an earlier drawing of the same numbers by the same library; colors are variables of the page."""
    records, height = _records(lines, width), len(lines) * STEP[width]

    def draw_now() -> bytes:
        import vl_convert

        svg: str = vl_convert.vega_to_svg(with_numbers(_shape(width), domain, height, records))
        return svg.encode()

    numbers = [width, height, domain.low, domain.high, domain.step, records]
    key = versioned(f"{sha256_hex(_kept())}|{json.dumps(numbers, allow_nan=False)}")
    return remembered(cache, key, ".svg", draw_now).decode()


def interval_chart(
    lines: Sequence[Line], domain: Domain, *, name: str, title: str, description: str, cache: Path | None = None
) -> Chart:
    """Draw one point and interval a line, each before the control band of its model.

    `name` starts the ids inside the drawings and must be unique on the page.
    """
    drawn = {}
    for width, css in ((WIDE, "chart-wide"), (NARROW, "chart-narrow")):
        marks = hits(lines, width, stops=len(lines) <= FEW_LINES)
        svg = drawing(lines, domain, width, cache)
        drawn[css] = _named(svg, f"{name}-{css[6:]}", title, description, css, marks)
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
        parts.append(Markup('<line class="h" x1="{:.2f}%" x2="{:.2f}%" y1="50%" y2="50%"/>').format(a, b))
        parts.append(Markup('<line class="i" x1="{:.2f}%" x2="{:.2f}%" y1="50%" y2="50%"/>').format(a, b))
    if line.estimate is not None:
        place = Markup('<svg x="{:.2f}%" y="50%" class="p"><circle class="h" r="7.5"/>{}</svg>')
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
