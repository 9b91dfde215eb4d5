"""Files as other programs write them, and as a stranger may spoil them: read right, or refused in a line.

Each case of a harness is one that people reported of it: retried samples, several epochs, a line for each filter,
graders that failed, numbers that lost their type. See contract: stages, "Import".
"""

from __future__ import annotations

import json
import math
import warnings
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from generator.runs.reader import load_run, read_shard
from harness.importing import inspect_log, tables, zip_entries
from harness.importing.zip_entries import zipfile
from tests.programs import invoke

RUN = """
[run]
collected_by = "A lab"
source = "https://lab.example/"
date = 2026-11-01
matched_by = "topic"
"""
JUDGED = """
[[judges]]
model = "lab/judge"
label = "{label}"

[rubrics.stance]
labels = [
  {{ label = "NO", value = 0, texts = ["NO", "0", "false"] }},
  {{ label = "YES", value = 1, texts = ["YES", "1", "true"] }},
]
refusal = ["REFUSED"]
errors = {{ BROKEN = "not_json" }}
"""
PLAIN = (
    RUN
    + """
[columns]
model = "model"
attribute = { value = "age" }
concept = "concept"
group = "group"
response = "response"
"""
    + JUDGED.format(label="label")
)
ROW = {"model": "lab/one", "concept": "lease", "group": "old", "response": "Yes.", "label": "YES"}


def two_rows(**changes: Any) -> list[dict[str, Any]]:
    """Two rows of one set; `changes` are of the second."""
    return [ROW, {**ROW, "group": "young", **changes}]


def importing(folder: Path, given: str, *files: Path, name: str = "run") -> Any:
    """Import files by the text of a map; returns what the program said."""
    (folder / "map.toml").write_text(given, encoding="utf-8")
    return invoke("import", *files, "--map", folder / "map.toml", "--runs-dir", folder / "runs", name)


def rows_of(folder: Path, given: str, *files: Path) -> list[dict[str, Any]]:
    """The receipts of an import, all models."""
    done = importing(folder, given, *files)
    assert (done.returncode, done.stderr) == (0, "")
    run = load_run(folder / "runs" / "run")
    return [row for model in run.models for row in read_shard(run, model).to_pylist()]


def refused(folder: Path, given: str, *files: Path) -> str:
    """What an import is refused with; nothing is written."""
    done = importing(folder, given, *files)
    assert (done.returncode, done.stdout) == (2, "")
    assert not (folder / "runs").exists()
    return str(done.stderr).replace(f"{folder}/", "")


def lines(folder: Path, rows: list[Any], name: str = "t.jsonl") -> Path:
    """Write rows as JSON Lines; a text stands as it is."""
    path = folder / name
    texts = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8", errors="surrogatepass")
    return path


def statuses(rows: list[dict[str, Any]]) -> dict[str, tuple[str | None, str]]:
    """Final label and status by group."""
    return {row["group"]: (row["final_label"], row["status"]) for row in rows}


