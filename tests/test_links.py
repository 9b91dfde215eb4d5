"""Links of a finished site: each leads to a file and a place that are there, or publish stops."""

from __future__ import annotations

import shutil

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from generator.commands.publish import command
from generator.edition import paths
from generator.html.links import dead_links, page_links, resolved
from generator.schema.canonical import sha256_hex
from generator.schema.errors import InputError
from tests.publications import _quick, answers, contents, make_content, make_small_run, run_publish  # noqa: F401

BASE = "https://example.org/bench"
PAGE = "runs/one/models/sim-a/b.html"
NAME = st.text(alphabet="abcxyz019_-", min_size=1, max_size=8)


class TestPageLinks:
    def test_links_and_places_are_read_as_a_browser_reads_them(self):
        found = page_links(
            b"<!doctype html><title>x</title><a href=a.html#one id=first>a</a>"
            b"<A HREF='b.html?x=1&amp;y=2' name=old>b</A>"
            b"<!-- <a href='no.html' id=none> --><script src=s.js>'<a href=\"never.html\">'</script>"
            b"<img src=i.png><form action=search.html></form><p id=''><p id=a&quot;b>&lt;a href=text.html&gt;"
        )
        assert found.targets == ("a.html#one", "b.html?x=1&y=2", "s.js", "i.png", "search.html")
        assert found.anchors == {"first", "old", 'a"b'}


class TestResolved:
    @pytest.mark.parametrize(
        ("target", "base_url", "expected"),
        [
            ("", None, (PAGE, "")),
            ("#x", None, (PAGE, "x")),
            ("../../index.html#a%20b", None, ("runs/one/index.html", "a b")),
            ("../../../../index.html", None, ("index.html", "")),
            ("../../../../../index.html", None, ("../index.html", "")),
            ("../../../..", None, ("index.html", "")),
            ("../../data/", None, ("runs/one/data/index.html", "")),
            ("c%20d.html?e=f", None, ("runs/one/models/sim-a/c d.html", "")),
            ("/about.html", None, ("about.html", "")),
            ("/bench/about.html", BASE, ("about.html", "")),
            ("/bench", BASE, ("index.html", "")),
            ("/elsewhere.html", BASE, None),
            (f"{BASE}/runs/one/index.html#x", BASE, ("runs/one/index.html", "x")),
            (BASE, BASE, ("index.html", "")),
            (f"{BASE}mark/x.html", BASE, None),
            ("https://example.com/", None, None),
            ("mailto:a@b.c", None, None),
            ("//example.com/x", None, None),
            ("https://[", None, ("https://[", "")),
        ],
    )
    def test_an_address_is_resolved_as_in_a_browser(self, target, base_url, expected):
        assert resolved(PAGE, target, base_url) == expected

    @given(st.lists(NAME, min_size=1, max_size=5), st.lists(NAME, min_size=1, max_size=5), NAME)
    def test_what_the_site_writes_leads_back_to_where_it_was_meant(self, page, target, anchor):
        here, there = "/".join(page) + ".html", "/".join(target) + ".html"
        assert resolved(here, paths.relative(here, f"{there}#{anchor}")) == (there, anchor)


class TestDeadLinks:
    @pytest.fixture
    def site(self, tmp_path):
        for name, text in {
            "index.html": "<a href=a/b.html#here></a><a href=a/b.html#there></a><a href=a/></a><a href=../x></a>",
            "a/b.html": "<p id=here><a href=#top><a href=#><a href=#gone>"
            "<a href=../runs/r/receipts/index.html#model=x>",
            "runs/r/receipts/index.html": "<a href='#model=x'><a href='../../../a/b.html#model=x'><a href=t.json#x>",
            "runs/r/receipts/t.json": "{}",
        }.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return tmp_path

    def test_each_is_named_with_page_address_and_what_is_missing(self, site):
        pages = ["index.html", "a/b.html", "runs/r/receipts/index.html"]
        assert list(map(str, dead_links(site, pages))) == [
            "index.html: a/b.html#there: a/b.html has no place of that name",
            "index.html: a/: a/index.html is not there",
            "index.html: ../x: leads out of the site",
            "a/b.html: #gone: a/b.html has no place of that name",
            "runs/r/receipts/index.html: ../../../a/b.html#model=x: a/b.html has no place of that name",
        ]

    def test_a_page_that_is_not_checked_itself_is_read_for_its_places(self, site):
        assert [link.target for link in dead_links(site, ["index.html"])] == ["a/b.html#there", "a/", "../x"]


class TestPublish:
    def test_a_dead_place_stops_the_publish_and_the_old_site_stays(self, tmp_path):
        content, out = make_content(tmp_path / "content"), tmp_path / "dist"
        run_publish(content, out)
        before = contents(out)
        (content / "pages").mkdir()
        # Every page of a run leads to `about.html#mismatch`.
        (content / "pages" / "about.md").write_text("# About us\n\nNothing here.\n")
        with pytest.raises(InputError, match=r"index\.html: .*about\.html#mismatch: about\.html has no place") as error:
            run_publish(content, out)
        assert error.value.faults[-1] == "the old site was left as it is"
        assert any("/receipts/" in fault for fault in error.value.faults)  # one of each template, not of each answer
        assert contents(out) == before

    def test_a_kept_run_with_a_dead_link_is_told_and_stops_nothing(self, tmp_path):
        content, out = make_content(tmp_path / "content", runs=("first", "second")), tmp_path / "dist"
        run_publish(content, out)
        page = out / "runs" / "first" / "run.html"
        page.write_text(page.read_text().replace("index.html", "nowhere.html", 1))
        shutil.rmtree(content / "runs" / "first")
        told = []
        from generator.publishing.publish import Options, publish

        publish(Options(out=out, content=content), told.append)
        assert [line for line in told if "nowhere.html is not there" in line] != []

    def test_a_preview_without_a_worked_example_has_no_dead_link(self, tmp_path):
        def no_controls(model, concept, framing, group, repeat):
            return (None, 0.5) if concept.startswith("control") else answers(model, concept, framing, group, repeat)

        content = tmp_path / "content"
        make_content(content, runs=())
        make_small_run(content, "first", answers=no_controls)
        run_publish(content, tmp_path / "dist", preview=True)
        assert "no excess over a control to follow" in (tmp_path / "dist/methodology/worked-example.html").read_text()


def test_publish_prints_the_pin_of_every_run_also_where_nothing_changed(tmp_path):
    content, out = make_content(tmp_path / "content", runs=("first", "second")), tmp_path / "dist"
    expected = []
    for _ in range(2):
        told = CliRunner().invoke(command, ["--content", str(content), "--out", str(out), "--jobs", "1"]).stdout
        expected = [
            f"Pin of run {run}: {sha256_hex((out / 'runs' / run / 'data' / 'manifest.json').read_bytes())}"
            for run in ("first", "second")
        ]
        assert [line for line in told.splitlines() if line.startswith("Pin of")] == expected
