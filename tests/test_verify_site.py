"""`verify` of whole sites: what was published is made anew with the same bytes, and each edit of one file is named."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from generator.commands.verify import command
from generator.publishing import build
from generator.publishing.provenance import PUBLICATION, read_publication
from generator.publishing.publish import Options, publish
from generator.schema.errors import InputError
from generator.scoring.run import score_run
from generator.verify import publication as verifying
from generator.verify.bytes import Held, check_asset_names, differences
from generator.verify.data import verify_data
from generator.verify.findings import Findings, Mismatch
from generator.verify.publication import verify_path
from generator.verify.site import remake_site
from tests.publications import MODELS, make_content, make_small_run
from tests.test_verify import edit_json, resum

FIRST, SECOND = "runs/first", "runs/second"
DATA = f"{SECOND}/data"
ONE = f"receipts/{MODELS[0]}"
SET = f"{SECOND}/{ONE}/age_stance_0"
Change = Callable[[Path], None]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A content folder with a note, a reviewer and a withdrawn response, and its site: the second run is the newer."""
    folder = tmp_path_factory.mktemp("made")
    content = make_content(folder / "content", runs=("first",))
    run = make_small_run(content, "second", date="2026-11-02", supersedes="first")
    (run / "note.txt").write_text("The first paragraph of a note.\n\nAnd <b>a second</b>.\n")
    rows = pq.read_table(run / "receipts/sim-beta__two.parquet", columns=["receipt_id"]).to_pylist()
    (content / "redactions.toml").write_text(
        f'[[redaction]]\nreceipt_id = "{rows[5]["receipt_id"]}"\nreason = "names a person"\ndate = "2026-11-30"\n'
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "score_run", lambda run, **options: score_run(run, resamples=40, **options))
        publish(Options(out=folder / "dist", content=content, base_url="https://example.org/bench"))
    return folder


def files_of(folder: Path, pattern: str) -> Path:
    return sorted(folder.glob(pattern))[0]


def word(pattern: str, replacement: str) -> Change:
    """Replace the first match in a text file."""

    def change(path: Path) -> None:
        text, count = re.subn(pattern, replacement, path.read_text(), count=1)
        assert count == 1, path
        path.write_text(text)

    return change


def last_byte(path: Path) -> None:
    body = bytearray(path.read_bytes())
    body[-3] ^= 1
    path.write_bytes(body)


def fragment(path: Path) -> None:
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).replace(b"<", b"").replace(b"the", b"teh", 1)))


def member(name: str, value: object) -> Change:
    return lambda path: edit_json(path, lambda body: body.update({name: value}))


