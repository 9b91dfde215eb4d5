"""The in-browser check in Chromium: right files get a tick, tampered ones a cross, and it says when it cannot run."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from generator.edition import paths
from generator.schema.canonical import sha256_hex
from tests.browser.conftest import opened, served
from tests.browser.site import SIMULATED
from tests.names_of_bank_1 import DEMOGRAPHIC

MODEL = "sim-beta/two"
PAGE = paths.model_page(SIMULATED, MODEL)
DATA = f"runs/{SIMULATED}/data"
SHARD = f"{DATA}/receipts/sim-beta__two.parquet"


@pytest.fixture
def copy(site, tmp_path) -> Iterator[tuple[Path, str]]:
    """A copy of the site without its receipt pages, served; its folder and address."""
    folder = tmp_path / "dist"
    shutil.copytree(site.root, folder, ignore=lambda where, _: ["receipts"] if Path(where).name == SIMULATED else [])
    with served(folder) as address:
        yield folder, address


def checked(browser, address: str, page: str = PAGE) -> dict:
    """Press the button; returns the verdict, its text, and the result of every line by key."""
    context = browser.new_context()
    with opened(context, address) as watched:
        tab = watched.page
        tab.goto(address + page)
        tab.get_by_role("button", name="Fetch and recompute").click()
        tab.wait_for_selector("#check [data-verdict]")
        lines = tab.eval_on_selector_all(
            "#check [data-result]", "rows => rows.map(r => [r.dataset.key, r.dataset.result])"
        )
        verdict = tab.get_attribute("#check [data-verdict]", "data-verdict")
        text = tab.inner_text("#check [data-output]")
        faults = [f for f in watched.faults if "404" not in f]
    context.close()
    return {"verdict": verdict, "text": text, "lines": dict(lines), "faults": faults}


def wrong(found: dict) -> set[str]:
    return {key for key, result in found["lines"].items() if result != "match"}


def edit_shard(folder: Path, column: str, value) -> None:
    """Change one scored row's column in the model's shard."""
    table = pq.read_table(folder / SHARD)
    rows = table.to_pylist()
    row = next(r for r in rows if r["attribute"] == "gender" and r["status"] == "scored" and r[column] != value)
    row[column] = value
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), folder / SHARD, compression="zstd")


def pin(folder: Path, *names: str) -> None:
    """Write the hashes of files anew in manifest.json, and the manifest's own on the page, as a forger would."""
    path = folder / DATA / "manifest.json"
    old, manifest = sha256_hex(path.read_bytes()), json.loads(path.read_text())
    for entry in manifest["files"]:
        if entry["name"] in names:
            entry["sha256"] = sha256_hex((folder / DATA / entry["name"]).read_bytes())
    path.write_text(json.dumps(manifest))
    page = folder / PAGE
    assert old in page.read_text()
    page.write_text(page.read_text().replace(old, sha256_hex(path.read_bytes())))


class TestRight:
    def test_every_number_and_file_gets_a_tick(self, browser, site):
        found = checked(browser, site.http)
        assert found["verdict"] == "match"
        assert wrong(found) == set()
        assert found["faults"] == []
        assert set(found["lines"]) >= {*DEMOGRAPHIC, "control_tag", "overall", "manifest.json", "scores.parquet"}

    def test_published_and_recomputed_stand_side_by_side(self, browser, site):
        scores = pq.read_table(site.root / DATA / "scores.parquet").to_pylist()
        row = next(r for r in scores if (r["model"], r["metric"], r["attribute"]) == (MODEL, "consistency", "overall"))
        shown = f"{row['estimate']:.4f} ({row['ci_low']:.4f} to {row['ci_high']:.4f})"
        assert checked(browser, site.http)["text"].count(shown) == 2