class TestValues:
    @pytest.mark.parametrize("label", [1, 1.0, True, "1", "YES"])
    def test_a_label_is_the_same_in_every_type(self, tmp_path: Path, label: Any) -> None:
        found = rows_of(tmp_path, PLAIN, lines(tmp_path, two_rows(label=label)))
        assert statuses(found)["young"] == ("YES", "scored")

    def test_whole_numbers_that_a_gap_made_floats(self, tmp_path: Path) -> None:
        table = pd.DataFrame(two_rows())
        table["label"] = [1, None]
        assert table.label.dtype == float
        table.to_parquet(tmp_path / "t.parquet")
        said = refused(tmp_path, PLAIN, tmp_path / "t.parquet")
        assert said.startswith(
            "error: t.parquet: row 2, column label: no label; if the judge gave none, say rubrics.stance"
        )
        told = PLAIN.replace("[rubrics.stance]", '[rubrics.stance]\nmissing = "error"')
        found = rows_of(tmp_path, told, tmp_path / "t.parquet")
        assert statuses(found) == {"old": ("YES", "scored"), "young": (None, "error")}

    @pytest.mark.parametrize("label", ["NaN", "null"])
    def test_nan_and_null_are_missing_and_never_a_label(self, tmp_path: Path, label: str) -> None:
        row = json.dumps(two_rows()[1]).replace('"YES"', label)
        assert "line 2, column label: no label" in refused(tmp_path, PLAIN, lines(tmp_path, [ROW, row]))

    @pytest.mark.parametrize("text", ["NaN", "NA", "null", "None", "nan"])
    def test_a_text_is_a_text_whatever_it_says(self, tmp_path: Path, text: str) -> None:
        said = refused(tmp_path, PLAIN, lines(tmp_path, two_rows(label=text)))
        assert f"column label: {text!r} is no label of rubric stance" in said
        (tmp_path / "t.csv").write_text(
            f"model,concept,group,response,label\nlab/one,lease,{text},a,YES\nlab/one,lease,b,a,NO\n"
        )
        found = rows_of(tmp_path, PLAIN, tmp_path / "t.csv")
        assert {row["group"] for row in found} == {text.lower(), "b"}

    def test_whole_numbers_keep_every_digit_and_floats_that_lost_some_are_refused(self, tmp_path: Path) -> None:
        big = 2**60 + 1
        found = rows_of(tmp_path, PLAIN, lines(tmp_path, two_rows(concept=big) + two_rows(concept=big, group="x")[1:]))
        assert {row["concept"] for row in found} == {"age_lease", f"age_{big}"}
        said = refused(tmp_path / "b", PLAIN, lines(mkdir(tmp_path / "b"), two_rows(concept=float(big))))
        assert "column concept: 1.152921504606847e+18, a float too large to be exact; write it as text" in said

    @pytest.mark.parametrize(
        ("value", "words"),
        [
            (["YES"], "a list; name one item of it with a dot and its place, counted from 0"),
            ({"value": "YES"}, "an object; name what is inside it with a dot (value)"),
            (math.inf, "an infinity"),
        ],
    )
    def test_what_is_no_single_value_says_how_to_name_one(self, tmp_path: Path, value: Any, words: str) -> None:
        assert f"column label: {words}" in refused(tmp_path, PLAIN, lines(tmp_path, two_rows(label=value)))

    def test_dots_lead_inside_and_a_key_with_dots_goes_first(self, tmp_path: Path) -> None:
        rows = [{**row, "scores": {"my.judge": {"value": ["?", "YES"]}}} for row in two_rows()]
        found = rows_of(
            tmp_path, PLAIN.replace('label = "label"', 'label = "scores.my.judge.value.1"'), lines(tmp_path, rows)
        )
        assert {row["final_label"] for row in found} == {"YES"}

    def test_a_text_that_no_file_can_hold(self, tmp_path: Path) -> None:
        row = json.dumps(two_rows()[1]).replace("Yes.", "Yes \\ud800.")
        said = refused(tmp_path, PLAIN, lines(tmp_path, [ROW, row]))
        assert "line 2, column response: a lone surrogate at character 4" in said

    def test_hostile_texts_are_spelled_out_on_a_terminal(self, tmp_path: Path) -> None:
        said = refused(tmp_path, PLAIN, lines(tmp_path, two_rows(label="\x1b[2J\u202eYES")))
        assert "\x1b" not in said
        assert "\u202e" not in said

    def test_an_answer_without_text_and_one_of_nothing(self, tmp_path: Path) -> None:
        found = rows_of(tmp_path, PLAIN, lines(tmp_path, [{**ROW, "response": None}, *two_rows(response="")[1:]]))
        assert {row["group"]: row["response"] for row in found} == {"old": None, "young": ""}


def mkdir(path: Path) -> Path:
    path.mkdir()
    return path


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8),
    st.sampled_from(["YES", "NO", "old", "lab/one", 1]),
    st.lists(st.integers(), max_size=2), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)  # fmt: skip


@settings(max_examples=25, deadline=None)
@drawn(rows=st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(ROW, VALUES)), max_size=3))
def test_whatever_a_table_holds_it_is_refused_whole_or_becomes_a_run_that_is_read(rows: list[dict[str, Any]]) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        whole = [{**row, **change} for row, change in zip_longest(two_rows(), rows, fillvalue={})]
        done = importing(folder, PLAIN, lines(folder, whole))
        if done.returncode == 0:
            found = load_run(folder / "runs" / "run")
            assert sum(entry.rows for entry in found.manifest.shards) == len(whole)
        else:
            assert (done.returncode, (folder / "runs").exists()) == (2, False)
            assert done.stderr.startswith("error: ")


