"""Static charts: numbers put into a kept shape (`chart_shapes`) and drawn to SVG, with title, description and role.

Takes rows of numbers, returns `Chart` with a wide and a narrow drawing of the same rows. A drawing that was made before
from the same numbers and shape is read from the cache. Colors are CSS variables of the page, so a drawing follows the
theme.

See contract: publication, "Pages".
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from generator.html.chart_scale import NARROW, STEP, WIDE, Domain
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
                # Drawn through, each part reaches a pixel into the next, or a seam of the page shows between them.
                "bottom": (place + 1) * step - gap if gap else (place + 1) * step + 1,
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


def _remembered(cache: Path | None, key: str, make: Callable[[], str]) -> str:
    """Return what was made under a key before, or make it: the drawing library is loaded only for what is new.

    A file begins with the hash of the rest; one that was damaged is made again.
    """
    if cache is None:
        return make()
    file = cache / f"{sha256_hex(f'{_versions()}|{key}')}.svg"
    known = _whole(file)
    if known is None:
        known = make()
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}.part")  # two publishes may draw the same chart at once
        part.write_text(f"{sha256_hex(known)}\n{known}", encoding="utf-8")
        part.replace(file)
    return known


def _whole(file: Path) -> str | None:
    try:
        digest, _, text = file.read_bytes().decode().partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    return text if digest == sha256_hex(text) else None


@functools.cache
def _kept() -> str:
    return Path(__file__).with_name("chart_shapes.json").read_text(encoding="utf-8")


@functools.cache
def _shape(width: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_kept())[str(width)]
    return found


@functools.cache
def _versions() -> str:
    """Return what decides a drawing beside its numbers: the drawing library and the shapes."""
    return f"{metadata.version('vl-convert-python')}|{sha256_hex(_kept())}"


def _svg(lines: Sequence[Line], domain: Domain, width: int, cache: Path | None) -> str:
    """Draw, or read an earlier drawing of the same numbers by the same library."""
    records, height = _records(lines, width), len(lines) * STEP[width]

    def draw_now() -> str:
        import vl_convert

        svg: str = vl_convert.vega_to_svg(with_numbers(_shape(width), domain, height, records))
        return svg

    numbers = [width, height, domain.low, domain.high, domain.step, records]
    return _remembered(cache, json.dumps(numbers, allow_nan=False), draw_now)


def interval_chart(
    lines: Sequence[Line], domain: Domain, *, name: str, title: str, description: str, cache: Path | None = None
) -> Chart:
    """Draw one point and interval a line, each before the control band of its model.

    `name` starts the ids inside the drawings and must be unique on the page.
    """
    drawn = {}
    for width, css in ((WIDE, "chart-wide"), (NARROW, "chart-narrow")):
        drawn[css] = _named(_svg(lines, domain, width, cache), f"{name}-{css[6:]}", title, description, css)
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
