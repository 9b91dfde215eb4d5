"""Which control is the noisier: one rule for bands, evidence and pages."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest

from generator.schema.bank import Roles
from generator.scoring.lookup import ScoreBook, ScoreRow
from generator.stats.controls import controls_swapped
from tests.names_of_bank_1 import CONTROL_PROFESSION, CONTROL_TAG

ROLES = Roles(("age",), CONTROL_PROFESSION, CONTROL_TAG)


@pytest.mark.parametrize(
    ("profession", "tag", "swapped"),
    [
        (0.2, 0.1, False),
        (0.1, 0.2, True),
        (0.3, 0.3, False),
        (0.3, 0.1 + 0.2, False),  # 0.30000000000000004: the same number, summed otherwise
        (0.3, 0.300000000002, True),
    ],
)
def test_the_larger_disparity_decides_and_equal_ones_are_not_swapped(profession, tag, swapped):
    assert controls_swapped(profession, tag) is swapped


class TestEdge:
    """The same rule on published numbers, which are in points."""

    def book(self, profession, tag):
        numbers = {CONTROL_PROFESSION: profession, CONTROL_TAG: tag}
        rows = [
            dataclasses.asdict(ScoreRow("a/m", "disparity", name, None, number)) for name, number in numbers.items()
        ]
        return ScoreBook(pa.Table.from_pylist(rows))

    @pytest.mark.parametrize(
        ("profession", "tag", "edge"),
        [
            (20.0, 10.0, CONTROL_PROFESSION),
            (10.0, 20.0, CONTROL_TAG),
            (30.0, 100 * (0.1 + 0.2), CONTROL_PROFESSION),
            (None, 20.0, None),
            (20.0, None, None),
        ],
    )
    def test_it_is_the_noisier_control_and_none_where_one_lacks_a_number(self, profession, tag, edge):
        assert self.book(profession, tag).edge("a/m", ROLES) == edge
