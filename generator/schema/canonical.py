"""Canonical JSON (RFC 8785) and the hashes taken of it: the only form in which anything here is hashed."""

from __future__ import annotations

import hashlib
from typing import Any

import rfc8785


def canonical_json(value: Any) -> bytes:
    """Return the RFC 8785 form of a JSON value, UTF-8 bytes."""
    return rfc8785.dumps(value)


def sha256_hex(data: bytes | str) -> str:
    """Return the SHA-256 of bytes, or of a text's UTF-8, as 64 hex digits."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def hash_json(value: Any) -> str:
    """Return the SHA-256 of a JSON value's canonical form, 64 hex digits."""
    return sha256_hex(canonical_json(value))


def receipt_id(
    *, run_id: str, bank_sha256: str, model: str, concept: str, framing: str, group: str, repeat: int
) -> str:
    """Return the id of one row: 16 hex digits (contract: receipts, "Receipt id")."""
    return hash_json([run_id, bank_sha256, model, concept, framing, group, repeat])[:16]
