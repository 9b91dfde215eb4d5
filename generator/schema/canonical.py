"""Canonical JSON (RFC 8785) and the hashes taken of it: the only form in which anything here is hashed."""

from __future__ import annotations

import hashlib
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
    return hash_json([run_id, bank_sha256, model, concept, framing, group, repeat])[:16]
