"""An answer from the cache, read by the rules of today: what was paid for is never asked again for a rule's sake."""

from __future__ import annotations

from dataclasses import replace

from harness.calls.call import Answer
from harness.calls.refusals import finish_word
from harness.calls.replies import LENGTH
from harness.calls.thinking import without_thinking


def reread(answer: Answer, *, raw: bool = False) -> Answer:
    """Return an answer with the outcome, and without the thinking, that it would have if it came now.

    `raw` leaves a judge's text as it is: its packaging is taken off where the vote is read. An answer that came under
    these rules comes back as it is.
    """
    if answer.outcome in ("filtered", "cut_before_answer"):
        return answer
    thought = without_thinking(answer.text)
    text = answer.text if raw else thought.answer
    if (word := finish_word(answer.finish_reason)) is not None:
        return replace(answer, text=text, outcome="filtered", filter_word=word, error=None)
    blank = not thought.answer.strip()
    if thought.open or (blank and (thought.found or answer.finish_reason == LENGTH)):
        return replace(answer, text=text if raw else "", outcome="cut_before_answer", error=None)
    return answer if text == answer.text else replace(answer, text=text)
