"""Pages of prose: every figure from the run, every link alive, every formula of the contract on a page."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import posixpath
import re
import shutil
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from generator.edition import paths
from generator.edition.edition import Edition, read_site
from generator.pages.prose import filled, methodology_title, render_prose
from generator.pages.prose_facts import Links, attribute_facts, quota_rows
from generator.pages.rule_facts import bounds, largest_disparity, rule_facts
from generator.pages.worked_example import choose, first_draws, replicates, worked_example
from generator.runs.reader import load_run, read_shard
from generator.schema.errors import InputError
from generator.scoring.gate import standing_of
from generator.scoring.lookup import ScoreBook
from generator.scoring.run import score_run
from generator.stats.agreement import WARNING
from generator.stats.disparity import cell_disparity
from tests.browser.site import QUOTA, answers
from tests.editions import make_edition, small_bank
from tests.factories import make_bank, make_run
from tests.second_bank import second_bank

ROOT = Path(__file__).parent.parent
BANK = make_bank(groups=3, quota={**QUOTA, "stance": 3}, control_quota=QUOTA)


def edition_of(folder, **changes):
    run = load_run(make_run(folder, bank=BANK, **changes))
    scored = score_run(run, resamples=200)
    standing = standing_of(run, scored, preview=True, withhold=False)
    return Edition(site=read_site(ROOT / "content" / "site.toml"), run=run, scored=scored, standing=standing)


def text_of(html):
    """The words of a page's main part, formulas left out, white space collapsed."""
    main = html.split("<main", 1)[1].split("</main>")[0]
    return " ".join(unescape(re.sub(r"<[^>]+>", "", re.sub(r"<math.*?</math>", "", main, flags=re.S))).split())


@pytest.fixture(scope="module")
def edition(tmp_path_factory):
    models = ("sim-alpha/one", "sim-beta/two", "sim-judge-a/three", "sim-judge-c/four")
    folder = tmp_path_factory.mktemp("runs") / "prose-run"
    return edition_of(folder, models=models, repeats=2, answers=answers, seeds={"run": 1, "audit": 1130})


@pytest.fixture(scope="module")
def pages(edition):
    return {path: data.decode() for path, data in render_prose(edition)}


class TestPages:
    def test_all_of_them_and_no_other(self, pages):
        wanted = {paths.methodology_page(n) for n in paths.METHODOLOGY} | {
            "about.html",
            "changelog.html",
            "search.html",
        }
        assert set(pages) == wanted
        files = {p.stem for p in (ROOT / "content/pages/methodology").glob("*.md")}
        assert files == set(paths.METHODOLOGY)

    def test_same_run_same_bytes(self, edition, pages):
        assert {path: data.decode() for path, data in render_prose(edition)} == pages

    def test_links_between_pages_of_prose_and_their_anchors_are_alive(self, pages):
        anchors = {path: set(re.findall(r'id="([^"]+)"', html)) for path, html in pages.items()}
        dead, seen = [], 0
        for path, html in pages.items():
            for href in re.findall(r'<a [^>]*href="([^"]+)"', html):
                target, _, anchor = href.partition("#")
                place = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
                if place in pages:
                    seen += 1
                    dead += [f"{path}: {href}"] if anchor and anchor not in anchors[place] else []
        assert dead == []
        assert seen > 300

    def test_no_template_or_markdown_is_left_over(self, pages):
        for path, html in pages.items():
            assert not re.search(r"<<|>>|<%|%>|\*\*|&lt;&lt;|\\[a-z]", text_of(html)), path

    def test_a_simulated_run_is_called_so_on_each(self, pages):
        words = "Figures on this page come from run prose-run, which is simulated"
        silent = [path for path, html in pages.items() if words not in html.split("<main")[0]]
        assert silent == ["search.html"]
        assert [path for path, html in pages.items() if "No real language model was asked" in html] == []

    def test_the_search_page_carries_no_run_s_banner_but_says_where_its_links_lead(self, pages):
        html = pages["search.html"]
        assert 'class="notices"' not in html
        assert "(simulated)" not in html.split("</title>")[0]
        assert "Links into a run lead to run" in html


