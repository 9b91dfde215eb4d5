"""`import aibiasbench`: a published run as pandas frames, from a folder, an archive and an address."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import generator.reading as abb
from generator.schema.canonical import sha256_hex
from generator.schema.columns import RECEIPT_COLUMNS
from generator.schema.tables import TABLES
from tests.editions import make_edition, small_bank, write_data
from tests.serving import QuietFiles, served_folder

ROOT = Path(__file__).parent.parent
MODEL = "sim-alpha/one"
BANK = small_bank(("gender", "control_profession", "control_tag"))


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """A folder `runs/run-a/data` as a site has it."""
    folder = tmp_path_factory.mktemp("reading")
    edition = make_edition(folder / "run-a", bank=BANK)
    write_data(edition, folder / "site" / "runs" / "run-a" / "data")
    return folder / "site"


@pytest.fixture(scope="module")
def data(site) -> Path:
    return site / "runs" / "run-a" / "data"


@pytest.fixture(scope="module")
def run(data) -> abb.PublishedRun:
    return abb.load(data)


@pytest.fixture
def copy(data, tmp_path) -> Path:
    return shutil.copytree(data, tmp_path / "data")


def rewritten(data: Path, change: Any) -> Path:
    """Change the manifest of a data folder, whatever the rest says."""
    manifest = json.loads((data / "manifest.json").read_text())
    change(manifest)
    (data / "manifest.json").write_text(json.dumps(manifest))
    return data


class Counting(QuietFiles):
    """Notes every file that is asked for."""

    asked: list[str]

    def do_GET(self) -> None:  # noqa: N802
        type(self).asked.append(self.path)
        super().do_GET()


@pytest.fixture
def counting() -> type[Counting]:
    return type("OwnCount", (Counting,), {"asked": []})


class TestFrames:
    @pytest.mark.parametrize("name", TABLES)
    def test_each_table_has_the_values_of_its_file(self, run, data, name):
        expected = pq.read_table(data / f"{name}.parquet").to_pylist()
        found = run.table(name)
        assert list(found.columns) == [c.name for c in TABLES[name]]
        assert found.astype(object).where(found.notna(), None).to_dict("records") == expected

    def test_the_four_by_name_are_those_tables(self, run):
        for name in ("scores", "tiers", "comparisons", "agreement"):
            assert getattr(run, name) is run.table(name)

    def test_no_missing_integer_or_flag_changes_its_type(self, run):
        assert run.agreement["n_pairs"].dtype == pd.Int32Dtype()
        assert run.table("cells")["unanimous"].dtype == pd.BooleanDtype()
        assert run.table("cells")["unanimous"].isna().any()
        assert run.scores["estimate"].dtype == np.float64

    def test_receipts_hold_every_answer_with_its_votes(self, run, data):
        rows = pq.read_table(data / "receipts" / "sim-alpha__one.parquet").to_pylist()
        found = run.receipts(MODEL)
        assert found["response"].where(found["response"].notna(), None).tolist() == [r["response"] for r in rows]
        assert [list(votes) for votes in found["votes"]] == [r["votes"] for r in rows]

    def test_the_bank_is_one_row_a_prompt_as_it_was_asked(self, run):
        key = ["concept", "framing", "group"]
        asked = run.receipts(MODEL)[[*key, "attribute", "category", "rubric", "two_sided", "prompt"]].drop_duplicates()
        bank = run.bank
        assert len(bank) == len(bank.drop_duplicates(key)) == len(asked)
        both = bank.merge(asked, on=key, suffixes=("", "_asked"))
        for name in ("attribute", "category", "rubric", "two_sided", "prompt"):
            assert (both[name] == both[f"{name}_asked"]).all(), name

    def test_columns_are_described(self, run):
        found = run.columns("scores").set_index("column")
        assert found.loc["estimate", "unit"] == "points, or % for rates"
        assert list(run.columns("receipts")["column"]) == [c.name for c in RECEIPT_COLUMNS]
        assert (run.columns("receipts")["description"] != "").all()
        assert (
            run.scores.attrs["columns"]["model"]
            == found.loc["model", "description"]
            == "Slug of the model; * for run-wide numbers."
        )

    def test_frames_say_of_which_run_they_are_and_that_it_is_simulated(self, run):
        assert {k: run.scores.attrs[k] for k in ("run_id", "simulated")} == {"run_id": "run-a", "simulated": True}
        assert repr(run).startswith("<run run-a, simulated: 2 models")

    def test_a_matched_set_is_every_answer_to_one_concept(self, run):
        concept = BANK.concepts_of("gender")[0]
        rows = run.matched_set(MODEL, concept.id)
        assert len(rows) == 2 * 2 * 2  # framings, groups, repeats
        assert set(rows["group"]) == {g.id for g in BANK.groups_of("gender")}
        assert list(rows.columns[:4]) == ["framing", "group", "repeat", "prompt"]

    def test_a_table_in_parts_is_one_frame(self, tmp_path, monkeypatch):
        from generator.data import folder as downloads

        edition = make_edition(tmp_path / "run-a", bank=BANK)
        monkeypatch.setattr(downloads, "SIZE_LIMIT", 9_000)
        write_data(edition, tmp_path / "data")
        split = abb.load(tmp_path / "data")
        assert sum(name.startswith("scores__") and name.endswith(".parquet") for name in split.files) > 1
        assert len(split.scores) == edition.scored.tables["scores"].num_rows


class TestRecompute:
    def test_every_number_of_a_model_comes_out(self, run):
        own = run.scores[(run.scores["model"] == MODEL) & (run.scores["metric"] != "favorability_gap")]
        left_out = []
        for row in own.itertuples():
            group = None if pd.isna(row.group) else row.group
            try:
                found = run.recompute(row.metric, MODEL, row.attribute, group)
            except abb.InputError:
                left_out.append(row.metric)
                continue
            assert found.agrees, found
            assert (found.estimate is None) == pd.isna(row.estimate)
        assert len(own) > 60
        assert left_out == []

    def test_consistency_by_hand(self, run):
        """100 (1 - mean over concepts of the mean absolute difference of the two groups' cell means)."""
        rows = run.receipts(MODEL)
        rows = rows[(rows["attribute"] == "gender") & (rows["status"] == "scored")]
        cells = rows[~rows["two_sided"]].groupby(["concept", "framing", "group"])["value"].mean().unstack()
        apart = (cells.iloc[:, 0] - cells.iloc[:, 1]).abs().dropna()
        expected = 100 * (1 - apart.groupby("concept").mean().mean())
        assert run.recompute("consistency", MODEL, "gender").estimate == pytest.approx(expected, abs=1e-9)

    def test_withheld_categories_stay_out(self, tmp_path):
        edition = make_edition(tmp_path / "run-a", bank=BANK, withheld=frozenset({"allocation"}))
        write_data(edition, tmp_path / "data")
        assert abb.load(tmp_path / "data").recompute("consistency", MODEL, "gender").agrees

    def test_a_forged_score_with_its_hash_does_not_agree(self, copy):
        path = copy / "scores.parquet"
        table = pq.read_table(path)
        rows = table.to_pylist()
        place = next(i for i, r in enumerate(rows) if (r["model"], r["metric"]) == (MODEL, "consistency"))
        rows[place]["estimate"] += 1
        pq.write_table(table.from_pylist(rows, schema=table.schema), path)

        def change(manifest):
            entry = next(e for e in manifest["files"] if e["name"] == "scores.parquet")
            entry.update(bytes=path.stat().st_size, sha256=sha256_hex(path.read_bytes()))

        forged = abb.load(rewritten(copy, change))
        found = forged.recompute("consistency", MODEL, rows[place]["attribute"])
        assert not found.agrees
        assert found.published["estimate"] == pytest.approx(found.estimate + 1)

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            (("consistensy", MODEL, "gender"), "scores: no row of model sim-alpha/one, metric consistensy"),
            (("consistency", "sim-alpha/two", "gender"), "model 'sim-alpha/two': the run has sim-alpha/one, sim-beta"),
            (("lean", MODEL, "gender"), "no row of"),
        ],
    )
    def test_what_is_not_there_is_named(self, run, arguments, text):
        with pytest.raises(abb.InputError, match=text):
            run.recompute(*arguments)


