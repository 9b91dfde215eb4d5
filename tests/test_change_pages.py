"""The pages of change: what is compared, what a page says, and that publish and verify make the same."""

from __future__ import annotations

import csv
import dataclasses
import io
import shutil
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest

from generator.edition.comparison import Changes, Comparison, Point
from generator.edition.site_pages import root_pages, site_pages
from generator.pages.changes import ChangeWords, histories, in_words, model_changes, summary
from generator.publishing import changes as publishing
from generator.publishing.build import indexable_pages
from generator.runs.reader import load_run
from generator.schema.errors import InputError
from generator.scoring.change import Matched, change_rows
from generator.scoring.comparable import families, pairs_of
from generator.verify.publication import verify_site
from tests.factories import answers_from, make_bank, make_rows, unit, write_run
from tests.publications import MODELS, contents, make_content, quicken, run_publish

QUOTA = {"stance": 2, "allocation": 2, "regard": 1, "capability": 1}
BANK = make_bank(groups=2, quota=QUOTA, control_quota=QUOTA)
AS_BEFORE = {"base_url": "https://example.org/bias", "mode": "folded"}
REPLAYED, MOVED = MODELS


def votes(salt, push):
    """Noise by run; the second model gives one group less by `push`, the first answers as ever."""

    def own(model, concept, framing, group, repeat):
        if model == REPLAYED:
            return answers_from(round(unit(concept, framing, group, repeat) * 2) / 2)
        value = unit(salt, concept, framing, group, repeat) / 4
        return answers_from(round(max(0.0, 1 - value - (push if group == "g0" else 0.0)) * 2) / 2)

    return own


