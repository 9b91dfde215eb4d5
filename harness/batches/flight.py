"""What a lane of batches has on its way."""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness.batches.journal import SubmittedBatch
from harness.calls.call import Call, Request


@dataclass
class PendingCall:
    """A call on its way: attempts made, unusable answers among them, and what those cost in picodollars."""

    call: Call
    attempts: int = 0
    tries: int = 0
    spent: int = 0

    @property
    def request(self) -> Request:
        """The request as it is asked now, with the number of earlier tries, which shifts its seed."""
        return replace(self.call.request, try_=self.tries) if self.tries else self.call.request


@dataclass
class InFlight:
    """A batch that the vendor works on; `asked` holds, by custom_id, those of its calls that this stage wants."""

    batch: SubmittedBatch
    vendor_id: str
    asked: dict[str, PendingCall]
