"""What pages say of limits and of evidence follows the controls that the bank has."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from generator.html.frame import environment


@pytest.fixture(scope="module")
def macros():
    return environment().get_template("_macros.html").module


@pytest.mark.parametrize("held", [True, False])
def test_only_a_bank_with_a_control_has_anything_unresolved(macros, held):
    text = macros.limits_short(lambda page: page, SimpleNamespace(held=held, yardstick="No control here."))
    assert ("Unresolved is not clean" in text) is held
    assert ("No control here." in text) is not held


@pytest.mark.parametrize("two", [True, False])
def test_only_a_bank_with_two_controls_has_a_noisier_one(macros, two):
    key = macros.evidence_key(two=two)
    words = macros.evidence_words(lambda page: page, [], two)
    assert ("the noisier one of two" in key) is two
    assert ("noisier one of two" in words) is two
