"""Receipt pages: the bulk path against the ordinary Jinja render, and what a reader finds on a page."""

from __future__ import annotations

import dataclasses
import gzip
import posixpath
import random
import re
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest

from generator.edition import paths
from generator.edition.edition import Edition, read_site
from generator.html.frame import visible
from generator.html.receipt_words import NO_RESPONSE, why
from generator.html.text_bytes import holding
from generator.receipts import page_columns as receipt_columns
from generator.receipts import pages as receipt_pages
from generator.receipts.pages import receipt_task, write_receipts
from generator.runs.reader import load_run, read_shard
from generator.runs.redactions import Redaction, Redactions
from generator.scoring.gate import Standing
from generator.scoring.reasons import RubricUnaudited
from generator.scoring.run import score_run
from tests.factories import (
    NOT_IMPORTED,
    as_format_1,
    as_imported,
    cut_row,
    failed_row,
    filtered_row,
    make_bank,
    make_receipt,
    make_rows,
    make_run,
    write_run,
)
from tests.plain_receipts import plain_pages

MODEL = "sim-alpha/one"
KEY = ("concept", "framing", "group", "repeat")
HOSTILE = (
    "<script>alert(1)</script> & &amp; \" ' </div><!-- ]]> {{ row.model }} {% raw %}",
    "\n leading line feed,\ttabs, trailing space \n\n",
    "bidi \u202e override \u2066isolate\u2069 \u200b zero width \ufeff bom \u00a0 no-break \u3000 wide",
    "control \x00 \x07 \x1b[31m \x1f \x7f \x85 \r\n carriage return",
    "é 日本語 😀 👩🏽‍⚖️ עברית ½ \U000e0001 tag \ue000 private \uffff last",
    "",
    "\x1frow.concept\x1f a marker in the data",
)


def small_bank(**changes):
    quota = {"stance": 1, "allocation": 1, "capability": 1}
    return make_bank(("age", "control_tag"), groups=3, quota=quota, control_quota={"stance": 1}, **changes)


def hostile_rows(bank, run_id):
    """Every kind of row: hostile texts, failed calls, filter refusals, contested, tiebreaks, errors, scores."""
    kinds = (
        {"answers": (0.5, 0.5)},
        {"answers": (0.0, 1.0, 1.0)},
        {"answers": (0.0, 1.0, 0.5)},
        {"answers": ("REFUSAL", "REFUSAL")},
        {"answers": (0.55, 0.62)},
        {"answers": (0.0, "REFUSAL", "REFUSAL")},
        {"answers": (0.5, None)},
        {"answers": (0.0, 1.0, None)},
        failed_row(),
        filtered_row('<b>"&policy'),
        cut_row(),
    )
    rows = make_rows(bank, MODEL, run_id=run_id)
    for i, row in enumerate(rows):
        kind = dict(kinds[i % len(kinds)])
        text = HOSTILE[i % len(HOSTILE)] * (1 + i % 3)
        keys = {k: row[k] for k in ("concept", "framing", "group", "repeat", "run_id")}
        made = make_receipt(
            bank, model=MODEL, **keys, **{"answers": (0.5, 0.5), **{k: kind[k] for k in kind if k == "answers"}}
        )
        spans = [{"start": 0, "end": 1}] if i % 5 == 0 and text else []
        if len(text) > 6:
            spans += [{"start": 1, "end": 3}, {"start": 4, "end": 5}, {"start": len(text) - 1, "end": len(text)}]
        made |= {"response": text, "mask_spans": spans, "served_by": HOSTILE[i % 7], "mask_leak": i % 7 == 0}
        made["finish_reason"] = ("stop", HOSTILE[2], HOSTILE[3])[i % 3]
        made["reasoning_tokens"] = (None, 0, 12)[i % 3]
        reading = {"unwrapped": (None, "fence", "thought;number_form")[i % 3]}
        made["votes"] = [{**v, **reading, "evidence_cut": None if v["error"] else i % 2 == 0} for v in made["votes"]]
        made["votes"] = [{**v, "evidence": None if v["error"] else HOSTILE[(i + 3) % 7]} for v in made["votes"]]
        made |= {k: v for k, v in kind.items() if k != "answers"}
        if made["status"] != "scored":
            made["value"] = None
        if not made["votes"]:
            made["final_label"] = kind.get("final_label")
            made["mask_spans"] = [] if not made["response"] else made["mask_spans"]
        if i % 4 == 0:
            made |= {"prompt_tokens": None, "completion_tokens": None}
        rows[i] = made
    return rows


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    bank = small_bank()
    folder = tmp_path_factory.mktemp("runs") / "hostile"
    write_run(folder, bank, {MODEL: hostile_rows(bank, "hostile")})
    return edition_of(folder)


