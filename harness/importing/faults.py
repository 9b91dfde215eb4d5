"""The faults of an import: the same fault of many rows is told three times and then counted."""

from __future__ import annotations

from collections.abc import Collection

SHOWN_ROWS = 3


class ImportFaults:
    """Faults by column and words, each with the places of the first rows that have it."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], list[str]] = {}
        self._counts: dict[tuple[str, str], int] = {}

    def add(self, place: str, column: str, words: str) -> None:
        """Record a fault of a row: `place` is `file: row 3`."""
        key = (column, words)
        self._counts[key] = self._counts.get(key, 0) + 1
        if self._counts[key] <= SHOWN_ROWS:
            self._places.setdefault(key, []).append(place)

    def lines(self, silent: Collection[str] = ()) -> list[str]:
        """Return the faults as lines, without those of the columns `silent`."""
        found = []
        for (column, words), places in self._places.items():
            if column in silent:
                continue
            at = f", column {column}" if column else ""
            found += [f"{place}{at}: {words}" for place in places]
            more = self._counts[column, words] - len(places)
            if more:
                found.append(f"column {column}: {more:,} more rows with this fault: {words}")
        return found

    def __bool__(self) -> bool:
        """Whether anything was found."""
        return bool(self._counts)
