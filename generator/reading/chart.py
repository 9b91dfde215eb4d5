"""A model's chart for a notebook: consistency by attribute with its interval, and the control band behind it."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from generator.schema.tables import OVERALL

_WORDS = {"estimate": "Consistency", "ci_low": "from", "ci_high": "to"}


def consistency_chart(scores: pd.DataFrame, model: str, title: str) -> Any:
    """Return an Altair chart of one model from the table `scores`, all on the scale of 0 to 100.

    An attribute without a value is left out; so is the band where the model has none.
    """
    own = scores[(scores["model"] == model) & scores["group"].isna()]
    rows = own[(own["metric"] == "consistency") & own["estimate"].notna()]
    rows = rows[["attribute", "estimate", "ci_low", "ci_high"]]
    axis = alt.X("estimate:Q", title="Consistency (0 to 100)", scale=alt.Scale(zero=False))
    order = alt.Y("attribute:N", title=None, sort=[OVERALL])
    tips = [
        alt.Tooltip("attribute:N"),
        *(alt.Tooltip(f"{name}:Q", title=word, format=".1f") for name, word in _WORDS.items()),
    ]
    base = alt.Chart(rows).encode(y=order, tooltip=tips)
    layers = [base.mark_rule().encode(x=alt.X("ci_low:Q"), x2="ci_high:Q"), base.mark_point(filled=True).encode(x=axis)]
    band = _band(own)
    if not band.empty:
        layers.insert(0, alt.Chart(band).mark_rect(opacity=0.15).encode(x="low:Q", x2="high:Q"))
    return alt.layer(*layers).properties(title=title)


def _band(own: pd.DataFrame) -> pd.DataFrame:
    """Return the model's control band as one row (low, high), or none."""
    edges = own[(own["attribute"] == OVERALL) & own["metric"].isin(["band_low", "band_high"])]["estimate"].dropna()
    low_high = {"low": [edges.min()], "high": [edges.max()]} if len(edges) == 2 else {"low": [], "high": []}
    return pd.DataFrame(low_high)
