"""Every rule that code, tests or prose cite stands in a document of this repository, under the heading that is named.

A citation reads `contract: receipts, "Votes"` (see contract: README, "How to cite").
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {"contract": ROOT / "docs" / "contract", "methodology": ROOT / "content" / "pages" / "methodology"}
CITATION = re.compile(r'\b(contract|methodology): ([A-Za-z-]+), "([^"]+)"')
BEGINNING = re.compile(r"(?:\(|\bSee |; )((?:contract|methodology): \w)")
# Documents that no clone of this repository contains, spelled in halves so that this file does not name them.
ELSEWHERE = re.compile(rf"\b(?:{'SP' + 'EC'}|{'DES' + 'IGN'})\b|\b{'iss' + 'ue'}s? #?\d|\.\./{'sha' + 'red'}\b")
# Where a citation may run on: a new line, its indent, and the mark of a comment.
WRAP = re.compile(r"[ \t]*\n[ \t]*(?:#|//|--|\*)?[ \t]*")


def headings(text: str) -> list[str]:
    """The headings of a Markdown text, whatever stands between fences left out."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"^#{1,6} (.+?)[ \t]*$", prose, flags=re.MULTILINE)


def known() -> dict[str, dict[str, list[str]]]:
    """Every heading by kind of document and name of document."""
    return {
        kind: {path.stem: headings(path.read_text("utf-8")) for path in sorted(folder.glob("*.md"))}
        for kind, folder in FOLDERS.items()
    }


def faults(text: str, documents: dict[str, dict[str, list[str]]]) -> list[str]:
    """What is wrong with the citations of a text: document or heading absent, another form, another place."""
    line = WRAP.sub(" ", text)
    found = []
    for kind, document, heading in CITATION.findall(line):
        if document not in documents[kind]:
            found.append(f"{kind} has no document {document!r}")
        elif heading not in documents[kind][document]:
            found.append(f"{kind}: {document} has no heading {heading!r}")
    well_formed = {match.start() for match in CITATION.finditer(line)}
    begun = [m.start(1) for m in BEGINNING.finditer(line) if m.start(1) not in well_formed]
    found += [f"no citation, but looks like one: {line[start : start + 60]!r}" for start in begun]
    return [*found, *(f"cites {old!r}, which is not in this repository" for old in ELSEWHERE.findall(line))]


def texts() -> dict[str, str]:
    """Every text file that git knows or would take, by its path; this one is left out, for it holds wrong examples."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    found = {}
    for name in names:
        if not name or ROOT / name == Path(__file__):
            continue
        try:
            found[name] = (ROOT / name).read_text("utf-8")
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
    return found


DOCUMENTS = {"contract": {"receipts": ["Receipts", "Votes"]}, "methodology": {"scoring": ["Cell means"]}}


@pytest.mark.parametrize(
    "text",
    [
        'Reads it (contract: receipts, "Votes").',
        'See methodology: scoring, "Cell means"; contract: receipts, "Receipts".',
        '# Read (contract: receipts,\n    # "Votes")',
        '    See methodology: scoring, "Cell\n    means".\n',
        "The contract says: no.",
    ],
)
def test_a_right_citation_passes(text):
    assert faults(text, DOCUMENTS) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('(contract: receipt, "Votes")', "contract has no document 'receipt'"),
        ('(contract: receipts, "Vote")', "contract: receipts has no heading 'Vote'"),
        ('(methodology: receipts, "Votes")', "methodology has no document 'receipts'"),
        ("(contract: receipts)", "no citation, but looks like one: 'contract: receipts)'"),
        ('(contract: receipts, "Votes)', "no citation, but looks like one: 'contract: receipts, \"Votes)'"),
        ("(" + "SP" + "EC 4)", f"cites {'SP' + 'EC'!r}, which is not in this repository"),
        ("so says " + "iss" + "ue 8", f"cites {'iss' + 'ue 8'!r}, which is not in this repository"),
    ],
)
def test_a_wrong_citation_is_found(text, fault):
    assert faults(text, DOCUMENTS) == [fault]


def test_headings_between_fences_are_none():
    assert headings("# One\n```sh\n# two\n```\n## Three \n") == ["One", "Three"]


def test_every_citation_leads_to_its_rule():
    documents = known()
    found = {name: faults(text, documents) for name, text in texts().items()}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_citations_are_many():
    cited = Counter(kind for text in texts().values() for kind, _, _ in CITATION.findall(WRAP.sub(" ", text)))
    assert cited["contract"] > 100
    assert cited["methodology"] > 20


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_heading_stands_once_in_its_document(kind):
    twice = {name: [h for h, n in Counter(hs).items() if n > 1] for name, hs in known()[kind].items()}
    assert {name: found for name, found in twice.items() if found} == {}
