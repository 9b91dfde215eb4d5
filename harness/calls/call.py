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
    """One chat message, in the roles that every endpoint knows."""

    role: Literal["system", "user"]
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """One chat completion, as an endpoint is asked for it.

    Attributes:
        model: slug of the model or judge in the run.
        api_model: the endpoint's own name for it.
        messages: what is sent, in order.
        params: parameters to send, without api_model and address.
        repeat: repeat of the row. An endpoint with a `seed` parameter shifts it by `repeat` and `try_`.
        try_: how often this request was asked before because its answer could not be used.
        schema: JSON schema that the answer must follow (judges), or None.
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
    """What an endpoint answered.

    Attributes:
        text: the answer without its thinking; a judge's text is kept raw.
        outcome: what became of the call.
        finish_reason: the endpoint's word, `length` for any word that means the length limit.
        served_by: `model@provider` as the reply says.
        prompt_tokens, completion_tokens: tokens that are billed; None where the endpoint does not say.
        cost: picodollars. From an endpoint None where only tokens are known. From cache and engine it is always set,
            and covers every attempt that the call took.
        error: a code of `VOTE_ERRORS` for outcome `unusable`, otherwise None.
        filter_word: the vendor's own word for outcome `filtered`, cleaned, otherwise None.
        reasoning_tokens: those of `completion_tokens` that went into thinking; None where the endpoint does not say.
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
    """One attempt brought no answer (contract: stages, "Replies").

    Args:
        code: a code of `VOTE_ERRORS`.
        reason: the cause in words, for the operator only. It may quote the endpoint.
        retryable: whether the same request may be answered later.
        billed: `none`, `unknown` (booked at the reserved worst case), or the cost in picodollars.
        retry_after: seconds that the endpoint asked to wait.
        unreachable: nobody answered at all, which closes the endpoint and not only the model.
        status: HTTP status, or that of an error inside a 200.
        remedy: what to do, where the cause is known.
        notice: what the operator must be told although the call goes on.
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
    """The endpoint will not serve this model until the operator acts (401, 402): the model is closed.

    Args:
        reason: what it said.
        billed: what the reply says that it cost, in picodollars.
    """

    def __init__(self, reason: str, *, billed: int = 0) -> None:
        super().__init__(reason)
        self.billed = billed


@runtime_checkable
class Endpoint(Protocol):
    """A backend over the network: one attempt a call, up to `concurrency` of them in flight."""

    concurrency: int

    async def complete(self, request: Request) -> Answer:
        """Make exactly one attempt; asking again is the engine's business.

        Raises:
            CallError: the attempt brought no answer.
            EndpointError: no call of this model will, until the operator acts.
        """
        ...

    async def close(self) -> None:
        """Give connections back. A later call may open new ones."""
        ...


@runtime_checkable
class BatchEndpoint(Protocol):
    """A backend inside this process (simulated models): whole batches at once, and a lost call costs nothing."""

    batch_size: int

    def complete_batch(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer all requests, one answer each, in order.

        An answer depends on nothing but its request and the backend's seed: the same request has the same answer in any
        batch.
        """
        ...


# Says why an answer cannot be used (a code of VOTE_ERRORS), or None. Refused answers are asked again, twice.
Check = Callable[[Answer], str | None]


@dataclass(frozen=True, slots=True)
class Call:
    """A request with its cache key, the account that pays for it, and the check of its answer.

    Attributes:
        key: cache key, 64 hex digits (contract: stages, "Cache keys").
        role: whose books it goes into; caps are per model or per judge.
        endpoint: name of the endpoint in run.toml.
        request: what is asked.
        check: says why an answer cannot be used; None accepts any.
        rubric: id of the rubric that a judge goes by; None for a subject.
    """

    key: str
    role: Literal["subject", "judge"]
    endpoint: str
    request: Request
    check: Check | None = None
    rubric: str | None = None