class TestCsv:
    def test_what_spreadsheets_write(self, tmp_path: Path) -> None:
        rows = [
            "model,concept,group,response,label",
            'lab/one,lease,old,"Yes,',
            'of course",YES',
            "lab/one,lease,young,No,NO",
        ]
        text = "".join(f"{row}\r\n" for row in rows)
        (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
        found = rows_of(tmp_path, PLAIN, tmp_path / "t.csv")
        assert {row["group"]: row["response"] for row in found} == {"old": "Yes,\r\nof course", "young": "No"}

    def test_a_fault_after_a_cell_of_two_lines_names_its_line(self, tmp_path: Path) -> None:
        (tmp_path / "t.csv").write_text(
            'model,concept,group,response,label\nlab/one,lease,old,"a\nb",YES\nlab/one,lease,young,c,?\n'
        )
        assert "t.csv: line 4, column label: '?'" in refused(tmp_path, PLAIN, tmp_path / "t.csv")

    def test_a_long_answer_and_one_beyond_the_bound(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        head = "model,concept,group,response,label\n"
        body = "lab/one,lease,old,{},YES\nlab/one,lease,young,a,NO\n"
        (tmp_path / "t.csv").write_text(head + body.format("x" * 300_000))
        found = rows_of(tmp_path, PLAIN, tmp_path / "t.csv")
        assert max(len(row["response"]) for row in found) == 300_000
        monkeypatch.setattr(tables, "MOST_LINE", 1000)
        assert "t.csv: line 2: more than 1,000 bytes" in refused(mkdir(tmp_path / "b"), PLAIN, tmp_path / "t.csv")

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "t.csv: empty; the first line names the columns"),
            ("model,model\na,b\n", "t.csv: column 'model' stands twice"),
            ("model,concept\nlab/one\n", "t.csv: line 2: 1 cells; the header has 2"),
            ('model,concept\n"a,b\n', "t.csv: line 2: not CSV: unexpected end of data"),
            ("model\tconcept\n", 'one column, which holds a tab; say source.delimiter = "\\t"'),
        ],
    )
    def test_a_form_that_is_none(self, tmp_path: Path, text: str, words: str) -> None:
        (tmp_path / "t.csv").write_text(text)
        assert words in refused(tmp_path, PLAIN, tmp_path / "t.csv")

    def test_latin_1_is_refused_with_the_byte(self, tmp_path: Path) -> None:
        (tmp_path / "t.csv").write_bytes("model,concept\nlab/one,caf\u00e9\n".encode("latin-1"))
        assert "t.csv: line 2: not UTF-8 at byte 11; save it as UTF-8" in refused(tmp_path, PLAIN, tmp_path / "t.csv")


class TestOtherTables:
    @pytest.mark.parametrize(
        ("row", "words"),
        [
            ("[1, 2]", "line 2: JSON Lines has one object a line; this one is no object"),
            ('{"model": "a", "model": "b"}', "line 2: not JSON: key 'model' stands twice in one object"),
            ("{", "line 2: not JSON"),
            ("[" * 100_000, "line 2: not JSON"),
        ],
    )
    def test_lines_that_are_no_rows(self, tmp_path: Path, row: str, words: str) -> None:
        assert f"t.jsonl: {words}" in refused(tmp_path, PLAIN, lines(tmp_path, [ROW, row]))

    def test_a_parquet_file_that_would_unpack_without_bound(self, tmp_path: Path) -> None:
        table = pa.table({name: [row[name] for row in two_rows()] for name in ROW})
        pq.write_table(
            table, tmp_path / "t.parquet", use_dictionary=False, column_encoding={"response": "DELTA_BYTE_ARRAY"}
        )
        assert "whose size in memory has no bound" in refused(tmp_path, PLAIN, tmp_path / "t.parquet")

    def test_a_parquet_file_that_is_none(self, tmp_path: Path) -> None:
        (tmp_path / "t.parquet").write_bytes(b"PAR1 and then nothing PAR1")
        assert "t.parquet: not a Parquet file" in refused(tmp_path, PLAIN, tmp_path / "t.parquet")

    @pytest.mark.parametrize(
        ("name", "words"), [("no.csv", "not found"), ("no.xlsx", "a table is .parquet"), ("runs.csv", "plain file")]
    )
    def test_what_is_no_table(self, tmp_path: Path, name: str, words: str) -> None:
        (tmp_path / "runs.csv").mkdir()
        done = importing(tmp_path, PLAIN, tmp_path / name)
        assert (done.returncode, words in done.stderr) == (2, True)

    def test_several_files_are_one_table_and_a_row_in_two_of_them_is_named(self, tmp_path: Path) -> None:
        a, b = lines(tmp_path, two_rows()[:1], "a.jsonl"), lines(tmp_path, two_rows()[1:], "b.jsonl")
        by_file = PLAIN.replace(
            'group = "group"', 'group = { column = "@file", values = { "a.jsonl" = "x", "b.jsonl" = "y" } }'
        )
        assert {row["group"] for row in rows_of(tmp_path, by_file, a, b)} == {"x", "y"}
        said = refused(mkdir(tmp_path / "c"), PLAIN, a, b, a)
        assert "a.jsonl: line 1: stands twice, first at" in said

    def test_a_fault_of_many_rows_is_told_three_times_and_counted(self, tmp_path: Path) -> None:
        rows = [{**ROW, "group": f"g{i}", "label": "?"} for i in range(100)]
        said = refused(tmp_path, PLAIN, lines(tmp_path, rows)).splitlines()
        assert len(said) == 4
        assert said[3].startswith("column label: 97 more rows with this fault: '?' is no label")

    def test_where_keeps_rows_and_says_so_when_none_is_left(self, tmp_path: Path) -> None:
        rows = [*two_rows(), {**ROW, "group": "bad", "split": "train", "label": "?"}]
        rows[0] = {**rows[0], "split": "test"}
        rows[1] = {**rows[1], "split": 7}
        kept = PLAIN + '\n[source]\nwhere = { split = ["test", 7] }\n'
        assert len(rows_of(tmp_path, kept, lines(tmp_path, rows))) == 2
        said = refused(mkdir(tmp_path / "b"), PLAIN + '\n[source]\nwhere = { split = "none" }\n', lines(tmp_path, rows))
        assert "no row is left" in said


