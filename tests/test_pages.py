"""Pages of a run and of the root, published into memory and read back as HTML: numbers, notices, notes, absences."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from generator.edition import paths
from generator.edition.comparison import Changes
from generator.edition.edition import Edition
from generator.edition.history import History, Supersession, Withdrawal
from generator.html.frame import NULL, TABLE_KEYS, number
from generator.pages import root as pages_root
from generator.pages.all import card_of, render_pages, render_root, render_sitemaps, render_tombstone
from generator.pages.root import feed_entries, render_feed
from generator.runs.reader import load_run
from generator.scoring.gate import Standing, standing_of
from generator.scoring.reasons import AuditMissing, AuditTooSmall, RubricUnaudited, in_words
from generator.scoring.run import Coverage, score_run
from tests.editions import SITE, make_edition, mixed, small_bank
from tests.factories import make_run
from tests.names_of_bank_1 import CONTROLS, DEMOGRAPHIC

RUN = "test-run"
GONE = "sim-gamma/silent"


class Reader(HTMLParser):
    """Collects tags with their attributes, and the text inside every element that carries a number."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.numbers: list[tuple[str, str, str, str]] = []
        self.text = ""
        self._open: list[str] | None = None

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        self.tags.append((tag, named))
        for kind in ("data-score", "data-cell"):
            if kind in named:
                self._open = [kind, named[kind], named.get("data-scale", "1"), ""]

    def handle_data(self, data):
        self.text += data
        if self._open:
            self._open[3] += data

    def handle_endtag(self, tag):
        if self._open and tag == "span":
            self.numbers.append(tuple(self._open))
            self._open = None


def read(html: bytes) -> Reader:
    reader = Reader()
    reader.feed(html.decode())
    reader.text = " ".join(reader.text.split())
    return reader


def silent(model, concept, framing, group, repeat):
    """As `mixed`, but one model refuses everything about religion."""
    if model == GONE and concept.startswith("religion"):
        return ("REFUSAL", "REFUSAL")
    return mixed(model, concept, framing, group, repeat)


@pytest.fixture(scope="module")
def edition(tmp_path_factory):
    models = ["sim-alpha/one", "sim-beta/two", GONE, "sim-judge-a/own"]
    return make_edition(
        tmp_path_factory.mktemp("runs") / RUN, models=models, answers=silent, bank=small_bank(groups=3), audit=True
    )


@pytest.fixture(scope="module")
def pages(edition):
    return dict(render_pages(edition))


@pytest.fixture(scope="module")
def parsed(pages):
    return {page: read(html) for page, html in pages.items()}


@pytest.fixture(scope="module")
def withheld(tmp_path_factory):
    found = make_edition(tmp_path_factory.mktemp("runs") / RUN, withheld=frozenset({"stance"}))
    return dataclasses.replace(
        found, standing=Standing("withheld", (RubricUnaudited(rubric="stance"),), frozenset({"stance"}))
    )


@pytest.fixture(scope="module")
def shown(withheld):
    return {page: read(html) for page, html in render_pages(withheld)}


def page_of(parsed, name, *parts):
    return parsed[getattr(paths, name)(RUN, *parts)]


class TestEveryPage:
    def test_the_run_has_exactly_its_pages(self, edition, pages):
        bank = edition.run.bank
        wanted = {paths.run_index(RUN)} | {
            paths.run_page(RUN, name) for name in ("findings", "pairs", "side", "judging", "audit", "run")
        }
        wanted |= {paths.model_page(RUN, model) for model in edition.run.models}
        wanted |= {paths.numbers_page(RUN, model) for model in edition.run.models}
        wanted |= {paths.attribute_page(RUN, a.id) for a in bank.attributes}
        wanted |= {paths.concept_page(RUN, c.id) for c in bank.concepts}
        assert set(pages) == wanted

    def test_each_says_that_it_is_simulated_and_asks_not_to_be_indexed(self, parsed):
        for page, reader in parsed.items():
            assert "Simulated run. No real language model was asked." in reader.text, page
            assert ("meta", {"name": "robots", "content": "noindex"}) in reader.tags, page
            assert reader.text.split(" Skip ")[0].endswith("(simulated)"), page

    def test_none_holds_anything_that_its_policy_forbids(self, parsed):
        for page, reader in parsed.items():
            for tag, named in reader.tags:
                assert "style" not in named, (page, tag)
                assert tag != "style", page
                assert not [name for name in named if name.startswith("on")], (page, tag)
                if tag == "script":
                    assert named["src"].startswith("../"), page

    def test_each_has_one_heading_one_main_and_a_skip_link_to_it(self, parsed):
        for page, reader in parsed.items():
            tags = [tag for tag, _ in reader.tags]
            assert (tags.count("h1"), tags.count("main")) == (1, 1), page
            assert ("a", {"class": "skip", "href": "#main"}) in reader.tags, page

    def test_no_id_stands_twice_and_every_own_anchor_exists(self, parsed):
        for page, reader in parsed.items():
            ids = [named["id"] for _, named in reader.tags if "id" in named]
            assert len(ids) == len(set(ids)), page
            own = {named["href"][1:] for tag, named in reader.tags if tag == "a" and named["href"].startswith("#")}
            assert own <= set(ids), page

    def test_every_link_between_these_pages_lives(self, pages, parsed):
        known = set(pages)
        for page, reader in parsed.items():
            for tag, named in reader.tags:
                address = (named.get("href") or "").split("#")[0].split("?")[0]
                if tag != "a" or not address.endswith(".html"):
                    continue
                target = _resolved(page, address)
                if re.match(rf"runs/{RUN}/(models|attributes|concepts|[a-z]+\.html)", target):
                    assert target in known, (page, address)

    def test_the_same_edition_gives_the_same_bytes(self, edition, pages):
        assert dict(render_pages(edition)) == pages


