"""Whom a label serves: the direction of its chip, on pages and in the bulk path alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.html.favor import favor


@pytest.mark.parametrize(
    ("value", "polarity", "wanted"),
    [
        (1.0, 1, "up"), (0.5, 1, "mid"), (0.0, 1, "down"),
        (1.0, -1, "down"), (0.5, -1, "mid"), (0.0, -1, "up"),
        (0.6, 1, "mid"), (0.61, 1, "up"), (0.4, 1, "mid"), (0.39, 1, "down"),
        (0.4, -1, "mid"), (0.6, -1, "mid"),
        (None, 1, ""), (None, -1, ""),
    ],
)  # fmt: skip
def test_a_label_points_to_whom_it_serves(value, polarity, wanted):
    assert favor(value, polarity) == wanted


@given(st.floats(0, 1))
def test_the_other_polarity_turns_it_round(value):
    opposite = {"up": "down", "down": "up", "mid": "mid"}
    assert favor(value, -1) == opposite[favor(value, 1)]
