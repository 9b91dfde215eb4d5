"""How many requests and tokens a minute an endpoint may be asked (contract: stages, "Attempts and waiting").

A leaky bucket, the mirror of a token bucket without a burst: each request is given the moment at which it may start.
Any half-open minute holds at most `requests_per_minute` requests. Tokens are taken as asked for (a token for every four
bytes of prompt, and max_tokens of answer), and what was not used is given back.
"""

from __future__ import annotations

from harness.calls.call import Answer, Request

BYTES_PER_TOKEN = 4
_MINUTE = 60.0


class Bucket:
    """So many a minute; the clock comes from outside, in seconds."""

    def __init__(self, per_minute: float) -> None:
        self._each = _MINUTE / per_minute
        self._next = 0.0

    def slot(self, now: float, amount: float = 1.0) -> float:
        """Return the moment from which this amount may go, and keep it."""
        start = max(now, self._next)
        self._next = start + amount * self._each
        return start

    def give_back(self, amount: float) -> None:
        """Return what was taken and not used."""
        self._next -= amount * self._each


class EndpointPace:
    """The two limits of an endpoint, either of which may be absent."""

    def __init__(self, requests: float | None, tokens: float | None) -> None:
        self._requests = Bucket(requests) if requests else None
        self._tokens = Bucket(tokens) if tokens else None

    def start(self, request: Request, now: float) -> float:
        """Return the moment from which a request may be made."""
        start = self._requests.slot(now) if self._requests else now
        return max(start, self._tokens.slot(now, expected_tokens(request))) if self._tokens else start

    def ended(self, request: Request, answer: Answer | None) -> None:
        """Give back the tokens that an answer did not use; all of them where a request brought none."""
        if self._tokens is None:
            return
        used = 0 if answer is None else (answer.prompt_tokens or 0) + (answer.completion_tokens or 0)
        if answer is None or used:
            self._tokens.give_back(max(0, expected_tokens(request) - used))


def expected_tokens(request: Request) -> int:
    """Return the tokens that a request may take."""
    size = sum(len(m.content.encode()) for m in request.messages)
    return size // BYTES_PER_TOKEN + int(request.params["max_tokens"])
