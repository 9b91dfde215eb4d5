"""One call to a model or judge, its answer, and the endpoint protocol that every backend implements.

An endpoint makes exactly one attempt. Retrying, caching, money and concurrency belong to `harness.engine`, so that
each attempt is reserved in the ledger before it is made.

See contract: stages, "Endpoints".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

TRIES = 3  # an answer that cannot be used is asked for again, twice

# What became of a call that has an answer. Only these are ever stored:
#   answered  the model's text, finish_reason `stop` or the like
#   cut       the text ended at `length`; judged as it stands, and counted
#   filtered  the vendor's own content filter answered: REFUSAL without votes; `filter_word` is what the vendor calls it
#   cut_before_answer  every token that was allowed went into thinking: there is no answer to judge, and the row says so
#   unusable  the model answered, but `Call.check` refused the text as often as it may; `error` says why. Stored so that
#             a second run asks nothing, and comes back as the failure that it is, never as an answer
AnswerOutcome = Literal["answered", "cut", "cut_before_answer", "filtered", "unusable"]


class Message(NamedTuple):
    """One chat message."""

    role: Literal["system", "user"]
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """One chat completion as an endpoint is asked for it.

    `params` are the parameters to send (never api_model or base URL). `try_` counts how often this request was asked
    before because its answer was unusable; an endpoint with a `seed` parameter shifts it by `repeat` and `try_`.
    `schema` is the JSON schema that the answer must follow (judges), or None.
    """

    model: str
    api_model: str
    messages: tuple[Message, ...]
    params: Mapping[str, Any]
    repeat: int
    try_: int = 0
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What an endpoint answered. `cost` in picodollars: reported by an endpoint, or None where only tokens are known.

    From the cache and the engine `cost` is always set, and covers every attempt that the call took.
    `error` is None, or for outcome `unusable` a code of `generator.schema.verdict.VOTE_ERRORS`. `filter_word` is None,
    or for outcome `filtered` the vendor's own word as `generator.schema.verdict.filter_word` cleans it.
    `reasoning_tokens` were spent thinking, among `completion_tokens`; None where the endpoint does not say.
    """

    text: str
    outcome: AnswerOutcome = "answered"
    finish_reason: str = "stop"
    served_by: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: int | None = None
    error: str | None = None
    filter_word: str | None = None
    reasoning_tokens: int | None = None


class CallError(Exception):
    """One attempt brought no answer.

    `code` is of `VOTE_ERRORS`; `billed` tells what it cost: `none`, `unknown` (booked at the reserved worst case) or a
    number of picodollars; `retry_after` is the wait in seconds that the endpoint asked for; `status` is that of HTTP or
    of an error inside a 200; `remedy` says what to do where the cause is known; `notice` is what the operator must be
    told although the call goes on.
    """

    def __init__(
        self,
        code: str,
        reason: str,
        *,
        retryable: bool,
        billed: int | Literal["none", "unknown"] = "none",
        retry_after: float | None = None,
        unreachable: bool = False,
        status: int | None = None,
        remedy: str | None = None,
        notice: str | None = None,
    ) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.retryable = retryable
        self.billed: int | Literal["none", "unknown"] = billed
        self.retry_after = retry_after
        self.unreachable = unreachable
        self.status = status
        self.remedy = remedy
        self.notice = notice


class EndpointError(Exception):
    """The endpoint will not serve this model until the operator acts (401, 402): the model is closed."""


@runtime_checkable
class Endpoint(Protocol):
    """A backend over the network: one attempt a call, many in flight up to `concurrency`."""

    concurrency: int

    async def complete(self, request: Request) -> Answer:
        """Make one attempt; raises CallError or EndpointError."""
        ...

    async def close(self) -> None:
        """Give connections back."""
        ...


@runtime_checkable
class BatchEndpoint(Protocol):
    """A backend inside this process (simulated): whole batches at once; a lost call of it cost nothing.

    `complete_batch` returns one answer a request, in order, and must depend on nothing but the request (and the
    backend's seed): same request, same answer, in any batch.
    """

    batch_size: int

    def complete_batch(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer all requests."""
        ...


# Says why an answer cannot be used (a code of VOTE_ERRORS), or None. Refused answers are asked again, twice.
Check = Callable[[Answer], str | None]


@dataclass(frozen=True, slots=True)
class Call:
    """A request with its cache key, the account that pays, and the check of its answer.

    `role` decides the books: subjects' and judges' spend are told apart, and caps are per model or per judge. `rubric`
    is what a judge is to judge by, None for a subject.
    """

    key: str
    role: Literal["subject", "judge"]
    endpoint: str
    request: Request
    check: Check | None = None
    rubric: str | None = None
