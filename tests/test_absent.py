"""A run of which only a part was asked: no link to what is not there, and every page says what was not asked."""

from __future__ import annotations

import re
from html import unescape

import pytest

from generator.html.frame import concept_title
from tests.browser.checks import dead_links
from tests.factories import answers_from, make_bank, make_rows, noise, write_run
from tests.publications import QUOTA, make_content, quicken, run_publish

RUN, MODEL, WHOLE = "part", "sim-alpha/one", "sim-beta/two"
GONE = "age_stance_0"


def answers(model, concept, framing, group, repeat):
    """One concept without any scored answer; the rest without group effects."""
    if concept == "gender_stance_0":
        return (None, 0.5)
    return answers_from(noise(model, concept, framing, group, repeat))


def asked(row):
    """Whether the model was asked: no prompt of one concept, one cell less, one first repeat less, no control."""
    key = (row["framing"], row["group"])
    if row["concept"] == GONE or row["attribute"].startswith("control"):
        return False
    if row["concept"] == "age_capability_0":
        return key != ("direct", "g1") and (key, row["repeat"]) != (("professional", "g0"), 0)
    return True


@pytest.fixture(scope="module")
def bank():
    return make_bank(groups=2, quota=QUOTA, control_quota=QUOTA)


@pytest.fixture(scope="module")
def dist(tmp_path_factory, bank):
    folder = tmp_path_factory.mktemp("absent")
    shards = {m: make_rows(bank, m, repeats=2, run_id=RUN, answers=answers) for m in (MODEL, WHOLE)}
    shards[MODEL] = [row for row in shards[MODEL] if asked(row)]
    content = make_content(folder / "content", runs=())
    write_run(content / "runs" / RUN, bank, shards)
    with pytest.MonkeyPatch.context() as patch:
        quicken(patch)
        run_publish(content, folder / "dist", mode="row")
    return folder / "dist"


def html_of(dist, path):
    return (dist / "runs" / RUN / path).read_text()


def text_of(html):
    main = html.split("<main", 1)[1].split("</main>")[0]
    return " ".join(unescape(re.sub(r"<[^>]+>", "", re.sub(r"</?(t[dhr]|d[dt]|br|p)\b", r" \g<0>", main))).split())


def part_of(html, start, end):
    return text_of(f"<main>{html.partition(start)[2].partition(end)[0]}</main>")


def test_every_link_of_the_site_is_alive(dist):
    assert not (dist / "runs" / RUN / "receipts" / MODEL / GONE).exists()
    faults = dead_links(dist)
    assert not faults, "\n".join(faults[:20])


def test_a_model_s_page_says_first_what_was_not_asked(dist):
    html = html_of(dist, f"models/{MODEL}/numbers.html")
    behind = part_of(html, '<div class="inside" id="age">', "</details>")
    assert "Not asked in this run: 1 of 2 concepts." in behind
    assert f"for want of two groups: {concept_title(GONE)}" not in behind
    assert f"{GONE} stance – – 0 0 0 0 not asked" in behind
    assert "age: 1 of 2 concepts asked" in text_of(html)
    assert "Not counted, for want of two groups: Capability 0 (direct)" in behind
    assert "1 concepts" not in text_of(html)


def test_a_number_that_rests_on_too_little_says_so_beside_it(dist):
    text = text_of(html_of(dist, f"models/{MODEL}.html"))
    assert re.search(r"\d\.\d[a-f, ]* too little: 1 concept, 3 answers", text)
    assert re.search(r"\d\.\d[a-f, ]* too little ", text_of(html_of(dist, "index.html")))
    more = part_of(html_of(dist, f"models/{MODEL}/numbers.html"), 'id="more"', "</section>")
    assert "too little" in more
    assert "too little:" not in more
    whole = html_of(dist, f"models/{WHOLE}.html").partition('id="evidence"')[2]
    assert "too little" not in part_of(whole, 'href="#age"', "</tr>")


def test_without_a_band_nothing_is_read_against_one(dist):
    text = text_of(html_of(dist, f"models/{MODEL}.html"))
    assert "Consistency by attribute" in text
    assert "Every attribute against the band" not in text
    assert "this run cannot tell" not in text
    assert "Every attribute against the band" in text_of(html_of(dist, f"models/{WHOLE}.html"))


def test_errors_are_also_said_of_the_answers_given(dist, bank):
    text = text_of(html_of(dist, f"models/{MODEL}.html"))
    planned = 9 * 2 * 2 * 2 * 2
    absent = 8 + 2 * 16 + 2 + 1
    given = planned - absent
    assert f"8 of {given} answers given ({800 / given:.0f} %) ended in an error" in text
    assert f"{absent} of {planned} planned answers were never asked for." in text
    assert f"Asked {given} of {planned} planned answers; 8 of the answers given ended in an error" in text
    assert "never asked for" not in text_of(html_of(dist, f"models/{WHOLE}.html"))


def test_a_concept_s_page_has_no_link_where_nothing_was_asked(dist):
    row = re.search(rf'<tr><th scope="row"><a href="[^"]*{MODEL}.*?</tr>', html_of(dist, f"concepts/{GONE}.html"))
    assert row is None or "set<span" not in row[0]
    assert "– not asked not asked not asked" in text_of(html_of(dist, f"concepts/{GONE}.html"))


def test_a_mean_says_on_how_many_repeats_it_rests(dist):
    text = text_of(html_of(dist, "concepts/gender_stance_0.html"))
    assert "none scored (2 error)" in text


def test_the_leaderboard_says_how_many_prompts_were_answered(dist):
    assert "2 models answered between 51 and 72 of the 72 prompts, up to 2 times each, in matched sets" in text_of(
        html_of(dist, "index.html")
    )
