"""Where each page and file of a publication lives, as POSIX paths below `dist/`, and the links between them.

A row page has a name of its own only in row mode, and a set no page in files mode; see `Edition.mode`.

See contract: publication, "The tree".
"""

from __future__ import annotations

import functools
from urllib.parse import urlencode


def relative(page: str, target: str) -> str:
    """Return the link from one page to another path, so that a site works below any address and from a disk.

    Args:
        page: path of the page that holds the link, below `dist/`.
        target: path below `dist/`, with or without an anchor.
    """
    path, hash_, anchor = target.partition("#")
    return _way(page.rpartition("/")[0], path) + hash_ + anchor


@functools.lru_cache(maxsize=4096)
def _way(folder: str, path: str) -> str:
    here, there = folder.split("/") if folder else [], path.split("/")
    # Climb to the last folder that both share, then go down.
    shared = 0
    while shared < min(len(here), len(there) - 1) and here[shared] == there[shared]:
        shared += 1
    return "/".join([".."] * (len(here) - shared) + there[shared:])


def run_index(run_id: str) -> str:
    """Path of a run's leaderboard, its first page."""
    return f"runs/{run_id}/index.html"


def run_page(run_id: str, name: str) -> str:
    """Path of one of the pages that each run has once: findings, pairs, side, planted, judging, audit or run."""
    return f"runs/{run_id}/{name}.html"


def model_page(run_id: str, model: str) -> str:
    """Path of a model's page. The slug has a slash, so pages of one vendor share a folder."""
    return f"runs/{run_id}/models/{model}.html"


def numbers_page(run_id: str, model: str) -> str:
    """Path of the page that holds what a model's page leaves out: its other measures, and every concept."""
    return f"runs/{run_id}/models/{model}/numbers.html"


def figure(run_id: str, name: str) -> str:
    """Return where a figure lies, without an ending; `name` begins with `models/` or `attributes/`."""
    return f"runs/{run_id}/charts/{name}"


def attribute_page(run_id: str, attribute: str) -> str:
    """Path of the page on which all models stand on one attribute."""
    return f"runs/{run_id}/attributes/{attribute}.html"


def concept_page(run_id: str, concept: str) -> str:
    """Path of the page of one concept: its prompts, and all models' answers to it."""
    return f"runs/{run_id}/concepts/{concept}.html"


def part_page(page: str, number: int) -> str:
    """Path of a later part of a page that lists all models; `number` counts from 2.

    The parts of a run's index lie below `board/`, those of any other page in a folder of its name.
    """
    folder = page.replace("/index.html", "/board") if page.endswith("/index.html") else page.removesuffix(".html")
    return f"{folder}/part-{number}.html"


def part_number(page: str) -> int:
    """Return which part the path of a part is."""
    return int(page.rpartition("/part-")[2].removesuffix(".html"))


def explorer_page(run_id: str) -> str:
    """Path of the explorer, which searches all rows with a script."""
    return f"runs/{run_id}/receipts/index.html"


def receipts_list(run_id: str, model: str) -> str:
    """Path of the plain list of a model's matched sets, for readers without scripts."""
    return f"runs/{run_id}/receipts/{model}/index.html"


def set_page(run_id: str, model: str, concept: str) -> str:
    """Path of a matched set: one model's answers to one concept, group beside group."""
    return f"runs/{run_id}/receipts/{model}/{concept}/index.html"


def set_reader(run_id: str) -> str:
    """Path of the page that reads a matched set from the published files, in a run without pages of sets."""
    return f"runs/{run_id}/receipts/set.html"


def read_set(run_id: str, model: str, concept: str) -> str:
    """Return the address of a matched set in a run without pages of sets."""
    return f"{set_reader(run_id)}?{urlencode({'model': model, 'concept': concept})}"


def row_anchor(framing: str, group: str, repeat: int) -> str:
    """Return the anchor of a row on its set's page, unique there."""
    return f"{framing}.{group}.{repeat}"


def permalink(run_id: str, model: str, concept: str, framing: str, group: str, repeat: int) -> str:
    """Return the citable address of a row, an anchor on its set's page.

    It is the same in row and folded mode, so an address that was cited once keeps working. In files mode it is
    `read_set` with the same anchor. Names are ids and slugs, `repeat` counts from 0.
    """
    return f"{set_page(run_id, model, concept)}#{row_anchor(framing, group, repeat)}"


def row_page(run_id: str, model: str, concept: str, framing: str, group: str, repeat: int) -> str:
    """Path of a row's own page, which exists in row mode only.

    Names are ids and slugs, `repeat` counts from 0.
    """
    return f"runs/{run_id}/receipts/{model}/{concept}/{row_anchor(framing, group, repeat)}.html"


def data_page(run_id: str) -> str:
    """Path of the page that lists a run's downloads."""
    return f"runs/{run_id}/data/index.html"


def data_file(run_id: str, name: str) -> str:
    """Path of a download; `name` is relative to the data folder."""
    return f"runs/{run_id}/data/{name}"


def change_page(new: str, old: str) -> str:
    """Path of the page that holds two runs against each other; its table lies beside it as CSV and Parquet."""
    return f"changes/{new}--{old}.html"


# The methodology pages in reading order (content/pages/<name>.md); other pages link to `methodology_page(name)`.
METHODOLOGY = (
    "index",
    "paired-prompts",
    "attributes",
    "tasks",
    "scoring",
    "worked-example",
    "control-band",
    "tiers",
    "judging",
    "agreement",
    "statistics",
    "evidence",
    "level",
    "change",
    "audit",
    "nist",
    "limits",
    "reproduction",
    "amendments",
    "glossary",
)
SEARCH_PAGE = "search.html"
RUNS_PAGE = "runs/index.html"
CHANGES_PAGE = "changes/index.html"
HISTORY_PAGE = "changes/models.html"
# Pages of prose outside the methodology: path below dist/ and file below content/pages.
PROSE = {"about.html": "about.md", "changelog.html": "changelog.md"}


def methodology_page(name: str = "index", anchor: str = "") -> str:
    """Path of a methodology page, with or without an anchor.

    Raises:
        KeyError: the name is not in `METHODOLOGY`, so the link would be dead.
    """
    if name not in METHODOLOGY:
        raise KeyError(name)
    return f"methodology/{name}.html" + (f"#{anchor}" if anchor else "")