# name: (file as a pattern below the site, what is done to it, part of the key that must be named)
EDITS: dict[str, tuple[str, Change, str]] = {
    "a word of the human audit": (f"{SECOND}/audit.html", word(r"has no human audit", "has passed its audit"), "line"),
    "a status of the run": (f"{SECOND}/run.html", word(r"simulated", "live"), "line"),
    "an operator's note": (f"{SECOND}/run.html", word(r"first paragraph", "last paragraph"), "line"),
    "a word about the judges": (f"{FIRST}/judging.html", word(r"</h1>", ", all agree</h1>"), "line"),
    "the notice of a newer run": (f"{FIRST}/index.html", word(r"Superseded by second", "Newer than second"), "line"),
    "a number out of its element": (f"{SECOND}/index.html", word(r"\b2 models\b", "9 models"), "line"),
    "a word of a model page": (f"{SECOND}/models/{MODELS[0]}.html", word(r"<h2", "<h2 hidden"), "line"),
    "a mark of a chart": (f"{SECOND}/models/{MODELS[1]}.html", word(r"<path ", '<path opacity="0" '), "line"),
    "a word of an attribute page": (f"{SECOND}/attributes/age.html", word(r"</p>", " Not so.</p>"), "line"),
    "a template on a concept page": (f"{SECOND}/concepts/age_stance_0.html", word(r"Case 0", "Case 1"), "line"),
    "a label among the siblings of a row": (
        f"{SET}/direct.g0.1.html",
        # After the vote table only: the row's own label stands before it.
        word(r"(?s)(<h2>The same.*?)\b(?:MIXED|OPPOSE|SUPPORT)\b", r"\1APPROVE"),
        "line",
    ),
    "a cost on a set page": (f"{SET}/index.html", word(r"US\$ \d", "US$ 9"), "line"),
    "a count of a plain list": (f"{SECOND}/{ONE}/index.html", word(r">\d+</td>", ">99</td>"), "line"),
    "a count of the explorer": (f"{SECOND}/receipts/index.html", word(r">\d+</td>", ">99</td>"), "line"),
    "an outcome of the explorer": (
        f"{SECOND}/receipts/rows.json",
        member("outcomes", [{"status": "scored", "label": "SUPPORT", "value": 1.0}]),
        "outcomes",
    ),
    "a row of the explorer": (f"{SECOND}/receipts/rows.bin", last_byte, "byte"),
    "the script of the receipt pages": (f"{SECOND}/receipts/script.js", word(r"^", "fake();"), "line"),
    "the style of the receipt pages": (f"{FIRST}/receipts/style.css", word(r"^", ".st-refused{display:none}"), "line"),
    "an asset under its old name": ("assets/site.*.css", word(r"^", ".notice{display:none}"), "SHA-256 in its name"),
    "a file too many among the assets": ("assets/site.*.js", lambda p: shutil.copy(p, f"{p}.js"), "file"),
    "a fragment of the search index": ("pagefind/fragment/*", fragment, "byte"),
    "the search index itself": ("pagefind/pagefind-entry.json", word(r"page_count", "page_total"), "page_count"),
    "a word of the methodology": ("methodology/limits.html", word(r"\bnot\b", "never"), "line"),
    "a word of the list of runs": ("runs/index.html", word(r"Simulated", "Published"), "line"),
    "a page gone": (f"{SECOND}/judging.html", Path.unlink, "file"),
    "a page too many": (f"{FIRST}/run.html", lambda p: shutil.copy(p, p.with_name("more.html")), "file"),
    "a page too many at the root": ("about.html", lambda p: shutil.copy(p, p.with_name("praise.html")), "file"),
    "a sitemap where nothing may be listed": (
        "robots.txt",
        lambda p: shutil.copy(p, p.with_name("sitemap.xml")),
        "file",
    ),
    "a word of the list of changes": ("changes/index.html", word(r"newest", "oldest"), "line"),
    "what robots may read": ("robots.txt", word(r"Allow", "Disallow"), "line"),
    "a program to recompute with": (f"{DATA}/recompute.py", word(r"^", "raise SystemExit(0)\n"), "line"),
    "a word of the dictionary": (f"{DATA}/DATA_DICTIONARY.html", word(r"</p>", " Trust us.</p>"), "line"),
    "the description of the data": (f"{DATA}/croissant.json", member("description", "Live answers."), "description"),
    "how to cite": (f"{DATA}/CITATION.cff", word(r"title:", "titel:"), "line"),
    "the audit's coverage": (f"{DATA}/manifest.json", member("audit_coverage", {"drawn": 200}), "audit_coverage"),
    "a size on the data page": (f"{DATA}/index.html", word(r"\d+\.\d kB", "9.9 kB"), "line"),
}  # fmt: skip
# Where the file that is named is another than the one that the edit starts from.
NAMED = {
    "a file too many among the assets": r"assets/site\.\w+\.js\.js",
    "a page too many": f"{FIRST}/more.html",
    "a sitemap where nothing may be listed": "sitemap.xml",
    "a page too many at the root": "praise.html",
}


@pytest.fixture(scope="module")
def edited(made, tmp_path_factory) -> tuple[Findings, dict[str, Path]]:
    """One copy with every edit in it, its hashes written anew, checked once; and the file of each edit."""
    dist = shutil.copytree(made / "dist", tmp_path_factory.mktemp("edited") / "dist")
    places = {}
    for name, (pattern, change, _) in EDITS.items():
        places[name] = files_of(dist, pattern)
        change(places[name])
    resum(dist / DATA)
    findings = verify_path(dist, made / "content", jobs=1)
    # Several processes name the same in the same order.
    assert verify_path(dist, made / "content", jobs=2).as_json() == findings.as_json()
    return findings, {name: path.relative_to(dist) for name, path in places.items()}


class TestEdits:
    @pytest.mark.parametrize("name", EDITS)
    def test_an_edit_of_one_file_is_named_with_its_place_and_both_values(self, edited, name):
        findings, places = edited
        file = NAMED.get(name, re.escape(places[name].as_posix()))
        named = [m for m in findings.mismatches if re.fullmatch(file, m.file) and EDITS[name][2] in m.key]
        assert named, f"{name} was not found"
        assert all(m.published != m.recomputed for m in named)

    def test_no_other_file_is_named(self, edited):
        findings, places = edited
        expected = {p.as_posix() for p in places.values()} | {f"{DATA}/SHA256SUMS", f"{DATA}/datapackage.json"}
        others = {m.file for m in findings.mismatches} - expected
        others = {name for name in others if not any(re.fullmatch(n, name) for n in NAMED.values())}
        # The index of the pages as they lie there is another, and so are the names of its files.
        assert {name for name in others if not name.startswith("pagefind/")} == set()

    def test_the_words_around_the_place_are_shown(self, edited):
        found = next(m for m in edited[0].mismatches if m.file == f"{SECOND}/judging.html")
        assert found.published == "absent"
        found = next(m for m in edited[0].mismatches if m.file == "robots.txt")
        assert (found.published, found.recomputed) == ("Disallow: /", "Allow: /")


