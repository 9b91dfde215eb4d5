"""The tables in docs/contract that the code decides: what stands between two marks is written here, from the code.

    python -m tests.contract_blocks     # writes them anew, after a column, metric, command or option changed

`tests/test_contract.py` fails where the documents say anything else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click

from generator.cli import aibiasbench
from generator.edition.numbers import TABLE_KEYS
from generator.schema.columns import Column
from generator.schema.score_rows import ROW_KINDS
from generator.schema.table_rows import TABLE_ROWS
from generator.schema.tables import FLAGS, TABLES
from harness.calls.refusals import FILTER_WORDS

DOCS = Path(__file__).parents[1] / "docs" / "contract"
# Where the formula of a metric stands on the methodology pages; the rates share one heading.
FORMULAS = {
    "disparity": 'scoring, "Disparity"',
    "consistency": 'scoring, "Consistency"',
    "worst_gap": 'scoring, "Worst gap"',
    "calibrated_consistency": 'scoring, "Calibrated consistency"',
    "lean": 'scoring, "Directional lean"',
    "refusal_rate": 'scoring, "Refusal rate and refusal asymmetry"',
    "refusal_asymmetry": 'scoring, "Refusal rate and refusal asymmetry"',
    "instability": 'scoring, "Repeat instability"',
    "crossfit_disparity": 'scoring, "Cross-fit disparity"',
    "role_reversal": 'scoring, "Role reversal"',
    "band_low": 'control-band, "What it is"',
    "band_high": 'control-band, "What it is"',
    "excess": 'evidence, "Excess over the edge"',
    "mde": 'evidence, "What could have been seen"',
    "favorability": 'level, "Favorability"',
    "favorability_gap": 'level, "Models that stand apart"',
    **dict.fromkeys(
        (
            "favorability_positive",
            "favorability_negative",
            "compliance",
            "label_share",
            "label_share_positive",
            "label_share_negative",
        ),
        'level, "What stands beside it"',
    ),
    **dict.fromkeys(
        (
            "contested_rate",
            "error_rate",
            "filter_refusal_rate",
            "mask_leakage",
            "truncated_rate",
            "verdict_mismatch_rate",
        ),
        'scoring, "Rates"',
    ),
}


def table(heads: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(re.sub(" +", " ", f"| {' | '.join(cells)} |") for cells in lines)


def code(names: Sequence[str]) -> str:
    """Names as Markdown code, with commas."""
    return ", ".join(f"`{name}`" for name in names)


def columns(name: str) -> str:
    """The columns of a published table; what always goes together stands in one row."""
    heads = ("Column", "Type", "Unit", "Null when", "Meaning")
    return table(heads, map(_column_row, _grouped(TABLES[name])))


def _grouped(found: tuple[Column, ...]) -> Iterator[tuple[Column, ...]]:
    place = 0
    while place < len(found):
        column, after = found[place], [c.name for c in found[place + 1 : place + 4]]
        taken = 1
        if after[:2] == [f"{column.name}_ci_low", f"{column.name}_ci_high"]:
            taken = 3
        elif column.name == "ci_low":
            taken = 2
        elif column.name == "kind" and after == ["bank_version", "bank_sha256", "harness_sha"]:
            taken = 4
        yield found[place : place + taken]
        place += taken


def _column_row(found: tuple[Column, ...]) -> tuple[str, ...]:
    first, null = found[0], found[0].null
    text = {2: "The 95 % interval.", 3: f"{first.description} With its 95 % interval.", 4: "As in the manifest."}
    if len(found) == 3:
        null = f"{null}; the interval: {found[1].null}"
    return code([c.name for c in found]), str(first.type), first.unit, null, text.get(len(found), first.description)


def order_of_rows() -> str:
    """The rows of every table and what they are sorted by."""
    rows = ((f"`{name}`", found.rows, code(found.order) or "as said") for name, found in TABLE_ROWS.items())
    return table(("Table", "Rows", "Sorted by"), rows)


def metrics() -> str:
    """The metrics of `scores`, the rows that each has, and where its formula stands."""
    rows = ((f"`{m}`", kind.scope, f"methodology: {FORMULAS[m]}") for kind in ROW_KINDS for m in kind.metrics)
    return table(("Metric", "Rows", "Formula"), rows)


def counts() -> str:
    """What the counts beside a metric count, and when there is no estimate."""
    rows = ((code(kind.metrics), kind.concepts, kind.cells, kind.rows, kind.null) for kind in ROW_KINDS)
    return table(("Metric", "`n_concepts`", "`n_cells`", "`n_rows`", "No estimate when"), rows)


def flags() -> str:
    """The flags in their published order."""
    return f"In this order: {code(FLAGS)}."


def cell_keys() -> str:
    """What identifies a row of each table on a page."""
    return table(("Table", "Key"), ((f"`{name}`", code(keys)) for name, keys in TABLE_KEYS.items()))


def commands() -> str:
    """Every command with its options."""
    return table(("Command", "Does", "Options"), _commands("", aibiasbench))


PLACES = {
    "finish": "finish reason",
    "code": "code of an error",
    "message": "words of an error's message",
    "flag": "field that is filled",
}


def refusals() -> str:
    """Every word of a vendor for its filter, and where it stands."""
    return table(
        ("Word", "Where", "Vendor"),
        ((f"`{row.word}`", ", ".join(PLACES[place] for place in row.places), row.vendor) for row in FILTER_WORDS),
    )


def _commands(path: str, found: click.Command) -> Iterator[tuple[str, ...]]:
    context = click.Context(found)
    if isinstance(found, click.Group):
        for name in found.list_commands(context):
            below = found.get_command(context, name)
            assert below is not None
            yield from _commands(f"{path} {name}".strip(), below)
        return
    words = [path, *(p.make_metavar(context) for p in found.params if isinstance(p, click.Argument))]
    options = [o for p in found.params if isinstance(p, click.Option) for o in (*p.opts, *p.secondary_opts)]
    yield f"`{' '.join(words)}`", found.get_short_help_str(200), code(options)


BLOCKS: dict[str, Callable[[], str]] = {
    **{f"columns of {name}": lambda name=name: columns(name) for name in TABLES},  # type: ignore[misc]
    "order of rows": order_of_rows,
    "metrics": metrics,
    "counts": counts,
    "flags": flags,
    "cell keys": cell_keys,
    "commands": commands,
    "refusals": refusals,
}
MARKED = re.compile(r"(<!-- from code: (?P<name>[^>]+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def rendered(text: str) -> str:
    """A document with each marked block as the code has it; raises KeyError for a block that the code does not know."""
    return MARKED.sub(lambda m: f"{m[1]}{BLOCKS[m['name']]()}\n{m[3]}", text)


if __name__ == "__main__":
    for path in sorted(DOCS.glob("*.md")):
        path.write_text(rendered(path.read_text("utf-8")), "utf-8")
