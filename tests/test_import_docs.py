"""Every example of the how-to is imported as it stands there, and its table of errors quotes real ones.

See contract: stages, "Import".
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from generator.runs.reader import load_run, read_shard
from harness.importing.zip_entries import zipfile
from tests.programs import invoke

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "import.md"
TEXT = PAGE.read_text(encoding="utf-8")


def sections() -> dict[str, list[tuple[str, str]]]:
    """Blocks by heading: (what stands behind the fence's language, content)."""
    found: dict[str, list[tuple[str, str]]] = {}
    heading = ""
    tokens = MarkdownIt("commonmark").parse(TEXT)
    for i, token in enumerate(tokens):
        if token.type == "heading_open":
            heading = tokens[i + 1].content
        if token.type == "fence" and " " in token.info:
            found.setdefault(heading, []).append((token.info.partition(" ")[2], token.content))
    return found


SECTIONS = sections()
TABLES = {
    "A table: CSV, JSON Lines, Parquet": "answers.csv",
    "An Inspect log": "lease.eval",
    "Samples of lm-evaluation-harness": "samples_lease_2026-11-01T10-00-00.000000.jsonl",
    "Results of promptfoo": "results.json",
}


def laid_out(heading: str, folder: Path) -> tuple[Path, Path]:
    """Write a section's files; returns (table, map)."""
    for name, content in SECTIONS[heading]:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    if heading == "An Inspect log":
        with zipfile.ZipFile(folder / "lease.eval", "w", zipfile.ZIP_ZSTANDARD) as archive:
            for path in [folder / "header.json", *sorted((folder / "samples").iterdir())]:
                archive.write(path, path.relative_to(folder).as_posix())
    return folder / TABLES[heading], next(folder.glob("*.toml"))


@pytest.mark.parametrize("heading", TABLES)
def test_the_example_of_a_format_is_imported_as_it_stands(heading: str, tmp_path: Path) -> None:
    table, given = laid_out(heading, tmp_path)
    done = invoke("import", table, "--map", given, "--runs-dir", tmp_path / "runs", "lease")
    assert (done.returncode, done.stderr) == (0, "")
    run = load_run(tmp_path / "runs" / "lease")
    rows = read_shard(run, "lab/model-1").to_pylist()
    assert {row["concept"] for row in rows} == {"age_lease"}
    assert len({row["group"] for row in rows}) == 2
    assert all(row["response"] and row["prompt"] for row in rows)
    (concept,) = run.bank.concepts
    assert list(concept.framings.values()) == ["Should a landlord offer {group_np} a two-year lease?"] or (
        # Without np in the map the group's own word is what is swapped.
        list(concept.framings.values()) == ["Should a landlord offer a {group_np}-year-old tenant a two-year lease?"]
    )


def test_scores_of_the_promptfoo_example_are_out_of_100(tmp_path: Path) -> None:
    table, given = laid_out("Results of promptfoo", tmp_path)
    invoke("import", table, "--map", given, "--runs-dir", tmp_path / "runs", "lease")
    rows = read_shard(load_run(tmp_path / "runs" / "lease"), "lab/model-1").to_pylist()
    # 72 failed an assertion, which is no failure of the model.
    assert [(r["group"], r["value"], r["outcome"], r["cost_usd"]) for r in rows] == [
        ("25", 1.0, "answered", 0.0001),
        ("72", 0.4, "answered", 0.0001),
    ]


def changed(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


CSV, MAP = (dict(SECTIONS["A table: CSV, JSON Lines, Parquet"])[name] for name in ("answers.csv", "map.toml"))
LINES = CSV.splitlines()
SPOILED = {
    "no row has a column 'grup'; there are model, case, who": (CSV, [('group = "who"', 'group = "grup"')]),
    "'Yes' is no label of rubric stance: 'OPPOSE', 'MIXED', 'SUPPORT'": (CSV.replace(",MIXED,", ",Yes,"), []),
    'no label; if the judge gave none, say rubrics.stance.missing = "error"': (CSV.replace(",MIXED,", ",,"), []),
    "stands twice, first at answers.csv: line 2": ("\n".join([*LINES, LINES[1]]), []),
    "'gpt-4o': use vendor/name in lower case": (CSV.replace("lab/model-1", "gpt-4o"), []),
    "'A-B' and 'a b' both become a_b; keep them apart with values": (
        CSV.replace("lease,25", "A-B,25").replace("lease,72", "a b,72"),
        [],
    ),
    "noun of concept age_lease is 'owner', but 'tenant'": (
        CSV,
        [('{ value = "tenant" }', '{ column = "try", values = { 2 = "owner" }, default = "tenant" }')],
    ),
    "another prompt than at answers.csv: line 2": (CSV.replace("25,2,Should", "25,2,Must"), []),
    "differ in more than the group's words": (CSV.replace("72-year-old tenant a two", "72-year-old tenant a ten"), []),
    "the header has 8": (CSV.replace("Yes. SUPPORT,SUPPORT,says", "Yes, yes. SUPPORT,SUPPORT,says"), []),
    "UTF-16, not UTF-8": (CSV.encode("utf-16"), []),
    "one column, which holds a semicolon": (CSV.replace(",", ";"), []),
}  # fmt: skip


@pytest.mark.parametrize("words", SPOILED)
def test_a_documented_error_is_what_the_program_says(words: str, tmp_path: Path) -> None:
    table, pairs = SPOILED[words]
    data = table if isinstance(table, bytes) else table.encode()
    (tmp_path / "answers.csv").write_bytes(data)
    (tmp_path / "map.toml").write_text(changed(MAP, *pairs), encoding="utf-8")
    done = invoke(
        "import", tmp_path / "answers.csv", "--map", tmp_path / "map.toml", "--runs-dir", tmp_path / "runs", "lease"
    )
    assert done.returncode == 2
    assert words in done.stderr.replace(f"{tmp_path}/", "")
    assert not (tmp_path / "runs").exists()
    assert f"`{words}" in TEXT


def test_every_documented_error_of_the_table_example_is_tried() -> None:
    told = re.findall(r"^\| `(.+?)`.* \| .* \|$", TEXT[TEXT.index("## Errors") :], flags=re.M)
    elsewhere = {"there is a line for each filter", "a float too large to be exact", "did not end with success"}
    assert set(told) - elsewhere == set(SPOILED)
