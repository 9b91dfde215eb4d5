"""Where every page and file of a publication lives, as POSIX paths below `dist/`, and links between them.

See contract: publication, "The tree".
"""

from __future__ import annotations


def relative(page: str, target: str) -> str:
    """Return the link from one page to another path; both are below `dist/`, an anchor may follow the target."""
    path, hash_, anchor = target.partition("#")
    here, there = page.split("/")[:-1], path.split("/")
    shared = 0
    while shared < min(len(here), len(there) - 1) and here[shared] == there[shared]:
        shared += 1
    return "/".join([".."] * (len(here) - shared) + there[shared:]) + hash_ + anchor


def run_index(run_id: str) -> str:
    """Leaderboard of a run."""
    return f"runs/{run_id}/index.html"


def run_page(run_id: str, name: str) -> str:
    """One of a run's own pages: judging, audit, run."""
    return f"runs/{run_id}/{name}.html"


def model_page(run_id: str, model: str) -> str:
    """Return a model's page."""
    return f"runs/{run_id}/models/{model}.html"


def attribute_page(run_id: str, attribute: str) -> str:
    """Return an attribute's page."""
    return f"runs/{run_id}/attributes/{attribute}.html"


def concept_page(run_id: str, concept: str) -> str:
    """Return a concept's page."""
    return f"runs/{run_id}/concepts/{concept}.html"


def explorer_page(run_id: str) -> str:
    """Return the explorer over all rows."""
    return f"runs/{run_id}/receipts/index.html"


def receipts_list(run_id: str, model: str) -> str:
    """Return the plain list of a model's sets."""
    return f"runs/{run_id}/receipts/{model}/index.html"


def set_page(run_id: str, model: str, concept: str) -> str:
    """Return the matched set of a model and concept."""
    return f"runs/{run_id}/receipts/{model}/{concept}/index.html"


def row_anchor(framing: str, group: str, repeat: int) -> str:
    """Return the anchor of a row on its set's page."""
    return f"{framing}.{group}.{repeat}"


def permalink(run_id: str, model: str, concept: str, framing: str, group: str, repeat: int) -> str:
    """Return the citable address of a row: the anchor on its set's page, in both modes."""
    return f"{set_page(run_id, model, concept)}#{row_anchor(framing, group, repeat)}"


def row_page(run_id: str, model: str, concept: str, framing: str, group: str, repeat: int) -> str:
    """Return the row's own page (row mode)."""
    return f"runs/{run_id}/receipts/{model}/{concept}/{row_anchor(framing, group, repeat)}.html"


def data_page(run_id: str) -> str:
    """Return the Data page."""
    return f"runs/{run_id}/data/index.html"


def data_file(run_id: str, name: str) -> str:
    """Return a file of the Data page, `name` relative to the data folder."""
    return f"runs/{run_id}/data/{name}"


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
    "audit",
    "nist",
    "limits",
    "reproduction",
    "amendments",
    "glossary",
)
SEARCH_PAGE = "search.html"
RUNS_PAGE = "runs/index.html"
# Pages of prose outside the methodology: path below dist/ and file below content/pages.
PROSE = {"about.html": "about.md", "changelog.html": "changelog.md"}


def methodology_page(name: str = "index", anchor: str = "") -> str:
    """Return a methodology page; raises KeyError for a name not in METHODOLOGY, so that no link can be dead."""
    if name not in METHODOLOGY:
        raise KeyError(name)
    return f"methodology/{name}.html" + (f"#{anchor}" if anchor else "")
