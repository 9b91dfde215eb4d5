"""Opens the batch endpoint of a plan: its client with the key, the vendor's dialect, the journal of the run.

See contract: stages, "Batch endpoints".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from generator.schema.errors import InputError
from harness.batches.anthropic import AnthropicBatches
from harness.batches.dialect import BatchResult, Dialect
from harness.batches.http import BatchClient
from harness.batches.journal import JOURNAL, Journal
from harness.batches.lane import VendorLane
from harness.batches.openai import OpenAIBatches
from harness.calls.call import Answer, CallError, Request
from harness.calls.client import addressee, keys_of, request_headers, wire
from harness.calls.connection import check_connection, open_client
from harness.calls.replies import answer_of
from harness.plan.records import Callee, EndpointPlan

ANTHROPIC_VERSION = "2023-06-01"
_LARGEST_REPLY = 4_000_000  # of a batch's own record, or a page of the list


def batch_lane(
    name: str, limits: EndpointPlan, callees: Iterable[Callee], environment: Mapping[str, str],
    *, clock: Callable[[], float],
) -> VendorLane:  # fmt: skip
    """Return the lane of an endpoint with `mode = "batch"`.

    Args:
        name: the endpoint's name in run.toml.
        limits: its settings.
        callees: the models and judges that it serves.
        environment: environment variables, where the keys are.
        clock: seconds since 1970.

    Raises:
        InputError: its key is missing, or its proxy or certificates cannot be used.
    """
    known, secrets = {callee.model: callee for callee in callees}, keys_of([limits], environment)
    check_connection(name, limits)
    client = open_client(limits, _headers(name, limits, environment))
    # A line holds a reply as a single call would bring it, and its envelope.
    http = BatchClient(
        limits.base_url, client, largest_reply=_LARGEST_REPLY, largest_line=limits.max_bytes + 10_000,
        patience=limits.connect_timeout + limits.read_timeout, secrets=secrets,
    )  # fmt: skip

    def body(request: Request) -> dict[str, Any]:
        return wire(request, known[request.model], limits)

    def read(result: BatchResult, request: Request) -> Answer:
        if len(result.body) > limits.max_bytes:
            reason = f"a reply of more than {limits.max_bytes:,} bytes"
            raise CallError("provider_error", reason, retryable=False, billed="unknown")
        asked = addressee(name, request, known[request.model], limits, secrets)
        assert result.status is not None
        return answer_of(result.status, result.body, asked)

    dialect = _dialect(http, limits)
    return VendorLane(name, dialect, limits.batch, attempts=limits.max_attempts, body=body, read=read, clock=clock)


@contextmanager
def open_journal(folder: Path, stage: str, endpoints: Iterable[object]) -> Iterator[frozenset[int]]:
    """Hold a run's journal of batches open for those endpoints that take batches.

    Args:
        folder: the run folder.
        stage: `eval` or `judge`.
        endpoints: the stage's endpoints, of any kind.

    Yields:
        The reservations whose calls a vendor may still be working on.

    Raises:
        InputError: batches wait at an endpoint that takes none any more. Its calls would be paid for twice.
    """
    lanes = {e.name: e for e in endpoints if isinstance(e, VendorLane)}
    if not lanes and not (folder / JOURNAL).exists():
        yield frozenset()
        return
    with Journal(folder, stage=stage) as journal:
        if left := sorted(journal.endpoints() - lanes.keys()):
            raise InputError(
                f'{folder / JOURNAL}: batches of endpoint {left[0]} are not collected yet; give it mode = "batch" in'
                " run.toml again and run this stage once to collect them"
            )
        for lane in lanes.values():
            lane.journal = journal
        yield journal.entries()


def _dialect(http: BatchClient, limits: EndpointPlan) -> Dialect:
    return AnthropicBatches(http) if limits.batch.api == "anthropic" else OpenAIBatches(http)


def _headers(name: str, limits: EndpointPlan, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of every call. Anthropic takes the key under another name, and asks for a version."""
    headers = request_headers(name, limits, environment)
    if limits.batch.api == "anthropic":
        bearer = headers.pop("Authorization", "")
        headers = {"anthropic-version": ANTHROPIC_VERSION, "x-api-key": bearer.removeprefix("Bearer "), **headers}
    return {k: v for k, v in headers.items() if v}