def _resolved(page: str, address: str) -> str:
    parts = page.split("/")[:-1]
    for step in address.split("/"):
        if step == "..":
            parts.pop()
        else:
            parts.append(step)
    return "/".join(parts)


class TestNumbers:
    def test_every_score_on_every_page_is_the_table_s(self, edition, parsed):
        rows = {
            (r["model"], r["metric"], r["attribute"], r["group"] or ""): r
            for r in edition.scored.tables["scores"].to_pylist()
        }
        seen = 0
        for page, reader in parsed.items():
            for kind, key, _, text in reader.numbers:
                if kind == "data-score":
                    model, metric, attribute, group, column = key.split("|")
                    row = rows.get((model, metric, attribute, group), {column: None})
                    assert text == number(row[column], _digits(text)), (page, key)
                    seen += text != NULL
        assert seen > 2000

    def test_every_other_number_is_its_table_s(self, edition, parsed):
        tables = {
            name: {",".join(str(r[k] or "") for k in keys): r for r in edition.scored.tables[name].to_pylist()}
            for name, keys in TABLE_KEYS.items()
        }
        seen = set()
        for page, reader in parsed.items():
            for kind, key, scale, text in reader.numbers:
                if kind == "data-cell":
                    table, row_key, column = key.split("|")
                    value = tables[table].get(row_key, {column: None})[column]
                    shown = value if isinstance(value, str) else _scaled(value, int(scale), text)
                    assert text == shown, (page, key)
                    seen.add(table)
        assert seen == set(TABLE_KEYS) - {"human_audit", "refusal_tests"}  # nobody refuses by group here

    def test_each_score_of_a_model_is_on_its_page_or_its_run_s(self, edition, parsed):
        """Nothing that is published about a model has no place on the site."""
        shown = {key for reader in parsed.values() for kind, key, *_ in reader.numbers if kind == "data-score"}
        missing = set()
        for r in edition.scored.tables["scores"].to_pylist():
            key = f"{r['model']}|{r['metric']}|{r['attribute']}|{r['group'] or ''}|estimate"
            if key not in shown and r["group"] is None and r["attribute"] == "overall":
                missing.add(r["metric"])
        assert missing <= {"disparity"}


def _digits(text: str) -> int:
    return len(text.partition(".")[2])


def _scaled(value: float | None, scale: int, text: str) -> str:
    return number(None if value is None else value * scale, _digits(text))


class TestLeaderboard:
    def test_tiers_hold_their_models_in_rank_order(self, edition, parsed):
        reader = page_of(parsed, "run_index")
        ranked = [r for r in edition.scored.tables["tiers"].to_pylist() if r["rank"] is not None]
        links = [n["href"] for t, n in reader.tags if t == "a" and (n.get("href") or "").startswith("models/")]
        assert links[: len(ranked)] == [f"models/{r['model']}.html" for r in sorted(ranked, key=lambda r: r["rank"])]
        assert f"Tier {max(r['tier'] for r in ranked)}" in reader.text

    def test_a_model_that_refused_an_attribute_is_listed_with_the_reason(self, parsed):
        assert f"Not ranked {GONE}: no score for religion" in page_of(parsed, "run_index").text

    def test_findings_come_before_the_tiers_and_how_to_read_them_after(self, parsed):
        text = page_of(parsed, "run_index").text
        wanted = ["What was found", "Tiers by consistency", "each score against the model’s own band, not against 100"]
        places = [text.index(words) for words in (*wanted, "What these numbers do not say")]
        assert places == sorted(places)

    def test_findings_that_would_stop_a_live_run_are_shown(self, edition, parsed):
        assert edition.standing.reasons
        assert in_words(edition.standing.reasons[0]) in page_of(parsed, "run_index").text