def edition_of(folder: Path, **changes) -> Edition:
    run = load_run(folder)
    scored = score_run(run, resamples=20)
    standing = Standing("published", ())
    return Edition(site=read_site(), run=run, scored=scored, standing=standing, **changes)


def written(edition: Edition, out: Path) -> dict[str, bytes]:
    """All files that the bulk path writes, by path below dist/."""
    write_receipts(receipt_task(edition, MODEL, out))
    return {p.relative_to(out).as_posix(): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()}


class TestBulkEqualsPlain:
    def test_hostile_rows_give_the_same_bytes(self, hostile, tmp_path):
        pages = dict(plain_pages(hostile, MODEL))
        assert len(pages) == 4 + 4 * 2 * 3 * 3
        assert written(hostile, tmp_path) == pages

    def test_nothing_that_an_endpoint_says_is_hidden_or_reorders_the_page(self, hostile, tmp_path):
        raw = ("\u202e", "\u2066", "\u200b", "\x00", "\x1b", "\x7f")
        guilty = {name for name, data in written(hostile, tmp_path).items() if any(c in data.decode() for c in raw)}
        assert guilty == set()

    def test_folded_mode_writes_only_sets(self, hostile, tmp_path):
        edition = dataclasses.replace(hostile, mode="folded")
        pages = dict(plain_pages(edition, MODEL))
        assert len(pages) == 4
        assert written(edition, tmp_path) == pages

    @pytest.mark.parametrize("rows", [1, 7, 18, 1000])
    def test_batches_of_any_size_give_the_same_bytes(self, hostile, tmp_path, monkeypatch, rows):
        monkeypatch.setattr(receipt_pages, "BATCH_ROWS", rows)
        assert written(hostile, tmp_path) == dict(plain_pages(hostile, MODEL))

    def test_redacted_and_withheld_rows_give_the_same_bytes(self, hostile, tmp_path):
        rows = read_shard(hostile.run, MODEL).to_pylist()
        receipt = next(r["receipt_id"] for r in rows if r["response"] and r["category"] != "capability")
        redactions = Redactions(
            (Redaction(receipt_id=receipt, reason="names <somebody>", date="2026-11-30", evidence=True),)
        )
        standing = Standing("withheld", (RubricUnaudited(rubric="capability"),), frozenset({"capability"}))
        edition = dataclasses.replace(hostile, redactions=redactions, standing=standing)
        pages = written(edition, tmp_path)
        assert pages == dict(plain_pages(edition, MODEL))
        assert len(pages) == 3 + 3 * 18
        assert sum(b"names &lt;somebody&gt;" in data for data in pages.values()) == 2

    def test_an_imported_run_that_lacks_texts_gives_the_same_bytes_and_says_so(self, tmp_path):
        bank = small_bank()
        folder = make_run(tmp_path / "imported", bank=bank, models=("alpha/one",))
        edition = edition_of(as_imported(folder, lacking=lambda i: NOT_IMPORTED if i % 2 else NOT_IMPORTED[3:5]))
        pages = write_receipts(receipt_task(edition, "alpha/one", tmp_path / "out")) and {
            p.relative_to(tmp_path / "out").as_posix(): p.read_bytes()
            for p in (tmp_path / "out").rglob("*")
            if p.is_file()
        }
        assert pages == dict(plain_pages(edition, "alpha/one"))
        texts = [data.decode() for data in pages.values()]
        assert sum("No text: it was not in what was imported." in text for text in texts) >= len(texts) // 2
        assert not any("the call failed" in text for text in texts)

    def test_a_run_of_format_1_gives_the_same_bytes(self, tmp_path):
        folder = as_format_1(make_run(tmp_path / "old", bank=small_bank(), models=(MODEL,)))
        edition = edition_of(folder)
        assert written(edition, tmp_path / "out") == dict(plain_pages(edition, MODEL))

    @pytest.mark.parametrize(
        "text",
        [
            "sim\x1frow.prompt\x1f",
            "\x1f0\x1erow.prompt\x1f0\x1e",
            "\x1f0\x1e alone",
            "\x1f1\x1erow.prompt\x1f1\x1e",
            "".join(f"\x1f{i}\x1erow.prompt>receipt_vote.html\x1f{i}\x1e" for i in range(20)),
            "\x1fno.column\x1f \x1f0\x1eno.column\x1f0\x1e",
        ],
    )
    def test_a_marker_in_the_text_of_a_page_is_text(self, hostile, tmp_path, text):
        manifest = hostile.run.manifest
        own = manifest.model(MODEL).model_copy(update={"endpoint": text, "api_model": text, "params": {text: text}})
        others = tuple(m for m in manifest.models if m.model != MODEL)
        run = dataclasses.replace(hostile.run, manifest=manifest.model_copy(update={"models": (own, *others)}))
        edition = dataclasses.replace(hostile, run=run)
        assert written(edition, tmp_path) == dict(plain_pages(edition, MODEL))

    def test_base_url_reaches_titles_and_addresses(self, hostile, tmp_path):
        edition = dataclasses.replace(hostile, base_url="https://example.org/bias")
        assert written(edition, tmp_path) == dict(plain_pages(edition, MODEL))


