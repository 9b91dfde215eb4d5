"""How many requests and tokens a minute an endpoint may be asked.

A leaky bucket, which is a token bucket without a burst: each request is given the moment at which it may start. So any
minute holds at most `requests_per_minute` requests. Tokens are taken as asked for (one for every four bytes of prompt,
and max_tokens of answer), and what was not used is given back.

See contract: stages, "Attempts and waiting".
"""

from __future__ import annotations

from harness.calls.call import Answer, Request

BYTES_PER_TOKEN = 4
_MINUTE = 60.0


class Bucket:
    """A flow of so many units a minute. The clock comes from outside, in seconds."""

    def __init__(self, per_minute: float) -> None:
        self._each = _MINUTE / per_minute
        self._next = 0.0

    def slot(self, now: float, amount: float = 1.0) -> float:
        """Return the moment from which this amount may go, and take its place in the flow."""
        # Time that went by unused is not saved up, or it would come back as a burst.
        start = max(now, self._next)
        self._next = start + amount * self._each
        return start

    def give_back(self, amount: float) -> None:
        """Give back what was taken and not used, so that the next one may go earlier."""
        self._next -= amount * self._each


class EndpointPace:
    """The two limits of an endpoint, requests and tokens a minute; either may be None."""

    def __init__(self, requests: float | None, tokens: float | None) -> None:
        self._requests = Bucket(requests) if requests else None
        self._tokens = Bucket(tokens) if tokens else None

    def start(self, request: Request, now: float) -> float:
        """Return the moment from which a request may be made. Its place in both flows is taken."""
        start = self._requests.slot(now) if self._requests else now
        return max(start, self._tokens.slot(now, expected_tokens(request))) if self._tokens else start

    def ended(self, request: Request, answer: Answer | None) -> None:
        """Give back the tokens that a request did not use.

        Args:
            request: the request.
            answer: its answer; None where it brought none, which gives all tokens back. An answer without token counts
                gives nothing back.
        """
        if self._tokens is None:
            return
        used = 0 if answer is None else (answer.prompt_tokens or 0) + (answer.completion_tokens or 0)
        if answer is None or used:
            self._tokens.give_back(max(0, expected_tokens(request) - used))


def expected_tokens(request: Request) -> int:
    """Return the tokens that a request may take: a quarter of its prompt's bytes, and its `max_tokens`."""
    size = sum(len(m.content.encode()) for m in request.messages)
    return size // BYTES_PER_TOKEN + int(request.params["max_tokens"])
