"""What every vendor's batch endpoint can do, in one form: hand in, ask how it stands, collect, find again.

See contract: stages, "Batch endpoints".
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol


@dataclass(frozen=True)
class BatchStanding:
    """How a batch stands.

    Attributes:
        state: `running`, ask again later; `over`, whatever it brought can be collected, also where it expired or was
            canceled; `failed`, the vendor took nothing of it; `unknown`, a word that no documentation names.
        said: the vendor's word, with its reasons where it gives any.
        files: what `results` reads.
        whole: the vendor says that every request was tried, so a request without a result may have been billed.
    """

    state: Literal["running", "over", "failed", "unknown"]
    said: str
    files: tuple[str, ...] = ()
    whole: bool = False


@dataclass(frozen=True)
class BatchResult:
    """What became of one request: the HTTP status and body that a single call would have had.

    `status` is None where there is no reply; the request may be asked again. Nothing is billed where the vendor did not
    try it (expired, canceled); `lost` says that it may have, and its reservation counts as spent.
    """

    custom_id: str
    status: int | None
    body: bytes = b""
    lost: bool = False


class BatchError(Exception):
    """A batch endpoint could not be asked.

    Args:
        reason: the cause in words.
        final: whether asking again is of no use.
        sent: whether the vendor may have taken the request although no answer came.
    """

    def __init__(self, reason: str, *, final: bool = False, sent: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.final, self.sent = reason, final, sent


class Dialect(Protocol):
    """One vendor's way with batches. Each method may raise BatchError."""

    largest: int  # requests a batch
    largest_bytes: int  # of a batch's requests

    def request(self, custom_id: str, body: dict[str, Any]) -> bytes:
        """Return one request as it stands in a batch.

        Args:
            custom_id: its id, unique in the batch.
            body: the body of a single chat completion.
        """
        ...

    async def submit(self, nonce: str, requests: Sequence[bytes]) -> str:
        """Hand in a batch.

        Args:
            nonce: a name by which `find` may know the batch again.
            requests: what `request` returned for each call.

        Returns:
            The vendor's id of the batch.
        """
        ...

    async def standing(self, vendor_id: str) -> BatchStanding:
        """Ask how a batch stands, by the vendor's id."""
        ...

    def results(self, standing: BatchStanding) -> AsyncIterator[BatchResult]:
        """Yield what became of the requests, in any order; a request may be missing."""
        ...

    async def find(self, nonce: str) -> str | None:
        """Look for a batch that was handed in under a nonce.

        Returns:
            Its id; None where there is none, or the vendor does not show it.
        """
        ...

    async def close(self) -> None:
        """Give connections back."""
        ...
