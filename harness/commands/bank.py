"""`aibiasbench bank`: check, hash, show, measure the prompt bank, and print its review sheets.

See contract: stages, "Commands".
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from generator.schema.bank import Bank, Concept, Rendered
from generator.schema.errors import InputError
from generator.schema.shown import shown
from harness.bank.measures import BankStats, Spread, bank_stats
from harness.bank.near_names import near_names
from harness.bank.reader import BANK_DEFAULT, bank_folder, read_bank_folder
from harness.bank.review_pages import favorable, render_sheet
from harness.terminal.options import json_option, tell

PLAIN_WIDTH = 120

folder_option = click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=bank_folder,
    help=f"The folder that holds bank.toml. [default: {BANK_DEFAULT}]",
)


@click.group()
def command() -> None:
    """Check, hash, show and measure the prompt bank."""


def echo_json(value: Any) -> None:
    """Print a value as JSON, keys in their own order."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


@command.command(short_help="Verify every rule of the bank, and list every fault.")
@folder_option
@json_option
def check(folder: Path, as_json: bool) -> None:
    """Verify every rule of the bank and list every fault with its file and concept; exit 2 when there are any."""
    faults: tuple[str, ...] = ()
    bank = None
    try:
        bank = read_bank_folder(folder)
    except InputError as error:
        faults = error.faults
    if as_json:
        echo_json({"ok": not faults, "faults": faults, "sha256": bank.sha256 if bank else None})
    elif bank:
        click.echo(f"{len(bank.concepts)} concepts, {len(bank.attributes)} attributes, {len(bank.rubrics)} rubrics: ok")
        click.echo(f"version {bank.version}, sha256 {bank.sha256}")
    if faults:
        for fault in () if as_json else faults:
            click.echo(fault, err=True)
        click.echo(f"error: {len(faults):,} fault{'s' * (len(faults) > 1)} in {folder}", err=True)
        raise click.exceptions.Exit(InputError.exit_code)


@command.command("hash")
@folder_option
@json_option
def hash_command(folder: Path, as_json: bool) -> None:
    """Print the version and the hash that a run.toml pins."""
    bank = read_bank_folder(folder)
    if as_json:
        echo_json(
            {"version": bank.version, "sha256": bank.sha256, "rubrics": {r.id: r.sha256 for r in bank.rubrics}},
        )
    else:
        click.echo(f"{bank.version} {bank.sha256}")


@command.command(short_help="Print a concept's prompts side by side, or list all concepts.")
@click.argument("concept", required=False)
@folder_option
@json_option
def show(concept: str | None, folder: Path, as_json: bool) -> None:
    """Print a CONCEPT's rendered set: a row a group, its framings side by side. Without CONCEPT, list them all."""
    bank = read_bank_folder(folder)
    if concept is None:
        _list_concepts(bank, as_json)
        return
    item = _concept_of(bank, concept)
    rendered = {
        group.id: {framing: bank.render(item, framing, group) for framing in bank.framings}
        for group in bank.attribute[item.attribute].groups
    }
    if as_json:
        prompts = {g: {f: dataclasses.asdict(r) for f, r in row.items()} for g, row in rendered.items()}
        echo_json({**item.model_dump(mode="json"), "favorable": favorable(bank, item), "prompts": prompts})
        return
    click.echo(f"{item.id}: {item.attribute}, {item.category}, {favorable(bank, item)}{', ceiling' * item.ceiling}")
    table = Table(show_lines=True, expand=True)
    for heading in ("group", *bank.framings):
        table.add_column(heading, ratio=None if heading == "group" else 1)
    for group, row in rendered.items():
        table.add_row(Text(group), *(_marked(row[framing]) for framing in bank.framings))
    console = Console()
    (console if console.is_terminal else Console(width=PLAIN_WIDTH)).print(table)


def _list_concepts(bank: Bank, as_json: bool) -> None:
    """Print every concept with its attribute and category, in the bank's order."""
    rows = [{"id": c.id, "attribute": c.attribute, "category": c.category} for c in bank.concepts]
    if as_json:
        echo_json(rows)
        return
    width = max(map(len, bank.concept), default=0)
    for row in rows:
        click.echo(f"{row['id']:{width}}  {row['attribute']:21}  {row['category']}")


