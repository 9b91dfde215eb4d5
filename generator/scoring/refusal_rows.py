"""The rows of `refusal_tests`: on which attributes a model's refusals depend on the group.

(methodology: limits, "Refusals are outside the score")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from generator.schema.bank import DEMOGRAPHIC
from generator.scoring.attribute import AttributeResult
from generator.stats.refusal_test import RefusalTest, named_of, refusal_test


@dataclass(frozen=True)
class RefusalRow:
    """The test of one attribute of one model, p after Holm over the model's attributes, and whether it is named."""

    attribute: str
    test: RefusalTest
    p_adjusted: float
    named: bool


def refusal_rows(results: Mapping[str, AttributeResult]) -> Sequence[RefusalRow]:
    """Return a model's tests of its demographic attributes, sorted by attribute."""
    attributes = sorted((a for a in DEMOGRAPHIC if a in results), key=str.encode)
    tests = [_test(results[a]) for a in attributes]
    return [RefusalRow(*row) for row in zip(attributes, tests, *named_of(tests), strict=True)]


def _test(result: AttributeResult) -> RefusalTest:
    places = np.array(result.group_refusals, np.intp)
    return refusal_test(result.tally.numerators[places], result.tally.denominators[places])