class TestVerify:
    def test_a_publication_as_it_was_made_is_clean(self, run):
        found = run.verify()
        assert (found.mismatches, found.pins) == ([], {"manifest.json": run.pin})
        assert found.checked["table cells"] > 1000

    def test_it_reads_nothing_of_the_harness_and_of_publishing(self, data):
        script = (
            "import sys; import generator.reading as abb;"
            "run = abb.load(sys.argv[1]); assert not run.verify().mismatches;"
            "run.chart(run.models[0]); run.recompute('consistency', run.models[0], 'gender');"
            "print([m for m in sys.modules if m.partition('.')[0] == 'harness' or '.publishing' in m])"
        )
        command = [sys.executable, "-c", script, str(data)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": "."})
        assert (done.stdout, done.stderr) == ("[]\n", "")


class TestChart:
    def test_it_draws_the_published_numbers_and_says_that_they_are_simulated(self, run):
        chart = run.chart(MODEL)
        assert isinstance(chart, alt.LayerChart)
        spec = chart.to_dict()
        assert spec["title"] == "sim-alpha/one, run run-a (simulated)"
        rows = [row for rows in spec["datasets"].values() for row in rows]
        scores = run.scores[(run.scores["model"] == MODEL) & (run.scores["metric"] == "consistency")].dropna(
            subset="estimate"
        )
        assert sorted(r["estimate"] for r in rows if "estimate" in r) == sorted(scores["estimate"])
        band = next(r for r in rows if "low" in r)
        edges = run.scores[(run.scores["model"] == MODEL) & run.scores["metric"].isin(["band_low", "band_high"])]
        assert (band["low"], band["high"]) == (edges["estimate"].min(), edges["estimate"].max())
        import vl_convert

        assert vl_convert.vegalite_to_svg(chart.to_json()).startswith("<svg")


class TestPlaces:
    @pytest.mark.parametrize("below", ["runs/run-a", "runs/run-a/data", "runs/run-a/data/manifest.json"])
    def test_a_folder(self, site, below, run):
        assert abb.load(site / below).pin == run.pin

    @pytest.mark.parametrize(
        "below", ["runs/run-a", "runs/run-a/index.html", "runs/run-a/data/", "runs/run-a/data/index.html?a=1#top"]
    )
    def test_an_address(self, site, below, run, tmp_path):
        with served_folder(site) as address:
            found = abb.load(f"{address}/{below}", cache=tmp_path)
            assert (found.pin, len(found.scores)) == (run.pin, len(run.scores))

    @pytest.mark.parametrize(
        ("form", "top"), [("zip", "x/run-a/data"), ("zip", ""), ("gztar", "data"), ("tar", ""), ("xztar", "a/b/c")]
    )
    def test_an_archive(self, data, tmp_path, run, form, top):
        shutil.copytree(data, tmp_path / "in" / top, dirs_exist_ok=True)
        packed = shutil.make_archive(str(tmp_path / "packed"), form, tmp_path / "in")
        found = abb.load(packed)
        assert found.pin == run.pin
        pd.testing.assert_frame_equal(
            found.receipts(MODEL).drop(columns="votes"), run.receipts(MODEL).drop(columns="votes")
        )

    def test_an_archive_of_two_runs_is_refused(self, data, tmp_path):
        for name in ("a", "b"):
            shutil.copytree(data, tmp_path / "in" / name / "data")
        packed = shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path / "in")
        with pytest.raises(abb.InputError, match=r"holds several runs \(a/data/, b/data/\); unpack it"):
            abb.load(packed)

    def test_what_is_no_run_is_refused_in_one_line(self, site, tmp_path):
        (tmp_path / "text").write_text("no archive")
        (tmp_path / "empty").mkdir()
        for place, text in (
            (tmp_path / "text", "neither a folder nor a ZIP or tar archive"),
            (tmp_path / "empty", "no published run is there"),
            (tmp_path / "absent", "no such folder or archive"),
            (site, "give the address or folder of one run"),
        ):
            with pytest.raises(abb.InputError, match=text) as error:
                abb.load(place)
            assert "\n" not in str(error.value)

    def test_a_host_that_answers_every_address_with_its_home_page(self, tmp_path):
        class Home(QuietFiles):
            def send_head(self):
                self.send_response(200)
                self.end_headers()
                return io.BytesIO(b"<!doctype html><title>Home</title>")

        with served_folder(tmp_path, Home) as address, pytest.raises(abb.InputError, match="no published run is there"):
            abb.load(f"{address}/runs/run-a")

    def test_a_host_that_fails(self, tmp_path):
        class Broken(SimpleHTTPRequestHandler):
            def do_GET(self):
                self.send_error(500)

            def log_message(self, *args):
                """Say nothing."""

        with (
            served_folder(tmp_path, Broken) as address,
            pytest.raises(abb.InputError, match="answered 500; expected 200"),
        ):
            abb.load(address)


