"""OpenAI's batches, and those of vendors that speak the same way: a file of requests in, files of results out.

See contract: stages, "Batch endpoints".
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from harness.batches.dialect import BatchError, BatchResult, BatchStanding
from harness.batches.http import BatchClient, field, segment

_PATH = "/v1/chat/completions"
# Upper case is Together's, the longer word Mistral's.
_RUNNING = {"validating", "in_progress", "finalizing", "cancelling", "queued", "running"}
_OVER = {"completed", "expired", "cancelled", "canceled", "success"}
_WHOLE = {"completed", "success"}
_FAILED = {"failed"}
_NONCE = "aibiasbench_batch"


class OpenAIBatches:
    """`Dialect` of the vendor's `/files` and `/batches`."""

    largest = 50_000
    largest_bytes = 190_000_000  # the documented limit is 200 MB

    def __init__(self, client: BatchClient) -> None:
        self._client = client

    def request(self, custom_id: str, body: dict[str, Any]) -> bytes:
        """Return one line of the input file.

        It is ASCII with other characters escaped, so no reader can take one of them for the end of a line.
        """
        line = {"custom_id": custom_id, "method": "POST", "url": _PATH, "body": body}
        return json.dumps(line, ensure_ascii=True, separators=(",", ":")).encode()

    async def submit(self, nonce: str, requests: Sequence[bytes]) -> str:
        """Upload the requests, then make a batch of them; the nonce goes into its metadata, where `find` reads it.

        Raises:
            BatchError: the upload failed, which costs nothing, or no id came back for the batch, which then may exist.
        """
        file = (f"{nonce}.jsonl", b"\n".join(requests) + b"\n", "application/jsonl")
        try:
            uploaded = await self._client.json(
                "POST", "/files", size=len(file[1]), data={"purpose": "batch"}, files={"file": file}
            )
        except BatchError as error:
            raise BatchError(error.reason, final=error.final) from None  # a file alone costs nothing
        order = {
            "input_file_id": field(uploaded, "id"),
            "endpoint": _PATH,
            "completion_window": "24h",
            "metadata": {_NONCE: nonce},
        }
        return field(await self._client.json("POST", "/batches", json=order), "id")

    async def standing(self, vendor_id: str) -> BatchStanding:
        """Return how a batch stands. An end without files is an end all the same."""
        batch = await self._client.json("GET", f"/batches/{segment(vendor_id)}")
        said = str(batch.get("status"))[:40]
        word = said.lower()
        files = [batch.get("output_file_id"), batch.get("error_file_id")]
        found = tuple(f"/files/{segment(f)}/content" for f in files if isinstance(f, str) and f)
        if word in _OVER:
            return BatchStanding("over", said, found, whole=word in _WHOLE)
        if word in _FAILED:
            return BatchStanding("failed", f"{said}{_reasons(batch.get('errors'))}", found)
        return BatchStanding("running" if word in _RUNNING else "unknown", said)

    async def results(self, standing: BatchStanding) -> AsyncIterator[BatchResult]:
        """Yield the lines of output and error file; a line without a status is a request that was not tried."""
        for file in standing.files:
            async for line in self._client.lines(file):
                custom_id, response = line.get("custom_id"), line.get("response")
                if not isinstance(custom_id, str):
                    continue
                status = response.get("status_code") if isinstance(response, Mapping) else None
                if isinstance(status, int) and not isinstance(status, bool) and isinstance(response, Mapping):
                    yield BatchResult(custom_id, status, json.dumps(response.get("body")).encode())
                else:
                    yield BatchResult(custom_id, None)

    async def find(self, nonce: str) -> str | None:
        """Look through the newest batches for one whose metadata holds the nonce."""
        listed = await self._client.json("GET", "/batches?limit=100")
        data = listed.get("data")
        for batch in data if isinstance(data, list) else []:
            metadata = batch.get("metadata") if isinstance(batch, Mapping) else None
            if isinstance(metadata, Mapping) and metadata.get(_NONCE) == nonce and isinstance(batch.get("id"), str):
                return str(batch["id"])
        return None

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


def _reasons(errors: Any) -> str:
    listed = errors.get("data") if isinstance(errors, Mapping) else None
    found = [e["message"] for e in listed or [] if isinstance(e, Mapping) and isinstance(e.get("message"), str)]
    words = " ".join("".join(c if c.isprintable() else " " for c in "; ".join(found[:3])).split())
    return f": {words[:200]}" if words else ""
