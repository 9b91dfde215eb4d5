"""An answer from the cache, read by today's rules: nothing that was paid for is asked again because a rule changed.

See contract: stages, "Replies".
"""

from __future__ import annotations

from dataclasses import replace

from harness.calls.call import Answer
from harness.calls.refusals import finish_word
from harness.calls.replies import LENGTH
from harness.calls.thinking import without_thinking


def reread(answer: Answer, *, raw: bool = False) -> Answer:
    """Return a cached answer with the outcome, and without the thinking, that it would have if it came now.

    Args:
        answer: as the cache holds it.
        raw: leave the text as it is. A judge's packaging is taken off where its vote is read.

    Returns:
        The same object where today's rules change nothing.
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