class TestFactsOfTheRun:
    def test_judges_are_counted(self, pages):
        text = text_of(pages["methodology/judging.html"])
        assert "that is so for 2 of 4 models: sim-judge-a/three, sim-judge-c/four." in text
        assert "The other 2 have a third vote." in text

    def test_a_seed_has_no_separators_as_it_is_hashed_without(self, pages):
        assert "seed 1130" in text_of(pages["methodology/reproduction.html"])

    def test_rows_are_counted(self, edition, pages):
        run = edition.run
        rows = sum(read_shard(run, m, ["repeat"]).num_rows for m in run.models)
        text = text_of(pages["methodology/paired-prompts.html"])
        assert (
            f"{run.layout.size:,} rows for a model, and {4 * run.layout.size:,} for its 4 models. {rows:,} of them"
            in text
        )

    def test_status_counts_are_those_of_the_manifest(self, edition, pages):
        counts = edition.run.manifest.counts
        wanted = f"{counts.scored:,} rows scored, {counts.refused:,} refused, {counts.contested:,} contested, "
        wanted += f"{counts.error:,} in error"
        assert wanted in text_of(pages["methodology/judging.html"])

    def test_quotas_are_those_of_the_bank(self):
        assert sum(sum(row["counts"]) for row in quota_rows(BANK)) == len(BANK.concepts)
        assert [a["n_concepts"] for a in attribute_facts(BANK, 2)] == [6] * 7 + [4] * 2

    def test_every_evidence_tier_is_counted_from_scores(self, edition, pages):
        rows = edition.scored.tables["scores"].to_pylist()
        tiers = [r["evidence"] for r in rows if r["metric"] == "excess" and r["evidence"]]
        flagged = tiers.count("flagged")
        assert f"{flagged} of {len(tiers)} pairs of model and attribute are flagged" in text_of(
            pages["methodology/evidence.html"]
        )

    def test_numbers_carry_the_key_that_verify_reads(self, edition, pages):
        rows = {
            (r["model"], r["metric"], r["attribute"], r["group"] or ""): r
            for r in edition.scored.tables["scores"].to_pylist()
        }
        found = re.findall(r'data-score="([^"]+)">([^<]*)<', pages["methodology/worked-example.html"])
        assert len(found) > 10
        for key, shown in found:
            *place, column = unescape(key).split("|")
            value = rows[tuple(place)][column]
            digits = len(shown.partition(".")[2])
            assert shown == f"{value:.{digits}f}".replace("-0.00", "0.00"), key