class TestHashes:
    def test_a_changed_file_is_named_and_never_read(self, copy):
        body = bytearray((copy / "scores.parquet").read_bytes())
        body[len(body) // 2] ^= 1
        (copy / "scores.parquet").write_bytes(body)
        run = abb.load(copy)
        with pytest.raises(abb.InputError, match=r"scores\.parquet: SHA-256 is \w{64}; the manifest says"):
            _ = run.scores
        with pytest.raises(abb.InputError, match=r"scores\.parquet: SHA-256"):
            run.verify()

    def test_an_absent_file_is_named(self, copy):
        (copy / "tiers.parquet").unlink()
        with pytest.raises(abb.InputError, match=r"tiers\.parquet is not there; the manifest lists it"):
            _ = abb.load(copy).tiers

    def test_a_pin_of_another_publication_is_refused(self, data, run):
        assert abb.load(data, pin=run.pin.upper()).pin == run.pin
        with pytest.raises(abb.InputError, match=f"SHA-256 is {run.pin}; the pin is {'0' * 64}"):
            abb.load(data, pin="0" * 64)

    @pytest.mark.parametrize("name", ["../outside.parquet", "/etc/passwd", "a/../../b.csv", "c:\\d.csv"])
    def test_a_manifest_that_names_a_file_elsewhere_is_refused(self, copy, name):
        rewritten(copy, lambda m: m["files"][0].update(name=name))
        with pytest.raises(abb.InputError, match="is no name below the data folder"):
            abb.load(copy)

    def test_a_manifest_whose_hash_is_no_hash_is_refused(self, copy):
        rewritten(copy, lambda m: m["files"][0].update(sha256="../../x"))
        with pytest.raises(abb.InputError, match="no SHA-256 of 64 hex digits"):
            abb.load(copy)

    def test_more_than_the_manifest_says_is_not_unpacked(self, copy, tmp_path):
        rewritten(copy, lambda m: next(e for e in m["files"] if e["name"] == "bank.json").update(bytes=10))
        with zipfile.ZipFile(tmp_path / "packed.zip", "w") as packed:
            for path in sorted(p for p in copy.rglob("*") if p.is_file()):
                packed.write(path, path.relative_to(copy))
        with tarfile.open(tmp_path / "packed.tar", "w") as tape:
            tape.add(copy, "data")
        with served_folder(copy) as address:
            for place in (copy, tmp_path / "packed.zip", tmp_path / "packed.tar", address):
                with pytest.raises(abb.InputError, match=r"(most|than) 10 "):
                    _ = abb.load(place, cache=tmp_path / "cache").bank


class TestCache:
    def test_a_file_is_fetched_once_whatever_run_asks(self, site, tmp_path, counting):
        with served_folder(site, counting) as address:
            for _ in range(2):
                found = abb.load(f"{address}/runs/run-a", cache=tmp_path)
                assert len(found.scores)
        assert counting.asked.count("/runs/run-a/data/scores.parquet") == 1
        assert counting.asked.count("/runs/run-a/data/manifest.json") == 2

    def test_nothing_is_fetched_before_it_is_asked_for(self, site, tmp_path, counting):
        with served_folder(site, counting) as address:
            found = abb.load(f"{address}/runs/run-a", cache=tmp_path)
            _ = (found.models, found.run_id, found.files)
        assert counting.asked == ["/runs/run-a/data/manifest.json"]

    def test_a_damaged_copy_is_fetched_again(self, site, tmp_path, counting, run):
        with served_folder(site, counting) as address:
            _ = abb.load(f"{address}/runs/run-a", cache=tmp_path).tiers
            for kept in (p for p in tmp_path.rglob("*") if p.is_file()):
                kept.write_bytes(b"something else")
            pd.testing.assert_frame_equal(abb.load(f"{address}/runs/run-a", cache=tmp_path).tiers, run.tiers)
        assert counting.asked.count("/runs/run-a/data/tiers.parquet") == 2

    def test_a_cache_that_cannot_be_written_is_done_without(self, site, tmp_path):
        (tmp_path / "file").write_text("in the way")
        with served_folder(site) as address:
            assert len(abb.load(f"{address}/runs/run-a", cache=tmp_path / "file").tiers)

    def test_its_place_follows_the_environment(self, monkeypatch, tmp_path):
        from generator.reading.kept_files import default_cache

        monkeypatch.delenv("AIBIASBENCH_CACHE", raising=False)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert default_cache() == tmp_path / "aibiasbench"
        monkeypatch.setenv("AIBIASBENCH_CACHE", str(tmp_path / "own"))
        assert default_cache() == tmp_path / "own"

    def test_all_of_a_served_run_verifies(self, site, tmp_path):
        with served_folder(site) as address:
            assert abb.load(f"{address}/runs/run-a", cache=tmp_path).verify().mismatches == []
