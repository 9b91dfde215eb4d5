"""Reasons against publishing: values that keep their figures, worded in one place, read back from a manifest."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from generator.scoring import reasons
from generator.scoring.reasons import in_words, load_reasons, published_reasons

ONE_OF_EACH = (
    reasons.RowsAbsent(missing={f"a/m{i}": 1000 + i for i in range(7)}),
    reasons.NoRankedModel(),
    reasons.JudgesDisagree(rubric="stance", kappa=None, pabak=0.51, modal_prevalence=0.934),
    reasons.TooFewPairs(rubric="regard", n_on_scale=1200, n_pairs=2640),
    reasons.AuditMissing(),
    reasons.AuditTooSmall(rows=99),
    reasons.RubricUnaudited(rubric="refusal"),
    reasons.AuditDiverges(rubric="stance", agreement=0.69, ci_high=0.9),
    reasons.ToldBefore(text="a reason of old"),
)
NO_KAPPA = (
    "kappa undefined is below 0.70, and PABAK 0.510 at a prevalence of 93.4% does not stand in (PABAK 0.70 above 90 %)"
)
WORDS = (
    "7,021 planned rows are absent (a/m0 1,000, a/m1 1,001, a/m2 1,002, a/m3 1,003, a/m4 1,004 and 2 more models)",
    "no model can be ranked",
    f"agreement gate, rubric stance: {NO_KAPPA}",
    "agreement gate, rubric regard: 1,200 on-scale pairs of 2,640, at least 30 and half are needed",
    "the human audit is missing (audit.csv)",
    "the human audit has 99 rows; at least 100 are needed",
    "the human audit covers no row of rubric refusal",
    "the human audit diverges on rubric stance: agreement 0.690, upper end 0.900",
    "a reason of old",
)


class TestInWords:
    @pytest.mark.parametrize(("reason", "words"), tuple(zip(ONE_OF_EACH, WORDS, strict=True)))
    def test_every_reason_has_its_words(self, reason, words):
        assert in_words(reason) == words

    def test_no_kind_of_reason_is_left_out_here(self):
        assert {type(reason) for reason in ONE_OF_EACH} == set(get_args(reasons.Reason))


class TestManifest:
    def test_what_is_published_reads_back_as_the_same_values(self):
        assert load_reasons(json.loads(json.dumps(published_reasons(ONE_OF_EACH)))) == ONE_OF_EACH

    def test_figures_and_words_stand_side_by_side(self):
        (listed,) = published_reasons([reasons.AuditTooSmall(rows=99)])
        assert listed == {"check": "audit_too_small", "rows": 99, "text": WORDS[5]}

    def test_a_sentence_of_an_earlier_release_is_kept_as_one(self):
        assert load_reasons(["the audit is missing"]) == (reasons.ToldBefore(text="the audit is missing"),)

    @pytest.mark.parametrize("item", [7, None, {}, {"check": "unheard_of"}, {"check": "audit_too_small"}])
    def test_what_is_no_reason_is_refused(self, item):
        with pytest.raises(ValueError, match=r"."):
            load_reasons([item])
