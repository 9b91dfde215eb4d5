"""What a second publish makes again: decided by contents, and byte for byte what a clean build gives."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from generator.data import receipts as receipt_files
from generator.publishing import build as building
from generator.publishing import fingerprints as incremental
from generator.publishing import hosts
from generator.publishing import kept_parts as parts
from generator.publishing import plan as publish_plan
from generator.publishing import publish as publishing
from generator.publishing import tasks as publish_tasks
from generator.publishing.fingerprints import footprint, read_state, run_version, state_file, text_hash, write_state
from generator.receipts.lists import render_list
from generator.runs import reader as shards
from generator.schema.errors import InputError
from tests.publications import (
    MODELS,
    _quick,  # noqa: F401 - an autouse fixture
    answers,
    contents,
    forget,
    inodes,
    make_content,
    make_small_run,
    own_words,  # noqa: F401
    quicken,
    run_publish,
)

ROW = "runs/first/receipts/{}/age_stance_0/direct.g0.0.html"
ONE, TWO = (ROW.format(model) for model in MODELS)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A content folder and its publication, made once."""
    folder = tmp_path_factory.mktemp("base")
    with pytest.MonkeyPatch.context() as patch:
        quicken(patch)
        run_publish(make_content(folder / "content"), folder / "dist")
    return folder


@pytest.fixture
def site(base, tmp_path):
    """A copy of that publication with its state, as if it had been made here."""
    shutil.copytree(base / "content", tmp_path / "content")
    shutil.copytree(base / "dist", tmp_path / "dist")
    state = state_file(tmp_path / ".cache", tmp_path / "dist")
    state.parent.mkdir(parents=True)
    shutil.copy(state_file(base / ".cache", base / "dist"), state)
    shutil.copytree(base / ".cache" / "scores", tmp_path / ".cache" / "scores")
    return tmp_path / "content", tmp_path / "dist"


def clean(content, tmp_path, **changes):
    """The contents of a build from nothing."""
    out = tmp_path / "clean"
    run_publish(content, out, cache=tmp_path / "other-cache", **changes)
    return contents(out)


def changed_answers(model, concept, framing, group, repeat):
    """The same answers but for the second model."""
    found = answers(model, concept, framing, group, repeat)
    return (0.0, 0.0) if model == MODELS[1] else found


