"""A reply's bytes, unpacked under a bound: a packed reply can be a thousand times as large as what came over the wire.

Only gzip and deflate are asked for (`ACCEPTED`), so any other packing is an error.

See contract: stages, "Replies".
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Sequence

ACCEPTED = "gzip, deflate"
_CODINGS = frozenset({"gzip", "x-gzip", "deflate"})
_MOST_LAYERS = 3
PIECE = 65_536  # bytes that are unpacked at once


class TooLargeError(Exception):
    """A reply has more bytes than its bound, packed or unpacked."""


class PackingError(Exception):
    """Bytes are not packed as the reply says, or packed in a way that was not asked for."""


class _Layer:
    """One packing, taken off piece by piece; never holds more than a piece of what it unpacks."""

    def __init__(self, coding: str) -> None:
        # 47: gzip or zlib by its header. Some servers send deflate without any: -15, tried where the first try fails.
        self._plain = coding == "deflate"
        self._unpacker = zlib.decompressobj(47)
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what some packed bytes hold, in pieces of at most `PIECE` bytes."""
        full = False
        while data or full:
            try:
                out = self._unpacker.decompress(data, PIECE)
            except zlib.error as error:
                if self._begun or not self._plain:
                    raise PackingError(f"not packed as it says: {error}") from None
                self._plain, self._unpacker = False, zlib.decompressobj(-zlib.MAX_WBITS)
                continue
            self._begun = True
            yield out
            data, full = self._unpacker.unconsumed_tail, len(out) == PIECE

    @property
    def ended(self) -> bool:
        """Whether the packed stream came to its end."""
        return not self._begun or self._unpacker.eof


async def unpacked(chunks: AsyncIterable[bytes], packing: str) -> AsyncIterator[bytes]:
    """Yield the unpacked bytes of a reply's raw chunks in pieces, each small whatever the packing.

    Raises PackingError where the packing is broken, cut off or was not asked for.
    """
    layers = _layers(packing)
    async for chunk in chunks:
        for piece in _through(layers, chunk):
            yield piece
    if not all(layer.ended for layer in layers):
        raise PackingError("packed, and cut off before its end")


async def read_bounded(chunks: AsyncIterable[bytes], packing: str, most: int) -> bytes:
    """Return the unpacked bytes of a reply's raw chunks.

    Raises TooLargeError above `most` bytes, packed or not, and PackingError as `unpacked` does.
    """
    body = bytearray()
    async for piece in unpacked(_bounded(chunks, most), packing):
        body += piece
        if len(body) > most:
            raise TooLargeError
    return bytes(body)


async def _bounded(chunks: AsyncIterable[bytes], most: int) -> AsyncIterator[bytes]:
    packed = 0
    async for chunk in chunks:
        packed += len(chunk)
        if packed > most:
            raise TooLargeError
        yield chunk


def _layers(packing: str) -> list[_Layer]:
    """Return the packings to take off, the outermost first."""
    names = [name.strip().lower() for name in packing.split(",")]
    names = [name for name in names if name and name != "identity"]
    if any(name not in _CODINGS for name in names) or names[_MOST_LAYERS:]:
        raise PackingError("packed in a way that was not asked for")  # its name is a stranger's word
    return [_Layer(name) for name in reversed(names)]


def _through(layers: Sequence[_Layer], data: bytes) -> Iterator[bytes]:
    if not layers:
        yield data
        return
    for piece in layers[0].feed(data):
        yield from _through(layers[1:], piece)
