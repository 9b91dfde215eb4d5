"""An OpenAI-compatible endpoint over HTTP, one attempt a call.

What a reply means stands in `harness.calls.replies`, waiting and asking again in `harness.engine.network`.

See contract: stages, "Endpoints".
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from harness.calls.call import Answer, CallError, EndpointError, Message, Request
from harness.calls.connection import check_connection, connection_fault, headers_from, open_client, secret
from harness.calls.hints import asked_wait
from harness.calls.replies import Addressee, answer_of
from harness.calls.reply_forms import Form, ReplyForms, response_format, role_hint
from harness.calls.secret_text import Secrets
from harness.calls.unpack import PackingError, TooLargeError, read_bounded
from harness.plan.records import Callee, EndpointPlan

# A request that has to be asked again for a usable answer is sent with another seed, or a seeded model says the same.
SEED_STEP = 1_000_003
_SEEDS = 2**31


class HttpEndpoint:
    """One endpoint of a plan with its key; implements `harness.calls.call.Endpoint`."""

    def __init__(
        self, name: str, limits: EndpointPlan, callees: Iterable[Callee], environment: Mapping[str, str],
        *, clock: Callable[[], float] = time.time, secrets: Secrets | None = None,
    ) -> None:  # fmt: skip
        self.concurrency = limits.concurrency
        self._name, self._limits, self._clock = name, limits, clock
        self._callees = {callee.model: callee for callee in callees}
        self._headers = request_headers(name, limits, environment)
        check_connection(name, limits)
        self._secrets = keys_of([limits], environment) | (secrets or Secrets())
        self._forms = ReplyForms(limits.response_format)
        self._url = limits.base_url.rstrip("/") + "/chat/completions"
        self._idle: list[httpx2.AsyncClient] = []

    async def complete(self, request: Request) -> Answer:
        """Make one attempt. No error that leaves here has a key in its words.

        Raises:
            CallError: the attempt brought no answer.
            EndpointError: the key or the account was refused.
        """
        form = self._forms.of(request)
        try:
            return await self._attempt(request, form)
        except CallError as error:
            error.reason = self._secrets.mask(error.reason)
            if (again := self._forms.refused(request, form, error)) is not None:
                raise again from None
            error.reason += role_hint(request, error)
            error.args = (error.reason,)
            raise error from None
        except EndpointError as error:
            raise EndpointError(self._secrets.mask(str(error)), billed=error.billed) from None

    def form_of(self, request: Request) -> Form:
        """Return the form in which a judge's JSON is asked for at present; an endpoint that refuses one changes it."""
        return self._forms.of(request)

    async def _attempt(self, request: Request, form: Form) -> Answer:
        callee = self._callees[request.model]
        asked = addressee(self._name, request, callee, self._limits, self._secrets)
        try:
            # httpx bounds each read and not the whole reply, which could come byte by byte for hours.
            async with asyncio.timeout(self._limits.connect_timeout + self._limits.read_timeout):
                response, body = await self._post(wire(request, callee, self._limits, form))
        except (httpx2.RequestError, TimeoutError, PackingError) as error:
            raise connection_fault(error, self._url) from None
        wait = asked_wait(response.status_code, response.headers, body, self._clock())
        return answer_of(response.status_code, body, asked, wait)

    async def _post(self, payload: dict[str, Any]) -> tuple[httpx2.Response, bytes]:
        """Send and read the reply, up to the endpoint's size limit."""
        most = self._limits.max_bytes
        async with self._one() as client, client.stream("POST", self._url, json=payload) as response:
            try:
                packing = response.headers.get("content-encoding", "")
                return response, await read_bounded(response.aiter_raw(), packing, most)
            except TooLargeError:
                reason = f"a reply of more than {most:,} bytes"
                raise CallError("provider_error", reason, retryable=False, billed="unknown") from None

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
        """Close the idle connections; a later call opens new ones."""
        while self._idle:
            await self._idle.pop().aclose()


def request_headers(name: str, limits: EndpointPlan, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that every call to an endpoint carries, its key among them.

    Args:
        name: the endpoint's name in run.toml, for messages.
        limits: its settings.
        environment: environment variables, where the keys are.

    Raises:
        InputError: a key is missing, or holds a character that no header can carry.
    """
    return {
        **limits.headers,
        **headers_from(name, limits, environment),
        **_authorization(name, limits, environment),
    }


def _authorization(name: str, limits: EndpointPlan, environment: Mapping[str, str]) -> dict[str, str]:
    return {} if limits.key_env is None else {"Authorization": f"Bearer {secret(name, limits.key_env, environment)}"}


def keys_of(endpoints: Iterable[EndpointPlan], environment: Mapping[str, str]) -> Secrets:
    """Return the keys of some endpoints, to be taken out of whatever a reply says (contract: stages, "Keys")."""
    names = [name for limits in endpoints for name in (limits.key_env, *limits.header_env.values())]
    values = [environment.get(name, "").strip() for name in names if name is not None]
    # A header's value may be `Bearer KEY`: an endpoint that complains quotes the key alone.
    return Secrets([*values, *(value.rpartition(" ")[2] for value in values)])


def addressee(name: str, request: Request, callee: Callee, limits: EndpointPlan, secrets: Secrets) -> Addressee:
    """Return whom the reply to a request must come from, and what reading it takes.

    Args:
        name: the endpoint's name in run.toml.
        request: what is asked; a request with a schema is a judge's.
        callee: the model or judge as the plan has it.
        limits: the endpoint's settings.
        secrets: keys to take out of the reply.
    """
    return Addressee(
        name, request.api_model, callee.served_as, limits.key_env, secrets, callee.prices, request.schema is not None
    )


def wire(request: Request, callee: Callee, limits: EndpointPlan, form: Form | None = None) -> dict[str, Any]:
    """Return the JSON body of a request, with nothing in it that this endpoint does not know.

    A `seed` is shifted by the repeat, so that repeats differ, and by the number of earlier tries (contract: stages,
    "Endpoints").

    Args:
        request: what is asked.
        callee: the model or judge as the plan has it.
        limits: the endpoint's settings.
        form: how a judge's JSON is asked for; as run.toml says unless given.
    """
    params = dict(request.params)
    if limits.max_tokens_name != "max_tokens":
        params[limits.max_tokens_name] = params.pop("max_tokens")
    if "seed" in params:
        params["seed"] = (params["seed"] + request.repeat + SEED_STEP * request.try_) % _SEEDS
    body = {
        "model": request.api_model,
        "messages": [{"role": m.role, "content": m.content} for m in _sent(request.messages, limits)],
        **params,
    }
    if request.schema is not None and (asked := response_format(form or limits.response_format, request.schema)):
        body["response_format"] = asked
    if callee.provider is not None:
        body["provider"] = callee.provider
    return body


def _sent(messages: Sequence[Message], limits: EndpointPlan) -> Sequence[Message]:
    """Return the messages as the endpoint takes them; where it knows no system role, that text goes into the user's."""
    if limits.system_role != "merge" or not any(message.role == "system" for message in messages):
        return messages
    return (Message("user", "\n\n".join(message.content for message in messages)),)