class TestModelPage:
    def test_the_unranked_model_s_page_says_why_and_shows_the_rest(self, parsed):
        reader = page_of(parsed, "model_page", GONE)
        assert "not ranked no score for religion" in reader.text
        assert ("data-score", f"{GONE}|consistency|religion||estimate", "1", NULL) in reader.numbers
        assert "no value" in reader.text

    def test_two_judges_stand_beside_the_contested_rate(self, parsed):
        own = page_of(parsed, "model_page", "sim-judge-a/own").text
        other = page_of(parsed, "model_page", "sim-alpha/one").text
        assert "2 judges" in own
        assert "3 judges" not in own
        assert "3 judges" in other
        assert "2 judges" not in other

    def test_every_attribute_has_an_anchor_with_all_its_concepts(self, edition, parsed):
        for page in ("model_page", "numbers_page"):
            reader = page_of(parsed, page, "sim-alpha/one")
            ids = {named.get("id") for _, named in reader.tags}
            assert {*DEMOGRAPHIC, *CONTROLS} <= ids, page
        links = {named.get("href") for tag, named in reader.tags if tag == "a"}
        for concept in edition.run.bank.concepts:
            assert f"../../../receipts/sim-alpha/one/{concept.id}/index.html" in links

    def test_left_out_cells_are_named_with_a_link(self, parsed):
        reader = page_of(parsed, "numbers_page", GONE)
        assert re.search(r"Not counted, for want of two groups: [A-Z][a-z]+ 0 \(", reader.text)
        links = [named.get("href") or "" for tag, named in reader.tags if tag == "a"]
        assert "../../../receipts/index.html?model=sim-gamma/silent&attribute=religion&status=refused" in links

    def test_flags_become_lettered_notes_that_are_explained(self, edition, parsed):
        flags = {
            flag
            for r in edition.scored.tables["scores"].to_pylist()
            if r["model"] == "sim-alpha/one" and r["metric"] == "consistency"
            for flag in (r["flag"] or "").split(";")
            if flag
        }
        reader = page_of(parsed, "model_page", "sim-alpha/one")
        ids = {named.get("id") for _, named in reader.tags}
        assert "sparse" in flags
        assert {f"note-{flag}" for flag in flags} <= ids

    def test_a_difference_is_turned_round_on_the_second_model_s_page(self, edition, parsed):
        row = next(r for r in edition.scored.tables["comparisons"].to_pylist() if r["attribute"] == "overall")
        key = f"comparisons|{row['model_a']},{row['model_b']},overall|difference"
        first = page_of(parsed, "model_page", row["model_a"]).numbers
        second = page_of(parsed, "model_page", row["model_b"]).numbers
        assert ("data-cell", key, "1", number(row["difference"])) in first
        assert ("data-cell", key, "-1", number(-row["difference"])) in second


class TestFlags:
    def test_a_swapped_band_is_footnoted_wherever_it_is_drawn(self, tmp_path):
        def noisy_tag(model, concept, framing, group, repeat):
            return (float(group == "g0"),) * 2 if concept.startswith("control_tag") else (0.5, 0.5)

        edition = make_edition(tmp_path / RUN, answers=noisy_tag)
        pages = {page: read(html) for page, html in render_pages(edition)}
        for page in (paths.run_index(RUN), paths.model_page(RUN, "sim-alpha/one")):
            assert "Swapped controls:" in pages[page].text
        assert "Its controls are swapped" in pages[paths.model_page(RUN, "sim-alpha/one")].text

    def test_no_difference_at_all_is_never_shown_as_certainty(self, tmp_path):
        edition = make_edition(tmp_path / RUN, answers=lambda *_: (0.5, 0.5))
        text = read(dict(render_pages(edition))[paths.model_page(RUN, "sim-alpha/one")]).text
        assert "Degenerate: no concept shows any difference" in text
        assert "That is not certainty." in text