class Blocks(HTMLParser):
    """The text of every untrusted block, code points that a page spells out put back."""

    def __init__(self, data: bytes):
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self.depth = 0
        self.spelled = False
        self.feed(data.decode())

    def handle_starttag(self, tag, attrs):
        css = dict(attrs).get("class", "")
        if tag == "div" and "raw" in css.split():
            self.depth = 1
            self.found.append("")
        elif tag == "div" and self.depth:
            self.depth += 1
        self.spelled = self.depth > 0 and css == "cp"

    def handle_endtag(self, tag):
        self.depth -= tag == "div" and self.depth > 0
        self.spelled = False

    def handle_data(self, data):
        if self.depth:
            self.found[-1] += chr(int(data[2:], 16)) if self.spelled else data


class TestWhatAReaderFinds:
    def test_prompts_and_responses_are_there_to_the_last_character(self, hostile, tmp_path):
        pages = written(hostile, tmp_path)
        rows = read_shard(hostile.run, MODEL).to_pylist()
        assert len(rows) == 72
        for row in rows:
            found = Blocks(pages[paths.row_page(hostile.run_id, MODEL, *(row[k] for k in KEY))]).found
            assert found == [row["prompt"], NO_RESPONSE if row["response"] is None else row["response"]]

    def test_nothing_untrusted_becomes_markup(self, hostile, tmp_path):
        for data in written(hostile, tmp_path).values():
            assert b"<script>alert" not in data
            assert data.count(b"<script") == 2  # the theme, and the page's own
            assert not set(data.decode()) & set("\x00\x07\x1b\x1f\x7f\r\u202e\u2066\u2069\u200b\ufeff\t")

    def test_a_vote_stands_with_judge_role_and_evidence(self, hostile, tmp_path):
        pages = written(hostile, tmp_path)
        rows = read_shard(hostile.run, MODEL).to_pylist()
        three = next(row for row in rows if len(row["votes"]) == 3 and row["status"] == "scored")
        page = pages[paths.row_page(hostile.run_id, MODEL, *(three[k] for k in KEY))].decode()
        for vote in three["votes"]:
            assert page.count(f"{vote['judge']} <span") == 1
            assert vote["key"] in page
        assert three["receipt_id"] in page
        assert three["prompt_sha256"] in page
        assert f'href="index.html#{paths.row_anchor(*(three[k] for k in KEY[1:]))}"' in page

    def test_a_disparity_stands_on_the_scale_of_the_concept_s_page(self, hostile, tmp_path):
        rows = hostile.scored.tables["disparities"].to_pylist()
        texts = {name: data.decode() for name, data in written(hostile, tmp_path).items()}
        assert any(row["disparity"] for row in rows)
        for row in rows:
            text = texts[paths.set_page("hostile", MODEL, row["concept"])]
            key = f"disparities|{MODEL},{row['concept']},{row['framing']}|disparity"
            shown = "–" if row["disparity"] is None else f"{100 * row['disparity']:.1f}"
            assert f'data-cell="{key}" data-scale="100">{shown}</span>' in text

    def test_the_permalink_is_an_anchor_of_the_set_page(self, hostile, tmp_path):
        pages = written(hostile, tmp_path)
        for row in read_shard(hostile.run, MODEL).to_pylist():
            page = pages[paths.set_page(hostile.run_id, MODEL, row["concept"])].decode()
            assert page.count(f'id="{paths.row_anchor(*(row[k] for k in KEY[1:]))}"') == 1

    def test_previous_and_next_walk_through_every_row_once(self, hostile, tmp_path):
        pages = written(hostile, tmp_path)
        rows = [
            paths.row_page(hostile.run_id, MODEL, *(r[k] for k in KEY))
            for r in read_shard(hostile.run, MODEL).to_pylist()
        ]
        walked = [rows[0]]
        while found := re.search(r'<a rel="next" href="([^"]+)"', pages[walked[-1]].decode()):
            walked.append(posixpath.normpath(posixpath.join(posixpath.dirname(walked[-1]), found[1])))
        assert walked == rows
        assert 'rel="prev"' not in pages[rows[0]].decode()

    def test_every_link_within_the_receipts_is_alive(self, hostile, tmp_path):
        pages = written(hostile, tmp_path)
        for name, data in pages.items():
            for target in re.findall(r'href="([^"#]+\.html)', data.decode()):
                path = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
                inside = path.startswith(f"runs/hostile/receipts/{MODEL}/") and path.count("/") == 6
                assert not inside or path in pages, (name, target)

    def test_a_row_page_weighs_less_than_8_kb(self, tmp_path):
        bank = small_bank()
        rows = make_rows(bank, MODEL, run_id="long", answers=lambda *_: (0.0, 1.0, 1.0))
        words = random.Random(1)
        for row in rows:
            row["response"] = " ".join("".join(words.choices("abcdefghij", k=6)) for _ in range(250))
            row["mask_spans"] = []
        folder = write_run(tmp_path / "long", bank, {MODEL: rows})
        pages = written(edition_of(folder), tmp_path / "out")
        sizes = [len(gzip.compress(data)) for name, data in pages.items() if not name.endswith("index.html")]
        assert len(sizes) == 72
        assert max(sizes) < 8000

    def test_a_set_of_36_answers_in_stock_sentences_weighs_less_than_8_kb(self, tmp_path):
        bank = make_bank(("age",), groups=6, quota={"stance": 1, "capability": 1})
        rows = make_rows(bank, MODEL, run_id="wide", answers=lambda *_: (0.0, 1.0, 1.0))
        words = random.Random(2)
        vocabulary = ["".join(words.choices("abcdefghij", k=6)) for _ in range(150)]
        sentences = [" ".join(words.choices(vocabulary, k=7)) for _ in range(40)]
        for row in rows:
            row["response"] = ". ".join(words.choices(sentences, k=5))
            row["mask_spans"] = [{"start": 20, "end": 33}]
            row["completion_tokens"], row["cost_usd"] = words.randrange(20, 90), words.randrange(900, 1900) / 1e6
            row["votes"] = [{**v, "evidence": words.choice(sentences[:6])} for v in row["votes"]]
        folder = write_run(tmp_path / "wide", bank, {MODEL: rows})
        edition = edition_of(folder, base_url="https://example.org/a-project")
        pages = written(edition, tmp_path / "out")
        sizes = {name: len(gzip.compress(data)) for name, data in pages.items() if name.endswith("index.html")}
        assert len(sizes) == 2
        assert {name: size for name, size in sizes.items() if size >= 8000} == {}

    def test_hashes_are_whole_on_the_page_of_a_row_or_where_there_is_none_on_the_set(self, hostile, tmp_path):
        row = next(r for r in read_shard(hostile.run, MODEL).to_pylist() if r["response_key"])
        hashes = (row["prompt_sha256"], row["response_key"])
        place = (hostile.run_id, MODEL, *(row[k] for k in KEY))
        pages = written(hostile, tmp_path / "row")
        own, whole = (pages[page].decode() for page in (paths.row_page(*place), paths.set_page(*place[:3])))
        assert [h in own for h in hashes] == [True, True]
        assert [(h in whole, f"<code>{h[:8]}</code>" in whole) for h in hashes] == [(False, True)] * 2
        folded = written(dataclasses.replace(hostile, mode="folded"), tmp_path / "folded")
        assert [h in folded[paths.set_page(*place[:3])].decode() for h in hashes] == [True, True]


