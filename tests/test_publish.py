"""publish: which runs are built, kept, removed; what the root shows; what is refused; the old site stays whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from generator.machine import site_tree as trees
from generator.publishing import build as building
from generator.publishing import publish as publishing
from generator.publishing.kept_parts import KeptParts
from generator.publishing.publish import Options, publish
from generator.schema.errors import CheckError, InputError
from tests import factories
from tests.browser.site import live_judges
from tests.factories import make_bank, make_rows, write_run
from tests.publications import (
    QUOTA,
    ROOT,
    _quick,  # noqa: F401 - an autouse fixture
    answers,
    contents,
    inodes,
    make_content,
    make_small_run,
    own_words,  # noqa: F401
    quicken,
    run_publish,
)


def make_live_run(content: Path, run: str, date: str) -> Path:
    """A run of kind live with too few rows for its gate: publishable only as a preview."""
    bank = make_bank(groups=2, quota=QUOTA, control_quota=QUOTA)
    with live_judges():
        rows = make_rows(bank, "alpha/one", repeats=2, run_id=run, answers=answers)
        judges = factories.JUDGES.model_dump(mode="json")
        return write_run(content / "runs" / run, bank, {"alpha/one": rows}, kind="live", judges=judges, date=date)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """Two simulated runs, published once."""
    folder = tmp_path_factory.mktemp("base")
    with pytest.MonkeyPatch.context() as patch:
        quicken(patch)
        run_publish(make_content(folder / "content", ("first", "second")), folder / "dist")
    return folder


@pytest.fixture
def site(base, tmp_path):
    """A copy of that publication, without its state: a site as a host or a colleague hands it over."""
    subprocess.run(["cp", "-r", base / "content", base / "dist", tmp_path], check=True)
    return tmp_path / "content", tmp_path / "dist"


class TestWhichRuns:
    def test_all_runs_are_built_and_the_newest_is_in_front(self, base):
        out = base / "dist"
        assert (out / "runs/first/index.html").is_file()
        assert (out / "runs/second/index.html").is_file()
        assert 'href="runs/second/receipts/index.html"' in (out / "index.html").read_text()

    def test_a_named_run_is_rebuilt_and_the_others_stay_byte_for_byte(self, site, own_words):  # noqa: F811
        content, out = site
        templates, _ = own_words
        style = templates / "static" / "site.css"
        style.write_text(style.read_text() + "\n.other { color: red; }\n")
        before = contents(out)
        outcome = run_publish(content, out, runs=("second",))
        assert (outcome.built, outcome.kept) == (["second"], ["first"])
        after = contents(out)
        own = [p for p in before if p.startswith("runs/first/")]
        assert [p for p in own if after.get(p) != before[p]] == []
        styles = {p.name for p in (out / "assets").glob("site.*.css")}
        assert len(styles) == 2
        named = {
            run: [name for name in styles if name in (out / f"runs/{run}/index.html").read_text()]
            for run in ("first", "second")
        }
        assert sorted(named["first"] + named["second"]) == sorted(styles)

    def test_a_run_whose_folder_is_gone_stays(self, site):
        content, out = site
        before = contents(out)
        subprocess.run(["rm", "-r", content / "runs" / "first"], check=True)
        outcome = run_publish(content, out)
        assert outcome.kept == ["first"]
        after = contents(out)
        assert [p for p in before if p.startswith("runs/first/") and after.get(p) != before[p]] == []

    def test_the_root_shows_a_kept_run_from_its_published_files(self, site):
        content, out = site
        before = contents(out)
        subprocess.run(["rm", "-r", content / "runs" / "second"], check=True)
        outcome = run_publish(content, out)
        assert outcome.front == "second"
        assert contents(out)["index.html"] == before["index.html"]

    def test_a_new_run_leaves_the_old_ones_as_they_are(self, tmp_path):
        content, out = make_content(tmp_path / "content"), tmp_path / "dist"
        run_publish(content, out)
        kept = inodes(out)
        make_small_run(content, "third", date="2026-11-20")
        outcome = run_publish(content, out)
        assert (outcome.built, outcome.kept, outcome.front) == (["third"], ["first"], "third")
        now = inodes(out)
        assert [p for p in kept if p.startswith("runs/first/") and now[p] != kept[p]] == []

    def test_both_runs_say_which_supersedes_which(self, site):
        content, out = site
        make_small_run(content, "second", date="2026-11-02", supersedes="first")
        run_publish(content, out)
        row = "receipts/sim-alpha/one/age_stance_0/direct.g0.0.html"
        assert "Superseded by second" in (out / "runs/first" / row).read_text()
        assert "supersedes first" in (out / "runs/second" / row).read_text()

    def test_an_unknown_run_is_refused_with_those_there_are(self, site):
        content, out = site
        with pytest.raises(InputError, match=r"run third: no finished run .* there are: first, second"):
            run_publish(content, out, runs=("third",))

    def test_no_run_at_all_is_refused(self, tmp_path):
        content = make_content(tmp_path / "content", ())
        with pytest.raises(InputError, match="no finished run to publish"):
            run_publish(content, tmp_path / "dist")


class TestRemove:
    def test_a_removed_run_leaves_a_tombstone_that_later_publishes_keep(self, site):
        content, out = site
        outcome = run_publish(content, out, remove=("first",))
        assert outcome.removed == ["first"]
        left = [p for p in contents(out) if p.startswith("runs/first/")]
        assert left == ["runs/first/index.html"]
        page = (out / left[0]).read_text()
        assert "was removed" in page
        assert "noindex" in page
        assert "first" in (out / "runs/index.html").read_text()
        again = run_publish(content, out)
        assert [p for p in contents(out) if p.startswith("runs/first/")] == left
        assert again.removed in ([], ["first"])

    def test_a_removed_run_comes_back_by_its_name(self, site):
        content, out = site
        run_publish(content, out, remove=("first",))
        outcome = run_publish(content, out, runs=("first",))
        assert outcome.built == ["first"]
        assert (out / "runs/first/data/manifest.json").is_file()

    def test_a_run_that_is_not_there_is_refused(self, site):
        content, out = site
        with pytest.raises(InputError, match="--remove third"):
            run_publish(content, out, remove=("third",))


class TestStanding:
    @pytest.fixture
    def mixed(self, tmp_path):
        content = make_content(tmp_path / "content")
        make_live_run(content, "real", "2026-11-25")
        return content

    def test_a_live_run_that_fails_is_refused_and_nothing_is_written(self, mixed, tmp_path):
        with pytest.raises(CheckError, match="run real"):
            run_publish(mixed, tmp_path / "dist")
        assert not (tmp_path / "dist").exists()
        assert not trees.building(tmp_path / "dist").exists()

    def test_a_preview_says_why_on_every_page_and_never_fronts_the_site(self, mixed, tmp_path):
        out = tmp_path / "dist"
        outcome = run_publish(mixed, out, preview=True, base_url="https://example.org/b")
        assert outcome.front == "first"
        pages = sorted((out / "runs/real").rglob("*.html"))
        assert len(pages) > 100
        silent = [p for p in pages if "Preview with real models, not a result" not in p.read_text()]
        assert [p.relative_to(out).as_posix() for p in silent if p.name != "DATA_DICTIONARY.html"] == []
        assert [p for p in pages if 'content="noindex"' not in p.read_text()] == []
        assert not (out / "sitemap.xml").exists()
        assert "Sitemap" not in (out / "robots.txt").read_text()

    def test_every_page_of_a_simulated_run_says_so(self, base):
        pages = sorted((base / "dist").rglob("*.html"))
        silent = [p.relative_to(base / "dist").as_posix() for p in pages if "imulated" not in p.read_text()]
        assert [p for p in silent if p != "404.html"] == []


class TestAddresses:
    def test_sitemap_and_feed_list_a_publishable_live_run(self, tmp_path, monkeypatch):
        content, out = make_content(tmp_path / "content"), tmp_path / "dist"
        make_live_run(content, "real", "2026-11-25")
        passes = building.standing_of
        monkeypatch.setattr(
            building,
            "standing_of",
            lambda run, scored, **asked: (
                building.Standing("published", ()) if run.manifest.kind == "live" else passes(run, scored, **asked)
            ),
        )
        outcome = run_publish(content, out, base_url="https://example.org/b")
        assert outcome.front == "real"
        names = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9"}
        found = [e.text for e in ET.parse(out / "sitemap.xml").getroot().iterfind(".//s:loc", names)]
        row = "https://example.org/b/runs/real/receipts/alpha/one/age_stance_0/direct.g0.0.html"
        assert row in found
        assert "https://example.org/b/index.html" in found
        assert [f for f in found if "/runs/first/" in f or "404" in f] == []
        files = {f"https://example.org/b/{p}" for p in contents(out) if p.endswith(".html")}
        assert set(found) <= files
        assert "Run real" in (out / "feed.xml").read_text()
        assert "first" not in (out / "feed.xml").read_text()


class TestInterrupted:
    def test_a_failing_task_leaves_the_old_site_and_no_rubbish(self, site, monkeypatch):
        content, out = site
        before = contents(out)

        def fail(*_):
            raise RuntimeError("disk on fire")

        monkeypatch.setattr(building, "make_receipts", fail)
        with pytest.raises(RuntimeError, match="disk on fire"):
            run_publish(content, out)
        assert contents(out) == before
        assert not trees.building(out).exists()

    def test_a_killed_publish_leaves_the_old_site_and_the_next_one_clears_up(self, site):
        content, out = site
        before = contents(out)
        code = (
            "import os, signal; from generator.publishing import build;"
            "from generator.publishing.publish import Options, publish;"
            "from pathlib import Path;"
            "build.write_root = lambda *_: os.kill(os.getpid(), signal.SIGKILL);"
            f"publish(Options(out=Path({str(out)!r}), content=Path({str(content)!r}), jobs=2))"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert done.returncode == -signal.SIGKILL
        assert contents(out) == before
        assert trees.building(out).exists()
        deadline = time.monotonic() + 60
        while True:  # workers of the killed process end with it, and only then is the lock free
            try:
                run_publish(content, out)
                break
            except InputError:
                assert time.monotonic() < deadline
                time.sleep(0.2)
        assert not trees.building(out).exists()
        assert (out / "runs/first/data/manifest.json").is_file()

    def test_without_the_exchange_call_the_swap_still_works(self, site, monkeypatch):
        content, out = site
        monkeypatch.setattr(trees, "_exchanged", lambda *_: False)
        run_publish(content, out)
        assert (out / "index.html").is_file()
        assert [p.name for p in out.parent.iterdir() if p.name.startswith(".dist.") and p.is_dir()] == []

    def test_a_publish_killed_between_the_two_renames_is_put_right(self, site):
        _, out = site
        before = contents(out)
        out.rename(out.parent / ".dist.old")
        with trees.locked(out):
            assert contents(out) == before

    def test_a_second_publish_at_the_same_time_is_refused(self, site):
        content, out = site
        with trees.locked(out), pytest.raises(InputError, match="another publish"):
            run_publish(content, out)

    def test_a_folder_that_no_publish_made_is_never_replaced(self, site, tmp_path):
        content, _ = site
        other = tmp_path / "papers"
        other.mkdir()
        (other / "thesis.txt").write_text("the only copy")
        with pytest.raises(InputError, match="no publish made"):
            run_publish(content, other)
        assert (other / "thesis.txt").read_text() == "the only copy"

    def test_a_place_where_no_site_can_stand_is_refused_before_anything_is_walked(self, tmp_path, monkeypatch):
        monkeypatch.setattr(publishing, "footprint", lambda _: pytest.fail("walked"))
        content = make_content(tmp_path / "content")
        file, link = tmp_path / "file", tmp_path / "link"
        file.write_text("x")
        link.symlink_to(tmp_path)
        for out, words in (
            (Path("/"), "a mount point"),
            (file, "no publish made"),
            (file / "dist", "is a file"),
            (link, "symbolic link"),
        ):
            with pytest.raises(InputError, match=words):
                run_publish(content, out)


def _anybody_in(session: int) -> bool:
    try:
        os.killpg(session, 0)
    except ProcessLookupError:
        return False
    return True


class TestState:
    def test_a_site_stands_though_its_state_cannot_be_kept(self, tmp_path):
        content, said = make_content(tmp_path / "content"), []
        (tmp_path / ".cache").mkdir()
        (tmp_path / ".cache" / "publish").write_text("a file where the folder of states would be")
        publish(Options(out=tmp_path / "dist", content=content), said.append)
        assert (tmp_path / "dist" / "runs/first/index.html").is_file()
        assert "the next publish makes everything anew" in said[-1]


class TestProcesses:
    def test_workers_of_a_killed_publish_end_even_when_it_dies_as_they_start(self):
        code = (
            "import os, signal; from generator.machine.workers import local_workers\n"
            "with local_workers(2): os.kill(os.getpid(), signal.SIGKILL)"
        )
        killed = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stderr=subprocess.DEVNULL)
        assert killed.wait() == -signal.SIGKILL
        deadline = time.monotonic() + 60
        while _anybody_in(killed.pid):
            assert time.monotonic() < deadline, "a worker outlives its publish"
            time.sleep(0.1)

    def test_two_processes_give_the_same_bytes_as_one(self, base, tmp_path):
        options = {"content": base / "content", "cache": tmp_path / "cache"}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(building, "write_search", lambda _: None)
            publish(Options(out=tmp_path / "dist", jobs=2, **options))
        assert contents(tmp_path / "dist") == contents(base / "dist")

    def test_a_fault_in_a_worker_reaches_the_person(self, base, tmp_path, monkeypatch):
        monkeypatch.setattr(building, "receipt_task", lambda *_: None)
        monkeypatch.setattr(KeptParts, "receipts_stand", lambda *_: False)
        with pytest.raises(AttributeError):
            publish(Options(out=tmp_path / "dist", content=base / "content", jobs=2, cache=tmp_path / "cache"))
        assert not (tmp_path / "dist").exists()
        assert not trees.building(tmp_path / "dist").exists()


class TestCommand:
    def command(self, *arguments, cwd=ROOT):
        call = [sys.executable, "-m", "generator", "publish", *map(str, arguments)]
        return subprocess.run(call, cwd=cwd, capture_output=True, text=True)

    def test_it_publishes_and_says_what_it_did(self, base, tmp_path):
        out = tmp_path / "dist"
        done = self.command("--content", base / "content", "--out", out, "--jobs", 1, "--json", "first")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert (found["built"], found["front"], found["changed"]) == (["first"], "first", True)
        assert found["files"] == len(contents(out))
        assert "row mode: about" in done.stderr
        assert (out / "pagefind" / "pagefind.js").is_file()
        again = self.command("--content", base / "content", "--out", out, "--jobs", 1, "first")
        assert again.stdout.startswith(f"{out} is up to date")

    def test_bad_input_is_one_line_and_exit_2(self, base, tmp_path):
        done = self.command("--content", base / "content", "--out", tmp_path / "dist", "nothing")
        assert done.returncode == 2
        assert done.stderr.startswith("error: run nothing: no finished run")
        assert "Traceback" not in done.stderr

    def test_a_base_url_without_a_scheme_is_refused(self, base, tmp_path):
        done = self.command("--content", base / "content", "--out", tmp_path / "dist", "--base-url", "example.org")
        assert done.returncode == 2
        assert "use an absolute address" in done.stderr
