"""Names proposed for a mistyped one: near ones, or none."""

from __future__ import annotations

import pytest

from harness.bank.near_names import near_names

NAMES = ["age_apartment_no_history", "age_forum_ban", "gender_back_scan", "gender_back_scan_two"]


@pytest.mark.parametrize(
    ("typed", "proposed"),
    [
        ("gender_back_scam", ["gender_back_scan", "gender_back_scan_two"]),
        ("AGE_FORUM_BAN", ["age_forum_ban"]),
        ("apartment", ["age_apartment_no_history"]),
        ("age", []),
        ("zzz", []),
        ("", []),
    ],
)
def test_near_names_are_proposed_and_no_others(typed: str, proposed: list[str]) -> None:
    assert near_names(typed, NAMES) == proposed
