"""An OpenAI-compatible endpoint over HTTP: one attempt a call (contract: stages, "Endpoints").

What a reply means stands in `harness.calls.replies`; waiting and asking again in `harness.engine.network`.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpx2

from generator.schema.errors import InputError
from harness.calls.call import Answer, CallError, Request
from harness.calls.hints import asked_wait
from harness.calls.replies import Addressee, filtered_status, read_reply, status_error
from harness.plan.records import Callee, EndpointPlan

# A request that has to be asked again for a usable answer is sent with another seed, or a seeded model says the same.
SEED_STEP = 1_000_003
_SEEDS = 2**31
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class HttpEndpoint:
    """One endpoint of a plan with its key; implements `harness.calls.call.Endpoint`."""

    def __init__(
        self, name: str, limits: EndpointPlan, callees: Iterable[Callee], environment: Mapping[str, str],
        *, clock: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self.concurrency = limits.concurrency
        self._name, self._limits, self._clock = name, limits, clock
        self._callees = {callee.model: callee for callee in callees}
        self._headers = request_headers(name, limits, environment)
        self._url = limits.base_url.rstrip("/") + "/chat/completions"
        self._idle: list[httpx2.AsyncClient] = []

    async def complete(self, request: Request) -> Answer:
        """Make one attempt; raises CallError or EndpointError."""
        callee = self._callees[request.model]
        asked = Addressee(self._name, request.api_model, callee.served_as, self._limits.key_env)
        try:
            async with asyncio.timeout(self._limits.connect_timeout + self._limits.read_timeout):
                response, body = await self._post(wire(request, callee, self._limits))
        except httpx2.ConnectError as error:
            raise CallError("transport", f"no connection: {_words(error)}", retryable=True, unreachable=True) from None
        except httpx2.ConnectTimeout:
            raise CallError("transport", "no connection in time", retryable=True, unreachable=True) from None
        except (httpx2.RequestError, TimeoutError) as error:
            reason = f"the connection broke: {_words(error)}"
            raise CallError("transport", reason, retryable=True, billed="unknown") from None
        wait = asked_wait(response.status_code, response.headers, body, self._clock())
        return answer_of(response.status_code, body, asked, wait)

    async def _post(self, payload: dict[str, Any]) -> tuple[httpx2.Response, bytes]:
        """Send and read the reply, up to the endpoint's size limit."""
        async with self._one() as client, client.stream("POST", self._url, json=payload) as response:
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > self._limits.max_bytes:
                    reason = f"a reply of more than {self._limits.max_bytes:,} bytes"
                    raise CallError("provider_error", reason, retryable=False, billed="unknown")
            return response, bytes(body)

    @asynccontextmanager
    async def _one(self) -> AsyncIterator[httpx2.AsyncClient]:
        """Lend out an idle client, the one used last, or a new one.

        Each client keeps one connection. A pool of many looks at every connection for every request, which took half of
        the processor time of 64 calls at once.
        """
        client = self._idle.pop() if self._idle else open_client(self._limits, self._headers)
        try:
            yield client
        finally:
            self._idle.append(client)

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        while self._idle:
            await self._idle.pop().aclose()


def answer_of(status: int, body: bytes, asked: Addressee, wait: float | None = None) -> Answer:
    """Return the answer in a reply of any status; raises CallError or EndpointError where there is none.

    `wait` is the seconds that the endpoint asked for. A batch endpoint's results are read by this function, too.
    """
    if status == httpx2.codes.OK:
        return read_reply(body, asked)
    if filtered_status(status, body):
        return Answer("", "filtered", "content_filter", f"{asked.api_model}@{asked.endpoint}", 0, 0)
    raise status_error(status, body, asked, wait)


def open_client(limits: EndpointPlan, headers: Mapping[str, str]) -> httpx2.AsyncClient:
    """Return a client of one connection with an endpoint's bounds; proxies are for other machines, never this one."""
    return httpx2.AsyncClient(
        headers=headers,
        timeout=httpx2.Timeout(limits.read_timeout, connect=limits.connect_timeout, pool=None),
        limits=httpx2.Limits(max_connections=1),
        trust_env=urlsplit(limits.base_url).hostname not in _LOOPBACK,
        verify=_certificates(),
    )


@cache
def _certificates() -> ssl.SSLContext:
    """Read the certificates that are trusted, once: it takes longer than many a call."""
    return httpx2.create_ssl_context()


def request_headers(name: str, limits: EndpointPlan, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of every call to an endpoint; raises InputError when its key is missing or cannot be sent."""
    return {**limits.headers, **_authorization(name, limits, environment)}


def _authorization(name: str, limits: EndpointPlan, environment: Mapping[str, str]) -> dict[str, str]:
    if limits.key_env is None:
        return {}
    key = environment.get(limits.key_env, "").strip()
    if not key:
        raise InputError(f"endpoint {name}: the environment variable {limits.key_env} is not set; export the key there")
    if not key.isascii() or not key.isprintable():
        raise InputError(f"endpoint {name}: the key in {limits.key_env} holds a character that no header can carry")
    return {"Authorization": f"Bearer {key}"}


def wire(request: Request, callee: Callee, limits: EndpointPlan) -> dict[str, Any]:
    """Return the JSON body of a request: only what this endpoint knows is in it.

    A `seed` parameter is shifted by the repeat, so that repeats differ, and by the number of earlier tries.
    """
    params = dict(request.params)
    if limits.max_tokens_name != "max_tokens":
        params[limits.max_tokens_name] = params.pop("max_tokens")
    if "seed" in params:
        params["seed"] = (params["seed"] + request.repeat + SEED_STEP * request.try_) % _SEEDS
    body = {
        "model": request.api_model,
        "messages": [{"role": m.role, "content": m.content} for m in request.messages],
        **params,
    }
    if request.schema is not None and limits.response_format != "none":
        body["response_format"] = _response_format(request.schema, limits)
    if callee.provider is not None:
        body["provider"] = callee.provider
    return body


def _response_format(schema: Mapping[str, Any], limits: EndpointPlan) -> dict[str, Any]:
    if limits.response_format == "json_object":
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": "label", "strict": True, "schema": dict(schema)}}


def _words(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