class TestTampered:
    def test_a_flipped_byte_in_the_shard(self, browser, copy):
        folder, address = copy
        body = bytearray((folder / SHARD).read_bytes())
        body[-20] ^= 1
        (folder / SHARD).write_bytes(body)
        found = checked(browser, address)
        assert found["verdict"] == "mismatch"
        assert not found["lines"] or "receipts/sim-beta__two.parquet" in wrong(found)

    def test_a_changed_value_with_its_old_hash(self, browser, copy):
        folder, address = copy
        edit_shard(folder, "value", 1.0)
        assert wrong(checked(browser, address)) >= {"receipts/sim-beta__two.parquet", "gender", "overall"}

    def test_a_changed_value_with_every_hash_forged(self, browser, copy):
        folder, address = copy
        edit_shard(folder, "value", 1.0)
        pin(folder, "receipts/sim-beta__two.parquet")
        assert wrong(checked(browser, address)) == {"gender", "overall"}

    def test_a_changed_score_with_every_hash_forged(self, browser, copy):
        folder, address = copy
        path = folder / DATA / "scores.parquet"
        table = pq.read_table(path)
        rows = table.to_pylist()
        for row in rows:
            if (row["model"], row["metric"], row["attribute"]) == (MODEL, "consistency", "age"):
                row["ci_low"] += 0.01
        pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path, compression="zstd")
        pin(folder, "scores.parquet")
        assert wrong(checked(browser, address)) == {"age"}

    def test_changed_bootstrap_counts_with_every_hash_forged(self, browser, copy):
        folder, address = copy
        path = folder / DATA / "bootstrap_weights/religion.parquet"
        table = pq.read_table(path)
        names = table.column_names
        # The first concept drawn every time: the interval collapses.
        columns = [pa.array([4 if n == names[0] else 0] * table.num_rows, pa.uint8()) for n in names]
        pq.write_table(pa.table(columns, schema=table.schema), path, compression="zstd")
        pin(folder, "bootstrap_weights/religion.parquet")
        assert wrong(checked(browser, address)) == {"religion", "overall"}

    def test_a_changed_number_on_the_page(self, browser, copy):
        folder, address = copy
        page = folder / PAGE
        text, count = re.subn(
            rf'(data-score="{MODEL}\|consistency\|age\|\|estimate">)[^<]*', r"\g<1>12.3", page.read_text()
        )
        assert count
        page.write_text(text)
        found = checked(browser, address)
        assert wrong(found) == {"age"}
        assert "This page shows another estimate." in found["text"]

    def test_a_manifest_that_is_not_the_pinned_one(self, browser, copy):
        folder, address = copy
        path = folder / DATA / "manifest.json"
        path.write_text(path.read_text() + " ")
        assert wrong(checked(browser, address)) == {"manifest.json"}

    def test_a_missing_file_is_named(self, browser, copy):
        folder, address = copy
        (folder / SHARD).unlink()
        found = checked(browser, address)
        assert found["verdict"] == "mismatch"
        assert "sim-beta__two.parquet: the server answered 404" in found["text"]


class TestCannot:
    def test_from_a_file_the_page_says_that_it_needs_a_server(self, browser, site):
        context = browser.new_context()
        with opened(context, site.file) as watched:
            watched.page.goto(site.file + PAGE)
            assert "needs this page from a server" in watched.page.inner_text("#check")
            assert not watched.page.get_by_role("button", name="Fetch and recompute").is_visible()
        context.close()

    def test_without_scripts_the_page_says_what_it_needs(self, browser, site):
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(site.http + PAGE)
        assert "a browser of 2021 or later with scripts allowed" in page.inner_text("#check")
        context.close()

    def test_without_sha_256_the_reason_is_given(self, browser, site):
        context = browser.new_context()
        context.add_init_script("Object.defineProperty(globalThis, 'crypto', { value: undefined })")
        page = context.new_page()
        page.goto(site.http + PAGE)
        page.wait_for_selector("#check [data-verdict=impossible]")
        assert "offers no SHA-256 here" in page.inner_text("#check")
        context.close()


class TestArithmetic:
    """The module's own functions, called in the page."""

    @pytest.fixture
    def module(self, browser, site):
        context = browser.new_context()
        page = context.new_page()
        page.goto(site.http + PAGE)
        (script,) = (site.root / "assets").glob("check-statistics.*.js")
        source = site.http + script.relative_to(site.root).as_posix()
        page.evaluate("async source => { window.module = await import(source); }", source)
        yield lambda code, *arguments: page.evaluate(f"(a) => module.{code}(...a)", list(arguments))
        context.close()

    def test_the_tail_is_that_of_the_t_and_normal_distributions(self, module):
        for n, df in ((2, 1), (3, 2), (10, 9), (16, 15), (12, 100)):
            expected = stats.norm.cdf(-((n / (n - 1)) ** 0.5) * stats.t.ppf(0.975, df))
            assert module("expandedTail", n, df) == pytest.approx(expected, abs=1e-12)

    def test_the_quantile_is_type_7(self, module):
        assert module("quantile", [0, 1, 4, 10], 0.5) == 2.5
        assert module("quantile", [0, 1, 4, 10], 0.9) == pytest.approx(8.2)
        assert module("quantile", [3], 0.025) == 3