class TestOddShapes:
    """Runs that are valid and thin: every page is still made, and what is missing is said."""

    @pytest.mark.parametrize(
        "attributes",
        [("age",), ("age", "control_profession"), ("control_tag", "control_profession"), ("age", *CONTROLS)],
        ids=["no-controls", "one-control", "controls-only", "one-attribute"],
    )
    def test_a_bank_without_some_attributes(self, tmp_path, attributes):
        edition = make_edition(tmp_path / RUN, bank=small_bank(attributes), models=["sim-alpha/one"])
        pages = {page: read(html) for page, html in render_pages(edition)}
        assert "No model of this run can be ranked" in pages[paths.run_index(RUN)].text
        model = pages[paths.model_page(RUN, "sim-alpha/one")].text
        assert ("no control band: one of its controls has no value" in model) == (
            len(set(attributes) & set(CONTROLS)) < 2
        )

    def test_a_run_with_one_repeat_and_nothing_but_refusals(self, tmp_path):
        path = make_run(
            tmp_path / RUN, bank=small_bank(), repeats=1, models=["sim-alpha/one"], answers=lambda *_: ("REFUSAL",) * 2
        )
        run = load_run(path)
        scored = score_run(run, resamples=50)
        edition = Edition(SITE, run, scored, standing_of(run, scored, preview=True, withhold=False))
        pages = {page: read(html) for page, html in render_pages(edition)}
        assert (
            "No concept of this model has two groups to compare." in pages[paths.model_page(RUN, "sim-alpha/one")].text
        )
        model = pages[paths.model_page(RUN, "sim-alpha/one")].text
        assert "not ranked" in model
        assert "Nothing follows about this model: no attribute could be tested" in model
        assert re.search(r"Overall consistency\s*no value", model)
        assert "answered the same" in pages[paths.run_index(RUN)].text
        assert ", once each, in matched sets" in pages[paths.run_index(RUN)].text
        for reader in pages.values():
            assert "nan" not in re.findall(r"[a-z]+", reader.text.lower())

    def test_two_sided_concepts_have_pages_and_enter_no_table_of_scores(self, tmp_path):
        bank = small_bank(("age", *CONTROLS))
        concepts = [c.model_copy(update={"two_sided": c.id == "age_stance_0"}) for c in bank.concepts]
        edition = make_edition(tmp_path / RUN, bank=bank.model_copy(update={"concepts": tuple(concepts)}))
        pages = {page: read(html) for page, html in render_pages(edition)}
        assert "enters the role-reversal diagnostic only" in pages[paths.concept_page(RUN, "age_stance_0")].text
        numbers = pages[paths.model_page(RUN, "sim-alpha/one")].numbers
        assert not [key for kind, key, *_ in numbers if key.startswith("disparities|") and "age_stance_0" in key]


class TestWithheld:
    def test_every_page_says_what_is_left_out(self, shown):
        for page, reader in shown.items():
            assert "Left out of every score and page: stance." in reader.text, page

    def test_a_withheld_concept_has_no_page_and_no_link(self, withheld, shown):
        gone = {c.id for c in withheld.run.bank.concepts if c.category == "stance"}
        assert gone
        assert not {paths.concept_page(RUN, name) for name in gone} & set(shown)
        for page, reader in shown.items():
            addresses = " ".join(named.get("href") or "" for _, named in reader.tags)
            assert not [name for name in gone if name in addresses], page

    def test_an_attribute_s_page_names_it_as_withheld(self, shown):
        assert "age_stance_0 withheld" in shown[paths.attribute_page(RUN, "age")].text

    def test_numbers_without_it_carry_the_note(self, shown):
        assert "Withheld: a task category that failed the agreement gate or" in shown[paths.run_index(RUN)].text


