"""The glossary: every word that the schema publishes has its entry, and every entry leads to what settles it."""

from __future__ import annotations

import posixpath
import re

import pytest

from generator.edition import paths
from generator.edition.edition import Edition, read_site
from generator.html.markdown import slug
from generator.pages.prose import render_prose
from generator.runs.reader import load_run
from generator.schema.tables import AGREEMENT, FLAGS, METRICS, SCORES
from generator.schema.verdict import STATUSES
from generator.scoring.gate import Standing
from generator.scoring.run import score_run
from tests.factories import make_bank, make_run

PAGE = paths.methodology_page("glossary")


def words_of(table, column):
    """The closed list of words in a column's description: `a, b or c.`"""
    text = next(c.description for c in table if c.name == column)
    return re.findall(r"\w+", text.replace(" or ", " "))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    bank = make_bank(groups=2, quota={"stance": 1}, control_quota={"stance": 1})
    run = load_run(make_run(tmp_path_factory.mktemp("runs") / "words", bank=bank, models=("sim-alpha/one",), repeats=2))
    edition = Edition(read_site(), run, score_run(run, resamples=20), Standing("published", ()))
    return {path: data.decode() for path, data in render_prose(edition)}


@pytest.fixture(scope="module")
def terms(pages):
    return set(re.findall(r'<(?:dt|dt><code|code|span) id="([^"]+)"', pages[PAGE]))


class TestEveryWordHasAnEntry:
    @pytest.mark.parametrize("name", [*METRICS, *FLAGS, *STATUSES])
    def test_metrics_flags_and_statuses(self, terms, name):
        assert slug(name) in terms

    def test_evidence_tiers_and_outcomes_of_the_gate(self, terms):
        tiers, outcomes = words_of(SCORES, "evidence"), words_of(AGREEMENT, "gate")
        assert tiers[:3] == ["flagged", "suggestive", "unresolved"]
        tiers = tiers[:3]
        assert outcomes == ["kappa", "pabak", "fail", "insufficient"]
        assert {*tiers, *outcomes} - terms == set()

    def test_measures_of_agreement(self, terms):
        names = [c.name for c in AGREEMENT if f"{c.name}_ci_low" in {other.name for other in AGREEMENT}]
        assert len(names) == 7
        assert {slug(name) for name in names} - terms == set()


class TestEveryEntry:
    def test_stands_once_and_leads_to_a_section_that_is_there(self, pages):
        entries = re.findall(r'<dt id="([^"]+)">.*?</dt>\n<dd>(.*?)</dd>', pages[PAGE], re.DOTALL)
        assert len(entries) > 80
        assert len({anchor for anchor, _ in entries}) == len(entries)
        anchors = {path: set(re.findall(r'id="([^"]+)"', html)) for path, html in pages.items()}
        for anchor, text in entries:
            href = re.search(r'<span class="more"><a href="([^"]+)">', text)[1]
            target, _, section = href.partition("#")
            page = posixpath.normpath(posixpath.join("methodology", target)) if target else PAGE
            assert section in anchors[page], (anchor, href)

    def test_says_it_in_one_or_two_sentences(self, pages):
        for anchor, text in re.findall(r'<dt id="([^"]+)">.*?</dt>\n<dd>(.*?) <span class="more">', pages[PAGE]):
            plain = re.sub(r"<[^>]+>", "", text)
            assert 20 < len(plain) < 260, anchor
            assert 1 <= len(re.findall(r"[.!?](?= [A-Z]|$)", plain)) <= 3, anchor

    def test_no_escape_of_markdown_shows(self, pages):
        assert "\\" not in pages[PAGE].split("<main")[1]
        assert ">words</a> asked each prompt" in pages[PAGE]

    def test_the_index_and_the_contents_of_every_page_lead_here(self, pages):
        for name in paths.METHODOLOGY:
            page = paths.methodology_page(name)
            assert f'<a href="{posixpath.basename(PAGE)}"' in pages[page], page