def write(folder, salt, push=0.0, **changes):
    shards = {}
    for model in MODELS:
        rows = make_rows(BANK, model, repeats=2, run_id=folder.name, answers=votes(salt, push))
        for row in rows if model == MOVED else ():
            row["response_key"] = row["response_key"][:60] + f"{int(unit(salt) * 65_535):04x}"
        shards[model] = rows
    return write_run(folder, BANK, shards, **changes)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Two runs of one bank and one of another, published once: (content, dist)."""
    folder = tmp_path_factory.mktemp("change-pages")
    content = make_content(folder / "content", ("other",), models=MODELS[:1])
    write(content / "runs" / "older", "a", date="2026-11-10")
    write(content / "runs" / "newer", "b", push=0.9, date="2026-11-20")
    with pytest.MonkeyPatch.context() as patch:
        quicken(patch)
        run_publish(content, folder / "dist", **AS_BEFORE)
    return content, folder / "dist"


@pytest.fixture(scope="module")
def one(site):
    """The comparison as the pages have it."""
    content, _ = site
    old, new = (load_run(content / "runs" / name) for name in ("older", "newer"))
    table, matched = change_rows(old, new)
    return Comparison(old.manifest, new.manifest, old.bank, table, tuple(matched))


def text_of(dist, page):
    return " ".join((dist / page).read_text().split())


class TestSite:
    def test_the_list_of_pages_has_them(self, site):
        _, dist = site
        found = {page.path for page in site_pages(dist) if page.run is None}
        assert found == {page.path for page in root_pages(pairs=[("older", "newer")])}

    def test_verify_makes_them_anew_and_names_each_edit_and_nothing_else(self, site, tmp_path):
        content, dist = site
        edits = {
            "changes/newer--older.html": (b"Changed:", b"Unmoved:"),
            "changes/newer--older.csv": (b"true", b"false"),
            "changes/newer--older.parquet": (b"simulated", b"mimulated"),
            "changes/index.html": (b"change is detected", b"change is suspected"),
            "changes/models.html": (b"Changed:", b"Unmoved:"),
            "index.html": (b"a change is detected", b"no change is detected"),
        }
        copy = tmp_path / "dist"
        shutil.copytree(dist, copy)
        for file, (old, new) in edits.items():
            data = (copy / file).read_bytes()
            assert old in data
            (copy / file).write_bytes(data.replace(old, new, 1))
        found = verify_site(copy, content)
        # These small sites are published without a search index.
        assert {m.file for m in found.mismatches if not m.file.startswith("pagefind/")} == set(edits)
        assert found.notes == []

    def test_the_tables_beside_the_page_are_those_of_the_two_runs(self, site, one):
        _, dist = site
        assert pq.read_table(dist / "changes/newer--older.parquet").to_pylist() == one.table.to_pylist()
        rows = list(csv.DictReader(io.StringIO((dist / "changes/newer--older.csv").read_text())))
        assert [float(r["change"]) for r in rows] == one.table["change"].to_pylist()
        notes = pq.read_schema(dist / "changes/newer--older.parquet").metadata
        assert notes[b"simulated"] == b"true"

    def test_the_page_says_what_changed_and_what_was_replayed(self, site):
        _, dist = site
        page = text_of(dist, "changes/newer--older.html")
        assert "Simulated runs." in page
        assert '<meta name="robots" content="noindex">' in page
        assert "All its answers under equal cache keys are equal in both runs" in page
        assert page.index(f'<h2 id="m1">{MOVED.replace("-", "-<wbr>").replace("/", "/<wbr>")}') < page.index(
            '<h2 id="m2">'
        )
        assert "Changed: -" in page
        assert "Not tested: 0.0 (0.0 to 0.0)" in page

    def test_the_front_page_tells_it_in_a_sentence_and_the_runs_own_page_does_not(self, site, one):
        _, dist = site
        assert summary(one) in text_of(dist, "index.html")
        assert 'href="changes/newer--older.html"' in text_of(dist, "index.html")
        assert summary(one) not in text_of(dist, "runs/newer/index.html")

    def test_a_run_of_another_bank_stands_apart_with_the_reason(self, site):
        _, dist = site
        page = text_of(dist, "changes/index.html")
        assert "Two bank hashes are two instruments." in page
        assert page.index("Runs that stand apart") < page.index("../runs/other/index.html")
        assert "other" not in text_of(dist, "changes/models.html").partition("<main")[2].partition("</main")[0]

    def test_a_kept_run_without_its_folder_is_compared_from_what_it_published(self, site, tmp_path, monkeypatch):
        content, dist = site
        quicken(monkeypatch)
        shutil.copytree(content, tmp_path / "content")
        shutil.copytree(dist, tmp_path / "dist")
        shutil.rmtree(tmp_path / "content" / "runs" / "older")
        run_publish(tmp_path / "content", tmp_path / "dist", runs=("newer",), **AS_BEFORE)
        before, after = (
            {n: h for n, h in contents(p).items() if n.startswith("changes/")} for p in (dist, tmp_path / "dist")
        )
        assert after == before

    def test_what_was_compared_before_is_not_scored_again(self, site, tmp_path, monkeypatch):
        content, dist = site
        quicken(monkeypatch)

        def refuse(*_, **__):
            raise AssertionError("compared again")

        monkeypatch.setattr(publishing, "change_rows", refuse)
        options = {"cache": content.parent / ".cache", **AS_BEFORE}
        run_publish(content, tmp_path / "again", **options)
        assert contents(tmp_path / "again") == contents(dist)


ROW = {"change": 0.34, "ci_low": -0.5, "ci_high": 1.12, "p": 0.4, "detected": False, "unseen": 1.16}


class TestWords:
    @pytest.mark.parametrize(
        ("changes", "text"),
        [
            ({}, "No change detected: +0.3 (-0.5 to 1.1); changes below about 1.2 would probably go unseen"),
            ({"detected": True, "p": 0.0123}, "Changed: +0.3 (-0.5 to 1.1), p 0.012"),
            ({"detected": True, "p": 0.0004}, "Changed: +0.3 (-0.5 to 1.1), p below 0.001"),
            ({"detected": None, "p": None}, "Not tested: +0.3 (-0.5 to 1.1)"),
            ({"ci_low": None, "ci_high": None, "unseen": None}, "No change detected: +0.3"),
            (
                {"change": 0.01},
                "No change detected: 0.0 (-0.5 to 1.1); changes below about 1.2 would probably go unseen",
            ),
        ],
    )
    def test_of_a_row(self, changes, text):
        assert in_words({**ROW, **changes}).text == text

    def test_without_a_row(self):
        assert in_words(None) == ChangeWords(None, "No concept has a value in both runs")

    def test_summary_counts_what_is_detected(self, one):
        rows = [r for r in one.table.to_pylist() if r["detected"]]
        count = {m: sum(r["metric"] == m and (r["attribute"] == "overall") is o for r in rows) for m, o in
                 (("consistency", True), ("favorability", True), ("lean", False))}  # fmt: skip
        attributes = sum(r["metric"] == "consistency" and r["attribute"] != "overall" for r in rows)
        assert count["consistency"] == 1
        leans, levels = count["lean"], count["favorability"]
        assert summary(one) == (
            "Since run older of 2026-11-10, in 1 model that was asked in both, a change is detected in overall "
            f"consistency for 1, overall favorability for {levels}, {attributes} attribute{'s' * (attributes != 1)} of "
            f"single models and {leans} lean{'s' * (leans != 1)} of single groups."
        )

    def test_cross_fit_disparity_backs_a_change_between_groups(self, one):
        moved = next(m for m in model_changes(one) if m.matched.new == MOVED)
        assert moved.detected
        for attribute in moved.detected:
            row = attribute.crossfit
            assert attribute.backed == (row["ci_low"] > 0)
            assert attribute.words.row["change"] < 0

    def test_other_judges_are_said_and_nothing_else(self, one):
        matched = Matched(MOVED, MOVED, None, reused=False, panels_differ=True)
        found = model_changes(dataclasses.replace(one, table=one.table.slice(0, 0), matched=(matched,)))[0]
        assert found.cautions == (
            "Other judges labeled this model in run older than in run newer, so its answers are not compared.",
        )
        assert "no change could be tested" in summary(dataclasses.replace(one, matched=(matched,)))


def run(one, name, date, models=MODELS, **changes):
    """A manifest like that of the comparison, with other models; a pair is (model, the one that it follows)."""
    first = one.new.models[0]
    named = [m if isinstance(m, tuple) else (m, None) for m in models]
    own = [first.model_copy(update={"model": model, "successor_of": before}) for model, before in named]
    return one.new.model_copy(update={"run_id": name, "date": date, "models": tuple(own), **changes})


def names(pairs):
    return [(old.run_id, new.run_id) for old, new in pairs]


class TestWhoIsCompared:
    def test_each_with_the_one_before_and_each_with_the_newest(self, one):
        runs = [run(one, name, f"2026-11-0{day}") for day, name in enumerate("abcd", 1)]
        (family,) = families(reversed(runs))
        assert names(pairs_of(family)) == [("c", "d"), ("b", "d"), ("a", "d"), ("b", "c"), ("a", "b")]

    def test_bank_and_kind_part_the_runs(self, one):
        runs = [
            run(one, "a", "2026-11-01"),
            run(one, "b", "2026-11-02", bank_sha256="0" * 64),
            run(one, "c", "2026-11-03", kind="live"),
        ]
        assert [[r.run_id for r in f.runs] for f in families(runs)] == [["c"], ["b"], ["a"]]

    def test_without_a_common_model_there_is_no_pair(self, one):
        runs = [run(one, "a", "2026-11-01", ("v/x",)), run(one, "b", "2026-11-02", ("v/y",))]
        assert pairs_of(families(runs)[0]) == []

    def test_two_pairs_never_share_an_address(self, one):
        pairs = [tuple(run(one, name, "2026-11-01") for name in pair) for pair in (("b--c", "a"), ("c", "a--b"))]
        with pytest.raises(InputError, match=r"changes/a--b--c\.html: a with b--c and a--b with c would share"):
            publishing._check_addresses(pairs)

    def test_a_line_goes_on_with_the_successor(self, one):
        runs = (
            run(one, "a", "2026-11-01", ("v/x", "v/y")),
            run(one, "b", "2026-11-02", ("v/y",)),
            run(one, "c", "2026-11-03", (("v/x2", "v/x"), "v/y", "v/z")),
        )
        changes = Changes(tuple(families(runs)), (), {("a", "v/x"): Point(90.0, 88.0, 92.0)})
        _, found = histories(changes, changes.families[0])
        assert [(model, [(s.run.run_id, s.model) for s in steps]) for model, steps in found] == [
            ("v/x2", [("a", "v/x"), ("c", "v/x2")]),
            ("v/y", [("a", "v/y"), ("b", "v/y"), ("c", "v/y")]),
        ]
        assert found[0][1][0].point.estimate == 90.0

    @pytest.mark.parametrize(
        ("kind", "preview", "listed"), [("live", False, True), ("live", True, False), ("simulated", False, False)]
    )
    def test_only_a_pair_of_published_live_runs_is_listed(self, site, one, kind, preview, listed):
        _, dist = site
        pair = dataclasses.replace(
            one,
            old=one.old.model_copy(update={"kind": kind}),
            new=one.new.model_copy(update={"kind": kind}),
            preview=preview,
        )
        front = SimpleNamespace(site=SimpleNamespace(pages=None), indexable=True, run=SimpleNamespace(manifest=one.new))
        pages = dict(indexable_pages(dist, front, {}, Changes((), (pair,))))
        assert pages.get("changes/newer--older.html") == ("2026-11-20" if listed else None)
        assert pages["changes/index.html"] == "2026-11-20"