class TestAttributeAndConceptPages:
    def test_an_attribute_page_has_every_model_and_its_evidence(self, edition, parsed):
        reader = page_of(parsed, "attribute_page", "age")
        for model in edition.run.models:
            assert f"../models/{model}.html" in [named.get("href") for tag, named in reader.tags if tag == "a"]
        assert re.search(r"Of 4 models: \d+ flagged, \d+ suggestive, \d+ unresolved", reader.text)

    def test_a_control_s_page_has_no_evidence_column(self, parsed):
        text = page_of(parsed, "attribute_page", "control_tag").text
        assert "A control: these words should not matter." in text
        assert "Excess" not in text

    def test_a_concept_page_shows_every_prompt_with_its_swap_marked(self, edition, pages):
        concept = edition.run.bank.concept["age_stance_0"]
        html = pages[paths.concept_page(RUN, concept.id)].decode()
        for group in edition.run.bank.attribute["age"].groups:
            for framing in ("direct", "professional"):
                prompt = edition.run.bank.render(concept, framing, group)
                before, after = prompt.text[: prompt.start], prompt.text[prompt.end :]
                assert f'{before}<mark class="swap">{prompt.np}</mark>{after}' in html

    def test_a_mean_links_to_its_rows_and_counts_what_has_no_value(self, edition, parsed):
        cells = edition.scored.tables["cells"].to_pylist()
        row = next(r for r in cells if r["n_refused"] == 1 and not r["n_error"] and not r["n_contested"])
        reader = page_of(parsed, "concept_page", row["concept"])
        anchor = paths.row_anchor(row["framing"], row["group"], 0)
        links = [named.get("href") for tag, named in reader.tags if tag == "a"]
        assert f"../receipts/{row['model']}/{row['concept']}/index.html#{anchor}" in links
        assert "(1 of 2 scored; 1 refused)" in reader.text
        assert "−1" not in reader.text

    def test_whose_the_brackets_are_is_said_where_they_stand(self, parsed):
        for page in (page_of(parsed, "concept_page", "age_stance_0"), page_of(parsed, "attribute_page", "age")):
            assert "[group]" in page.text
            assert "The brackets are ours." in page.text


class TestJudgingAuditRun:
    def test_two_and_three_judge_models_never_share_a_table(self, parsed):
        text = page_of(parsed, "run_page", "judging").text
        three, two = text.index("Three judges 3 models"), text.index("Two judges 1 model")
        assert text.count("Contested, % (3 judges)") == text.count("Contested, % (2 judges)") == 1
        assert three < text.index("sim-alpha/one", three) < two < text.index("sim-judge-a/own", two)

    def test_a_warning_of_the_gate_is_shown(self, edition):
        table = edition.scored.tables["agreement"]
        warnings = ["kappa rests on nothing"] + [None] * (table.num_rows - 1)
        place = table.schema.get_field_index("warning")
        changed = table.set_column(place, table.schema.field(place), [warnings])
        scored = dataclasses.replace(edition.scored, tables={**edition.scored.tables, "agreement": changed})
        row = changed.to_pylist()[0]
        pages = dict(render_pages(dataclasses.replace(edition, scored=scored)))
        shown = "kappa rests on nothing" in read(pages[paths.run_page(RUN, "judging")]).text
        assert shown == (row["vendor"] == "*")

    @pytest.mark.parametrize("page", ["index", "findings", "age"])
    def test_each_page_of_sizes_folds_the_steps_of_every_rubric_once(self, edition, pages, page):
        named = {"index": paths.run_index(RUN), "findings": paths.run_page(RUN, "findings")}
        text = pages[named.get(page, paths.attribute_page(RUN, "age"))].decode()
        (block,) = re.findall(r"<summary>The labels’ steps in points</summary>.*?</details>", text, re.DOTALL)
        assert re.findall(r"<dt>(.*?)</dt>", block) == [rubric.id for rubric in edition.run.bank.rubrics]

    def test_the_audit_s_counts_add_up(self, edition, parsed):
        reader = page_of(parsed, "run_page", "audit")
        total = next(r for r in edition.scored.tables["audit_summary"].to_pylist() if r["rubric"] == "*")
        assert ("data-cell", "audit_summary|*|n_agree", "1", str(total["n_agree"])) in reader.numbers
        assert "Every model of the run was in the draw." in reader.text

    def test_models_that_the_audit_does_not_cover_are_named(self, edition):
        scored = dataclasses.replace(edition.scored, coverage=Coverage(("sim-alpha/one",), ("sim-beta/two",)))
        page = dict(render_pages(dataclasses.replace(edition, scored=scored)))[paths.run_page(RUN, "audit")]
        assert "it says nothing about them: sim-beta/two" in read(page).text

    def test_a_run_without_an_audit_says_so(self, withheld):
        page = dict(render_pages(withheld))[paths.run_page(RUN, "audit")]
        assert "This run has no human audit." in read(page).text

    def test_the_run_page_has_the_whole_manifest(self, edition, parsed):
        manifest, text = edition.run.manifest, page_of(parsed, "run_page", "run").text
        wanted = [manifest.bank_sha256, manifest.harness_sha, manifest.date, *(s.sha256 for s in manifest.shards)]
        wanted += [f"run {manifest.seeds.run}, audit {manifest.seeds.audit}", "max_tokens = 400", "US$ 3.00"]
        assert [item for item in wanted if item not in text] == []

    def test_parameters_that_all_models_share_are_named_once(self, edition, parsed):
        models = list(edition.run.manifest.models)
        models[1] = models[1].model_copy(update={"params": {"temperature": 0.0, "max_tokens": 400}})
        manifest = edition.run.manifest.model_copy(update={"models": tuple(models)})
        changed = dataclasses.replace(edition, run=dataclasses.replace(edition.run, manifest=manifest))
        text = read(dict(render_pages(changed))[paths.run_page(RUN, "run")]).text
        assert (text.count("max_tokens = 400"), text.count("temperature = 1.0"), text.count("temperature = 0.0")) == (
            1,
            3,
            1,
        )
        assert page_of(parsed, "run_page", "run").text.count("temperature = 1.0") == 1

    def test_a_name_that_was_asked_for_is_no_parameter_of_its_own(self, edition):
        models = [
            m.model_copy(update={"api_model": m.model, "params": {**m.params, "api_model": m.model}})
            for m in edition.run.manifest.models
        ]
        manifest = edition.run.manifest.model_copy(update={"models": tuple(models)})
        changed = dataclasses.replace(edition, run=dataclasses.replace(edition.run, manifest=manifest))
        assert "Other parameters" not in read(dict(render_pages(changed))[paths.run_page(RUN, "run")]).text

    def test_what_nobody_paid_says_so(self, parsed):
        assert "US$ 3.00 simulated, nothing was paid" in page_of(parsed, "run_page", "run").text

    @pytest.mark.parametrize("url", ["", "https://example.org/report"])
    def test_an_auditor_learns_what_to_do_with_a_mismatch(self, edition, url):
        changed = dataclasses.replace(edition, site=edition.site.model_copy(update={"mismatch_url": url}))
        html = dict(render_pages(changed))[paths.run_page(RUN, "run")].decode()
        section = html.partition('id="mismatch"')[2].partition("</section>")[0]
        assert edition.site.mismatch in section
        assert (f'href="{url}"' in section) == bool(url)

    @pytest.mark.parametrize("url", ["", "https://example.org/code"])
    def test_every_page_leads_to_the_code_where_the_site_names_it(self, edition, url):
        changed = dataclasses.replace(edition, site=edition.site.model_copy(update={"code_url": url}))
        for page, html in render_pages(changed):
            footer = html.decode().partition('<footer class="foot">')[2]
            assert (f'<a href="{url}">Source code</a>' in footer) == bool(url), page

    def test_an_operator_s_note_is_shown_as_text(self, tmp_path):
        edition = make_edition(tmp_path / RUN)
        (edition.run.folder / "note.txt").write_text("One <b>judge</b> only\nreads words.\n\nSecond.\n")
        html = dict(render_pages(edition))[paths.run_page(RUN, "run")].decode()
        assert "<p>One &lt;b&gt;judge&lt;/b&gt; only reads words.</p>" in html
        assert "<p>Second.</p>" in html


