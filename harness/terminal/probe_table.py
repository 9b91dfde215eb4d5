"""The table that `eval --probe` prints, and the lines of run.toml below it (contract: stages, "Probe")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.money.budget import cap_name, dollars
from harness.stages.probe import Probed

_HEAD = ("role", "model", "rubric", "result", "JSON by", "thinking", "tokens in/out", "cost", "seconds")
_UNKNOWN = "?"


def probe_lines(found: Sequence[Probed]) -> list[str]:
    """Return the table, what went wrong in words, and the changes of run.toml by the table that they belong to."""
    rows = [_HEAD, *(_row(each) for each in found)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    failed = [each for each in found if not each.works and each.capped is None]
    lines += [f"failed: {_name(each)}: {each.words}" for each in failed]
    mends = mends_by_table(found)
    if mends:
        lines += ["", "Make these changes in run.toml, then probe again:"]
        for table, changes in mends.items():
            lines += ["", table, *changes]
    return lines


def mends_by_table(found: Sequence[Probed]) -> dict[str, list[str]]:
    """Return the lines to write, by table, each once; of two lines with one key the later one, which was tried last."""
    tables: dict[str, dict[str, str]] = {}
    for each in found:
        if each.works:
            for mend in each.mends:
                tables.setdefault(mend.table, {})[mend.line.partition(" = ")[0]] = mend.line
    return {table: list(lines.values()) for table, lines in tables.items()}


def probe_json(found: Sequence[Probed]) -> list[dict[str, Any]]:
    """Return what was found for scripts."""
    return [
        {
            "role": each.target.role,
            "model": each.target.model,
            "rubric": each.target.rubric,
            "works": each.works,
            "failure": each.words,
            "outcome": each.answer.outcome if each.answer else None,
            "json_form": each.form,
            "reasoning_tokens": each.answer.reasoning_tokens if each.answer else None,
            "prompt_tokens": each.answer.prompt_tokens if each.answer else None,
            "completion_tokens": each.answer.completion_tokens if each.answer else None,
            "calls": each.calls,
            "cost_usd": dollars(each.cost),
            "seconds": round(each.seconds, 3),
            "run_toml": [{"table": mend.table, "line": mend.line} for mend in each.mends],
        }
        for each in found
    ]


def cap_faults(found: Sequence[Probed], needed: Mapping[str, int]) -> list[str]:
    """Return a line for each cap that refused calls, with the least that it must be for the rest of the probe.

    `needed`: that least by account, in picodollars; it is rounded up to a millionth of a dollar.
    """
    lines = []
    for account, amount in needed.items():
        number = sum(each.capped == account for each in found)
        least = -(-amount // 10**6) / 10**6
        lines.append(
            f"{number:,} of {len(found):,} not asked, because a call could pass {cap_name(account)}: for the rest of"
            f" the probe it must be at least {least:.6f} dollars (the worst case of every call)"
        )
    return lines


def _name(each: Probed) -> str:
    return f"{each.target.model}, {each.target.rubric}" if each.target.rubric else each.target.model


def _row(each: Probed) -> tuple[str, ...]:
    answer = each.answer
    result = (
        "not asked"
        if each.capped is not None
        else "failed"
        if not each.works
        else "works"
        if not each.mends
        else "works after changes below"
    )
    if each.works and answer is not None and answer.outcome == "filtered":
        result = "refused by a filter"
    tokens = f"{_number(answer.prompt_tokens)}/{_number(answer.completion_tokens)}" if answer else "-"
    form = (each.form if each.works else None) or "-"
    thinking = "-" if answer is None else _number(answer.reasoning_tokens)
    return (
        each.target.role, each.target.model, each.target.rubric or "-", result, form, thinking, tokens,
        f"${dollars(each.cost):.6f}", f"{each.seconds:.1f}",
    )  # fmt: skip


def _number(value: int | None) -> str:
    return _UNKNOWN if value is None else f"{value:,}"
