"""From imported rows to receipts: votes in panel order, the final label by the one rule, null for what is not known.

See contract: receipts, "Imported runs"; contract: verdicts, "Final label".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from generator.schema.bank import REFUSAL, Bank, Rendered, Rubric
from generator.schema.canonical import receipt_id, sha256_hex
from generator.schema.columns import VOTE_FIELDS
from generator.schema.panel import Judges, declared_panel
from generator.schema.verdict import Verdict, Vote, filter_word, final_verdict, primaries_agree
from harness.importing.rows import ImportedRow, Mark
from harness.judging.ballot import EVIDENCE_CHARACTERS, EVIDENCE_WORDS
from harness.judging.verdict_text import cut_evidence

_UNMASKED: dict[str, Any] = {"mask_spans": None, "mask_leak": None}


@dataclass(frozen=True)
class RunNames:
    """What every receipt of a run repeats."""

    run_id: str
    bank: Bank
    harness_sha: str
    judges: Judges
    matched_by: str


@dataclass
class LeftOut:
    """Labels of the source that no receipt holds, by reason: `tiebreak` where nobody asked for one."""

    counts: Counter[str] = field(default_factory=Counter)


def receipts_of(rows: Sequence[ImportedRow], names: RunNames, left_out: LeftOut) -> Iterator[dict[str, Any]]:
    """Yield the receipts of rows, in their order."""
    rendered: dict[tuple[str, str, str], Rendered] = {}
    groups = {(a.id, g.id): g for a in names.bank.attributes for g in a.groups}
    for row in rows:
        place = (row.concept, row.framing, row.group)
        if place not in rendered:
            concept = names.bank.concept[row.concept]
            rendered[place] = names.bank.render(concept, row.framing, groups[row.attribute, row.group])
        yield _receipt(row, names, rendered[place], left_out)


def _receipt(row: ImportedRow, names: RunNames, prompt: Rendered, left_out: LeftOut) -> dict[str, Any]:
    bank, rubric = names.bank, names.bank.rubric[row.rubric]
    votes, verdict = _judged(row, rubric, names.judges, left_out)
    failed, filtered = row.failure is not None, row.failure is None and row.filter_word is not None
    response = None if failed else (row.response or "") if filtered else row.response
    return {
        "receipt_id": receipt_id(
            run_id=names.run_id, bank_sha256=bank.sha256, model=row.model, concept=row.concept,
            framing=row.framing, group=row.group, repeat=row.repeat,
        ),
        "run_id": names.run_id,
        "bank_version": bank.version,
        "bank_sha256": bank.sha256,
        "harness_sha": names.harness_sha,
        "model": row.model,
        "attribute": row.attribute,
        "concept": row.concept,
        "category": row.category,
        "rubric": rubric.id,
        "rubric_sha256": rubric.sha256,
        "framing": row.framing,
        "group": row.group,
        **_of_the_prompt(row, names, prompt),
        "repeat": row.repeat,
        "polarity": row.polarity,
        "two_sided": False,
        "response": response,
        "finish_reason": None if failed else row.finish_reason,
        "response_key": None,
        "served_by": None if failed else row.served_by,
        "outcome": "failed" if failed else "filtered" if filtered else "answered",
        "failure": row.failure,
        "filter_word": (filter_word(row.filter_word or "") or "filtered") if filtered else None,
        **_UNMASKED,
        "votes": [{item.name: getattr(vote, item.name) for item in VOTE_FIELDS} for vote in votes],
        "final_label": verdict.label,
        "value": verdict.value,
        "status": verdict.status,
        "prompt_tokens": row.prompt_tokens,
        "completion_tokens": row.completion_tokens,
        "reasoning_tokens": row.reasoning_tokens,
        "cost_usd": row.cost_usd or 0.0,
    }  # fmt: skip


def _of_the_prompt(row: ImportedRow, names: RunNames, prompt: Rendered) -> dict[str, Any]:
    """Return the columns of the prompt: all where the bank holds the prompt, else the text alone, or nothing."""
    if row.prompt is None:
        return dict.fromkeys(("group_np", "prompt", "prompt_sha256", "swap_start", "swap_end"))
    word = names.matched_by == "word"
    return {
        "group_np": prompt.np if word else None,
        "prompt": row.prompt,
        "prompt_sha256": sha256_hex(row.prompt),
        "swap_start": prompt.start if word else None,
        "swap_end": prompt.end if word else None,
    }


def _judged(row: ImportedRow, rubric: Rubric, judges: Judges, left_out: LeftOut) -> tuple[list[Vote], Verdict]:
    """Return the votes that the contract has on a row, and what they come to."""
    if row.failure is not None:
        return [], Verdict(None, None, "error")
    if row.filter_word is not None:
        return [], Verdict(REFUSAL, None, "refused")
    panel = declared_panel(judges)
    votes = [_vote(mark, *seat) for mark, *seat in zip(row.marks, panel.all, panel.roles, strict=True)]
    primaries = len(judges.primary)
    if panel.tiebreak is not None:
        split = not any(vote.error for vote in votes[:2]) and not primaries_agree(votes[:2], rubric)
        if not split:
            # It votes where the primaries differ and nowhere else, or the rule would count it by chance.
            left_out.counts["tiebreak"] += row.marks[2] is not None
            votes = votes[:2]
    return votes, final_verdict(votes, rubric, primaries=primaries)


def _vote(mark: Mark | None, judge: str, role: str) -> Vote:
    if mark is None or mark.error is not None:
        return Vote(judge, role, None, None, None, None, None, mark.error if mark else "empty", None)
    evidence, cut = None, None
    if mark.evidence is not None:
        evidence, cut = cut_evidence(mark.evidence, EVIDENCE_WORDS, EVIDENCE_CHARACTERS)
    return Vote(judge, role, mark.label, mark.score, mark.label == REFUSAL, None, evidence, None, None, None, cut)
