"""The figures of a run in every form that travels: SVG, PNG, CSV, Vega-Lite and a page to embed.

Takes a View; yields files. Which figures there are is said here and nowhere else.

See contract: publication, "Figures".
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from markupsafe import Markup

from generator.data.csv_text import csv_bytes
from generator.edition import paths
from generator.edition.banners import mark_of, notices
from generator.html.chart_scale import STEP, WIDE
from generator.html.charts import MARKS, Line, interval_chart, light_colors, vega_lite_shape
from generator.html.figure_svg import Figure, figure_png, figure_svg
from generator.html.frame import frame, render_page
from generator.pages.views import View
from generator.schema.columns import Column

NUMBERS = ("consistency", "ci_low", "ci_high", "band_low", "band_high")
_WORDS = {
    "name": "What the line stands for: an attribute or a model.",
    "read_as": "Evidence tier, `control`, or why there is no interval; empty where nothing is to be said.",
    "run_id": "The run.",
    "run_date": "Its date.",
    "kind": "`live`, `imported` or `simulated`: of a simulated run no real model was asked.",
    "source": "Who published it, and where.",
    "license": "The license of the data, as SPDX names it or by its address.",
}
_COLUMNS = (
    Column("name", pa.string(), _WORDS["name"]),
    *(Column(name, pa.float64(), "Points on the scale of 0 to 100.", null="no value") for name in NUMBERS),
    *(
        Column(name, pa.string(), _WORDS[name])
        for name in ("read_as", "run_id", "run_date", "kind", "source", "license")
    ),
)


def own_colors(view: View) -> dict[str, str]:
    """Return the colors of the site's light scheme: its own in the place of the program's."""
    return {**light_colors(), **{str(name): color for name, color in view.edition.site.colors.light.items()}}


def source_words(view: View, page: str) -> tuple[str, ...]:
    """Say whose figure it is, of which run and date, under which license, and where it stands."""
    site, manifest = view.edition.site, view.manifest
    kind = {"simulated": "simulated: no real model was asked", "preview": "a preview, not a result"}
    mark = mark_of(view.edition)
    run = f"run {view.run_id} of {manifest.date}{f' ({kind[mark]})' if mark else ''}, bank {manifest.bank_version}"
    left_out = [notice.lines[0] for notice in notices(view.edition, page) if notice.kind == "withheld"]
    where = f" {view.edition.base_url}/{page}" if view.edition.base_url else ""
    licence = site.data_licence
    source = f"Source: {site.title} ({site.publisher}), {run}.{where}"
    return (source, *left_out, f"License: {licence.name}, {licence.url}")


def figure_of(view: View, page: str, name: str, **parts: Any) -> Figure:
    """Return a figure of the run that a page shows; `name` as in `paths.figure`, `parts` the other fields."""
    return Figure(
        place=paths.figure(view.run_id, name),
        page=page,
        source=source_words(view, page),
        domain=view.domain,
        colors=own_colors(view),
        cache=view.edition.chart_cache,
        pictured=not view.edition.crowded,
        **parts,
    )


def picture_of(figure: Figure) -> tuple[str, str] | None:
    """Return path and words of the figure's picture for a page that is shared; None where it has no PNG."""
    return (f"{figure.place}.png", figure.title) if figure.pictured else None


def embed_snippet(view: View, figure: Figure) -> str:
    """Return the HTML that puts a figure into another page; without an address of the site, SITE stands for it."""
    address = f"{view.edition.base_url or 'SITE'}/{figure.place}.html"
    height = 260 + STEP[WIDE] * len(figure.lines)
    frame_ = Markup('<iframe src="{}" title="{}" width="100%" height="{}" loading="lazy"></iframe>')
    return str(frame_.format(address, figure.title, height))


def figure_csv(view: View, figure: Figure) -> bytes:
    """Return the numbers of a figure, each line with its run, source and license."""
    facts = {
        "run_id": view.run_id,
        "run_date": view.manifest.date,
        "kind": view.manifest.kind,
        "source": figure.source[0].removeprefix("Source: "),
        "license": view.edition.site.data_licence.spdx or view.edition.site.data_licence.url,
    }
    rows = [{**_record(line), **facts} for line in figure.lines]
    schema = pa.schema([(column.name, column.type) for column in _COLUMNS])
    return csv_bytes(pa.Table.from_pylist(rows, schema), _COLUMNS)


def _record(line: Line) -> dict[str, Any]:
    numbers = (line.estimate, line.ci_low, line.ci_high, line.band_low, line.band_high)
    known = line.kind in (*MARKS, "control") and line.note.endswith(line.kind)
    return {
        "name": line.name,
        **dict(zip(NUMBERS, numbers, strict=True)),
        "read_as": line.kind if known else line.note or None,
    }


def figure_vega_lite(view: View, figure: Figure) -> bytes:
    """Return the figure as a Vega-Lite specification with its data, title, source and license in it."""
    colors = figure.colors
    kinds = [kind for kind in (*MARKS, "control", "plain") if any(line.kind == kind for line in figure.lines)]
    inks = {kind: colors[kind] for kind in MARKS} | {"control": colors["band-edge"], "plain": colors["point"]}
    shapes = {kind: shape for kind, (shape, _, _) in MARKS.items()} | {"control": "square", "plain": "circle"}
    shape = vega_lite_shape()
    for layer in shape["layer"]:
        layer["encoding"]["x"]["scale"]["domain"] = [figure.domain.low, figure.domain.high]
        layer["encoding"]["x"]["axis"] = {"values": list(figure.domain.ticks)}
        for channel, chosen in (("color", inks), ("shape", shapes)):
            if channel in layer["encoding"]:
                layer["encoding"][channel]["scale"] = {"domain": kinds, "range": [chosen[kind] for kind in kinds]}
    shape["layer"][0]["mark"]["color"] = colors["band"]
    filled = {
        **shape,
        "background": colors["paper"],
        "title": {
            "text": figure.title,
            "subtitle": [*textwrap.wrap(figure.caption, 100), *figure.source],
            "anchor": "start",
        },
        "description": " ".join((figure.title + ".", figure.caption, *figure.source)),
        "data": {"name": "rows", "values": [{**_record(line), "kind": line.kind} for line in figure.lines]},
        "usermeta": {
            "run": view.run_id,
            "date": view.manifest.date,
            "kind": view.manifest.kind,
            "source": figure.source,
        },
    }
    return (json.dumps(filled, ensure_ascii=False, allow_nan=False, indent=1, sort_keys=True) + "\n").encode()


def figure_page(view: View, figure: Figure) -> bytes:
    """Return the page to embed: the figure alone, with its source and the way to the page that explains it."""
    page = f"{figure.place}.html"
    context = frame(view.edition, page, figure.title, description=figure.caption, scripts=())
    chart = interval_chart(
        figure.lines,
        figure.domain,
        name="figure",
        title=figure.title,
        description=" ".join((figure.caption, *figure.source)),
        cache=figure.cache,
    )
    return render_page("embed.html", context, figure=figure, chart=chart)


def render_figure(view: View, figure: Figure) -> Iterator[tuple[str, bytes]]:
    """Yield (path below dist/, bytes) of every form of a figure."""
    svg = figure_svg(figure)
    yield f"{figure.place}.svg", svg
    if figure.pictured:
        yield f"{figure.place}.png", figure_png(figure, svg)
    yield f"{figure.place}.csv", figure_csv(view, figure)
    yield f"{figure.place}.vl.json", figure_vega_lite(view, figure)
    yield f"{figure.place}.html", figure_page(view, figure)
