"""Holds what became of each question against the columns beside it.

See contract: receipts, "Outcome".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from generator.runs.vote_checks import RowReport
from generator.schema.bank import REFUSAL
from generator.schema.verdict import OUTCOMES, VOTE_ERRORS, filter_word

BoolArray = npt.NDArray[np.bool_]
_TEXT = 40


def _is(column: pa.ChunkedArray, value: str) -> BoolArray:
    return np.asarray(pc.fill_null(pc.equal(column, value), False).to_numpy(), np.bool_)


def _null(column: pa.ChunkedArray) -> BoolArray:
    return np.asarray(pc.is_null(column).to_numpy(), np.bool_)


def check_outcomes(table: pa.Table, found: RowReport, *, imported: bool) -> None:
    """Find rows of format 2 whose outcome is unknown, or contradicted by status, votes, response or words.

    Args:
        table: a shard with the columns of the latest format.
        found: where faults are recorded.
        imported: whether the run is imported. Its answers may lack text and finish reason.
    """
    outcome = table["outcome"]
    known = pc.fill_null(pc.is_in(outcome, pa.array(OUTCOMES)), False).to_numpy()
    found.rows(~known, "outcome", lambda r: f"saw {str(outcome[r].as_py())[:_TEXT]!r}; allowed: {', '.join(OUTCOMES)}")
    rows = _Rows(table, found)
    for name in OUTCOMES:
        rows.check(name, imported=imported)
    _check_words(table, found)


@dataclass(frozen=True)
class _Rows:
    """A shard's rows and what each outcome requires of them."""

    table: pa.Table
    found: RowReport

    def check(self, outcome: str, *, imported: bool) -> None:
        """Check the rows of one outcome."""
        here = _is(self.table["outcome"], outcome)
        voted = pc.list_value_length(self.table["votes"]).to_numpy() > 0
        silent = _null(self.table["response"])

        def rule(bad: BoolArray, column: str, text: str) -> None:
            self.found.rows(here & bad, column, self._say(outcome, column, text))

        rule(
            _null(self.table["failure"]) == (outcome == "failed"), "failure", "a code where the call failed, else null"
        )
        rule(
            _null(self.table["filter_word"]) == (outcome == "filtered"),
            "filter_word",
            "the vendor's word where its filter answered, else null",
        )
        if outcome == "answered":
            if not imported:
                rule(silent, "response", "a text")
                rule(~voted, "votes", "the votes of the panel")
            return
        rule(voted, "votes", "no votes")
        rule(
            silent != (outcome == "failed"), "response", "null" if outcome == "failed" else "a text, which may be empty"
        )
        # Both kinds of row have no votes, so their status follows from the outcome alone.
        status = "refused" if outcome == "filtered" else "error"
        rule(~_is(self.table["status"], status), "status", status)
        if outcome == "filtered":
            rule(~_is(self.table["final_label"], REFUSAL), "final_label", REFUSAL)

    def _say(self, outcome: str, column: str, text: str) -> Callable[[int], str]:
        cells = self.table[column]
        return lambda row: f"saw {str(cells[row].as_py())[:_TEXT]!r} on a row with outcome {outcome}; it has {text}"


def _check_words(table: pa.Table, found: RowReport) -> None:
    """Check codes of failures against the closed list, and vendors' words against what may be published."""
    failure, words = table["failure"], table["filter_word"]
    strange = ~pc.fill_null(pc.is_in(failure, pa.array(VOTE_ERRORS)), True).to_numpy() & ~_null(failure)
    found.rows(strange, "failure", lambda r: f"saw {failure[r].as_py()[:_TEXT]!r}; allowed: {', '.join(VOTE_ERRORS)}")
    unclean = [word for word in pc.unique(words).to_pylist() if word is not None and filter_word(word) != word]
    dirty = pc.fill_null(pc.is_in(words, pa.array(unclean, pa.string())), False).to_numpy()
    rule = "one line of at most 80 characters, none of them a control character"
    found.rows(dirty, "filter_word", lambda r: f"saw {words[r].as_py()[:_TEXT]!r}; it is {rule}")