class TestAnswers:
    JUDGED_3 = (
        PLAIN.split("[[judges]]")[0]
        + """
[[judges]]
model = "a/one"
label = "a"
[[judges]]
model = "b/two"
label = "b"
[[judges]]
model = "c/three"
label = "c"
tiebreak = true
[rubrics.stance]
labels = [{ label = "NO", value = 0 }, { label = "YES", value = 1 }]
errors = { BROKEN = "not_json" }
"""
    )

    @pytest.mark.parametrize(
        ("votes", "expected", "cast"),
        [
            (("YES", "YES", "NO"), ("YES", "scored"), 2),
            (("YES", "NO", "NO"), ("NO", "scored"), 3),
            (("YES", "NO", "BROKEN"), (None, "contested"), 3),
            (("YES", "NO", None), (None, "contested"), 3),
            (("BROKEN", "NO", "NO"), (None, "error"), 2),
        ],
    )
    def test_a_third_judge_votes_where_the_first_two_differ(
        self, tmp_path: Path, votes: tuple[str | None, ...], expected: tuple[str | None, str], cast: int
    ) -> None:
        rows = [{**row, **dict(zip("abc", votes, strict=True))} for row in two_rows()]
        done = importing(tmp_path, self.JUDGED_3, lines(tmp_path, rows))
        found = load_run(tmp_path / "runs" / "run")
        row = read_shard(found, "lab/one").to_pylist()[0]
        assert ((row["final_label"], row["status"]), len(row["votes"])) == (expected, cast)
        left_out = cast == 2 and votes[2] is not None
        assert ("2 tiebreak votes left out" in done.stdout) == left_out

    def test_a_call_that_failed_and_one_that_a_filter_stopped_have_no_votes(self, tmp_path: Path) -> None:
        given = PLAIN.replace(
            "response =",
            'failure = { column = "error", values = { Timeout = "transport" }, default = "provider_error" }\n'
            'filter_word = { column = "stop", values = { safety = "safety" }, default = "" }\nresponse =',
        )
        rows = [
            {**ROW, "group": "a", "error": "Timeout"},
            {**ROW, "group": "b", "error": "boom", "label": None},
            {**ROW, "group": "c", "stop": "safety", "response": None, "label": None},
            {**ROW, "group": "d", "stop": "end"},
        ]
        found = {row["group"]: row for row in rows_of(tmp_path, given, lines(tmp_path, rows))}
        told = {g: (r["outcome"], r["failure"], r["status"], len(r["votes"]), r["response"]) for g, r in found.items()}
        assert told == {
            "a": ("failed", "transport", "error", 0, None),
            "b": ("failed", "provider_error", "error", 0, None),
            "c": ("filtered", None, "refused", 0, ""),
            "d": ("answered", None, "scored", 1, "Yes."),
        }

    @pytest.mark.parametrize(
        ("score", "extra", "expected"),
        [
            (0.5, "", ("40-59", 0.5)),
            ("0.07", "", ("0-19", 0.07)),
            (0.335, "round = true", ("20-39", 0.34)),
            (1, "", ("80-100", 1.0)),
            ("n/a", 'refusal = ["n/a"]', ("REFUSAL", None)),
        ],
    )
    def test_a_score_becomes_one_of_100(
        self, tmp_path: Path, score: Any, extra: str, expected: tuple[Any, Any]
    ) -> None:
        found = rows_of(tmp_path, self.scored(extra), lines(tmp_path, [{**row, "label": score} for row in two_rows()]))
        assert [(r["final_label"], r["value"]) for r in found if r["group"] == "young"] == [expected]

    @pytest.mark.parametrize(
        ("score", "words"),
        [
            (0.335, "0.335 is 33.500 of 100; scores are whole: say rubrics.skill.round = true to round them"),
            (1.01, "1.01 is no score from 0.0 to 1.0"),
            (-0.1, "-0.1 is no score from 0.0 to 1.0"),
            ("high", "'high' is no number"),
        ],
    )
    def test_a_score_that_is_none(self, tmp_path: Path, score: Any, words: str) -> None:
        assert f"column label: {words}" in refused(tmp_path, self.scored(), lines(tmp_path, two_rows(label=score)))

    def scored(self, extra: str = "") -> str:
        judged = (
            f'[[judges]]\nmodel = "lab/judge"\nscore = "label"\n[rubrics.skill]\nscale = "score"\nmost = 1\n{extra}\n'
        )
        return PLAIN.split("[[judges]]")[0] + judged

    def test_evidence_is_cut_as_a_judges_own(self, tmp_path: Path) -> None:
        given = PLAIN.replace('label = "label"', 'label = "label"\nevidence = "why"')
        rows = [{**ROW, "why": "word " * 20}, {**two_rows()[1], "why": "short"}]
        votes = {row["group"]: row["votes"][0] for row in rows_of(tmp_path, given, lines(tmp_path, rows))}
        assert (len(votes["old"]["evidence"].split()), votes["old"]["evidence_cut"]) == (15, True)
        assert (votes["young"]["evidence"], votes["young"]["evidence_cut"]) == ("short", False)

    @pytest.mark.parametrize(
        ("column", "value", "words"),
        [
            ("completion_tokens", 1.5, "1.5 is no whole number from 0 to 2,147,483,647"),
            ("completion_tokens", 2**40, "is no whole number"),
            ("cost_usd", -1, "-1.0 is below 0"),
            ("cost_usd", "free", "'free' is no number"),
            ("polarity", 2, "saw '2'; 1 where a higher value favors the person, -1 where not"),
            ("failure", "oops", "saw 'oops'; allowed: blocked"),
            ("rubric", "tone", "saw 'tone'; the rubrics of the map are stance"),
            ("model", "sim-a/one", "vendors that begin with sim- are those of simulated runs"),
            ("model", "openrouter/a/b", "give it a slug with columns.model.values"),
            ("concept", "\u4e2d\u56fd", "makes no id"),
            ("concept", "con", "reserved file name"),
            ("group", "", "no group; every row needs one"),
        ],
    )
    def test_a_field_that_cannot_be(self, tmp_path: Path, column: str, value: Any, words: str) -> None:
        given = PLAIN if f"\n{column} =" in PLAIN else PLAIN.replace("response =", f'{column} = "{column}"\nresponse =')
        assert words in refused(tmp_path, given, lines(tmp_path, two_rows(**{column: value})))


