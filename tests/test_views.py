"""What the pages of a run share: evidence, edges, lines of a chart, and footnotes."""

from __future__ import annotations

import pytest

from generator.pages.views import FLAG_PAGES, FLAG_WORDS, Footnotes, View
from tests.editions import make_edition
from tests.factories import answers_from, noise
from tests.names_of_bank_1 import CONTROL_PROFESSION, CONTROL_TAG

MODEL = "sim-alpha/one"


def noisy_colours(model, concept, framing, group, repeat):
    """Colours move the answers fully, professions and ages not at all, everything else a little."""
    if concept.startswith("control_tag"):
        return answers_from(float(group == "g0"))
    if concept.startswith(("control_profession", "age")):
        return answers_from(0.5)
    return answers_from(noise(model, concept, framing, group, repeat))


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    return View(make_edition(tmp_path_factory.mktemp("runs") / "test-run", answers=noisy_colours))


class TestView:
    def test_the_edge_is_the_noisier_control(self, view):
        assert view.edge(MODEL) == CONTROL_TAG

    def test_of_two_equal_controls_the_profession_is_the_edge(self, tmp_path):
        edition = make_edition(tmp_path / "test-run", answers=lambda *_: answers_from(0.5))
        assert View(edition).edge(MODEL) == CONTROL_PROFESSION

    def test_a_line_carries_its_tier_in_shape_and_word(self, view):
        line = view.line(MODEL, "age", "Age")
        assert (line.kind, line.note) == ("unresolved", "○ unresolved")
        assert (line.estimate, line.band_low, line.band_high) == (100.0, 0.0, 100.0)

    def test_a_control_is_no_tier(self, view):
        line = view.line(MODEL, CONTROL_TAG, "Color")
        assert (line.kind, line.note, line.estimate) == ("control", "control", 0.0)

    def test_evidence_is_counted_by_word(self, view):
        counts = view.evidence_counts(MODEL)
        assert sum(counts.values()) == len(view.demographic) == 7

    def test_concepts_stand_by_disparity_and_those_without_a_value_last(self, view):
        found = [result.mean for result in view.concept_results(MODEL, "gender")]
        assert found == sorted(found, reverse=True)

    def test_a_concept_s_mean_is_over_its_framings(self, view):
        result = view.concept_results(MODEL, "gender")[0]
        assert result.mean == pytest.approx((result.framings["direct"] + result.framings["professional"]) / 2)
        assert result.missing == ()

    def test_the_board_s_scale_is_never_wider_than_the_run_s(self, view):
        assert view.domain.low <= view.board_domain.low


class TestFootnotes:
    def test_letters_follow_first_use_and_stay(self):
        notes = Footnotes("runs/r/index.html")
        first, second, again = notes.mark(["sparse"]), notes.mark(["swapped", "sparse"]), notes.mark(["sparse"])
        assert ">a</a>" in first
        assert second.index(">b,</a>") < second.index(">a</a>")
        assert again == first.replace(' id="use-sparse"', "")
        assert first.count('id="use-sparse"') == 1
        assert [(letter, flag) for letter, flag, *_ in notes.notes] == [("a", "sparse"), ("b", "swapped")]

    def test_without_flags_there_is_no_mark(self):
        notes = Footnotes("index.html")
        assert notes.mark([]) == ""
        assert notes.notes == []

    def test_every_published_flag_has_words_and_a_page(self):
        from generator.schema.tables import FLAGS

        assert set(FLAG_WORDS) == set(FLAG_PAGES) == set(FLAGS)

    def test_a_note_leads_to_the_methodology(self):
        notes = Footnotes("runs/r/models/v/m.html")
        notes.mark(["swapped"])
        assert notes.notes[0][3] == "../../../../methodology/control-band.html"