class TestPreview:
    def test_every_page_carries_the_reasons_and_no_index(self, edition):
        standing = Standing("preview", (AuditTooSmall(rows=7), AuditMissing()))
        run = dataclasses.replace(edition.run, manifest=edition.run.manifest.model_copy(update={"kind": "live"}))
        preview = dataclasses.replace(edition, standing=standing, run=run)
        for page, html in render_pages(preview):
            reader = read(html)
            assert "Preview with real models, not a result. Asked: 27 of 27 concepts, " in reader.text, page
            assert (
                "2 reasons why it is not published as a result "
                "the human audit has 7 rows; at least 100 are needed the human audit is missing (audit.csv)"
            ) in reader.text
            assert reader.text.split(" Skip ")[0].endswith("(preview)"), page
            assert f"Run {RUN} of 2026-11-30, preview" in reader.text, page
            assert ("meta", {"name": "robots", "content": "noindex"}) in reader.tags, page
            assert "Simulated run" not in reader.text, page


@pytest.fixture(scope="module")
def live(edition):
    run = dataclasses.replace(edition.run, manifest=edition.run.manifest.model_copy(update={"kind": "live"}))
    return dataclasses.replace(
        edition, run=run, standing=Standing("published", ()), base_url="https://example.org/bias"
    )


@pytest.fixture(scope="module")
def root(live):
    return dict(render_root(live, [live], removed=["old-run"]))