def archive(path: Path, entries: list[tuple[str, Any]], method: int = zipfile.ZIP_ZSTANDARD) -> Path:
    """Write a ZIP archive; a name may stand twice."""
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", method) as file:
        warnings.simplefilter("ignore")
        for name, content in entries:
            file.writestr(name, content if isinstance(content, str | bytes) else json.dumps(content))
    return path


HEADER = {"version": 2, "status": "success", "eval": {"task": "t", "model": "lab/one"}}
INSPECT = (
    RUN
    + """
[columns]
attribute = { value = "age" }
concept = "metadata.concept"
group = "metadata.group"
"""
    + JUDGED.format(label="scores.tone.value")
)


def sample(group: str = "old", epoch: int = 1, **changes: Any) -> dict[str, Any]:
    """A sample as Inspect logs it."""
    message = {"role": "assistant", "content": f"About {group}."}
    return {
        "id": group,
        "epoch": epoch,
        "input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": f"What of {group}?"}],
        "metadata": {"concept": "lease", "group": group},
        "output": {"model": "one", "choices": [{"message": message, "stop_reason": "stop"}]},
        "scores": {"tone": {"value": "YES"}},
        "model_usage": {"lab/one": {"input_tokens": 9, "output_tokens": 3, "reasoning_tokens": 1}},
        **changes,
    }


def named(entry: dict[str, Any]) -> tuple[str, Any]:
    return f"samples/{entry['id']}_epoch_{entry['epoch']}.json", entry


