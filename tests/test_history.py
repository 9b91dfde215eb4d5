"""history.toml: what was withdrawn and superseded, kept with the runs (contract: publication, "History")."""

from __future__ import annotations

import shutil

import pytest
from click.testing import CliRunner

from generator.cli import aibiasbench
from generator.edition.history import History, Supersession, Withdrawal, add_entry, read_history
from generator.schema.errors import InputError
from generator.verify.publication import verify_site
from tests.publications import (
    MODELS,
    _quick,  # noqa: F401 - an autouse fixture
    contents,
    make_content,
    make_small_run,
    quicken,
    run_publish,
)

AS_BEFORE = {"base_url": "https://example.org/bias", "mode": "folded"}


def run_command(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(aibiasbench, list(words))
    if code == 2 and isinstance(result.exception, InputError):
        return str(result.exception)
    assert result.exit_code == code, result.output
    return result.output


class TestReadHistory:
    def test_no_file_is_an_empty_history(self, tmp_path):
        assert read_history(tmp_path / "history.toml") == History()

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ('[[withdrawn]]\nrun = "a"\ndate = "20261201"\nreason = "x"', "use YYYY-MM-DD"),
            ('[[withdrawn]]\nrun = "a"\ndate = "2026-12-01"\nreason = ""', "reason"),
            ('[[withdrawn]]\nrun = "a"\ndate = "2026-12-01"', "reason"),
            ('[[withdrawn]]\nrun = "a"\ndate = 2026-12-01\nreason = "x"\n' * 2, "run a is withdrawn twice"),
            ('[[superseded]]\nrun = "a"\nby = "a"\ndate = 2026-12-01', "run a would supersede itself"),
            (
                (
                    '[[superseded]]\nrun = "a"\nby = "b"\ndate = 2026-12-01\n'
                    '[[superseded]]\nrun = "b"\nby = "a"\ndate = 2026-12-01'
                ),
                "run a would supersede itself",
            ),
            ("[[removed]]\n", "removed"),
            ("[[withdrawn", "not TOML"),
        ],
    )
    def test_each_fault_is_named_with_the_file(self, tmp_path, text, words):
        file = tmp_path / "history.toml"
        file.write_text(text)
        with pytest.raises(InputError) as error:
            read_history(file)
        assert words in str(error.value)
        assert "history.toml" in str(error.value)

    def test_a_date_may_be_written_without_quotes(self, tmp_path):
        file = tmp_path / "history.toml"
        file.write_text('[[withdrawn]]\nrun = "a"\ndate = 2026-12-01\nreason = "x"')
        assert read_history(file).withdrawal("a") == Withdrawal(run="a", date="2026-12-01", reason="x")


class TestAddEntry:
    def test_what_stands_there_stays_and_any_text_comes_back(self, tmp_path):
        file = tmp_path / "history.toml"
        file.write_text('# our own words\n[[withdrawn]]\nrun = "a"\ndate = 2026-12-01\nreason = "x"')
        reason = 'a "quoted" \\ reason, ünïcode'
        add_entry(file, "withdrawn", {"run": "b", "date": "2026-12-02", "reason": reason})
        assert file.read_text().startswith("# our own words\n")
        assert [(e.run, e.reason) for e in read_history(file).withdrawn] == [("a", "x"), ("b", reason)]

    def test_a_refused_entry_leaves_the_file_as_it_was(self, tmp_path):
        file = tmp_path / "history.toml"
        add_entry(file, "withdrawn", {"run": "a", "date": "2026-12-01", "reason": "x"})
        before = file.read_bytes()
        with pytest.raises(InputError, match=r"/history\.toml: run a is withdrawn twice"):
            add_entry(file, "withdrawn", {"run": "a", "date": "2026-12-02", "reason": "y"})
        assert file.read_bytes() == before
        assert [p.name for p in tmp_path.iterdir()] == ["history.toml"]