class TestRight:
    def test_a_site_that_was_not_touched_has_no_mismatch_and_nothing_is_left_out(self, made):
        findings = verify_path(made / "dist", made / "content")
        assert findings.mismatches == []
        assert findings.notes == []
        every = [p for p in (made / "dist").rglob("*") if p.is_file()]
        receipts = [p for p in every if p.parent.name == "receipts" and p.parent.parent.name in ("data", "csv")]
        # Receipts are held against their own hashes, but those with a withdrawn response are written anew, too.
        assert findings.checked["files made anew"] == len(every) - len(receipts) + 2


@pytest.fixture(scope="module")
def found(made, tmp_path_factory):
    """Both runs, scored anew in folders that stay."""
    place = tmp_path_factory.mktemp("found")
    return {run: verify_data(made / "dist" / "runs" / run / "data", place / run)[1] for run in ("first", "second")}


def record(dist: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change publication.json and keep its form."""
    body = json.loads((dist / PUBLICATION).read_text())
    change(body)
    (dist / PUBLICATION).write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n")


class TestNotComparable:
    """Parts that this program did not make: said, never guessed at; numbers and receipts are held all the same."""

    @pytest.fixture
    def dist(self, made, tmp_path):
        return shutil.copytree(made / "dist", tmp_path / "dist")

    @pytest.fixture
    def remade(self, made, dist, found, tmp_path):
        def check(content: Path = made / "content") -> Findings:
            findings = Findings()
            remake_site(dist, found, content, tmp_path / "remade", findings)
            return findings

        return check

    def test_a_run_of_other_sources_is_named_and_the_rest_is_compared(self, dist, remade):
        record(dist, lambda body: body["runs"]["first"].update(sources="0" * 64))
        word(r"</h1>", ", perfect</h1>")(dist / FIRST / "judging.html")
        word(r"</h1>", ", perfect</h1>")(dist / SECOND / "judging.html")
        findings = remade()
        assert [m.file for m in findings.mismatches] == [f"{SECOND}/judging.html"]
        assert len(findings.notes) == 1
        assert findings.notes[0].startswith("runs/first, its pages and descriptions: they were made by sources 00000")

    def test_words_of_another_folder_are_other_sources(self, remade, tmp_path):
        findings = remade(tmp_path / "nothing")  # without a site.toml: the project's own words
        assert findings.mismatches == []
        assert [note.partition(":")[0] for note in findings.notes] == [
            "runs/first, its pages and descriptions", "runs/second, its pages and descriptions", "the root's pages",
        ]  # fmt: skip
        assert findings.checked["files made anew"] == 0

    def test_an_older_site_is_held_as_far_as_it_can_be(self, dist):
        (dist / PUBLICATION).unlink()
        word(r"case considered, repeat 1", "another answer")(dist / SET / "direct.g0.1.html")
        result = CliRunner().invoke(command, [str(dist)])
        assert result.exit_code == 1
        assert f"{SET}/direct.g0.1.html: response: published " in result.output
        assert result.output.startswith(f"{SET}/direct.g0.1.html")
        assert f"Not compared: pages: the site has no {PUBLICATION}" in result.output

    @pytest.mark.parametrize(("options", "code"), [([], 0), (["--strict"], 1)])
    def test_only_strict_fails_where_something_was_not_compared(self, dist, monkeypatch, options, code):
        notes = ["the root's pages: another release"]
        monkeypatch.setattr(verifying, "verify_path", lambda *_, **__: Findings(notes=notes))
        result = CliRunner().invoke(command, [str(dist), *options])
        assert result.exit_code == code
        assert "Not compared: the root's pages: another release.\n" in result.output

    def test_a_changed_record_is_found_where_it_shows(self, dist, remade):
        record(dist, lambda body: body["runs"].update(third=body["runs"]["first"]))
        record(dist, lambda body: body["runs"]["second"].update(note=["Another note."]))
        (dist / "CNAME").write_text("example.org")
        (dist / ".git").mkdir()
        (dist / ".git" / "HEAD").write_text("named as a whole by check_tree")
        assert {m.file for m in remade().mismatches} == {PUBLICATION, f"{SECOND}/run.html", "CNAME"}

    def test_a_record_that_cannot_be_read_is_a_mismatch(self, dist, remade):
        (dist / PUBLICATION).write_text("{}")
        assert {m.file for m in remade().mismatches} == {PUBLICATION}

    def test_a_kept_run_keeps_the_record_of_how_it_was_made(self, made, dist, monkeypatch):
        monkeypatch.setattr(build, "score_run", lambda run, **options: score_run(run, resamples=40, **options))
        monkeypatch.setattr(build, "write_search", lambda _: None)
        monkeypatch.setattr(build, "sources_version", lambda _: "1" * 64)
        before = read_publication(dist)
        publish(Options(out=dist, runs=("second",), content=made / "content", base_url="https://example.org/other"))
        after = read_publication(dist)
        assert before is not None
        assert after is not None
        assert after.runs["first"] == before.runs["first"]
        assert (after.runs["second"].sources, after.root.base_url) == ("1" * 64, "https://example.org/other")


class TestDifferences:
    @pytest.mark.parametrize(
        ("published", "right", "expected"),
        [
            (b"a\nb\nc\n", b"a\nx\nc\n", [("line 2", "b", "x")]),
            (b"b\nb\nb\n", b"x\nb\ny\n", [("line 1", "b", "x"), ("line 3", "b", "y")]),
            (b"a\nc\n", b"a\nb\nc\n", [("line 2", "nothing", "b")]),
            (b"a\nc\n", b"a\nb\nb\nc\n", [("line 2", "nothing", "b ⏎ b")]),
            (b"a\nb\nc\n", b"a\nc\n", [("line 2", "b", "nothing")]),
            (b"", b"a", [("line 1", "nothing", "a")]),
            (
                b'{"a": [1, {"b": 2}]}',
                b'{"a":[1,{"b":null,"c":3}]}',
                [("a[1].b", "2", "null"), ("a[1].c", "absent", "3")],
            ),
            (b'{"a": [1]}', b'{"a": [1, 2]}', [("a", "[1]", "[1, 2]")]),
            (b'{"a": 1}', b'{"a":1}', [("line 1", '{"a": 1}', '{"a":1}')]),
            (b"{a}", b'{"a":1}', [("line 1", "{a}", '{"a":1}')]),
            (b"\xff\x00\x01", b"\xff\x00\x02", [("byte 2", "0x01 (3 bytes)", "0x02 (3 bytes)")]),
            (b"\xff\x00", b"\xff\x00\x02", [("byte 2", "the end (2 bytes)", "0x02 (3 bytes)")]),
        ],
    )
    def test_the_place_and_both_sides_are_named(self, published, right, expected):
        assert list(differences(published, right)) == expected

    def test_a_long_line_is_shown_around_the_place(self):
        ((place, seen, right),) = differences(b"x" * 5000 + b"here" + b"y" * 5000, b"x" * 5000 + b"gone" + b"y" * 5000)
        assert place == "line 1"
        assert seen.startswith("x" * 40 + "here")
        assert right.startswith("x" * 40 + "gone")
        assert len(seen) < 200

    def test_a_file_that_differs_everywhere_is_counted(self):
        found = list(differences(b"\n".join([b"a"] * 50), b"\n".join([b"b"] * 50)))
        assert len(found) == 21
        assert found[-1] == ("lines", "50 lines that differ", "50 lines")

    def test_files_that_nothing_makes_are_named_but_for_what_others_look_after(self, tmp_path):
        for name in ("a/one.html", "a/b/two.html", "a/data/three.csv"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("x")
        held = Held(tmp_path, Findings())
        held.hold("a/one.html", b"x")
        held.hold_rest("a", beside={"a/data"})
        assert held.findings.mismatches == [Mismatch("a/b/two.html", "file", "1 bytes", "a file that nothing makes")]
        assert held.seen == {"a/one.html"}

    def test_an_asset_without_a_hash_in_its_name_is_named(self, tmp_path):
        (tmp_path / "assets").mkdir()
        (tmp_path / "assets" / "site.css").write_text("x")
        findings = Findings()
        check_asset_names(tmp_path, findings)
        assert [(m.file, m.published) for m in findings.mismatches] == [("assets/site.css", "absent")]


class TestPublication:
    def test_every_run_and_the_root_have_a_record(self, made):
        found = read_publication(made / "dist")
        assert found is not None
        assert set(found.runs) == {"first", "second"}
        assert found.runs["second"].note == ("The first paragraph of a note.", "And <b>a second</b>.")
        assert (found.runs["first"].superseded_by, found.runs["first"].linked) == ("second", ("second",))
        assert found.root.sources == found.runs["first"].sources

    def test_a_malformed_file_is_refused_with_its_faults(self, tmp_path):
        (tmp_path / PUBLICATION).write_text(json.dumps({"format": 2, "root": {}, "runs": {}}))
        with pytest.raises(InputError, match=r"publication\.json: format"):
            read_publication(tmp_path)