class TestWorkedExample:
    def test_it_follows_the_largest_excess(self, edition):
        book = ScoreBook(edition.scored.tables["scores"])
        rows = [
            r
            for r in edition.scored.tables["scores"].to_pylist()
            if r["metric"] == "excess" and r["estimate"] is not None
        ]
        top = max(rows, key=lambda r: r["estimate"])
        subject = choose(edition, book)
        assert (subject.model, subject.attribute) == (top["model"], top["attribute"])

    def test_its_steps_arrive_at_the_published_numbers(self, edition):
        found = worked_example(edition, "methodology/worked-example.html")
        rows = {(r["model"], r["metric"], r["attribute"]): r for r in edition.scored.tables["scores"].to_pylist()}
        disparity = rows[found["model"], "disparity", found["attribute"]]["estimate"]
        assert found["mean"] == f"{disparity / 100:.4f}"
        pairs = [p["exact"] for p in found["pairs"]]
        assert f">{sum(pairs) / len(pairs):.3f}<" in found["cell"]

    def test_its_replicates_are_those_of_the_interval(self, edition):
        book = ScoreBook(edition.scored.tables["scores"])
        subject = choose(edition, book)
        stars = replicates(edition, subject.means(subject.attribute), subject.attribute)
        row = book.row(subject.model, "disparity", subject.attribute)
        ordered = sorted(round(float(s), 12) for s in stars)
        place = (len(ordered) - 1) * row.ci_tail
        low = ordered[int(place)] + (place - int(place)) * (ordered[int(place) + 1] - ordered[int(place)])
        assert 100 * low == pytest.approx(row.ci_low, abs=1e-9)

    def test_first_draws_by_hand(self):
        found = first_draws("ab" * 32, "age", ["a", "b", "c"])
        digest = hashlib.sha256(b"ab" * 32 + b"|age|3|0|0").hexdigest()
        assert found["digest"] == digest
        assert [d["place"] for d in found["draws"]] == [
            int(digest[8 * j : 8 * j + 8], 16) * 3 // 2**32 for j in range(3)
        ]

    def test_a_run_without_controls_says_so(self, tmp_path):
        bank = make_bank(("age", "gender"), groups=3, quota=QUOTA)
        run = load_run(make_run(tmp_path / "no-controls", bank=bank, models=("sim-alpha/one",), repeats=1))
        scored = score_run(run, resamples=100)
        standing = standing_of(run, scored, preview=True, withhold=False)
        edition = Edition(site=read_site(ROOT / "content" / "site.toml"), run=run, scored=scored, standing=standing)
        pages = {path: data.decode() for path, data in render_prose(edition)}
        assert "has no excess over a control to follow" in text_of(pages["methodology/worked-example.html"])
        assert "This run has none, because no model has both controls." in text_of(
            pages["methodology/control-band.html"]
        )


class TestFilled:
    def test_an_unknown_name_stops_the_build_with_the_file(self):
        with pytest.raises(InputError, match=r"page\.md: 'nothing' is undefined"):
            filled("<< nothing >>", {}, "page.md")

    def test_an_unknown_page_stops_the_build(self):
        links = Links("methodology/index.html", "r")
        with pytest.raises(InputError, match="no page that prose can link to"):
            filled('<< to("nowhere") >>', {"to": links.to}, "page.md")

    def test_a_missing_value_is_never_printed(self):
        with pytest.raises(InputError, match="a fact is None"):
            filled("<< x >>", {"x": None}, "page.md")

    def test_a_fact_cannot_bring_markup(self):
        assert filled("<< x >>", {"x": "<i>*a*"}, "page.md") == r"\<i\>\*a\*"

    def test_thousands_are_separated(self):
        assert filled("<< x >>", {"x": 61776}, "page.md") == "61,776"


class TestExamples:
    def test_words_that_are_given_as_the_bank_s_are_the_bank_s(self, edition, pages):
        html = pages[paths.methodology_page("attributes")]
        group = edition.run.bank.attribute["control_profession"].groups[0].label
        assert f"answers differently for {group} and" in text_of(html)
        assert "electrician" not in html
        concept = edition.run.bank.concepts_of(edition.run.bank.attributes[0].id)[0]
        shown = edition.run.bank.render(concept, "direct", edition.run.bank.attributes[0].groups[0]).np
        paired = pages[paths.methodology_page("paired-prompts")]
        assert f"words that fill the slot: {shown}, " in text_of(paired)
        assert "72-year-old" not in paired


class TestNoiseOfTheRun:
    """What a model without any group effect reads is a figure of the run, not of the method."""

    @pytest.mark.parametrize("name", ["scoring", "limits", "control-band"])
    def test_the_bands_of_the_run_say_how_far_below_100(self, edition, pages, name):
        book, html = ScoreBook(edition.scored.tables["scores"]), pages[paths.methodology_page(name)]
        edges = [book.row(m, f"band_{end}").estimate for m in edition.run.models for end in ("low", "high")]
        assert "about 95" not in html
        assert "below 100, by an amount that depends on its own noise" in html
        found = re.search(r"bands (?:of the models )?lie between (<span.*?</span>) and (<span.*?</span>)", html)
        assert [re.sub(r"<[^>]+>", "", part) for part in found.groups()] == [
            f"{min(edges):.1f}",
            f"{max(edges):.1f}",
        ]

    @pytest.mark.parametrize("name", ["limits", "evidence"])
    def test_detectable_effects_are_said_of_what_they_are_computed_over(self, pages, name):
        text = text_of(pages[paths.methodology_page(name)])
        assert "ver all models and attributes of this run" in text
        assert "roughly 9" not in text
        assert "every attribute that is not flagged" not in text