class TestRoot:
    def test_it_has_its_pages_and_files(self, root):
        wanted = {
            "index.html",
            "changes/index.html",
            "runs/index.html",
            "404.html",
            "robots.txt",
            "_headers",
            ".nojekyll",
            "feed.xml",
        }
        assert set(root) == wanted

    def test_the_head_names_the_feed_where_there_is_one(self, root, live, edition):
        feed = (
            "link",
            {"rel": "alternate", "type": "application/atom+xml", "title": live.site.title, "href": "feed.xml"},
        )
        assert feed in read(root["index.html"]).tags
        simulated = dict(render_root(dataclasses.replace(edition, base_url="https://example.org/bias"), [edition]))
        assert feed not in read(simulated["index.html"]).tags

    def test_while_nothing_may_be_listed_there_is_no_feed_and_no_sitemap(self, edition, root):
        found = dict(render_root(dataclasses.replace(edition, base_url="https://example.org/bias"), [edition]))
        assert "feed.xml" not in found
        assert b"Sitemap" not in found["robots.txt"]
        assert b"Sitemap: https://example.org/bias/sitemap.xml" in root["robots.txt"]
        assert list(render_sitemaps("https://example.org/bias", [])) == []

    def test_the_feed_dates_each_entry_by_what_it_tells(self, live):
        history = History(
            withdrawn=(Withdrawal(run="old-run", date="2027-02-01", reason="<b> & more"),),
            superseded=(Supersession(run=RUN, by="next", date="2027-01-01"),),
        )
        site = live.site.model_copy()
        site._history = history  # as read_site has it from the file beside site.toml
        cards = [card_of(live), dataclasses.replace(card_of(live), run_id="next", date="2026-12-31")]
        found = feed_entries(site, cards, Changes(), ["old-run"])
        assert [(e.title, e.date) for e in found] == [
            ("Run old-run was withdrawn", "2027-02-01"),
            (f"Run {RUN} was superseded by run next", "2027-01-01"),
            ("Run next", "2026-12-31"),
            (f"Run {RUN}", live.run.manifest.date),
        ]
        feed = ET.fromstring(render_feed(site, "https://example.org/bias", found))
        atom = "{http://www.w3.org/2005/Atom}"
        assert feed.findtext(f"{atom}updated") == "2027-02-01T00:00:00Z"
        assert feed.find(f"{atom}entry").findtext(f"{atom}summary") == "<b> & more"

    def test_without_a_base_address_there_is_no_feed(self, edition):
        assert "feed.xml" not in dict(render_root(edition, [edition]))

    def test_a_published_live_page_has_its_address_and_card_and_may_be_indexed(self, root):
        tags = read(root["index.html"]).tags
        assert ("link", {"rel": "canonical", "href": "https://example.org/bias/index.html"}) in tags
        card = f"https://example.org/bias/runs/{RUN}/card.png"
        assert ("meta", {"property": "og:image", "content": card}) in tags
        assert not [named for tag, named in tags if tag == "meta" and named.get("name") == "robots"]

    def test_the_card_is_a_png_of_the_promised_size(self, live):
        data = dict(render_pages(live))[f"runs/{RUN}/card.png"]
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        assert (int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")) == (1200, 630)

    def test_404_uses_no_asset_only_absolute_links_and_a_policy_that_fits_its_rules(self, root):
        html = root["404.html"].decode()
        reader = read(root["404.html"])
        assert [named["href"] for tag, named in reader.tags if tag == "a"] == [
            "/bias/index.html", "/bias/runs/index.html", "/bias/methodology/index.html",
        ]  # fmt: skip
        assert not [tag for tag, _ in reader.tags if tag in ("link", "script", "img")]
        rules = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(rules[1].encode()).digest()).decode()
        assert f"style-src 'sha256-{digest}'" in html

    def test_headers_forbid_frames_and_keep_hashed_assets(self, root):
        text = root["_headers"].decode()
        assert "frame-ancestors 'none'" in text
        assert "/assets/*\n  Cache-Control: public, max-age=31536000, immutable" in text

    def test_headers_let_every_site_read_the_data_files_and_nothing_else(self, root):
        rules = {}
        for block in root["_headers"].decode().strip().split("\n\n"):
            path, *lines = block.splitlines()
            rules[path] = dict(line.strip().split(": ", 1) for line in lines)
        open_to_all = [path for path, named in rules.items() if "Access-Control-Allow-Origin" in named]
        assert open_to_all == ["/runs/:run/data/*"]
        assert rules["/runs/:run/data/*"]["Access-Control-Allow-Origin"] == "*"
        assert "Content-Range" in rules["/runs/:run/data/*"]["Access-Control-Expose-Headers"]

    def test_robots_point_to_the_sitemap(self, root):
        assert root["robots.txt"].decode().endswith("Sitemap: https://example.org/bias/sitemap.xml\n")

    def test_the_feed_lists_live_runs_only_with_their_dates(self, live, edition):
        simulated = dataclasses.replace(card_of(edition), run_id="sim")
        listed = feed_entries(SITE, [card_of(live), simulated], Changes(), [])
        feed = ET.fromstring(render_feed(SITE, "https://example.org/bias", listed))
        atom = "{http://www.w3.org/2005/Atom}"
        assert [e.findtext(f"{atom}title") for e in feed.iter(f"{atom}entry")] == [f"Run {RUN}"]
        assert feed.findtext(f"{atom}updated") == "2026-11-30T00:00:00Z"

    def test_runs_stand_under_what_they_are_with_their_reasons(self, live, edition):
        kept = dataclasses.replace(card_of(edition), run_id="sim", reasons=("no audit",))
        preview = dataclasses.replace(card_of(live), run_id="early", state="preview", reasons=("gate",))
        text = read(dict(render_root(live, [live], kept=[kept, preview]))["runs/index.html"]).text
        places = [text.index(words) for words in ("Published Live runs", RUN, "Previews", "early", "gate", "Simulated")]
        assert places == sorted(places)
        assert "no audit" in text
        assert text.count(card_of(live).name) >= 3
        assert "kept out of search engines" in text

    def test_a_removed_run_leaves_a_tombstone_that_the_list_links_to(self, root):
        stone = read(render_tombstone(SITE, "old-run"))
        assert "Run old-run was removed" in stone.text
        assert ("meta", {"name": "robots", "content": "noindex"}) in stone.tags
        assert 'href="old-run/index.html"' in root["runs/index.html"].decode()

    def test_the_list_of_runs_carries_no_banner_of_any_run(self, edition):
        reader = read(dict(render_root(edition, [edition]))["runs/index.html"])
        assert edition.simulated
        assert "Simulated run." not in reader.text
        assert "(simulated)" not in reader.text.split(" Skip ")[0]
        assert ("section", {"class": "notices", "aria-label": "Notices"}) not in reader.tags

    def test_superseding_runs_name_each_other(self, edition):
        manifest = edition.run.manifest.model_copy(update={"supersedes": "older"})
        run = dataclasses.replace(edition.run, manifest=manifest)
        newer = dataclasses.replace(edition, run=run, superseded_by="newest")
        html = dict(render_pages(newer))[paths.run_index(RUN)].decode()
        assert '<a href="../older/index.html">This run supersedes older</a>' in html
        assert '<a href="../newest/index.html">Superseded by newest</a>' in html

    def test_a_superseded_run_that_is_not_on_the_site_is_named_without_a_link(self, edition):
        manifest = edition.run.manifest.model_copy(update={"supersedes": "older"})
        newer = dataclasses.replace(
            edition, run=dataclasses.replace(edition.run, manifest=manifest), runs=frozenset({RUN})
        )
        pages = dict(render_pages(newer))
        assert "<strong>This run supersedes older.</strong>" in pages[paths.run_index(RUN)].decode()
        assert "older, not published here" in read(pages[paths.run_page(RUN, "run")]).text


class TestSitemaps:
    def test_a_small_site_has_one_sorted_sitemap(self):
        ((name, data),) = render_sitemaps("https://a.org", [("b.html", "2026-01-02"), ("a.html", "2026-01-01")])
        places = [e.text for e in ET.fromstring(data).iter() if e.tag.endswith("}loc")]
        assert (name, places) == ("sitemap.xml", ["https://a.org/a.html", "https://a.org/b.html"])

    def test_a_large_one_is_split_behind_an_index(self, monkeypatch):
        monkeypatch.setattr(pages_root, "SITEMAP_SIZE", 2)
        made = dict(render_sitemaps("https://a.org", [(f"{i}.html", "2026-01-01") for i in range(5)]))
        assert set(made) == {"sitemap.xml", "sitemap-1.xml", "sitemap-2.xml", "sitemap-3.xml"}
        places = [e.text for e in ET.fromstring(made["sitemap.xml"]).iter() if e.tag.endswith("}loc")]
        assert places == [f"https://a.org/sitemap-{n}.xml" for n in (1, 2, 3)]
        assert made["sitemap-3.xml"].decode().count("<loc>") == 1
