"""Anthropic's message batches: requests in one call, results as a stream of lines.

A chat completion is put into the vendor's form on the way out, and a message into the form of a chat completion on the
way back. So everything behind this module reads replies of one kind.

See contract: stages, "Batch endpoints".
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from harness.batches.dialect import BatchResult, BatchStanding
from harness.batches.http import BatchClient, field, segment

_LISTED = 100
_FINISH = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls"}
# The status that a single call would have had, by the type of its error.
_STATUS = {
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
    "not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "timeout_error": 504,
    "overloaded_error": 529,
}  # fmt: skip
# Parameters of a chat completion that this endpoint does not know.
_LEFT_OUT = frozenset({"messages", "seed", "response_format", "n", "logprobs", "max_completion_tokens"})


class AnthropicBatches:
    """`Dialect` of the vendor's `/messages/batches`."""

    largest = 100_000
    largest_bytes = 240_000_000  # the documented limit is 256 MB

    def __init__(self, client: BatchClient) -> None:
        self._client = client

    def request(self, custom_id: str, body: dict[str, Any]) -> bytes:
        """Return one request of the batch: a Messages call, in which the system text stands apart."""
        system = "\n\n".join(m["content"] for m in body["messages"] if m["role"] == "system")
        params = {k: v for k, v in body.items() if k not in _LEFT_OUT}
        params["messages"] = [m for m in body["messages"] if m["role"] != "system"]
        if system:
            params["system"] = system
        line = {"custom_id": custom_id, "params": params}
        return json.dumps(line, ensure_ascii=True, separators=(",", ":")).encode()

    async def submit(self, nonce: str, requests: Sequence[bytes]) -> str:  # noqa: ARG002 - it starts each custom_id
        """Hand all requests in with one call.

        The nonce needs no place of its own, because each custom_id begins with it.
        """
        content = b'{"requests":[' + b",".join(requests) + b"]}"
        headers = {"Content-Type": "application/json"}
        reply = await self._client.json(
            "POST", "/messages/batches", size=len(content), content=content, headers=headers
        )
        return field(reply, "id")

    async def standing(self, vendor_id: str) -> BatchStanding:
        """Return how a batch stands. `ended` is the vendor's one word for an end of any kind."""
        batch = await self._client.json("GET", f"/messages/batches/{segment(vendor_id)}")
        said = str(batch.get("processing_status"))[:40]
        if said == "ended":
            url = batch.get("results_url")
            files = (url,) if isinstance(url, str) and url else ()
            return BatchStanding("over", said, files, whole=True)
        return BatchStanding("running" if said in ("in_progress", "canceling") else "unknown", said)

    async def results(self, standing: BatchStanding) -> AsyncIterator[BatchResult]:
        """Yield what became of each request; lines of any other shape are passed over."""
        for file in standing.files:
            async for line in self._client.lines(file):
                custom_id, result = line.get("custom_id"), line.get("result")
                if isinstance(custom_id, str) and isinstance(result, Mapping):
                    yield _result(custom_id, result)

    async def find(self, nonce: str) -> str | None:
        """Look for a nonce in the results of the newest batches that have ended.

        Only results show a custom_id, so a batch that is still at work cannot be found.
        """
        listed = await self._client.json("GET", f"/messages/batches?limit={_LISTED}")
        data = listed.get("data")
        for batch in data if isinstance(data, list) else []:
            fields = batch if isinstance(batch, Mapping) else {}
            name, url = fields.get("id"), fields.get("results_url")
            if isinstance(name, str) and isinstance(url, str) and url:
                async for line in self._client.lines(url):
                    if str(line.get("custom_id")).startswith(f"{nonce}-"):
                        return name
                    break
        return None

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


def _result(custom_id: str, result: Mapping[str, Any]) -> BatchResult:
    kind, message, outer = result.get("type"), result.get("message"), result.get("error")
    if kind == "succeeded" and isinstance(message, Mapping):
        return BatchResult(custom_id, 200, json.dumps(chat_completion(message)).encode())
    if kind != "errored":
        return BatchResult(custom_id, None)
    inner = outer.get("error") if isinstance(outer, Mapping) else None
    error = inner if isinstance(inner, Mapping) else outer if isinstance(outer, Mapping) else {}
    status = _STATUS.get(str(error.get("type")), 500)
    return BatchResult(custom_id, status, json.dumps({"error": dict(error)}).encode())


def chat_completion(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message in the form of a chat completion.

    Tokens read from or written to the prompt cache are prompt tokens as well, which the vendor counts apart.

    Args:
        message: the vendor's message; fields of the wrong type count as absent.
    """
    usage = message.get("usage")
    fields = usage if isinstance(usage, Mapping) else {}
    stop = message.get("stop_reason")
    choice = {
        "index": 0,
        "finish_reason": _FINISH.get(stop, stop) if isinstance(stop, str) else None,
        "message": {"role": "assistant", "content": message.get("content")},
    }
    found: dict[str, Any] = {"model": message.get("model"), "choices": [choice]}
    parts = [fields.get(n) for n in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")]
    if isinstance(parts[0], int) and isinstance(fields.get("output_tokens"), int):
        prompt = sum(p for p in parts if isinstance(p, int) and not isinstance(p, bool))
        answer = fields["output_tokens"]
        found["usage"] = {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
    return found
