"""The explorer's index: every row once, outcome and marks exact, the same bytes each time, no text of a response."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from generator.edition import paths
from generator.edition.edition import Edition, read_site
from generator.html.frame import breakable
from generator.receipts.explorer import FLAGS, index_paths, model_rows, packed, render_explorer
from generator.runs.reader import load_run, read_shard
from generator.schema.canonical import sha256_hex
from generator.scoring.gate import standing_of
from generator.scoring.run import score_run
from tests.browser.site import HOSTILE, QUOTA, answers, hostile
from tests.factories import filtered_row, make_bank, make_rows, write_run

ROOT = Path(__file__).parent.parent
BANK = make_bank(("age", "gender", "control_profession", "control_tag"), groups=3, quota=QUOTA, control_quota=QUOTA)
MODELS = ("sim-alpha/one", "sim-judge-a/three")


@pytest.fixture(scope="module")
def edition(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "rows-run"
    shards = {m: hostile(make_rows(BANK, m, repeats=3, run_id=folder.name, answers=answers)) for m in MODELS}
    changed = shards[MODELS[0]]
    changed[1]["mask_leak"] = True
    changed[2]["finish_reason"] = "length"
    for vote in changed[3]["votes"]:
        vote["verdict_matches_prose"] = False
    changed[4].update(filtered_row())
    del changed[5]
    run = load_run(write_run(folder, BANK, shards))
    scored = score_run(run, resamples=50)
    standing = standing_of(run, scored, preview=True, withhold=False)
    return Edition(site=read_site(ROOT / "content" / "site.toml"), run=run, scored=scored, standing=standing)


@pytest.fixture(scope="module")
def files(edition):
    return dict(render_explorer(edition))


def decoded(files, run_id):
    """Read the index as the script does: {(model, concept, framing, group, repeat): (outcome, set of flags)}."""
    json_path, bin_path = index_paths(run_id)
    index, data = json.loads(files[json_path]), files[bin_path]
    size = index["size"]
    stride = 3 * size + size % 2
    keys = [
        (c["id"], f, g["id"], r)
        for a in index["attributes"]
        for c in a["concepts"]
        for f in a["framings"]
        for g in a["groups"]
        for r in range(index["repeats"])
    ]
    found = {}
    for m, model in enumerate(index["models"]):
        outcome = np.frombuffer(data, "<u2", size, m * stride)
        flags = np.frombuffer(data, np.uint8, size, m * stride + 2 * size)
        for key, o, bits in zip(keys, outcome.tolist(), flags.tolist(), strict=True):
            if o:
                marks = {name for k, name in enumerate(index["flags"]) if bits >> k & 1}
                found[model["id"], *key] = (index["outcomes"][o - 1], marks)
    assert len(data) == stride * len(index["models"])
    return found


def differ(row):
    a, b = row["votes"][:2]
    if a["error"] or b["error"]:
        return False
    if a["score"] is not None and b["score"] is not None:
        return abs(a["score"] - b["score"]) > 10
    return a["label"] != b["label"]


class TestIndex:
    def test_every_row_of_the_shards_and_no_other(self, edition, files):
        wanted = {}
        for model in edition.run.models:
            for row in read_shard(edition.run, model).to_pylist():
                outcome = {"status": row["status"], "label": row["final_label"], "value": row["value"]}
                marks = {
                    "disagree": len(row["votes"]) > 1 and differ(row),
                    "leak": row["mask_leak"],
                    "truncated": row["finish_reason"] == "length",
                    "mismatch": any(v["verdict_matches_prose"] is False for v in row["votes"][:2]),
                    "filtered": row["status"] == "refused" and not row["votes"],
                }
                key = (model, row["concept"], row["framing"], row["group"], row["repeat"])
                wanted[key] = (outcome, {name for name, on in marks.items() if on})
        assert decoded(files, edition.run_id) == wanted

    def test_each_mark_occurs_in_this_run(self, edition, files):
        seen = set().union(*(marks for _, marks in decoded(files, edition.run_id).values()))
        assert seen == set(FLAGS)

    def test_a_row_that_is_absent_is_not_found(self, edition, files):
        assert len(decoded(files, edition.run_id)) == 2 * edition.run.layout.size - 1

    def test_rows_of_a_withheld_category_are_left_out(self, edition):
        standing = dataclasses.replace(edition.standing, withheld=frozenset({"refusal"}))
        rows = model_rows(dataclasses.replace(edition, standing=standing), MODELS[1])
        kept = [r for r in read_shard(edition.run, MODELS[1]).to_pylist() if r["category"] != "refusal"]
        assert len(rows.outcomes) == len(kept) < edition.run.layout.size

    def test_outcomes_have_one_order_whatever_the_models(self, edition):
        rows = [model_rows(edition, m) for m in edition.run.models]
        assert packed(rows, edition.run.layout.size)[0] == packed(rows[::-1], edition.run.layout.size)[0]


class TestFiles:
    def test_same_run_same_bytes(self, edition, files):
        assert dict(render_explorer(edition)) == files

    def test_the_dictionary_names_the_hash_of_the_rows(self, edition, files):
        json_path, bin_path = index_paths(edition.run_id)
        assert json.loads(files[json_path])["sha256"] == sha256_hex(files[bin_path])

    def test_three_bytes_a_row(self, edition, files):
        size = edition.run.layout.size
        assert len(files[index_paths(edition.run_id)[1]]) == len(MODELS) * (3 * size + size % 2)

    def test_no_text_of_a_prompt_or_response_is_in_any_of_them(self, edition, files):
        everything = b"".join(files.values()).decode("utf-8", "replace")
        prompt = read_shard(edition.run, MODELS[0], ["prompt"])["prompt"][0].as_py()
        assert [t for t in (*HOSTILE, prompt) if t in everything] == []

    def test_the_page_lists_every_model_with_its_counts(self, edition, files):
        page = files[paths.explorer_page(edition.run_id)].decode()
        for model in MODELS:
            assert f'href="{model}/index.html">{breakable(model)}</a>' in page
        assert "2 judges" in page
        assert "3 judges" in page
