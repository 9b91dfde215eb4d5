"""Numbers as pages show them, each in the element that `verify` reads (contract: publication, "Numbers on pages").

`score(row, column, digits)` writes a `data-score` element from a ScoreRow; `cell(table, key, column, value, digits,
scale)` a `data-cell` element, where `key` is the table's key columns joined by commas (TABLE_KEYS) and a
`data-scale="100"` says that the page shows 100 times the file's value. The element's whole text is `format(value,
".<digits>f")` with minus zero as zero, a whole number `format(value, ",")`, or `–` where the file has null; digits can
be counted in the text.
"""

from __future__ import annotations

from markupsafe import Markup, escape

from generator.scoring.lookup import ScoreRow

NULL = "–"
SCORE_COLUMNS = ("estimate", "ci_low", "ci_high")
# What identifies a row of each table in a `data-cell`, in this order.
TABLE_KEYS = {
    "scores": ("model", "metric", "attribute", "group"),
    "cells": ("model", "concept", "framing", "group"),
    "disparities": ("model", "concept", "framing"),
    "agreement": ("rubric", "vendor"),
    "judges": ("judge",),
    "tiers": ("model",),
    "comparisons": ("model_a", "model_b", "attribute"),
    "refusal_tests": ("model", "attribute"),
    "human_audit": ("receipt_id",),
    "audit_summary": ("rubric",),
}


def number(value: float | None, digits: int = 1) -> str:
    """Return a number as a page shows it: rounded by `format`, a count with thousands commas, `–` for None.

    Args:
        value: the number in the unit of the page.
        digits: decimals.

    Raises:
        ValueError: the value is NaN or infinite. A published number is finite or null.
    """
    if value is None:
        return NULL
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(f"cannot publish {value!r}: write null where there is no value")
    if isinstance(value, int) and digits == 0:
        return f"{value:,}"
    text = f"{value:.{digits}f}"
    # A small negative number rounds to -0.0, which reads as a sign that means something.
    return text[1:] if text.startswith("-") and not text.strip("-0.") else text


def plural(count: int, singular: str, many: str | None = None) -> str:
    """Return a count with its noun: `1 model`, `1,200 models`.

    `many` is the plural of a noun that takes more than an s.
    """
    return f"{count:,} {singular if count == 1 else many or singular + 's'}"


_SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def in_letters(count: int, singular: str, many: str | None = None) -> str:
    """Return a count with its noun as running text has it: `one framing`, `two framings`, `13 framings`.

    `many` is the plural of a noun that takes more than an s.
    """
    word = _SMALL[count] if count < len(_SMALL) else f"{count:,}"
    return f"{word} {singular if count == 1 else many or singular + 's'}"


# The elements are put together from escaped parts: a run's pages hold tens of thousands, and Markup.format is slow.
def score(row: ScoreRow, column: str = "estimate", digits: int = 1) -> Markup:
    """Return a number of `scores` in the element that `verify` reads (contract: publication, "Numbers on pages").

    Args:
        row: the row of `scores`.
        column: any column with a number.
        digits: decimals to show; counts are shown whole.
    """
    value = getattr(row, column)
    if column in SCORE_COLUMNS:
        key = escape(f"{row.key}|{column}")
        return Markup(f'<span data-score="{key}">{escape(number(value, digits))}</span>')  # noqa: S704 - escaped
    return cell("scores", row.key.replace("|", ","), column, value, 0 if isinstance(value, int) else digits)


def interval(row: ScoreRow, digits: int = 1) -> Markup:
    """Return a row's 95 % interval as two `data-score` elements, or a dash where it has none."""
    if row.ci_low is None:
        return Markup('<span class="none" title="no interval">{}</span>').format(NULL)
    low, high = score(row, "ci_low", digits), score(row, "ci_high", digits)
    return Markup('<span class="ci"><span class="vh">95 % interval </span>{} to {}</span>').format(low, high)


def cell(table: str, key: str, column: str, value: float | str | None, digits: int = 2, *, scale: int = 1) -> Markup:
    """Return a number or word of any table in the element that `verify` reads.

    See contract: publication, "Numbers on pages".

    Args:
        table: name of the table.
        key: values of the table's key columns (`TABLE_KEYS`), joined by commas.
        column: name of the column.
        value: the value as the file has it, None for null.
        digits: decimals to show.
        scale: 100 to show 100 times the value.
    """
    shown = value if isinstance(value, str) else number(None if value is None else value * scale, digits)
    place = escape(f"{table}|{key}|{column}")
    scaled = f' data-scale="{int(scale)}"' if scale != 1 else ""
    return Markup(f'<span data-cell="{place}"{scaled}>{escape(shown)}</span>')  # noqa: S704 - escaped
