"""The shapes of charts: specified in Altair, compiled to Vega, kept in `chart_shapes.json`; `make charts` writes it.

A chart has one shape a width. What differs from chart to chart are numbers (the scale's ends and ticks, the height, the
rows), and they are put into the kept shape. So a publish loads neither Altair nor its compiler.

Names stand at fixed places with room measured in characters, because the drawing library measures text in another font
than the browser.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from generator.html.chart_scale import BOTTOM, GUTTER, NARROW, NOTE, STEP, TOP, WIDE, Domain

KEPT = Path(__file__).with_suffix(".json")

AXIS = "Consistency, in points of 100"
FIELDS = ("consistency", "ci_low", "ci_high", "band_low", "band_high")
_FONT = "ui-sans-serif, system-ui, sans-serif"


def _layers(domain: Domain, width: int) -> alt.LayerChart | alt.FacetChart:
    plot = width - GUTTER[width] - NOTE[width] - 28
    x_scale = alt.Scale(domain=[domain.low, domain.high], nice=False, zero=False)
    axis = alt.Axis(
        values=list(domain.ticks), title=AXIS, orient="bottom", format="d", tickSize=0, labelPadding=6, labelFlush=False
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
        # A rim in the color of the page, so that lines and shapes stand out from the band.
        spread.mark_rule(strokeWidth=6.5, color="var(--paper)").encode(x=x("ci_low"), x2="ci_high:Q", y=y("y")),
        known.mark_point(size=330, opacity=1, filled=True, color="var(--paper)").encode(
            x=x("estimate"), y=y("y"), shape=alt.Shape("shape:N", scale=None)
        ),
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
    left = -GUTTER[width] - 14 if wide else 0
    name = base.mark_text(align="left", color="var(--ink)", **style).encode(x=alt.value(left), y=y, text="name:N")
    note = base.mark_text(align="left" if wide else "right", **style).encode(
        x=alt.value(plot + 14 if wide else plot), y=y, text="note:N", color=alt.Color("note_ink:N", scale=None)
    )
    return [name, note]


def compiled(domain: Domain, width: int, rows: int) -> dict[str, Any]:
    """Return the Vega form of a shape of chart; the values of its data source `rows` are still to be filled in."""
    chart = _layers(domain, width).properties(height=rows * STEP[width], autosize=alt.AutoSizeParams(type="none"))
    chart = chart.properties(
        padding={"left": GUTTER[width] + 14, "right": NOTE[width] + 14, "top": TOP, "bottom": BOTTOM}
    )
    chart = chart.configure(background="transparent", font=_FONT).configure_view(stroke=None)
    chart = chart.configure_axis(
        gridColor="var(--line)", domain=False, labelColor="var(--soft)", labelFontSize=12, labelFont=_FONT
    )
    chart = chart.configure_axisX(
        titleColor="var(--soft)", titleFontSize=12, titleFont=_FONT, titleFontWeight="normal", titlePadding=8
    )
    vega: dict[str, Any] = vl_convert.vegalite_to_vega(chart.to_dict())
    return vega


def vega_lite() -> dict[str, Any]:
    """Return the Vega-Lite form of a chart for others to use; data, title and the ends of the scale are to be set.

    Its rows are those of the CSV file. The colors are set with them, since a site may have its own.
    """
    scale = alt.Scale(domain=[0, 100], nice=False, zero=False)
    tips = [alt.Tooltip("name:N"), *(alt.Tooltip(f"{n}:Q", format=".1f") for n in FIELDS), alt.Tooltip("read_as:N")]
    base = alt.Chart(alt.NamedData("rows")).encode(y=alt.Y("name:N", sort=None, title=None), tooltip=tips)
    ink = alt.Color("kind:N", title="Read as", scale=alt.Scale(domain=["plain"], range=["#000000"]))
    shape = alt.Shape("kind:N", title="Read as", scale=alt.Scale(domain=["plain"], range=["circle"]))
    x = alt.X("consistency:Q", scale=scale, title=AXIS)
    band = base.transform_filter("isValid(datum.band_low)").mark_rect(color="#cccccc")
    spread = base.transform_filter("isValid(datum.ci_low)").mark_rule(strokeWidth=2.5)
    point = base.transform_filter("isValid(datum.consistency)").mark_point(filled=True, size=110, opacity=1)
    chart = alt.layer(
        band.encode(x=alt.X("band_low:Q", scale=scale, title=AXIS), x2="band_high:Q"),
        spread.encode(x=alt.X("ci_low:Q", scale=scale, title=AXIS), x2="ci_high:Q", color=ink),
        point.encode(x=x, color=ink, shape=shape),
    )
    found: dict[str, Any] = chart.properties(width=560).to_dict()
    return found


def shapes() -> str:
    """Return the text of `chart_shapes.json`: a compiled shape for each width, its numbers still those of a sample.

    The Vega-Lite form stands beside them.
    """
    found = {str(width): compiled(Domain(0, 100, 10), width, 1) for width in (WIDE, NARROW)}
    found["vega_lite"] = vega_lite()
    return json.dumps(found, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    KEPT.write_text(shapes(), encoding="utf-8")
