"""Thinking that a model or its server leaves in front of the answer, and the answer without it.

| who | what stands in front |
|---|---|
| DeepSeek R1, QwQ, Qwen3, GLM, Nemotron, MiniMax, Phi | `<think>` ... `</think>`, the first often missing |
| Gemini's OpenAI-compatible layer, EXAONE | `<thought>` ... `</thought>` |
| Magistral | `[THINK]` ... `[/THINK]` |
| Kimi | `◁think▷` ... `◁/think▷` |
| ByteDance Seed | `<seed:think>` ... `</seed:think>` |
| Cohere Command A Reasoning | `<|START_THINKING|>` ... `<|END_THINKING|>` |
| gpt-oss | `<|channel|>analysis` ... `<|channel|>final<|message|>` |
| gpt-oss whose special tokens were dropped | `analysis` ... `assistantfinal` |
| Gemma 4 | `<|channel>thought` ... `<channel|>` |
| Granite 3, Apriel | a fixed sentence ... a fixed sentence before the answer |

Only what leads is thinking. A text that mentions such a tag further on keeps it (contract: stages, "Thinking").
"""

from __future__ import annotations

import re
from collections import deque
from typing import NamedTuple

_NAMES = "think|thinking|thought|thoughts|reasoning|scratchpad|antthinking|seed:think"
_SPACE = r"[\s\ufeff\u200b]*"
_FLAGS = re.IGNORECASE | re.DOTALL
# Each pair: how thinking opens at the very start, and what ends it. A group `name` must come back in the end.
_BLOCKS = tuple(
    (re.compile(_SPACE + opening, _FLAGS), ending)
    for opening, ending in (
        (rf"<(?P<name>{_NAMES})(?:\s[^<>]{{0,200}})?>", r"</{name}\s*>"),
        (r"\[(?P<name>THINK|THINKING)\]", r"\[/{name}\]"),
        (r"◁think▷", r"◁/think▷"),
        (
            r"<\|(?P<name>begin_of_thought|start_thinking|thinking|think)\|>",
            r"<\|(?:end_of_thought|end_thinking|/{name})\|>",
        ),
        (r"<details type=\"reasoning\"[^<>]{0,200}>", r"</details>"),
        (
            r"(?:<\|start\|>assistant)?<\|channel\|>\s*(?:analysis|commentary)",
            r"<\|channel\|>\s*final\s*(?:<\|constrain\|>\s*\w+\s*)?<\|message\|>",
        ),
        (r"<\|channel>\s*(?:thought|analysis|thinking)", r"<channel\|>"),
    )
)  # fmt: skip
# Openings that are words: thinking only where the words that end it are there, too.
_SENTENCES = tuple(
    re.compile(_SPACE + words, _FLAGS)
    for words in (
        r"analysis.{0,2000000}?assistantfinal",
        r"here(?:'s| is) my thought process:.{0,2000000}?here(?:'s| is) my response:",
        r"here are my reasoning steps:.{0,2000000}?\[BEGIN FINAL RESPONSE\]",
    )
)
# A harmony answer without thinking in front: the frame alone.
_FRAME = re.compile(_SPACE + r"(?:<\|start\|>assistant)?<\|channel\|>\s*final\s*<\|message\|>", _FLAGS)
_FRAME_END = re.compile(r"(?:<\|(?:return|end|END_RESPONSE)\|>|\[END FINAL RESPONSE\])\s*$", re.IGNORECASE)
_TAIL = 200  # characters in which the mark of an end is looked for: it stands at the very end
_FRAME_START = re.compile(_SPACE + r"<\|START_RESPONSE\|>", re.IGNORECASE)
# An end whose opening stood in the prompt, as the templates of many thinking models have it. Quoted, it is a mention.
_LOOSE_END = re.compile(
    rf"(?<![`'\"“‘(])(?:</(?:{_NAMES})\s*>|\[/THINK\]|◁/think▷|<\|(?:end_of_thought|END_THINKING)\|>)(?![`'\"”’)])",
    re.IGNORECASE,
)
_ANY_OPENING = re.compile(
    rf"<(?:{_NAMES})[\s>]|\[THINK\]|◁think▷|<\|(?:begin_of_thought|START_THINKING)\|>", re.IGNORECASE
)
_OPENINGS = (
    "<think>", "<thinking>", "<thought>", "<reasoning>", "[think]", "◁think▷", "<|channel|>analysis",
    "<|start_thinking|>", "<|channel>thought",
)  # fmt: skip
_MOST_BLOCKS = 50  # a text that goes on thinking after so many blocks holds no answer


class Thought(NamedTuple):
    """A text without the thinking in front of it.

    Attributes:
        answer: what follows the thinking.
        found: there was some.
        open: it never ended. There is no answer then, and `answer` is empty.
    """

    answer: str
    found: bool
    open: bool


def without_thinking(text: str) -> Thought:
    """Take every block of thinking off the start of a text.

    What follows stays as it is, but for white space right after the thinking. A text without any comes back unchanged.
    """
    answer, found = text, False
    for _ in range(_MOST_BLOCKS):
        begun, rest = _after_block(answer)
        if not begun:
            return Thought(answer.lstrip() if found else answer, found, False)
        if rest is None:
            break
        answer, found = rest, True
    return Thought("", True, True)


def begins_thinking(text: str) -> bool:
    """Tell whether a text is no more than the beginning of an opening tag: it was cut before the thinking began."""
    start = text.strip().lower()
    return len(start) > 1 and any(opening.startswith(start) for opening in _OPENINGS)


def _after_block(text: str) -> tuple[bool, str | None]:
    """Tell whether thinking leads a text, and return what follows it; None where it never ends."""
    for opening, ending in _BLOCKS:
        if begun := opening.match(text):
            names = begun.groupdict()
            # The end must be that of the tag that opened: `</thought>` does not close `<think>`.
            over = re.compile(ending.format(**{key: re.escape(value) for key, value in names.items()}), _FLAGS)
            end = over.search(text, begun.end())
            return True, _unframed(text[end.end() :]) if end else None
    for sentence in _SENTENCES:
        if whole := sentence.match(text):
            return True, _unframed(text[whole.end() :])
    if frame := _FRAME.match(text):
        return True, _unframed(text[frame.end() :])
    rest = _after_loose_end(text)
    return rest is not None, rest


def _after_loose_end(text: str) -> str | None:
    """Return the text after the last end of thinking that comes before any opening."""
    if not any(sign in text for sign in ("</", "[/", "◁/", "<|")):
        return None
    opening = _ANY_OPENING.search(text)
    ends = deque(_LOOSE_END.finditer(text, 0, opening.start() if opening else len(text)), maxlen=1)
    return _unframed(text[ends[0].end() :]) if ends else None


def _unframed(text: str) -> str:
    """Take off the marks that frame an answer after thinking, one at its beginning and one at its end."""
    start = _FRAME_START.match(text)
    answer = text[start.end() :] if start else text
    end = _FRAME_END.search(answer, max(0, len(answer) - _TAIL))
    return answer[: end.start()] if end else answer
