"""Small content folders and publications for the tests of publish: real runs, real scores, few resamples."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from generator.html import assets as hashed
from generator.html import frame as render
from generator.pages import prose
from generator.publishing import build
from generator.publishing import fingerprints as incremental
from generator.publishing.publish import Options, PublishOutcome, publish
from generator.scoring.run import score_run
from tests.factories import answers_from, make_bank, make_rows, noise, write_run

ROOT = Path(__file__).parent.parent
MODELS = ("sim-alpha/one", "sim-beta/two")
QUOTA = {"stance": 1, "capability": 1}


def answers(model, concept, framing, group, repeat):
    """Answers without group effects."""
    return answers_from(noise(model, concept, framing, group, repeat))


def make_content(folder: Path, runs: tuple[str, ...] = ("first",), **changes) -> Path:
    """A content folder with the project's own words and small simulated runs, the later the newer."""
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "content" / "site.toml", folder / "site.toml")
    for day, run in enumerate(runs, 1):
        make_small_run(folder, run, date=f"2026-11-{day:02d}", **changes)
    return folder


def make_small_run(content: Path, run: str, *, models=MODELS, repeats=2, answers=answers, **changes) -> Path:
    """Write one run of two concepts an attribute; written again, it takes the place of the old one."""
    folder = content / "runs" / run
    shutil.rmtree(folder, ignore_errors=True)
    bank = make_bank(groups=2, quota=QUOTA, control_quota=QUOTA)
    shards = {m: make_rows(bank, m, repeats=repeats, run_id=run, answers=answers) for m in models}
    return write_run(folder, bank, shards, **changes)


def run_publish(content: Path, out: Path, **changes) -> PublishOutcome:
    """Publish in this process."""
    return publish(Options(out=out, content=content, **changes))


def contents(out: Path) -> dict[str, str]:
    """The SHA-256 of every file below a folder, by path."""
    files = [p for p in sorted(out.rglob("*")) if p.is_file()]
    return {p.relative_to(out).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def inodes(out: Path) -> dict[str, int]:
    """The inode of every file: one that stays was linked, not made again."""
    return {p.relative_to(out).as_posix(): p.stat().st_ino for p in sorted(out.rglob("*")) if p.is_file()}


def quicken(patch: pytest.MonkeyPatch) -> None:
    """Few resamples and no search index: what these tests are about depends on neither."""
    patch.setattr(build, "score_run", lambda run, **options: score_run(run, resamples=40, **options))
    patch.setattr(build, "write_search", lambda _: None)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    quicken(monkeypatch)


@pytest.fixture
def own_words(tmp_path, monkeypatch):
    """Copies of templates and prose that a test may change: (templates, prose)."""
    templates, words = tmp_path / "site_templates", tmp_path / "words"
    shutil.copytree(ROOT / "site_templates", templates)
    shutil.copytree(ROOT / "content" / "pages", words)
    monkeypatch.setattr(render, "TEMPLATES", templates)
    monkeypatch.setattr(hashed, "STATIC", templates / "static")
    monkeypatch.setattr(incremental, "TEMPLATES", templates)
    monkeypatch.setattr(incremental, "PROSE", words)
    monkeypatch.setattr(prose, "CONTENT", words)
    forget()
    yield templates, words
    monkeypatch.undo()
    forget()


def forget() -> None:
    """Drop what a process remembers of templates and assets, as a new process would."""
    render.environment.cache_clear()
    hashed.assets.cache_clear()
    prose.methodology_title.cache_clear()
