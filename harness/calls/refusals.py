"""How vendors say that their own filter or policy stopped a prompt or an answer: one table, and how it is applied.

The same table stands in the contract, and a test compares the two.

See contract: stages, "Refusals by a vendor".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from generator.schema.verdict import filter_word
from harness.calls.error_text import codes, messages, objects

Place = Literal["finish", "code", "message", "flag"]


@dataclass(frozen=True)
class FilterWord:
    """One word of one vendor and where it stands.

    `finish`: a finish or stop reason. `code`: a code, type or reason of an error. `message`: words of an error whose
    code says nothing. `flag`: a field that is there, and set, only where the filter acted.
    """

    word: str
    places: tuple[Place, ...]
    vendor: str

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The word in lower-case pieces, the way finish reasons and codes are compared."""
        return _tokens(self.word)


_REASON: tuple[Place, ...] = ("finish", "code")
FILTER_WORDS = (
    FilterWord("content_filter", _REASON, "OpenAI, Azure, Gemini, Mistral, DeepSeek, Moonshot, routers"),
    FilterWord("content_filtered", _REASON, "Amazon Bedrock"),
    FilterWord("guardrail_intervened", _REASON, "Amazon Bedrock"),
    FilterWord("guardrail", _REASON, "Mistral, gateways"),
    FilterWord("refusal", _REASON, "Anthropic, OpenRouter"),
    FilterWord("SAFETY", ("finish",), "Gemini"),
    FilterWord("RECITATION", ("finish",), "Gemini"),
    FilterWord("BLOCKLIST", ("finish",), "Gemini"),
    FilterWord("PROHIBITED_CONTENT", _REASON, "Gemini"),
    FilterWord("SPII", ("finish",), "Gemini"),
    FilterWord("MODEL_ARMOR", _REASON, "Google Vertex AI"),
    FilterWord("sensitive", ("finish",), "Zhipu, Tencent Hunyuan"),
    FilterWord("ERROR_TOXIC", _REASON, "Cohere"),
    FilterWord("moderation", _REASON, "OpenAI, routers"),
    FilterWord("invalid_prompt", ("code",), "OpenAI"),
    FilterWord("content_policy", _REASON, "OpenAI, OpenRouter"),
    FilterWord("policy_violation", _REASON, "OpenAI, gateways"),
    FilterWord("safety_violation", _REASON, "OpenAI"),
    FilterWord("ResponsibleAIPolicyViolation", ("code",), "Azure"),
    FilterWord("data_inspection_failed", _REASON, "Alibaba Cloud"),
    FilterWord("SensitiveContentDetected", ("code",), "ByteDance Volcengine"),
    FilterWord("RiskDetection", ("code",), "ByteDance Volcengine"),
    FilterWord("SAFETY_CHECK_TYPE", ("code", "message"), "xAI"),
    FilterWord("1301", ("code",), "Zhipu"),
    FilterWord("1026", ("code",), "MiniMax"),
    FilterWord("1027", ("code",), "MiniMax"),
    FilterWord("Content Exists Risk", ("message",), "DeepSeek"),
    FilterWord("blocked by content filtering policy", ("message",), "Anthropic"),
    FilterWord("Content violates usage guidelines", ("message",), "xAI"),
    FilterWord("may contain inappropriate content", ("message",), "Alibaba Cloud"),
    FilterWord("considered high risk", ("message",), "Moonshot"),
    FilterWord("violating our usage policy", ("message",), "OpenAI"),
    FilterWord("rejected as a result of our safety system", ("message",), "OpenAI"),
    FilterWord("content management policy", ("message",), "Azure"),
    FilterWord("ContentPolicyViolationError", ("message",), "LiteLLM"),
    FilterWord("requires moderation", ("message",), "OpenRouter"),
    FilterWord("metadata.reasons", ("flag",), "OpenRouter"),
    FilterWord("flagged_input", ("flag",), "OpenRouter"),
    FilterWord("blockReason", ("flag",), "Gemini"),
    FilterWord("block_reason", ("flag",), "Gemini"),
    FilterWord("input_sensitive", ("flag",), "MiniMax"),
    FilterWord("output_sensitive", ("flag",), "MiniMax"),
)
# Codes that hold a word of the table and yet say that the filter itself failed, or was not asked.
_NO_REFUSAL = frozenset({("content", "filter", "error"), ("content", "filter", "unavailable")})
# A status under which a policy code is the vendor's refusal. Others (401, 404, 429, 5xx) are about key, place and load.
POLICY_STATUSES = frozenset({400, 403, 422, 451})

_LONGEST = 200  # characters of a reason or code that are compared; no vendor's word is half as long
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def finish_word(*reasons: Any) -> str | None:
    """Return the vendor's word among some finish reasons, or None where no filter is named.

    Args:
        reasons: finish or stop reasons of a reply, of any type, most telling first.
    """
    for reason in reasons:
        if isinstance(reason, str) and _holds("finish", reason):
            return filter_word(reason)
    return None


def error_word(body: Any) -> str | None:
    """Return the vendor's word in an error that says its filter acted, or None.

    A code goes before a flag, and a flag before the words of a message. Of codes the first that is found wins.

    Args:
        body: a parsed error body or part of one, of any shape.
    """
    for code in codes(body):
        if _holds("code", code):
            return filter_word(code)
    return flag_word(body) or _message_word(messages(body))


def flag_word(body: Any) -> str | None:
    """Return what a filter's own field says where one is set: its reasons, or else its name; None without one."""
    for entry in objects(body):
        for row in FILTER_WORDS:
            if "flag" in row.places and (value := _at(entry, row.word)):
                return filter_word(_reasons(row.word, value) or row.word)
    return None


def _at(entry: Mapping[str, Any], path: str) -> Any:
    """Return what stands at a dotted path, None where nothing does."""
    node: Any = entry
    for name in path.split("."):
        node = node.get(name) if isinstance(node, Mapping) else None
    return node


def _reasons(name: str, value: Any) -> str:
    """Return the reasons in a flag's value: a list's words, or the text of a flag that holds its own reason."""
    if isinstance(value, list):
        return ", ".join(item for item in value[:10] if isinstance(item, str))[:_LONGEST]
    return value[:_LONGEST] if isinstance(value, str) and name.startswith("block") else ""


def _message_word(texts: Iterable[str]) -> str | None:
    for text in texts:
        words = " ".join(text[:20_000].lower().split())
        for row in FILTER_WORDS:
            if "message" in row.places and row.word.lower() in words:
                return row.word
    return None


def _holds(place: Place, text: str) -> bool:
    """Tell whether a reason or code holds a word of the table, in any case and with any beginning or ending."""
    parts = _tokens(text)
    # Here the filter itself failed, which says nothing about the prompt.
    if parts in _NO_REFUSAL:
        return False
    run_together = "".join(parts)
    for row in FILTER_WORDS:
        if place not in row.places:
            continue
        # A short word must stand alone; one of several parts is as telling when it is written as one.
        if (row.tokens[0] in parts) if len(row.tokens) == 1 else ("".join(row.tokens) in run_together):
            return True
    return False


def _tokens(text: str) -> tuple[str, ...]:
    """Split a name at signs, digits and capitals: `FINISH_REASON_SAFETY`, `contentFilter`, `content_filter: SAFETY`."""
    return tuple(part.lower() for part in _PARTS.findall(text[:_LONGEST]))