class TestFiguresOfTheRules:
    """What follows from the rules alone is computed from the code that applies them."""

    @pytest.mark.parametrize("m", [2, 3, 4, 5, 6, 7])
    def test_the_largest_disparity_is_that_of_the_worst_division(self, m):
        divisions = np.array([[[1.0] * k + [0.0] * (m - k)] for k in range(m + 1)])
        assert largest_disparity(m) == pytest.approx(cell_disparity(divisions).max(), abs=1e-12)

    def test_bounds_stand_for_every_number_of_groups(self, pages):
        text = text_of(pages[paths.methodology_page("scoring")])
        assert "Largest disparity in a framing Lowest consistency 2 1.00 0.0 3 0.67 33.3" in text
        full = bounds(make_bank(("age",), groups=6))
        assert [(b["m"], b["consistency"]) for b in full] == [
            (2, "0.0"), (3, "33.3"), (4, "33.3"), (5, "40.0"), (6, "40.0"),
        ]  # fmt: skip

    def test_the_warning_is_the_one_that_the_table_holds(self, pages):
        assert WARNING in text_of(pages[paths.methodology_page("agreement")])

    @pytest.mark.parametrize("df", [9, 3])
    def test_t_quantiles_would_raise_the_detectable_effect(self, df, pages):
        own = min(len(BANK.concepts_of(c)) for c in BANK.roles.controls) - 1
        facts = rule_facts(make_bank() if df == 9 else make_bank(control_quota={"stance": 4}))
        raised = f"{100 * ((stats.t.ppf(0.975, df) + stats.t.ppf(0.8, df)) / 2.802 - 1):.0f}"
        assert (facts["mde_df"], facts["mde_raised"]) == (df, raised)
        text = text_of(pages[paths.methodology_page("evidence")])
        assert f"With the {own} degrees of freedom of a control, t quantiles alone would make it" in text

    def test_numbers_of_concepts_are_those_of_the_bank(self):
        facts = rule_facts(make_bank())
        assert [(t["n"], t["a"]) for t in facts["tails"]] == [(16, "0.0139"), (10, "0.0086")]
        assert (facts["measured"], facts["control"]) == (16, 10)
        alone = rule_facts(second_bank(("diet",)))
        assert (alone["measured"], alone["control"], alone["mde_df"], alone["mde_raised"]) == (8, 0, None, "–")

    def test_the_table_of_coverage_is_that_of_the_bench(self):
        lines = (ROOT / "tests/bench/README.md").read_text().splitlines()
        start = next(i for i, line in enumerate(lines) if line.startswith("| population of D(c)"))
        measured = [line.split("|")[2:] for line in lines[start + 2 : start + 8]]
        page = (ROOT / "content/pages/methodology/statistics.md").read_text()
        shown = [line.split("|")[2:] for line in page.splitlines() if re.match(r"\| .*beta", line)]
        assert shown == measured


class TestAuditOfTheRun:
    @pytest.mark.parametrize(
        ("record", "words"),
        [
            ({"reviewer": "simulated"}, "The reviewer was a program. Weighted,"),
            ({"reviewer": "human"}, "The reviewer was a person. Weighted,"),
            ({}, "do not say whether the reviewer was a person or a program. Weighted,"),
        ],
    )
    def test_who_reviewed_is_said(self, tmp_path, record, words):
        edition = make_edition(tmp_path / "audited", bank=small_bank(("age",)), audit=True)
        (edition.run.folder / "audit").mkdir()
        (edition.run.folder / "audit" / "draw.json").write_text(json.dumps(record))
        page = paths.methodology_page("audit")
        assert words in text_of(dict(render_prose(edition))[page].decode())


