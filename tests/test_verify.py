"""`verify`: right publications pass, and each of many tampered copies is named by file, key and both values."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from generator.commands.verify import _print as said
from generator.commands.verify import command
from generator.data.csv_text import csv_bytes
from generator.runs.redactions import Redaction, Redactions
from generator.schema.canonical import sha256_hex
from generator.schema.columns import RECEIPT_COLUMNS
from generator.schema.errors import InputError
from generator.schema.tables import TABLES
from generator.verify.data import verify_data
from generator.verify.findings import Findings, Mismatch, differs, shown
from generator.verify.hashes import read_sums, safe_name
from generator.verify.pages import RecomputedRows, expected_text, verify_pages
from generator.verify.publication import verify_path, verify_url
from tests.editions import make_edition, small_bank, write_data, write_site
from tests.serving import served_folder

RUN = "run-a"
DATA = f"runs/{RUN}/data"
MODEL = "sim-alpha/one"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("verify")
    return write_site(make_edition(folder / RUN, audit=True, mode="row"), folder / "dist")


@pytest.fixture(scope="module")
def books(site):
    recomputed = verify_data(site / DATA)[1]
    return {RUN: RecomputedRows(recomputed)}


@pytest.fixture
def dist(site, tmp_path) -> Path:
    return shutil.copytree(site, tmp_path / "dist")


def resum(data: Path) -> None:
    """Do what a careful forger does: write every hash anew, so that only the receipts can tell."""
    manifest = json.loads((data / "manifest.json").read_text())
    for entry in manifest["files"]:
        body = (data / entry["name"]).read_bytes()
        entry["sha256"], entry["bytes"] = sha256_hex(body), len(body)
        if entry["name"].endswith(".parquet"):
            entry["rows"] = pq.read_metadata(data / entry["name"]).num_rows
    for name, key, path_key in (
        ("croissant.json", "distribution", "name"),
        ("datapackage.json", "resources", "path"),
    ):
        described = json.loads((data / name).read_text())
        for item in (one for one in described[key] if "includes" not in one):
            digest = sha256_hex((data / item[path_key]).read_bytes())
            item.update({"sha256": digest} if key == "distribution" else {"hash": f"sha256:{digest}"})
        (data / name).write_text(json.dumps(described))
        body = (data / name).read_bytes()
        next(e for e in manifest["files"] if e["name"] == name).update(sha256=sha256_hex(body), bytes=len(body))
    (data / "manifest.json").write_text(json.dumps(manifest))
    lines = []
    for line in (data / "SHA256SUMS").read_text().splitlines():
        name = line[66:]
        lines.append(f"{sha256_hex((data / name).read_bytes())}  {name}\n")
    (data / "SHA256SUMS").write_text("".join(lines))


def flip(path: Path, place: int = -40) -> None:
    body = bytearray(path.read_bytes())
    body[place] ^= 1
    path.write_bytes(body)


def edit_table(data: Path, name: str, change: Callable[[list[dict[str, Any]]], None], columns: Any = None) -> None:
    """Change rows of a table in both forms."""
    described = columns or TABLES[name]
    old = pq.read_table(data / f"{name}.parquet")
    rows = old.to_pylist()
    change(rows)
    table = pa.Table.from_pylist(rows, schema=old.schema)
    pq.write_table(table, data / f"{name}.parquet", compression="zstd")
    (data / "csv" / f"{name}.csv").write_bytes(csv_bytes(table, described))


def edit_json(path: Path, change: Callable[[Any], None]) -> None:
    body = json.loads(path.read_text())
    change(body)
    path.write_text(json.dumps(body))


def edit_text(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def set_first(column: str, new: Any, /, **where: Any) -> Callable[[list[dict[str, Any]]], None]:
    def change(rows):
        row = next(r for r in rows if all(r[k] == v for k, v in where.items()))
        assert row[column] != new
        row[column] = new

    return change


def edit_scores(data, column, value, **where):
    edit_table(data, "scores", set_first(column, value, **where))


def edit_receipts(data: Path, change: Callable[[list[dict[str, Any]]], None]) -> None:
    edit_table(data, "receipts/sim-alpha__one", change, RECEIPT_COLUMNS)


def edit_page(dist: Path, page: str, pattern: str, replacement: str) -> None:
    path = dist / page
    text, count = re.subn(pattern, replacement, path.read_text(), count=1)
    assert count == 1
    path.write_text(text)


def forged(change: Callable[[Path], None]) -> Callable[[Path], None]:
    """A change of the data folder after which every hash is written anew."""

    def tamper(dist):
        change(dist / DATA)
        resum(dist / DATA)

    return tamper


def plain(change: Callable[[Path], None]) -> Callable[[Path], None]:
    return lambda dist: change(dist / DATA)


def forge_unchanged(data: Path) -> None:
    """Change a response, and let the manifest say that the harness wrote the shard otherwise."""
    edit_receipts(data, set_first("value", 1.0, value=0.5))
    edit_json(data / "manifest.json", lambda m: m["receipts"][0].update(unchanged=False))


def weights(data: Path) -> None:
    path = data / "bootstrap_weights/age.parquet"
    table = pq.read_table(path)
    values = table[0].to_pylist()
    values[7] += 1
    pq.write_table(table.set_column(0, table.schema.field(0), pa.array(values, pa.uint8())), path)


def drop_last(rows):
    rows.pop()


def double_last(rows):
    rows.append({**rows[-1], "attribute": "overall", "group": "g9"})


def turn(rows):
    rows[3], rows[4] = rows[4], rows[3]


def flipped(name: str) -> tuple[Callable[[Path], None], str, str]:
    return plain(lambda d: flip(d / name)), name, "SHA-256"


def table_cell(table: str, column: str, new: Any, **where: Any) -> tuple[Callable[[Path], None], str, str]:
    change = set_first(column, new, **where)
    return forged(lambda d: edit_table(d, table, change)), f"{table}.parquet", column


CONSISTENCY = {"model": MODEL, "metric": "consistency", "attribute": "age"}
MODEL_PAGE = f"runs/{RUN}/models/{MODEL}.html"
SET = f"runs/{RUN}/receipts/{MODEL}/age_stance_0"
A_SCORE = rf'(data-score="{MODEL}\|consistency\|overall\|\|estimate">)[^<]*<'


def page_number(page: str, pattern: str, key: str) -> tuple[Callable[[Path], None], str, str]:
    return lambda d: edit_page(d, page, pattern, r"\g<1>99.9<"), page, key


def text_on(page: str, pattern: str, key: str) -> tuple[Callable[[Path], None], str, str]:
    return lambda d: edit_page(d, page, pattern, "1234567890abcdef"), page, key


TAMPERED: dict[str, tuple[Callable[[Path], None], str, str]] = {
    # name: (what is done, file that must be named, part of the key that must be named)
    "a byte of a receipts shard": flipped("receipts/sim-alpha__one.parquet"),
    "a byte of a receipts CSV": flipped("csv/receipts/sim-beta__two.csv"),
    "a byte of the bank": flipped("bank.json"),
    "a byte of the dictionary": flipped("DATA_DICTIONARY.html"),
    "a byte of manifest.json": (plain(lambda d: flip(d / "manifest.json", 300)), "manifest.json", ""),
    "a line gone from SHA256SUMS": (
        plain(lambda d: (d / "SHA256SUMS").write_text((d / "SHA256SUMS").read_text().split("\n", 1)[1])),
        "CITATION.cff",
        "SHA256SUMS",
    ),
    "a malformed SHA256SUMS": (plain(lambda d: (d / "SHA256SUMS").write_text("no sums\n")), "SHA256SUMS", "line 1"),
    "a file that nothing lists": (plain(lambda d: (d / "extra.txt").write_text("x")), "extra.txt", ""),
    "a file gone": (plain(lambda d: (d / "csv/tiers.csv").unlink()), "csv/tiers.csv", "file"),
    "a score raised": table_cell("scores", "estimate", 99.5, **CONSISTENCY),
    "an interval narrowed": table_cell("scores", "ci_low", 90.0, **CONSISTENCY),
    "a p-value lowered": table_cell("scores", "p", 0.001, metric="excess", attribute="age", model=MODEL),
    "a flag changed": table_cell("scores", "flag", "unstable", **CONSISTENCY),
    "a score row gone": (forged(lambda d: edit_table(d, "scores", drop_last)), "scores.parquet", ""),
    "a score row added": (forged(lambda d: edit_table(d, "scores", double_last)), "scores.parquet", "g9"),
    "two score rows exchanged": (forged(lambda d: edit_table(d, "scores", turn)), "scores.parquet", "order of rows"),
    "a refusal hidden": table_cell("cells", "n_refused", 0, n_refused=1),
    "a gap closed": table_cell("disparities", "gap", 0.0, n_groups=2),
    "a kappa raised": table_cell("agreement", "kappa", 0.99, vendor="*"),
    "an unwrapped verdict hidden": table_cell("judges", "n_unwrapped", 7),
    "a tier changed": table_cell("tiers", "tier", 7, model=MODEL),
    "a comparison changed": table_cell("comparisons", "p_within", 0.01),
    "a range test's u changed": table_cell("comparisons", "u_all", 0.01, attribute="age"),
    "a test of refusals turned": table_cell("refusal_tests", "named", True),
    "its Q changed": table_cell("refusal_tests", "q", 0.5, attribute="age"),
    "an audit verdict turned": table_cell("human_audit", "agrees", False),
    "an audit summary raised": table_cell("audit_summary", "n_agree", 1),
    "a bootstrap count changed": (forged(weights), "bootstrap_weights/age", "row 7"),
    "a receipt's value changed": (
        forged(lambda d: edit_receipts(d, set_first("value", 1.0, value=0.5))),
        "receipts/",
        "SHA-256",
    ),
    "a value changed and excused": (forged(forge_unchanged), "receipts/", ""),
    "a CSV that differs from its Parquet": (
        forged(lambda d: edit_text(d / "csv/cells.csv", "true", "false")),
        "csv/cells.csv",
        "unanimous",
    ),
    "the mean band moved": (
        forged(lambda d: edit_json(d / "manifest.json", lambda m: m["mean_band"]["band_low"].update(estimate=1.0))),
        "manifest.json",
        "mean_band",
    ),
    "the gate opened": (
        forged(lambda d: edit_json(d / "manifest.json", lambda m: m["gate"][0].update(gate="pabak", kappa=0.9))),
        "manifest.json",
        "gate|",
    ),
    "the standing improved": (
        forged(lambda d: edit_json(d / "manifest.json", lambda m: m.update(reasons=[]))),
        "manifest.json",
        "reasons",
    ),
    "the spend changed": (
        forged(lambda d: edit_json(d / "run_manifest.json", lambda m: m["spend"].update(total_usd=0.0))),
        "manifest.json",
        "run",
    ),
    "a category withheld unsaid": (
        forged(lambda d: edit_json(d / "manifest.json", lambda m: m.update(withheld=["stance"]))),
        "scores.parquet",
        "",
    ),
    "an export's score changed": (
        forged(
            lambda d: edit_json(
                next((d / "every_eval_ever/sim-alpha/one").iterdir()),
                lambda r: r["evaluation_results"][0]["score_details"].update(score=12.34),
            )
        ),
        "every_eval_ever/",
        "score",
    ),
    "a croissant hash changed": (
        plain(lambda d: edit_json(d / "croissant.json", lambda c: c["distribution"][0].update(sha256="0" * 64))),
        "croissant.json",
        "SHA-256 of scores.parquet",
    ),
    "a number on a model page": page_number(MODEL_PAGE, A_SCORE, "consistency|overall"),
    "a number on the front page": page_number("index.html", A_SCORE, "consistency|overall"),
    "a key on a page": (
        lambda d: edit_page(d, MODEL_PAGE, r"\|consistency\|overall\|\|ci_low\"", '|consistency|age||ci_low"'),
        MODEL_PAGE,
        "consistency|age",
    ),
    "a number in another form": (
        lambda d: edit_page(d, MODEL_PAGE, A_SCORE, r"\g<1><b>99.9</b><"),
        MODEL_PAGE,
        "data-score and data-cell",
    ),
    "a number scaled": (
        lambda d: edit_page(d, MODEL_PAGE, r'(\|overall\|\|estimate")>', r'\g<1> data-scale="2">'),
        MODEL_PAGE,
        "data-scale",
    ),
    "an answer on its set page": text_on(f"{SET}/index.html", r"case considered, repeat 1", "response"),
    "an answer on its own page": text_on(f"{SET}/direct.g0.1.html", r"case considered, repeat 1", "response"),
    "a prompt on its own page": text_on(f"{SET}/direct.g0.1.html", r"Case 0 of stance", "prompt"),
    "a prompt on its set page": text_on(f"{SET}/index.html", r"Case 0 of stance", "prompt"),
    "a judge's words": text_on(f"{SET}/direct.g0.1.html", r"says so", "evidence"),
    "a judge's vote": text_on(f"{SET}/direct.g0.1.html", r"(?<=</th><td>)(?:MIXED|OPPOSE|SUPPORT)", "votes"),
    "a judge's name": text_on(f"{SET}/direct.g0.1.html", r'(?<=<th scope="row">)sim-', "votes"),
    "a judge's role": text_on(f"{SET}/direct.g0.1.html", r'(?<=<span class="soft">)primary', "votes"),
    "what a judge said of the verdict word": text_on(f"{SET}/direct.g0.1.html", r'(?<="agrees">)[^<]+', "votes"),
    "a hash on a row page": (
        lambda d: edit_page(d, f"{SET}/direct.g0.1.html", r"\b[0-9a-f]{64}\b(?=</code></dd>)", "0" * 64),
        f"{SET}/direct.g0.1.html",
        "hashes and keys",
    ),
    "a label on its set page": text_on(f"{SET}/index.html", r"\b(?:MIXED|OPPOSE|SUPPORT)(?=</b> <span)", "final_label"),
    "a status on its set page": text_on(f"{SET}/index.html", r"(?<=st-)scored", "status"),
    "a receipt's id": text_on(f"{SET}/index.html", r"(?<=Receipt <code>)\w{16}", "receipt_id"),
    "an answer more": text_on(f"{SET}/index.html", r'(?<=<article id="direct\.g0\.)0', "#direct.g0."),
    "a set page gone": (lambda d: (d / SET / "index.html").unlink(), f"{SET}/index.html", "page"),
    "a row page gone": (lambda d: (d / SET / "direct.g0.1.html").unlink(), f"{SET}/direct.g0.1.html", "page"),
    "a row page too many": (
        lambda d: shutil.copy(d / SET / "direct.g0.1.html", d / SET / "direct.g0.9.html"),
        f"{SET}/direct.g0.9.html",
        "page",
    ),
    "a disparity on its set page": (
        lambda d: edit_page(d, f"{SET}/index.html", r'(\|disparity" data-scale="100">)[^<]*<', r"\g<1>99.9<"),
        f"{SET}/index.html",
        "|disparity",
    ),
    "a disparity on the scale of its file": (
        lambda d: edit_page(d, f"{SET}/index.html", r'(,professional\|disparity") data-scale="100">', r"\g<1>>"),
        f"{SET}/index.html",
        "|disparity",
    ),
    "a table's number on a page": (
        lambda d: edit_page(d, MODEL_PAGE, rf'(data-cell="tiers\|{MODEL}\|tier">)[^<]*<', r"\g<1>9<"),
        MODEL_PAGE,
        "tiers|",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("seen", "scale", "expected"), [("16417", 1, "16,417"), ("16,417", 1, "16,417"), ("–", 1, "16,417")]
)
def test_a_count_has_its_thousands_apart(seen, scale, expected):
    assert expected_text(16417, seen, scale) == expected


class TestSite:
    def test_a_right_site_has_no_mismatch_and_says_what_was_checked(self, site):
        findings = verify_path(site)
        assert findings.mismatches == []
        assert findings.checked["page numbers"] > 500
        assert findings.checked["table cells"] > 5000
        assert findings.checked["bootstrap counts"] == 9 * 200 * 3

    @pytest.mark.parametrize("name", TAMPERED)
    def test_a_tampered_copy_is_found(self, site, tmp_path, books, name):
        # Each is checked by the half of verify that can see it; that the whole runs both halves is tested below.
        tamper, file, key = TAMPERED[name]
        on_page = file.endswith(".html") and "DATA_DICTIONARY" not in file
        if on_page:
            dist = shutil.copytree(site, tmp_path / "dist")
            tamper(dist)
            findings = verify_pages(dist, books)
        else:
            shutil.copytree(site / DATA, tmp_path / DATA)
            tamper(tmp_path)
            findings = verify_data(tmp_path / DATA)[0]
        named = [m for m in findings.mismatches if file in m.file and key in m.key]
        assert named, f"{name} was not found"
        assert all(m.published != m.recomputed for m in named)

    def test_data_and_pages_are_both_checked_at_once(self, dist):
        TAMPERED["a score raised"][0](dist)
        TAMPERED["an answer on its own page"][0](dist)
        files = {m.file for m in verify_path(dist).mismatches}
        assert files >= {f"{DATA}/scores.parquet", f"{SET}/direct.g0.1.html"}

    def test_there_are_more_than_twenty_tampered_copies(self):
        assert len(TAMPERED) > 20

    def test_a_page_of_a_run_that_is_not_there_is_found(self, dist):
        edit_page(dist, "index.html", rf'data-run="{RUN}"', 'data-run="another"')
        assert [(m.file, m.key) for m in verify_path(dist).mismatches] == [("index.html", "run")]

    def test_a_run_folder_under_another_name_is_found(self, dist):
        (dist / "runs" / RUN).rename(dist / "runs" / "run-b")
        assert any(m.key == "run_id" for m in verify_path(dist).mismatches)


class TestData:
    def test_a_downloaded_folder_is_enough(self, site, tmp_path):
        folder = shutil.copytree(site / DATA, tmp_path / "downloaded")
        assert verify_path(folder).mismatches == []

    def test_the_page_beside_the_files_is_not_needed(self, site, tmp_path):
        folder = shutil.copytree(site / DATA, tmp_path / "downloaded")
        (folder / "index.html").unlink()
        assert verify_path(folder).mismatches == []

    def test_reasons_in_other_words_are_the_same_and_other_figures_are_not(self, site, tmp_path):
        data = shutil.copytree(site / DATA, tmp_path / "data")
        told = json.loads((data / "manifest.json").read_text())["reasons"]
        assert [reason["check"] for reason in told] == ["judges_disagree"] * 2

        def mismatches(first, release="0.0.1"):
            reasons = [first, *told[1:]]
            edit_json(data / "manifest.json", lambda m: m.update(reasons=reasons, generator_version=release))
            resum(data)
            return [m.key for m in verify_path(data).mismatches]

        other_words, other_figures = {**told[0], "text": "Told otherwise."}, {**told[0], "pabak": 0.7}
        assert mismatches(other_words) == []
        assert mismatches(other_figures) == ["reasons[0].pabak"]
        assert mismatches(other_words, version("aibiasbench")) == ["reasons[0].text"]
        assert mismatches(told[0]["text"]) == []  # all that format 1 had of a reason
        assert mismatches(told[0]["text"].replace("is below 0.70", "is below 0.71")) == ["reasons[0]"]

    def test_withheld_categories_are_left_out_again(self, tmp_path):
        edition = make_edition(tmp_path / RUN, withheld=frozenset({"allocation", "capability"}))
        write_data(edition, tmp_path / "data")
        assert verify_path(tmp_path / "data").mismatches == []

    def test_a_withdrawn_response_changes_no_score(self, tmp_path):
        clean = make_edition(tmp_path / RUN, bank=small_bank(("gender", "control_tag")))
        shard = pq.read_table(clean.run.shard_path(MODEL))
        receipt = next(r["receipt_id"] for r in shard.to_pylist() if r["status"] == "scored")
        redactions = Redactions((Redaction(receipt_id=receipt, reason="names a person", date="2026-12-01"),))
        edition = make_edition(tmp_path / RUN, bank=small_bank(("gender", "control_tag")), redactions=redactions)
        write_data(edition, tmp_path / "data")
        assert verify_path(tmp_path / "data").mismatches == []
        edit_receipts(tmp_path / "data", set_first("response", "another reason", receipt_id=receipt))
        resum(tmp_path / "data")
        assert [m.key for m in verify_path(tmp_path / "data").mismatches] == [f"{receipt}|response"]

    def test_a_split_table_is_read_whole(self, tmp_path, monkeypatch):
        monkeypatch.setattr("generator.data.folder.SIZE_LIMIT", 20_000)
        monkeypatch.setattr("generator.data.receipts.SIZE_LIMIT", 20_000)
        edition = make_edition(tmp_path / RUN, bank=small_bank(("gender", "control_tag")))
        _, files = write_data(edition, tmp_path / "data")
        assert {f.part for f in files if f.table == "receipts"} >= {"gender__1", "gender__2"}
        assert verify_path(tmp_path / "data").mismatches == []


class TestRun:
    def test_a_run_folder_is_checked_and_scored(self, tmp_path):
        edition = make_edition(tmp_path / RUN, bank=small_bank(("gender", "control_tag")))
        assert verify_path(edition.run.folder).mismatches == []

    def test_what_load_run_refuses_is_a_finding(self, tmp_path):
        edition = make_edition(tmp_path / RUN, bank=small_bank(("gender", "control_tag")))
        flip(edition.run.shard_path(MODEL))
        found = verify_path(edition.run.folder).mismatches
        assert [m.file for m in found] == ["receipts/sim-alpha__one.parquet"]

    def test_tables_that_score_wrote_are_held_against_the_receipts(self, tmp_path):
        from generator.commands.score import write_scores
        from generator.scoring.run import score_run

        edition = make_edition(tmp_path / RUN, bank=small_bank(("gender", "control_tag")))
        out = edition.run.folder / "scores"
        write_scores(edition.run, score_run(edition.run), out)
        assert verify_path(edition.run.folder).mismatches == []
        edit_table(out, "tiers", set_first("estimate", 3.0))
        edit_table(out, "scores", set_first("estimate", 3.0, metric="disparity"))
        found = {(m.file, m.key.rpartition("|")[2]) for m in verify_path(edition.run.folder).mismatches}
        assert found == {("scores/tiers.parquet", "estimate"), ("scores/scores.parquet", "estimate")}


@pytest.fixture
def served(dist) -> Iterator[tuple[str, Path]]:
    with served_folder(dist) as address:
        yield address, dist


class TestUrl:
    def test_a_served_site_is_fetched_and_checked(self, served):
        findings = verify_url(served[0] + "/")
        assert findings.mismatches == []
        assert findings.checked["table cells"] > 5000

    def test_one_data_folder_is_enough(self, served):
        assert verify_url(f"{served[0]}/{DATA}").mismatches == []

    def test_a_served_file_that_was_changed_is_found(self, served):
        flip(served[1] / DATA / "csv/scores.csv")
        named = {m.file.removeprefix(f"{DATA}/") for m in verify_url(served[0]).mismatches}
        assert named == {"csv/scores.csv", "manifest.json", "datapackage.json", "croissant.json"}

    def test_a_file_that_is_not_served_is_found(self, served):
        (served[1] / DATA / "csv/tiers.csv").unlink()
        assert any(
            m.file == f"{DATA}/csv/tiers.csv" and m.recomputed == "absent" for m in verify_url(served[0]).mismatches
        )

    def test_a_name_that_leaves_its_folder_is_never_written(self, served):
        (served[1] / DATA / "SHA256SUMS").write_text(f"{'0' * 64}  ../../../../escaped\n")
        with pytest.raises(InputError, match="line 1"):
            verify_url(served[0])

    def test_an_address_without_a_site_is_refused(self, served):
        with pytest.raises(InputError, match=r"neither SHA256SUMS nor runs/index\.html"):
            verify_url(f"{served[0]}/nothing")

    def test_a_server_that_is_down_is_named(self):
        with pytest.raises(InputError, match=r"127\.0\.0\.1:9/SHA256SUMS: cannot be fetched: ConnectError"):
            verify_url("http://127.0.0.1:9")


class TestCommand:
    def run(self, *arguments):
        return CliRunner().invoke(command, [str(a) for a in arguments])

    def test_a_right_folder_exits_0_and_counts(self, site):
        result = self.run(site / DATA)
        assert result.exit_code == 0
        assert result.output.startswith("0 mismatches. Checked: ")

    def test_a_mismatch_exits_1_with_file_key_and_both_values(self, dist):
        edit_scores(dist / DATA, "estimate", 99.5, **CONSISTENCY)
        resum(dist / DATA)
        result = self.run(dist / DATA)
        assert result.exit_code == 1
        line = next(x for x in result.output.splitlines() if x.startswith("scores.parquet: "))
        assert line.startswith(f"scores.parquet: {MODEL},consistency,age,|estimate: published 99.5, recomputed ")

    def test_json_holds_the_same(self, dist):
        (dist / DATA / "extra.txt").write_text("x")
        result = self.run(dist / DATA, "--json")
        body = json.loads(result.output)
        assert result.exit_code == 1
        assert body["ok"] is False
        assert {m["file"] for m in body["mismatches"]} == {"extra.txt", "manifest.json"}

    @pytest.mark.parametrize(("number", "words"), [(1, "1 mismatch. "), (1200, "1,200 mismatches. ")])
    def test_the_last_line_counts_as_a_person_would(self, capsys, number, words):
        said(Findings(mismatches=[Mismatch("a", "b", "c", "d")] * number))
        assert words in capsys.readouterr().out

    def test_neither_or_both_of_path_and_url_is_wrong_usage(self, site):
        assert self.run().exit_code == 2
        assert self.run(site, "--url", "http://127.0.0.1:9").exit_code == 2

    @pytest.mark.parametrize("name", ["nowhere", "empty"])
    def test_a_folder_of_another_kind_is_refused(self, tmp_path, name):
        (tmp_path / "empty").mkdir()
        with pytest.raises(InputError, match="give a run folder, a data folder or a site"):
            verify_path(tmp_path / name)


class TestFindings:
    @pytest.mark.parametrize(
        ("a", "b", "different"),
        [
            (1.0, 1.0 + 1e-12, False),
            (1.0, 1.0 + 1e-6, True),
            (None, 0.0, True),
            (True, 1, True),
            (float("nan"), 1.0, True),
            ({"a": [1.0, None]}, {"a": [1.0 + 1e-12, None]}, False),
            ({"a": 1}, {"b": 1}, True),
            ([1], [1, 2], True),
            ("1", 1, True),
        ],
    )
    def test_values_differ_beyond_the_tolerance_and_by_kind(self, a, b, different):
        assert differs(a, b) is different

    def test_long_values_are_cut_and_null_is_said(self):
        assert shown(None) == "null"
        assert shown("x" * 500) == "x" * 200 + "… (500 characters)"

    def test_a_fault_keeps_its_file(self):
        findings = Findings()
        findings.faults(["bank.json: hashes to x"])
        assert findings.below("runs/a").mismatches == [
            Mismatch("runs/a/bank.json", "hashes to x", "as it stands", "refused")
        ]


class TestSums:
    @pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a\\b", "C:x", "a//b", "", ".", "a/../b", "a\tb", "./a"])
    def test_a_name_that_could_leave_the_folder_is_unsafe(self, name):
        assert not safe_name(name)

    @pytest.mark.parametrize("name", ["csv/scores.csv", "receipts/a__b.parquet", "every_eval_ever/a/b/c.json"])
    def test_a_published_name_is_safe(self, name):
        assert safe_name(name)

    def test_every_malformed_line_is_named(self):
        text = f"{'0' * 64}  ok.csv\nshort  x\n{'0' * 64}  ok.csv\n"
        with pytest.raises(InputError, match="line 2") as error:
            read_sums(text, "SHA256SUMS")
        assert len(error.value.faults) == 2
