"""Structs of Thrift's compact protocol, in which Parquet writes its footer and page headers: bytes in, numbers out.

Every read is held to the bytes that there are, so no length that a file states can make this one allocate.
"""

from __future__ import annotations

Value = int | bytes | list["Value"] | dict[int, "Value"]
Struct = dict[int, Value]

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_MOST_DEPTH = 12


class ThriftError(ValueError):
    """The bytes are no such struct."""


class StructReader:
    """Reads structs from `data`, from the place `at` on; `at` stands behind what was read last."""

    def __init__(self, data: memoryview, at: int = 0) -> None:
        self._data, self.at = data, at

    def struct(self, depth: int = 0) -> Struct:
        """Return the fields of a struct by number; raises ThriftError."""
        if depth > _MOST_DEPTH:
            raise ThriftError("structs are nested too deep")
        found: Struct = {}
        field = 0
        while head := self._byte():
            # A small step in the field's number is packed into its head; otherwise the number follows.
            field = field + (head >> 4) if head >> 4 else self._number()
            kind = head & 0x0F
            # Within a struct a truth is its own kind and takes no further byte.
            found[field] = int(kind == _TRUE) if kind in (_TRUE, _FALSE) else self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Value:
        if kind in (_I16, _I32, _I64):
            return self._number()
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._byte()
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind == _DOUBLE:
            return self._bytes(8)
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in (_LIST, _SET):
            return self._list(depth)
        raise ThriftError(f"a field of unknown kind {kind}")

    def _list(self, depth: int) -> list[Value]:
        head = self._byte()
        size = head >> 4 if head >> 4 < 15 else self._varint()
        if depth > _MOST_DEPTH or size > len(self._data) - self.at:  # an item takes a byte at the least
            raise ThriftError("a list is longer than the file")
        return [self._value(head & 0x0F, depth + 1) for _ in range(size)]

    def _byte(self) -> int:
        return self._bytes(1)[0]

    def _bytes(self, length: int) -> bytes:
        start = self.at
        if start < 0 or start + length > len(self._data):
            raise ThriftError("the bytes end within a struct")
        self.at += length
        return bytes(self._data[start : self.at])

    def _varint(self) -> int:
        result = shift = 0
        while shift < 70:
            piece = self._byte()
            result |= (piece & 0x7F) << shift
            if piece < 0x80:
                return result
            shift += 7
        raise ThriftError("a number does not end")

    def _number(self) -> int:
        raw = self._varint()
        # Zigzag: 0, -1, 1, -2, ... are written as 0, 1, 2, 3, ...
        return (raw >> 1) ^ -(raw & 1)