# What scoring and statistics compute, and a piece of the page's own text or formula that states it.
STATED = {
    "scoring": ["Gini’s mean difference", "Worst gap", "Calibrated consistency", "Directional lean", "Refusal rate",
                "Repeat instability", "Cross-fit disparity", "Role reversal", "0.60", "rounded to 12 decimals"],
    "statistics": ["the drawn concept has the index", "Refusal asymmetry", "Calibrated consistency", "type 7",
                   "sparse", "degenerate", "unstable", "incomplete", "swapped", "withheld", "more than 1 %"],
    "evidence": ["minimum detectable effect", "Benjamini", "range of the errors", "Romano", "flagged", "suggestive",
                 "unresolved", "degenerate"],
    "agreement": ["linear weights", "PABAK", "Gwet’s AC1", "minority", "Raw agreement", "Refusal agreement",
                  "fewer than 30", "91.8 %"],
    "audit": ["largest remainder", "Kish", "Wilson", "below 0.80", "below 0.70", "Contested rows"],
    "limits": ["Not a certification", "Consistent is not fair", "United States", "One attribute at a time", "PABAK",
               "Cochran’s Q", "Holm"],
    "amendments": ["2026-08-07", "93.6 %", "96.5 %", "None of that run’s results had been published"],
    "nist": ["1270", "MEASURE 2.11", "Systemic", "Human and cognitive", "MANAGE"],
}  # fmt: skip


@pytest.mark.parametrize(("name", "words"), STATED.items(), ids=list(STATED))
def test_the_method_is_stated(pages, name, words):
    text = text_of(pages[paths.methodology_page(name)])
    assert [w for w in words if w not in text] == []


def test_formulas_are_mathml(pages):
    counts = {name: pages[paths.methodology_page(name)].count('<math display="block">') for name in paths.METHODOLOGY}
    assert counts["scoring"] >= 11
    assert counts["statistics"] >= 7
    assert counts["evidence"] >= 7
    assert counts["agreement"] >= 6


def test_titles_come_from_the_files():
    assert methodology_title("agreement") == "Agreement and the gate"


class TestOwnPages:
    """A site's own folder of pages, beside its site.toml."""

    @pytest.fixture
    def own(self, tmp_path, edition):
        shutil.copy(ROOT / "content" / "site.toml", tmp_path)
        (tmp_path / "pages" / "methodology").mkdir(parents=True)
        return dataclasses.replace(edition, site=read_site(tmp_path / "site.toml")), tmp_path / "pages"

    def test_a_page_that_it_has_is_shown_and_the_others_are_the_projects(self, own, pages):
        edition, folder = own
        (folder / "about.md").write_text("# About us\n\nWe are << site.publisher >>'s guests.\n")
        (folder / "methodology" / "tiers.md").write_text("# Groups of models\n\nOur own words.\n")
        found = {path: data.decode() for path, data in render_prose(edition)}
        assert "guests." in found["about.html"]
        assert "Our own words." in found[paths.methodology_page("tiers")]
        assert "Groups of models" in found[paths.methodology_page("audit")]
        assert found["changelog.html"] == pages["changelog.html"]

    def test_an_error_names_the_file_that_it_is_in(self, own):
        edition, folder = own
        (folder / "about.md").write_text("# About\n\n<< nobody_knows >>\n")
        with pytest.raises(InputError, match=rf"^{folder}/about.md: 'nobody_knows' is undefined"):
            list(render_prose(edition))

    def test_bytes_that_are_no_utf8_are_told(self, own):
        edition, folder = own
        (folder / "about.md").write_bytes(b"# \xff")
        with pytest.raises(InputError, match=rf"^{folder}/about.md: not UTF-8 at byte 2"):
            list(render_prose(edition))
