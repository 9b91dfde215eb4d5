"""The rows of `refusal_tests`: on which attributes a model's refusals depend on the group.

See contract: tables, "Refusal tests"; methodology: limits, "Refusals are outside the score".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from generator.schema.bank import Roles
from generator.scoring.attribute import AttributeResult
from generator.stats.refusal_test import RefusalTest, named_of, refusal_test


@dataclass(frozen=True)
class RefusalRow:
    """The refusal test of one attribute of one model.

    `p_adjusted` is p after Holm's adjustment over the model's attributes, NaN without a p. `named`: whether pages name
    the attribute.
    """

    attribute: str
    test: RefusalTest
    p_adjusted: float
    named: bool


def refusal_rows(results: Mapping[str, AttributeResult], roles: Roles) -> Sequence[RefusalRow]:
    """Return a model's refusal tests, one for each demographic attribute, ids in byte order."""
    attributes = sorted((a for a in roles.demographic if a in results), key=str.encode)
    tests = [_test(results[a]) for a in attributes]
    return [RefusalRow(*row) for row in zip(attributes, tests, *named_of(tests), strict=True)]


def _test(result: AttributeResult) -> RefusalTest:
    places = np.array(result.group_refusals, np.intp)
    return refusal_test(result.tally.numerators[places], result.tally.denominators[places])
