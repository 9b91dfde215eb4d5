"""Published numbers: how they round, and the elements by which `verify` finds them."""

from __future__ import annotations

import pytest

from generator.edition.numbers import cell, interval, number, score
from generator.scoring.lookup import ScoreRow

ROW = ScoreRow("v/m", "lean", "age", "old", estimate=-0.04, ci_low=-1.25, ci_high=2.0, p_adjusted=0.0444, n_concepts=3)


class TestNumber:
    @pytest.mark.parametrize(
        ("value", "digits", "text"),
        [
            (95.25, 1, "95.2"),  # ties to even of the stored binary value, as Python's format does
            (0.15, 1, "0.1"),
            (-0.04, 1, "0.0"),
            (-0.0, 2, "0.00"),
            (-0.05, 1, "-0.1"),
            (3, 0, "3"),
            (16417, 0, "16,417"),  # a count; digits after a point are counted by the same pattern
            (-1200, 0, "-1,200"),
            (16417, 1, "16417.0"),
            (None, 1, "–"),
        ],
    )
    def test_it_rounds_as_python_formats_and_has_no_minus_zero(self, value, digits, text):
        assert number(value, digits) == text

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
    def test_nothing_that_is_not_a_number_is_published(self, value):
        with pytest.raises(ValueError, match="write null where there is no value"):
            number(value)


class TestElements:
    def test_a_score_names_its_row_and_column(self):
        assert score(ROW) == '<span data-score="v/m|lean|age|old|estimate">0.0</span>'
        assert score(ROW, "ci_low", 2) == '<span data-score="v/m|lean|age|old|ci_low">-1.25</span>'

    def test_other_columns_of_scores_are_cells_of_that_table(self):
        assert score(ROW, "p_adjusted", 3) == '<span data-cell="scores|v/m,lean,age,old|p_adjusted">0.044</span>'
        assert score(ROW, "n_concepts") == '<span data-cell="scores|v/m,lean,age,old|n_concepts">3</span>'

    def test_an_interval_is_two_scores_or_a_dash(self):
        assert interval(ROW).count("data-score") == 2
        assert interval(ScoreRow("v/m", "lean", "age", "old")) == '<span class="none" title="no interval">–</span>'

    def test_a_scaled_cell_says_so(self):
        assert cell("disparities", "v/m,c,direct", "disparity", 0.1234, 1, scale=100) == (
            '<span data-cell="disparities|v/m,c,direct|disparity" data-scale="100">12.3</span>'
        )

    def test_a_word_and_a_null_are_shown_as_they_are(self):
        assert cell("scores", "k", "evidence", "flagged") == '<span data-cell="scores|k|evidence">flagged</span>'
        assert cell("scores", "k", "p", None) == '<span data-cell="scores|k|p">–</span>'

    def test_what_a_name_holds_cannot_leave_the_attribute(self):
        assert '"' not in cell("t", 'a"b', "c", 1.0)[len('<span data-cell="') :].split(">")[0][:-1].replace("&#34;", "")