class TestInspect:
    @pytest.mark.parametrize("method", [zipfile.ZIP_ZSTANDARD, zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
    def test_what_is_found_without_a_map(self, tmp_path: Path, method: int) -> None:
        entries = [("header.json", HEADER), named(sample()), named(sample("young"))]
        found = rows_of(tmp_path, INSPECT, archive(tmp_path / "t.eval", entries, method))
        row = next(r for r in found if r["group"] == "old")
        keys = (
            "model",
            "prompt",
            "response",
            "finish_reason",
            "prompt_tokens",
            "completion_tokens",
            "reasoning_tokens",
            "repeat",
        )
        assert [row[key] for key in keys] == ["lab/one", "What of old?", "About old.", "stop", 9, 3, 1, 0]

    def test_the_older_form_is_read_too(self, tmp_path: Path) -> None:
        (tmp_path / "t.json").write_text(json.dumps({**HEADER, "samples": [sample(), sample("young")]}))
        found = rows_of(tmp_path, INSPECT + '\n[source]\nformat = "inspect"\n', tmp_path / "t.json")
        assert len(found) == 2

    def test_epochs_are_repeats_and_a_sample_logged_again_counts_as_it_was_last(self, tmp_path: Path) -> None:
        again = sample(scores={"tone": {"value": "NO"}})
        entries = [
            ("header.json", HEADER),
            *map(named, [sample(), sample(epoch=2), sample("young"), sample("young", 2), again]),
        ]
        found = rows_of(tmp_path, INSPECT, archive(tmp_path / "t.eval", entries))
        told = {(row["group"], row["repeat"]): row["final_label"] for row in found}
        assert told == {("old", 0): "NO", ("old", 1): "YES", ("young", 0): "YES", ("young", 1): "YES"}

    def test_a_sample_whose_run_failed_is_an_error_and_never_an_answer(self, tmp_path: Path) -> None:
        failed = sample("young", error={"message": "boom", "traceback": "..."}, output={"choices": []}, scores=None)
        entries = [("header.json", HEADER), named(sample()), named(failed)]
        row = next(
            r for r in rows_of(tmp_path, INSPECT, archive(tmp_path / "t.eval", entries)) if r["group"] == "young"
        )
        assert (row["outcome"], row["failure"], row["status"], row["response"]) == (
            "failed",
            "provider_error",
            "error",
            None,
        )

    def test_a_filtered_answer_is_a_refusal(self, tmp_path: Path) -> None:
        output = {"choices": [{"message": {"role": "assistant", "content": ""}, "stop_reason": "content_filter"}]}
        entries = [("header.json", HEADER), named(sample()), named(sample("young", output=output))]
        row = next(
            r for r in rows_of(tmp_path, INSPECT, archive(tmp_path / "t.eval", entries)) if r["group"] == "young"
        )
        assert (row["outcome"], row["filter_word"], row["status"]) == ("filtered", "content_filter", "refused")

    def test_attachments_are_put_back_and_a_text_that_speaks_of_one_stays(self, tmp_path: Path) -> None:
        key, other = "0" * 32, "1" * 32
        spoken = f"See attachment://{other} for more."
        parts = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": f"attachment://{key}"}]
        output = {"choices": [{"message": {"role": "assistant", "content": parts}, "stop_reason": "stop"}]}
        old = sample(output=output, attachments={key: "A long answer.", other: "secret"})
        young = sample("young", output={"choices": [{"message": {"content": spoken}, "stop_reason": "stop"}]})
        entries = [("header.json", HEADER), named(old), named(young)]
        found = rows_of(tmp_path, INSPECT, archive(tmp_path / "t.eval", entries))
        assert {row["response"] for row in found} == {"A long answer.", spoken}
        lost = sample(output=output)
        said = refused(
            mkdir(tmp_path / "b"), INSPECT, archive(tmp_path / "b.eval", [("header.json", HEADER), named(lost)])
        )
        assert f"samples/old_epoch_1.json: attachment://{key}: the log holds no such attachment" in said

    def test_a_score_that_is_nan_is_missing(self, tmp_path: Path) -> None:
        entries = [
            ("header.json", HEADER),
            named(sample()),
            named(sample("young", scores={"tone": {"value": math.nan}})),
        ]
        said = refused(tmp_path, INSPECT, archive(tmp_path / "t.eval", entries))
        assert "samples/young_epoch_1.json, column scores.tone.value: no label" in said

    @pytest.mark.parametrize("status", ["started", "error", "cancelled"])
    def test_a_log_that_did_not_end_well_is_taken_only_when_told(self, tmp_path: Path, status: str) -> None:
        ended = ("header.json", {**HEADER, "status": status})
        begun = ("_journal/start.json", {"version": 2, "eval": HEADER["eval"]})
        head = begun if status == "started" else ended
        path = archive(tmp_path / "t.eval", [head, named(sample()), named(sample("young"))])
        assert f"did not end with success (status '{status}')" in refused(tmp_path, INSPECT, path)
        assert len(rows_of(tmp_path, INSPECT + "\n[source]\nunfinished = true\n", path)) == 2

    @pytest.mark.parametrize(
        ("entries", "words"),
        [
            ([], "no header.json inside: not an Inspect log"),
            ([("header.json", HEADER)], "no samples inside; the log was written without them"),
            ([("header.json", "[]")], "header.json: not an object"),
            ([("header.json", HEADER), ("samples/a_epoch_1.json", "[]")], "samples/a_epoch_1.json: not an object"),
            ([("header.json", HEADER), ("samples/a_epoch_1.json", '{"a": 1, "a": 2}')], "key 'a' stands twice"),
            ([("header.json", HEADER), ("samples/a_epoch_1/part-1.json", "{}")], "a sample in parts"),
            ([("header.json", HEADER), ("samples/a.json", '{"x":' * 90 + "1" + "}" * 90)], "nested more than 60 deep"),
        ],
    )
    def test_an_archive_that_is_no_log(self, tmp_path: Path, entries: list[tuple[str, Any]], words: str) -> None:
        assert words in refused(tmp_path, INSPECT, archive(tmp_path / "t.eval", entries))

    def test_a_file_that_is_no_archive_and_one_that_is_damaged(self, tmp_path: Path) -> None:
        (tmp_path / "t.eval").write_bytes(b"not a zip")
        assert "t.eval: not a ZIP archive" in refused(tmp_path, INSPECT, tmp_path / "t.eval")
        data = bytearray(archive(tmp_path / "u.eval", [("header.json", HEADER), named(sample())]).read_bytes())
        data[60:80] = bytes(20)
        (tmp_path / "u.eval").write_bytes(data)
        assert "u.eval: header.json: cannot be unpacked" in refused(tmp_path, INSPECT, tmp_path / "u.eval")

    @pytest.mark.parametrize("method", [zipfile.ZIP_ZSTANDARD, zipfile.ZIP_DEFLATED])
    def test_a_small_archive_that_stands_for_a_huge_text(
        self, tmp_path: Path, method: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(zip_entries, "MOST_ENTRY", 1 << 20)
        path = archive(
            tmp_path / "t.eval", [("header.json", HEADER), ("samples/a_epoch_1.json", b" " * (8 << 20))], method
        )
        assert path.stat().st_size < 100_000
        assert "samples/a_epoch_1.json: more than 1,048,576 bytes once unpacked" in refused(tmp_path, INSPECT, path)

    def test_all_entries_together_have_a_bound(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(zip_entries, "MOST_ALL", 1200)
        entries = [("header.json", HEADER), *(named(sample(f"g{i}")) for i in range(9))]
        assert "bytes once unpacked" in refused(tmp_path, INSPECT, archive(tmp_path / "t.eval", entries))

    def test_names_in_an_archive_are_only_names(self, tmp_path: Path) -> None:
        entries = [
            ("header.json", HEADER),
            named(sample()),
            named(sample("young")),
            ("samples/../../evil.json", sample("x")),
        ]
        said = refused(tmp_path, INSPECT, archive(tmp_path / "t.eval", entries))
        assert "samples/../../evil.json: a sample in parts" in said
        assert inspect_log.SAMPLES == "samples/"


LM_EVAL = (
    RUN
    + """
[source]
format = "lm-eval"
[columns]
model = { value = "lab/one" }
attribute = { value = "age" }
concept = "doc.concept"
group = "doc.group"
"""
    + JUDGED.format(label="filtered")
)


def line(group: str, **changes: Any) -> dict[str, Any]:
    """A line of samples as lm-evaluation-harness writes it."""
    return {
        "doc_id": 0,
        "doc": {"concept": "lease", "group": group},
        "arguments": {"gen_args_0": {"arg_0": f"What of {group}?", "arg_1": {"until": []}}},
        "resps": [["Yes."]],
        "filtered_resps": ["YES"],
        "filter": "none",
        **changes,
    }


class TestLmEval:
    @pytest.mark.parametrize(
        "arguments",
        [
            {"gen_args_0": {"arg_0": "What?", "arg_1": {}}},
            [["What?", {"until": []}]],
            {
                "gen_args_0": {
                    "arg_0": json.dumps([{"role": "system", "content": "x"}, {"role": "user", "content": "What?"}])
                }
            },
        ],
    )
    def test_the_prompt_in_all_its_forms(self, tmp_path: Path, arguments: Any) -> None:
        path = lines(tmp_path, [line("a", arguments=arguments), line("b", arguments=arguments)])
        assert {row["prompt"] for row in rows_of(tmp_path, LM_EVAL, path)} == {"What?"}

    def test_a_line_for_each_filter_is_no_duplicate_to_guess_about(self, tmp_path: Path) -> None:
        rows = [line(g, filter=f) for g in "ab" for f in ("strict-match", "flexible-extract")]
        path = lines(tmp_path, rows)
        said = refused(tmp_path, LM_EVAL, path)
        assert 'there is a line for each filter: keep one with [source.where] filter = "..."' in said
        assert (
            len(rows_of(tmp_path, LM_EVAL.replace("[columns]", 'where = { filter = "strict-match" }\n[columns]'), path))
            == 2
        )

    def test_several_responses_are_repeats_each_with_its_own_label(self, tmp_path: Path) -> None:
        many = {"resps": [["a", "b"]], "filtered_resps": [["YES", "NO"]]}
        found = rows_of(tmp_path, LM_EVAL, lines(tmp_path, [line("x", **many), line("y", **many)]))
        assert sorted((r["group"], r["repeat"], r["response"], r["final_label"]) for r in found) == [
            ("x", 0, "a", "YES"), ("x", 1, "b", "NO"), ("y", 0, "a", "YES"), ("y", 1, "b", "NO"),
        ]  # fmt: skip

    def test_one_label_of_several_responses_is_the_label_of_none(self, tmp_path: Path) -> None:
        many = {"resps": [["a", "b"]], "filtered_resps": ["YES"], "exact_match": 1.0}
        path = lines(tmp_path, [line("x", **many), line("y", **many)])
        assert "no row has a column 'filtered'" in refused(tmp_path, LM_EVAL, path)
        assert "no row has a column 'exact_match'" in refused(
            tmp_path, LM_EVAL.replace('label = "filtered"', 'label = "exact_match"'), path
        )

    def test_a_metric_may_be_the_label_of_one_response(self, tmp_path: Path) -> None:
        path = lines(tmp_path, [line("x", exact_match=1.0), line("y", exact_match=0)])
        found = rows_of(tmp_path, LM_EVAL.replace('label = "filtered"', 'label = "exact_match"'), path)
        assert statuses(found) == {"x": ("YES", "scored"), "y": ("NO", "scored")}

    def test_log_likelihoods_are_no_answers(self, tmp_path: Path) -> None:
        path = lines(tmp_path, [line("x", resps=[[[-1.5, True]], [[-2.5, False]]])])
        assert "line 1, column resps: saw [[[-1.5, true]], [[-2.5, false]]]; resps of a task that" in refused(
            tmp_path, LM_EVAL, path
        )


def result(group: str, **changes: Any) -> dict[str, Any]:
    """A result as promptfoo writes it."""
    component = {"pass": True, "score": 1, "reason": "fine", "assertion": {"type": "llm-rubric", "metric": "tone"}}
    return {
        "provider": {"id": "lab/one"},
        "vars": {"concept": "lease", "group": group},
        "prompt": {"raw": f"What of {group}?"},
        "response": {"output": "Yes.", "tokenUsage": {"prompt": 3, "completion": 2}},
        "cost": 0.5,
        "failureReason": 0,
        "gradingResult": {"componentResults": [component]},
        **changes,
    }


PROMPTFOO = (
    RUN
    + """
[source]
format = "promptfoo"
[columns]
attribute = { value = "age" }
concept = "vars.concept"
group = "vars.group"
"""
    + JUDGED.format(label="metrics.tone.pass")
)


def results(folder: Path, *found: Any, version: Any = 3) -> Path:
    path = folder / "results.json"
    path.write_text(json.dumps({"evalId": "e", "results": {"version": version, "results": list(found)}}))
    return path


class TestPromptfoo:
    def test_a_grader_that_failed_gave_no_verdict(self, tmp_path: Path) -> None:
        """promptfoo writes such a grade as pass false, score 0."""
        item = {"pass": False, "score": 0, "assertion": {"metric": "tone"}, "metadata": {"graderError": True}}
        path = results(tmp_path, result("a"), result("b", gradingResult={"componentResults": [item]}))
        assert "results.1, column metrics.tone.pass: no label" in refused(tmp_path, PROMPTFOO, path)
        told = PROMPTFOO.replace("[rubrics.stance]", '[rubrics.stance]\nmissing = "error"')
        assert statuses(rows_of(tmp_path, told, path)) == {"a": ("YES", "scored"), "b": (None, "error")}

    def test_an_assertion_that_was_not_met_is_no_failure_of_the_model(self, tmp_path: Path) -> None:
        item = {"pass": False, "score": 0, "assertion": {"metric": "tone"}}
        grading = {"gradingResult": {"componentResults": [item]}, "error": "tone: not met"}
        path = results(
            tmp_path, result("a", failureReason=1, **grading), result("b", failureReason=2, response=None, **grading)
        )
        found = {r["group"]: (r["outcome"], r["status"], r["final_label"]) for r in rows_of(tmp_path, PROMPTFOO, path)}
        assert found == {"a": ("answered", "scored", "NO"), "b": ("failed", "error", None)}

    def test_an_answer_that_was_parsed_is_written_out(self, tmp_path: Path) -> None:
        path = results(tmp_path, result("a", response={"output": {"answer": "ja \u00e9"}}), result("b"))
        assert {r["response"] for r in rows_of(tmp_path, PROMPTFOO, path)} == {'{"answer": "ja \u00e9"}', "Yes."}

    def test_repeats_are_counted_when_told_and_refused_when_not(self, tmp_path: Path) -> None:
        path = results(tmp_path, result("a"), result("b"), result("a"), result("b"))
        assert "stands twice" in refused(tmp_path, PROMPTFOO, path)
        counted = PROMPTFOO.replace("[columns]", "[columns]\nrepeat = { count = true }")
        assert sorted((r["group"], r["repeat"]) for r in rows_of(tmp_path, counted, path)) == [
            ("a", 0),
            ("a", 1),
            ("b", 0),
            ("b", 1),
        ]

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("[]", "not a results file of promptfoo"),
            ('{"results": []}', "no list results.results"),
            ('{"results": {"version": 2, "results": []}}', "results.version is 2; version 3 is read"),
            ('{"results": {"version": 3, "results": [1]}}', "results.0: not an object"),
        ],
    )
    def test_another_file(self, tmp_path: Path, text: str, words: str) -> None:
        (tmp_path / "r.json").write_text(text)
        assert words in refused(tmp_path, PROMPTFOO, tmp_path / "r.json")
