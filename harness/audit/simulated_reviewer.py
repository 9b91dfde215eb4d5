"""The simulated reviewer of a simulated run: reads the sheet as the simulated judges read, and errs seldom.

Its labels never enter a live run: stage `audit review` refuses one.

See contract: stages, "Simulated runs".
"""

from __future__ import annotations

from collections.abc import Iterable

from generator.schema.bank import REFUSAL, Bank, Rubric
from harness.audit.sheet import Item
from harness.judging.ballot import Ballot
from harness.simulated.endpoint import Dice, is_hard, slipped
from harness.simulated.planted import HARD_SLIPS, SimulatedJudge
from harness.simulated.text import reader_for

REVIEWER = SimulatedJudge("simulated-reviewer", "Careful.", slips=0.02, score_noise=2.0)


def reviewed(items: Iterable[Item], bank: Bank, seed: int) -> dict[str, str]:
    """Return the reviewer's label (or score, as text) by receipt id."""
    return {item.receipt_id: label_of(item, bank.rubric[item.rubric], seed) for item in items}


def label_of(item: Item, rubric: Rubric, seed: int) -> str:
    """Label one item of the sheet."""
    dice = Dice(f"{seed}|reviewer|{item.receipt_id}|{item.response}")
    reading = reader_for(rubric).read(item.response)
    if rubric.scale == "score":
        if reading.label == REFUSAL:
            return REFUSAL
        middle = 50 if reading.score is None else reading.score
        return str(min(100, max(0, round(middle + REVIEWER.score_noise * dice.normal(0)))))
    return slipped(
        Ballot(rubric), reading.label, dice, HARD_SLIPS if is_hard(item.response) else REVIEWER.slips, REVIEWER
    )
