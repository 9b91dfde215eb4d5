"""Files mode: no page of a set; every set is read from the published files at an address that says which it is."""

from __future__ import annotations

from collections import Counter
from urllib.parse import parse_qs, urlsplit

import pytest

from generator.edition import paths
from generator.html.links import page_links
from generator.publishing import build
from generator.publishing.provenance import read_publication
from generator.publishing.publish import Options, publish
from generator.scoring.run import score_run
from generator.verify.publication import verify_path
from tests.publications import MODELS, make_content

RUN = "runs/first"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A content folder and its site in files mode."""
    folder = tmp_path_factory.mktemp("files")
    content = make_content(folder / "content")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "score_run", lambda run, **options: score_run(run, resamples=40, **options))
        publish(Options(out=folder / "dist", content=content, mode="files"))
    return folder


def files_of(dist):
    """Every file of the run, by path below the run's folder."""
    return [path.relative_to(dist / RUN).as_posix() for path in (dist / RUN).rglob("*") if path.is_file()]


def test_a_model_takes_eleven_files_however_many_concepts_there_are(made):
    names = files_of(made / "dist")
    slugs = {model: (model, model.replace("/", "__")) for model in MODELS}
    counts = Counter(model for model, own in slugs.items() for name in names if any(slug in name for slug in own))
    # Six of its own, and five forms of its figure.
    assert counts == dict.fromkeys(MODELS, 11)


def test_every_set_is_reached_from_its_model_s_list_at_its_address(made):
    from generator.runs.reader import load_run, read_shard

    run = load_run(made / "content" / "runs" / "first")
    for model in MODELS:
        page = paths.receipts_list("first", model)
        targets = page_links((made / "dist" / page).read_bytes()).targets
        asked = [parse_qs(urlsplit(target).query) for target in targets if "set.html?" in target]
        concepts = set(read_shard(run, model, ["concept"])["concept"].to_pylist())
        assert {(found["model"][0], found["concept"][0]) for found in asked} == {(model, c) for c in concepts}
        assert paths.relative(page, paths.read_set("first", model, min(concepts))) in targets


def test_it_verifies_and_says_how_it_was_made(made):
    assert verify_path(made / "dist", made / "content").mismatches == []
    assert read_publication(made / "dist").runs["first"].mode == "files"


def test_a_page_of_a_set_that_somebody_puts_there_is_found(made, tmp_path):
    import shutil

    dist = shutil.copytree(made / "dist", tmp_path / "dist")
    page = dist / RUN / "receipts" / MODELS[0] / "age_stance_0" / "index.html"
    page.parent.mkdir()
    page.write_bytes((dist / RUN / "receipts" / "set.html").read_bytes())
    found = {m.file for m in verify_path(dist).mismatches}
    assert page.relative_to(dist).as_posix() in found
