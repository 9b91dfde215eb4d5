"""Canonical JSON (RFC 8785) and the hashes taken of it: the only form in which anything here is hashed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from json.encoder import encode_basestring
from typing import Any

import rfc8785


def canonical_json(value: Any) -> bytes:
    """Return the canonical form of a JSON value (RFC 8785): keys sorted, no white space, numbers in one form.

    Args:
        value: what `json.loads` gives: objects with text keys, lists, texts, numbers, booleans, None.

    Returns:
        The form as UTF-8 bytes; equal values give equal bytes, so `1` and `1.0` do.

    Raises:
        ValueError: `value` holds NaN, an infinity, an integer beyond 2**53 or a lone surrogate: no hash can be taken of
            such a value that another language would take, too.

    See contract: README, "Conventions".
    """
    return rfc8785.dumps(value)


def sha256_hex(data: bytes | str) -> str:
    """Return the SHA-256 of bytes, or of a text's UTF-8, as 64 lowercase hex digits."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def hash_json(value: Any) -> str:
    """Return the SHA-256 of a JSON value's canonical form, 64 lowercase hex digits; raises as `canonical_json` does."""
    return sha256_hex(canonical_json(value))


def receipt_id(
    *, run_id: str, bank_sha256: str, model: str, concept: str, framing: str, group: str, repeat: int
) -> str:
    """Return the id of one row: the first 16 hex digits of a hash (contract: receipts, "Receipt id").

    64 bits are enough: among 10 million rows two ids are equal with a chance of 3 in a million.
    """
    row = id_ending(concept, framing, group, repeat)
    return receipt_ids(run_id=run_id, bank_sha256=bank_sha256, model=model, endings=[row])[0]


def receipt_ids(*, run_id: str, bank_sha256: str, model: str, endings: Iterable[bytes]) -> list[str]:
    """Return the `receipt_id` of many rows of one model, each given by its `id_ending`.

    The list that is hashed is put together from pieces: the first three items are the same for a whole shard, the last
    four for every model.
    """
    start = hashlib.sha256(f"[{_text(run_id)},{_text(bank_sha256)},{_text(model)},".encode())
    found = []
    for ending in endings:
        whole = start.copy()
        whole.update(ending)
        found.append(whole.hexdigest()[:16])
    return found


def id_ending(concept: str, framing: str, group: str, repeat: int) -> bytes:
    """Return the end of the list whose hash is a receipt id, in canonical form; see `receipt_ids`."""
    return f"{_text(concept)},{_text(framing)},{_text(group)},{repeat:d}]".encode()


# Text as RFC 8785 writes it (3.2.2.2): quote, backslash and control characters escaped, and nothing else.
_text = encode_basestring