def _concept_of(bank: Bank, name: str) -> Concept:
    if name in bank.concept:
        return bank.concept[name]
    if name in bank.attribute:
        raise InputError(f"{name!r} is an attribute, no concept; `aibiasbench bank sheet {name}` prints its concepts")
    close = near_names(name, list(bank.concept))
    hint = f"; did you mean {', '.join(close)}?" if close else "."
    raise InputError(f"concept {name!r} is not in the bank{hint} `aibiasbench bank show` lists all {len(bank.concept)}")


def _marked(rendered: Rendered) -> Text:
    before, words, after = (
        shown(part, keep="\n")
        for part in (
            rendered.text[: rendered.start],
            rendered.text[rendered.start : rendered.end],
            rendered.text[rendered.end :],
        )
    )
    return Text.assemble(before, (words, "bold"), after)


@command.command(short_help="Print quotas, lengths, overlaps and near-duplicates.")
@folder_option
@json_option
def stats(folder: Path, as_json: bool) -> None:
    """Print quotas, lengths, overlap of framings, ceiling share and near-duplicate scenarios."""
    measured = bank_stats(read_bank_folder(folder))
    if as_json:
        echo_json(dataclasses.asdict(measured))
    else:
        for line in stats_lines(measured):
            click.echo(line)


def stats_lines(measured: BankStats) -> list[str]:
    """Return the measures as lines for people."""
    lines = [f"bank {measured.version}, sha256 {measured.sha256}", "", *_attribute_lines(measured), ""]
    for framing, spread in measured.words.items():
        prompt = measured.prompt_words[framing]
        lines.append(f"words a template, {framing:<13}{_spread_line(spread)}; a prompt {prompt} on average")
    if measured.framing_overlap is not None:
        lines.append(f"overlap of the framings        {_spread_line(measured.framing_overlap)}")
    lines += ["", f"near-duplicate scenarios: {len(measured.near_duplicates):,}"]
    closest = () if measured.closest is None else (measured.closest,)
    return lines + [f"  {pair.overlap:.2f}  {pair.a}  {pair.b}" for pair in measured.near_duplicates or closest]


def _attribute_lines(measured: BankStats) -> list[str]:
    """Return the table of attributes, a column a category, as wide as the longest name in it."""
    named = {"attribute": 23, "groups": 7, "concepts": 9}
    categories = {c: max(11, len(c) + 1) for c in measured.categories}
    rest = {"ceiling": 9, "minus": 7, "prompts": 9}
    first = max(named["attribute"], *(len(a.attribute) + 2 for a in measured.attributes))
    widths = [first, *[*named.values()][1:], *categories.values(), *rest.values()]
    rows: list[list[object]] = [[*named, *categories, *rest]]
    for a in measured.attributes:
        ceiling = f"{a.ceiling / a.concepts:.0%}" if a.concepts else "-"
        counts = [a.by_category[c] for c in categories]
        rows.append([a.attribute, a.groups, a.concepts, *counts, ceiling, a.negative_polarity, a.prompts])
    blanks = [""] * (len(categories) + 2)
    rows.append(["all", "", measured.concepts, *blanks, measured.prompts])
    return [
        f"{row[0]:<{first}}" + "".join(f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
        for row in rows
    ]


def _spread_line(spread: Spread) -> str:
    return f"{spread.low:g} ({spread.lowest}) to {spread.high:g} ({spread.highest}), median {spread.middle:g}"


@command.command(short_help="Print an attribute's review sheet in Markdown.")
@click.argument("attribute")
@folder_option
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the sheet there, not to the screen."
)
@json_option
def sheet(attribute: str, folder: Path, out: Path | None, as_json: bool) -> None:
    """Print an attribute's review sheet in Markdown: every template, and its sentence with the slot for every group."""
    bank = read_bank_folder(folder)
    if attribute not in bank.attribute:
        raise InputError(f"attribute {attribute!r} is not in the bank; it has {', '.join(bank.attribute)}")
    text = render_sheet(bank, attribute)
    if out is not None:
        try:
            out.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(f"{out}: cannot be written: {error.strerror}") from None
    told = {"attribute": attribute, "out": None if out is None else str(out), "sheet": text}
    tell(told, *([text.removesuffix("\n")] if out is None else []), as_json=as_json)