class TestSuccessors:
    def test_an_entry_goes_before_manifests_and_a_withdrawn_run_replaces_none(self):
        history = History(
            withdrawn=(Withdrawal(run="d", date="2026-12-01", reason="x"),),
            superseded=(
                Supersession(run="a", by="c", date="2026-12-01"),
                Supersession(run="b", by="d", date="2026-12-01"),
            ),
        )
        assert history.successors({"a": "b", "b": "c"}) == {"a": "c", "b": "c"}


@pytest.fixture(scope="class")
def two_trees(tmp_path_factory, request):
    """Three runs published; then one is withdrawn and one superseded: the site brought up to date, and a clone's."""
    folder = tmp_path_factory.mktemp("trees")
    with pytest.MonkeyPatch.context() as patch:
        quicken(patch)
        content = make_content(folder / "content", ("first", "second", "third"), models=MODELS[:1])
        had = folder / "had" / "dist"
        had.parent.mkdir()
        run_publish(content, had, **AS_BEFORE)
        own = ("--content", str(content))
        reason = "prompts of <b>two</b> groups were swapped"
        run_command("withdraw", "third", "--date", "2026-12-01", "--reason", reason, *own)
        run_command("supersede", "first", "--by", "second", "--date", "2026-12-02", *own)
        outcome = run_publish(content, had, **AS_BEFORE)
        clone = folder / "clone"
        shutil.copytree(content, clone / "content")
        run_publish(clone / "content", clone / "dist", **AS_BEFORE)
    return content, had, clone / "dist", outcome


class TestTwoTrees:
    def test_a_clone_without_the_site_gives_the_same_tree(self, two_trees):
        _, had, fresh, _ = two_trees
        assert contents(had) == contents(fresh)

    def test_the_withdrawn_run_left_its_tombstone_alone_with_date_and_reason(self, two_trees):
        _, had, fresh, outcome = two_trees
        assert (outcome.removed, outcome.front) == (["third"], "second")
        for out in (had, fresh):
            assert [p for p in contents(out) if p.startswith("runs/third/")] == ["runs/third/index.html"]
            page = (out / "runs/third/index.html").read_text()
            assert "was withdrawn" in page
            assert "2026-12-01" in page
            assert "prompts of &lt;b&gt;two&lt;/b&gt; groups were swapped" in page
            assert "prompts of &lt;b&gt;two" in (out / "runs/index.html").read_text()

    def test_the_superseded_run_says_so_on_its_pages(self, two_trees):
        _, had, _, _ = two_trees
        assert "Superseded by" in (had / "runs/first/index.html").read_text()

    def test_verify_finds_nothing(self, two_trees):
        content, had, _, _ = two_trees
        found = [str(m) for m in verify_site(had, content).mismatches]
        # These small sites are published without a search index.
        assert [line for line in found if not line.startswith("pagefind/")] == []

    def test_a_withdrawn_run_never_comes_back(self, two_trees):
        content, had, _, _ = two_trees
        before = contents(had)
        with pytest.raises(InputError, match=r"run third: withdrawn on 2026-12-01 .* never published again"):
            run_publish(content, had, runs=("third",), **AS_BEFORE)
        assert contents(had) == before

    def test_a_changed_folder_does_not_bring_it_back_either(self, two_trees):
        content, had, _, _ = two_trees
        before = contents(had)
        make_small_run(content, "third", date="2026-12-20")
        run_publish(content, had, **AS_BEFORE)
        assert contents(had) == before


class TestCommands:
    def test_a_run_that_is_not_there_is_refused_and_nothing_is_written(self, tmp_path):
        content = make_content(tmp_path / "content")
        told = run_command(
            "withdraw", "other", "--date", "2026-12-01", "--reason", "x", "--content", str(content), code=2
        )
        assert "run other: no finished run of that name" in told
        assert "there are: first" in told
        assert not (content / "history.toml").exists()

    def test_no_date_is_taken_from_a_clock(self, tmp_path):
        content = make_content(tmp_path / "content")
        assert "--date" in run_command("withdraw", "first", "--reason", "x", "--content", str(content), code=2)