class TestUnusualCharacters:
    def test_arrow_sees_every_character_that_the_page_spells_out(self):
        points = [p for p in range(0x110000) if not 0xD800 <= p < 0xE000]
        flagged = holding(pa.array([chr(p) for p in points]), receipt_columns._UNUSUAL).tolist()
        seen = {p for p, hit in zip(points, flagged, strict=True) if hit}
        wanted = set()
        for start in range(0, len(points), 512):
            part = points[start : start + 512]
            if "class=" in visible("".join(map(chr, part))):
                wanted |= {p for p in part if "class=" in visible(chr(p))}
        assert len(wanted) > 400
        assert seen == wanted

    def test_ordinary_text_is_not_slowed_down(self):
        text = "An ordinary answer,\nin two lines: naïve – “so”, 日本語, עברית, 😀."
        assert holding(pa.array([text]), receipt_columns._UNUSUAL).tolist() == [False]


APART = "The primary judges disagree (OPPOSE against SUPPORT)"
REFUSED = "The primary judges disagree (OPPOSE against REFUSAL)"
SCORES_APART = "The primary judges disagree (20 (20-39) against 60 (60-79))"
UNUSABLE = "gave no usable vote (error: the answer was not JSON)"


class TestWhy:
    @pytest.mark.parametrize(
        ("answers", "sentence"),
        [
            ((0.5, 0.5), "Both primary judges said MIXED."),
            (("REFUSAL", "REFUSAL"), "Both primary judges said REFUSAL."),
            ((0.0, 1.0, 1.0), f"{APART}; the tiebreak said SUPPORT, so two of three decide."),
            ((0.0, 1.0, 0.5), f"{APART}, and the tiebreak (MIXED) did not settle it."),
            ((0.0, "REFUSAL", "REFUSAL"), f"{REFUSED}; with the tiebreak, two of three saw a refusal."),
            ((0.5, None), f"sim-judge-b/two {UNUSABLE}, and a row needs both primary judges."),
            ((0.0, 1.0, None), f"{APART}, and the tiebreak {UNUSABLE}."),
        ],
    )  # fmt: skip
    def test_a_label_row(self, answers, sentence):
        assert why(make_receipt(small_bank(), concept="age_stance_0", answers=answers)) == sentence

    @pytest.mark.parametrize(
        ("answers", "sentence"),
        [
            ((0.55, 0.62), "The scores 55 and 62 lie within 10 points; their mean is final."),
            ((0.2, 0.6, 0.55), f"{SCORES_APART}; the tiebreak said 55 (40-59), and the closest scores decide."),
            ((0.2, 0.6, 0.9), f"{SCORES_APART}, and the tiebreak (90 (80-100)) did not settle it."),
        ],
    )  # fmt: skip
    def test_a_score_row(self, answers, sentence):
        assert why(make_receipt(small_bank(), concept="age_capability_0", answers=answers)) == sentence

    def test_two_judges_have_nobody_to_settle_it(self):
        row = make_receipt(small_bank(), model="sim-judge-a/own", concept="age_stance_0", answers=(0.0, 1.0))
        assert why(row) == "The two judges disagree (OPPOSE against SUPPORT), and this model has no tiebreak."

    def test_rows_without_votes(self):
        bank = small_bank()
        lost = make_receipt(bank, **failed_row())
        stopped = make_receipt(bank, **filtered_row())
        blocked = make_receipt(bank, response="x", votes=[], status="error")
        reason = "The call failed for good (the connection failed), so there was nothing to judge."
        assert why(lost) == reason
        assert why({**lost, "outcome": None, "failure": None}) == reason.replace(" (the connection failed)", "")
        assert why(make_receipt(bank, **cut_row())).startswith("Every token that the model was allowed went into")
        assert why(stopped).startswith("The vendor's own content filter stopped the answer")
        assert why(blocked) == "There is no usable answer, so no judge was asked."