def with_one_prompt(run, shard, prompt):
    """Write a shard anew with one prompt in all its rows, and its hash into the manifest."""
    path, manifest = run / f"receipts/{shard}.parquet", json.loads((run / "manifest.json").read_bytes())
    table = pq.read_table(path, partitioning=None)
    column = pa.array([prompt] * table.num_rows, table.schema.field("prompt").type)
    pq.write_table(table.set_column(table.column_names.index("prompt"), table.schema.field("prompt"), column), path)
    entry = next(e for e in manifest["shards"] if e["file"] == f"receipts/{shard}.parquet")
    entry["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (run / "manifest.json").write_text(json.dumps(manifest))


class TestNothingChanged:
    def test_nothing_is_built(self, site, monkeypatch):
        content, out = site
        before = inodes(out)
        monkeypatch.setattr(building, "build", lambda *_: pytest.fail("built although nothing changed"))
        assert run_publish(content, out).changed is False
        assert inodes(out) == before

    def test_time_stamps_of_inputs_do_not_count(self, site):
        content, out = site
        for path in content.rglob("*"):
            os.utime(path, (time.time() + 1000, time.time() + 1000))
        assert run_publish(content, out).changed is False

    def test_a_lock_or_ledger_in_the_run_folder_does_not_count(self, site):
        content, out = site
        (content / "runs" / "first" / "judge.lock").write_text("held")
        (content / "runs" / "first" / "ledger.sqlite").write_text("spent")
        assert run_publish(content, out).changed is False

    def test_a_page_that_was_edited_or_deleted_is_made_again(self, site, base):
        content, out = site
        (out / ONE).write_text("edited by hand")
        (out / TWO).unlink()
        assert run_publish(content, out).changed is True
        assert contents(out) == contents(base / "dist")

    def test_a_lost_or_damaged_state_costs_time_and_nothing_else(self, site, base, tmp_path):
        content, out = site
        file = state_file(tmp_path / ".cache", out)
        assert file.is_file()
        file.write_text("{")
        assert run_publish(content, out).changed is True
        assert contents(out) == contents(base / "dist")


class TestOneShardChanged:
    def test_only_its_pages_and_the_numbers_change(self, site, tmp_path):
        content, out = site
        before, kept = contents(out), inodes(out)
        make_small_run(content, "first", answers=changed_answers, date="2026-11-01")
        run_publish(content, out)
        after, now = contents(out), inodes(out)
        assert after == clean(content, tmp_path)
        assert now[ONE] == kept[ONE]
        assert after[TWO] != before[TWO]
        assert after["runs/first/index.html"] != before["runs/first/index.html"]
        shard = "runs/first/data/receipts/sim-alpha__one.parquet"
        assert now[shard] == kept[shard]
        others = [p for p in after if after[p] == before.get(p) and not p.startswith("runs/first/receipts/sim-beta/")]
        assert len(others) > 200
        assert [path for path in others if now[path] != kept[path]] == []

    def test_nothing_of_another_model_is_made_or_checked(self, site, monkeypatch):
        content, out = site
        make_small_run(content, "first", answers=changed_answers, date="2026-11-01")
        done = []

        def watched(what, function):
            def note(*arguments, **options):
                named = [a if isinstance(a, str) else getattr(a, "model", None) for a in arguments]
                done.append((what, next(n for n in named if n in MODELS)))
                return function(*arguments, **options)

            return note

        monkeypatch.setattr(parts, "write_receipt_files", watched("files", parts.write_receipt_files))
        monkeypatch.setattr(publish_tasks, "render_list", lambda e, m: watched("list", lambda n: render_list(e, n))(m))
        monkeypatch.setattr(shards, "check_rows", watched("checks", shards.check_rows))
        run_publish(content, out)
        assert sorted(done) == [(what, MODELS[1]) for what in ("checks", "files", "list")]

    def test_a_shard_that_does_not_match_the_manifest_is_refused_though_it_was_checked(self, site):
        content, out = site
        shard = content / "runs/first/receipts/sim-alpha__one.parquet"
        shard.write_bytes(shard.read_bytes()[:-1] + b"x")
        with pytest.raises(InputError, match="changed after the run"):
            run_publish(content, out)

    def test_another_answer_is_checked_though_all_else_is_known(self, site):
        content, out = site
        make_small_run(content, "first", answers=changed_answers, date="2026-11-01")
        with_one_prompt(content / "runs/first", "sim-beta__two", "another prompt")
        with pytest.raises(InputError, match="column prompt"):
            run_publish(content, out)

    def test_receipts_of_a_split_shard_are_kept_with_their_parts(self, tmp_path, monkeypatch):
        monkeypatch.setattr(receipt_files, "SIZE_LIMIT", 60_000)
        content, out = make_content(tmp_path / "content"), tmp_path / "dist"
        run_publish(content, out)
        kept = inodes(out)
        make_small_run(content, "first", answers=changed_answers, date="2026-11-01")
        run_publish(content, out)
        pieces = [p for p in kept if p.startswith("runs/first/data/receipts/sim-alpha__one__")]
        assert len(pieces) > 2
        assert [p for p in pieces if inodes(out)[p] != kept[p]] == []
        assert contents(out) == clean(content, tmp_path)

    def test_a_withdrawn_response_changes_the_files_and_pages_of_its_model_alone(self, site, tmp_path):
        content, out = site
        kept = inodes(out)
        redact(content, first_row(content))
        run_publish(content, out)
        assert contents(out) == clean(content, tmp_path)
        now = inodes(out)
        files = [f"runs/first/data/receipts/{name}.parquet" for name in ("sim-alpha__one", "sim-beta__two")]
        assert [now[p] == kept[p] for p in (ONE, TWO, *files)] == [True, False, True, False]


class TestWordsAndLooks:
    def test_a_stylesheet_scores_nothing_and_renders_no_receipt_again(self, site, tmp_path, own_words, monkeypatch):  # noqa: F811
        templates, _ = own_words
        content, out = site
        kept = inodes(out)
        style = templates / "static" / "site.css"
        style.write_text(style.read_text() + "\n.new { color: red; }\n")
        forget()
        with monkeypatch.context() as patch:
            patch.setattr(building, "score_run", lambda *_, **__: pytest.fail("scored although no receipt changed"))
            run_publish(content, out)
        now = inodes(out)
        pages = [p for p in now if p.startswith("runs/first/receipts/") and p.count("/") == 6]
        assert len(pages) == 2 * 18 * (2 * 2 * 2 + 1)
        assert [p for p in pages if now[p] != kept[p]] == []
        assert b".new { color: red; }" in (out / "runs/first/receipts/style.css").read_bytes()
        assert contents(out) == clean(content, tmp_path)

    def test_a_sentence_of_prose_renders_no_receipt_again(self, site, tmp_path, own_words):  # noqa: F811
        _, words = own_words
        content, out = site
        kept = inodes(out)
        page = words / "about.md"
        page.write_text(page.read_text() + "\nOne more sentence.\n")
        run_publish(content, out)
        assert inodes(out)[ONE] == kept[ONE]
        assert "One more sentence." in (out / "about.html").read_text()
        assert contents(out) == clean(content, tmp_path)

    def test_a_receipt_template_renders_every_receipt_again(self, site, tmp_path, own_words):  # noqa: F811
        templates, _ = own_words
        content, out = site
        page = templates / "_judged.html"
        page.write_text(page.read_text().replace("Show what the judges saw", "Show it as the judges saw it"))
        forget()
        run_publish(content, out)
        assert "as the judges saw it" in (out / ONE).read_text()
        assert "as the judges saw it" in (out / TWO).read_text()
        assert contents(out) == clean(content, tmp_path)

    def test_new_code_makes_everything_again(self, site, monkeypatch):
        content, out = site
        kept = inodes(out)
        monkeypatch.setattr(publish_plan, "code_version", lambda: "another")
        run_publish(content, out)
        assert inodes(out)[ONE] != kept[ONE]


def redact(content, row):
    """Withdraw the response of one row."""
    (content / "redactions.toml").write_text(
        f'[[redaction]]\nreceipt_id = "{row["receipt_id"]}"\nreason = "asked for"\ndate = "2026-11-02"\n'
    )


def first_row(content, run="first", shard="sim-beta__two"):
    """The first receipt of a shard."""
    return pq.read_table(content / f"runs/{run}/receipts/{shard}.parquet", partitioning=None).to_pylist()[0]


class TestTheFrontRunIsKept:
    def test_though_its_receipts_were_not_published_as_they_are(self, tmp_path):
        content, out = make_content(tmp_path / "content", ("older", "newer")), tmp_path / "dist"
        redact(content, first_row(content, "newer"))
        assert run_publish(content, out).front == "newer"
        (content / "runs/older/note.txt").write_text("something else")
        done = run_publish(content, out)
        assert (done.built, done.front) == (["older"], "newer")
        assert contents(out) == clean(content, tmp_path)
        (content / "runs/older/note.txt").write_text("something else again")
        assert run_publish(content, out, runs=("older",)).kept == ["newer"]

    def test_it_is_named_where_its_folder_has_changed_since(self, tmp_path):
        content, out = make_content(tmp_path / "content", ("older", "newer")), tmp_path / "dist"
        redact(content, first_row(content, "newer"))
        run_publish(content, out)
        for run in ("older", "newer"):
            (content / f"runs/{run}/note.txt").write_text("something else")
        with pytest.raises(InputError, match=r"name it, too: publish \.\.\. newer"):
            run_publish(content, out, runs=("older",))
        assert run_publish(content, out, runs=("older", "newer")).built == ["newer", "older"]


class TestATreeThatIsNotWhatWasLeft:
    def test_a_named_publish_vouches_for_no_other_run(self, tmp_path):
        content, out = make_content(tmp_path / "content", ("older", "newer")), tmp_path / "dist"
        run_publish(content, out)
        page = out / "runs/newer/index.html"
        page.write_text(page.read_text() + "<p>forged")
        run_publish(content, out, runs=("older",))
        assert "forged" in page.read_text()
        run_publish(content, out)
        assert contents(out) == clean(content, tmp_path)

    def test_a_state_from_before_the_last_swap_vouches_for_nothing(self, tmp_path):
        content, out = make_content(tmp_path / "content", ("older", "newer")), tmp_path / "dist"
        run_publish(content, out)
        file = state_file(tmp_path / ".cache", out)
        before = file.read_bytes()
        run_publish(content, out, base_url="https://one.example")
        file.write_bytes(before)
        run_publish(content, out, runs=("older",))
        run_publish(content, out)
        assert contents(out) == clean(content, tmp_path)

    def test_what_another_publish_did_meanwhile_is_seen_under_the_lock(self, tmp_path, monkeypatch):
        content, out = make_content(tmp_path / "content", ("older", "newer")), tmp_path / "dist"
        run_publish(content, out)
        (content / "runs/older/note.txt").write_text("something else")
        locked, ready = publishing.locked, []

        def late(folder):
            if not ready:
                ready.append(folder)
                run_publish(content, out, base_url="https://one.example")
            return locked(folder)

        monkeypatch.setattr(publishing, "locked", late)
        run_publish(content, out)
        assert ready
        assert contents(out) == clean(content, tmp_path)


class TestModeOfAllRuns:
    def test_a_run_more_folds_the_others_and_one_less_unfolds_them(self, tmp_path, monkeypatch):
        content, out = make_content(tmp_path / "content"), tmp_path / "dist"
        run_publish(content, out)
        alone = read_state(state_file(tmp_path / ".cache", out)).sizes["first"]["row"][0]
        monkeypatch.setitem(hosts.HOSTS, "cloudflare-pages", hosts.Host("cloudflare-pages", files=alone * 3 // 2))
        run_publish(content, out, host="cloudflare-pages")
        assert (out / ONE).is_file()
        make_small_run(content, "second", date="2026-11-02")
        run_publish(content, out, host="cloudflare-pages")
        assert not (out / ONE).exists()
        assert contents(out) == clean(content, tmp_path, host="cloudflare-pages")
        shutil.rmtree(content / "runs/second")
        run_publish(content, out, host="cloudflare-pages", remove=("second",))
        assert (out / ONE).is_file()


class TestSupersedes:
    def test_a_link_to_the_older_run_appears_with_its_page(self, tmp_path):
        content, out = make_content(tmp_path / "content"), tmp_path / "dist"
        make_small_run(content, "second", date="2026-11-02", supersedes="third")
        run_publish(content, out)
        make_small_run(content, "third", date="2026-10-01")
        run_publish(content, out)
        assert contents(out) == clean(content, tmp_path)


class TestDamage:
    def test_a_damaged_data_manifest_is_made_again(self, site, base):
        content, out = site
        (out / "runs/first/data/manifest.json").write_text('{"run"')
        run_publish(content, out)
        assert contents(out) == contents(base / "dist")

    @pytest.mark.parametrize(
        "state",
        [
            {"runs": ["x"]}, {"checked": {"first": 5}}, {"runs": {"first": 1}}, {"tree": 5}, {"sizes": {"first": {}}},
            {"modes": {"first": []}}, {"unknown": 1}, [],
        ],
    )  # fmt: skip
    def test_a_state_of_other_types_is_none(self, tmp_path, state):
        file = tmp_path / "state.json"
        file.write_text(json.dumps({"format": incremental.FORMAT, "state": state}))
        assert read_state(file) == incremental.State()
        file.write_text("[" * 100_000)
        assert read_state(file) == incremental.State()

    def test_a_page_larger_than_the_host_takes_is_found(self, tmp_path, monkeypatch):
        monkeypatch.setitem(hosts.HOSTS, "s3", hosts.Host("s3", file_bytes=20_000))
        with pytest.raises(InputError, match=r"a file of .* MB, s3 takes 0\.0 MB"):
            run_publish(make_content(tmp_path / "content"), tmp_path / "dist", host="s3")
        assert not (tmp_path / "dist").exists()


class TestGhosts:
    def test_pages_of_a_model_that_left_are_gone(self, site, tmp_path):
        content, out = site
        make_small_run(content, "first", models=MODELS[:1], date="2026-11-01")
        run_publish(content, out)
        assert not (out / TWO).exists()
        assert (out / ONE).exists()
        assert contents(out) == clean(content, tmp_path)

    def test_row_pages_are_gone_in_folded_mode(self, site, tmp_path):
        content, out = site
        run_publish(content, out, mode="folded")
        assert not (out / ONE).exists()
        assert (out / ONE).with_name("index.html").exists()
        assert contents(out) == clean(content, tmp_path, mode="folded")


class TestHashes:
    def test_texts_are_told_apart_from_their_neighbours(self):
        assert text_hash("ab", "c") != text_hash("a", "bc")

    def test_a_run_is_known_by_names_and_contents(self, tmp_path):
        content = make_content(tmp_path / "content")
        folder = content / "runs" / "first"
        before = run_version(folder)
        assert run_version(folder) == before
        (folder / "note.txt").write_text("A note on the run page.")
        assert run_version(folder) != before

    def test_the_record_of_the_audits_draw_counts_and_its_sheets_do_not(self, tmp_path):
        (tmp_path / "audit").mkdir()
        found = [run_version(tmp_path)]
        for name in ("sheet.csv", "sheet.html", "draw.json"):
            (tmp_path / "audit" / name).write_text("x")
            found.append(run_version(tmp_path))
        assert found[0] == found[1] == found[2] != found[3]

    def test_a_sites_own_page_of_prose_counts(self, tmp_path):
        (tmp_path / "pages").mkdir()
        before = incremental.content_version(tmp_path)
        (tmp_path / "pages" / "about.md").write_text("# About us\n")
        assert incremental.content_version(tmp_path) != before

    def test_the_footprint_counts_files_and_bytes(self, tmp_path):
        (tmp_path / "a" / "b").mkdir(parents=True)
        (tmp_path / "a" / "one").write_bytes(b"123")
        (tmp_path / "a" / "b" / "two").write_bytes(b"4567")
        found = footprint(tmp_path)
        assert (found.files, found.bytes) == (2, 7)
        assert footprint(tmp_path) == found
        (tmp_path / "a" / "b" / "two").rename(tmp_path / "a" / "two")
        assert footprint(tmp_path).digest != found.digest

    def test_state_is_read_as_it_was_written(self, tmp_path):
        file = tmp_path / "cache" / "state.json"
        assert read_state(file) == incremental.State()
        state = incremental.State("tree", "root", "front", {"run": "key"}, {"run model": "key"})
        write_state(file, state)
        assert read_state(file) == state
