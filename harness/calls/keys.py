"""Cache keys: whatever decides an answer, hashed.

A key is the SHA-256 of the canonical JSON of its parts. All parts but the last few are the same for a whole model or
judge, so those are put into canonical form once. What is left are hashes, integers and strings.

See contract: stages, "Cache keys".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from generator.schema.canonical import canonical_json, sha256_hex
from harness.calls.call import Message


def _json(value: Any) -> str:
    return canonical_json(value).decode()


def _string(text: str) -> str:
    """Return a string's canonical JSON: here `json` and RFC 8785 agree, and `json` is eight times as fast."""
    return json.dumps(text, ensure_ascii=False)


class ResponseKeys:
    """Keys of one subject's answers: the hash of `{model, params, prompt_sha256, repeat}`.

    Args:
        model: slug of the model.
        params: its full effective parameters (`RunPlan.effective_params`).
        fresh: the token of answers that are asked anew, which becomes one more member; None for others.
    """

    def __init__(self, model: str, params: Mapping[str, Any], fresh: str | None = None) -> None:
        token = "" if fresh is None else f'"fresh":{_string(fresh)},'
        self._start = f'{{{token}"model":{_string(model)},"params":{_json(dict(params))},"prompt_sha256":"'

    def key(self, prompt_sha256: str, repeat: int) -> str:
        """Return the key of one answer, 64 hex digits.

        Args:
            prompt_sha256: hash of the prompt's UTF-8.
            repeat: repeat of the row, so that each repeat is asked on its own.
        """
        return sha256_hex(f'{self._start}{prompt_sha256}","repeat":{repeat}}}')


class JudgeKeys:
    """Keys of a judge's answers under one rubric: the hash of `{judge, params, repeat, request_sha256, rubric_sha256}`.

    The request is `{messages: [[role, content], ...], schema}`, which is everything that the judge is shown. Rows of
    the same repeat whose masked texts are equal share a key, and with it one call.
    """

    def __init__(
        self, judge: str, params: Mapping[str, Any], rubric_sha256: str, schema: Mapping[str, Any] | None
    ) -> None:
        self._start = f'{{"judge":{_string(judge)},"params":{_json(dict(params))},"repeat":'
        self._end = f'","rubric_sha256":"{rubric_sha256}"}}'
        self._schema = _json(dict(schema) if schema is not None else None)

    def key(self, messages: Sequence[Message], repeat: int) -> str:
        """Return the key of one judgment, 64 hex digits.

        Args:
            messages: what the judge is shown.
            repeat: repeat of the row.
        """
        shown = ",".join(f"[{_string(m.role)},{_string(m.content)}]" for m in messages)
        request = sha256_hex(f'{{"messages":[{shown}],"schema":{self._schema}}}')
        return sha256_hex(f'{self._start}{repeat},"request_sha256":"{request}{self._end}')
