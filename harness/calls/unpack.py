"""A reply's bytes, unpacked under a bound: a packed reply can be a thousand times as large as what came over the wire.

Only gzip and deflate are asked for (`ACCEPTED`), so any other packing is an error.

See contract: stages, "Replies".
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable

ACCEPTED = "gzip, deflate"
_CODINGS = frozenset({"gzip", "x-gzip", "deflate"})
_MOST_LAYERS = 3


class TooLargeError(Exception):
    """A reply has more bytes than its bound, packed or unpacked."""


class PackingError(Exception):
    """Bytes are not packed as the reply says, or packed in a way that was not asked for."""


class _Layer:
    """One packing, taken off piece by piece; never holds more than `most` unpacked bytes."""

    def __init__(self, coding: str, most: int) -> None:
        # 47: gzip or zlib by its header. Some servers send deflate without any: -15, tried where the first try fails.
        self._plain, self._most = coding == "deflate", most
        self._unpacker = zlib.decompressobj(47)
        self._begun = False

    def feed(self, data: bytes) -> bytes:
        """Unpack some bytes; raises PackingError where they are broken, TooLargeError above the bound."""
        if not data:
            return b""
        try:
            out = self._unpacker.decompress(data, self._most + 1)
        except zlib.error as error:
            if self._begun or not self._plain:
                raise PackingError(f"not packed as it says: {error}") from None
            self._plain, self._unpacker = False, zlib.decompressobj(-zlib.MAX_WBITS)
            return self.feed(data)
        self._begun = True
        if len(out) > self._most or self._unpacker.unconsumed_tail:
            raise TooLargeError
        return out

    @property
    def ended(self) -> bool:
        """Whether the packed stream came to its end."""
        return not self._begun or self._unpacker.eof


async def read_bounded(chunks: AsyncIterable[bytes], packing: str, most: int) -> bytes:
    """Return the unpacked bytes of a reply.

    Args:
        chunks: its raw bytes as they arrive.
        packing: its Content-Encoding header.
        most: largest size in bytes, packed and unpacked.

    Raises:
        TooLargeError: it is larger than that.
        PackingError: the packing is broken, cut off, nested too deep, or was not asked for.
    """
    names = [name.strip().lower() for name in packing.split(",")]
    names = [name for name in names if name and name != "identity"]
    if unknown := [name for name in names if name not in _CODINGS] or names[_MOST_LAYERS:]:
        raise PackingError(f"packed as {unknown[0][:40]!r}, which was not asked for")
    # The header lists packings in the order in which they were applied; they come off in reverse.
    layers = [_Layer(name, most) for name in reversed(names)]
    body, packed = bytearray(), 0
    async for chunk in chunks:
        packed += len(chunk)
        data = chunk
        for layer in layers:
            data = layer.feed(data)
        body += data
        if len(body) > most or packed > most:
            raise TooLargeError
    if not all(layer.ended for layer in layers):
        raise PackingError("packed, and cut off before its end")
    return bytes(body)
