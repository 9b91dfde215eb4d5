"""A small publication with every page kind: a simulated run and a live one that can only be a preview."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from generator.runs.operator_notes import NOTE_FILE
from generator.schema.panel import Judges
from tests import factories

# What the answers of the simulated run have in them (`answers`).
PLANTED = [
    {
        "who": "sim-alpha/one", "role": "subject", "effect": "group_effect", "attribute": "age", "group": "g0",
        "category": None, "size": 0.5, "unit": "of the rubric's scale", "text": "Favors the others over g1.",
    }
]  # fmt: skip
SIMULATED, LIVE, REMOVED, EARLIER = "sim-small", "live-small", "gone-small", "earlier-small"
QUOTA = {"stance": 1, "allocation": 1, "refusal": 1, "regard": 0, "capability": 1}
# Everything that a model may write and a page must neither run, render nor lose.
HOSTILE = (
    '<script>document.title="run"</script><img src=x onerror="document.title=\'run\'">',
    "</pre></main></body><style>body{display:none}</style><!--",
    "right \u202eto left\u202c, a null\x00byte, a tab\there, zero\u200bwidth",
    "'\"`=${7*7}{{ 7*7 }}{% raw %}&amp;&#60;b&#62; javascript:alert(1)",
    '=HYPERLINK("https://evil.invalid")\n\n- [x](javascript:alert(1))\n# not a heading',
    "اللغة العربية ثم English ثم עברית",
    "unbroken" * 80,
)


@contextmanager
def live_judges() -> Iterator[None]:
    """Let the factories make votes by judges that are not simulated."""
    kept = factories.JUDGES
    factories.JUDGES = Judges(primary=("judge-a/one", "judge-b/two"), tiebreak="judge-c/three")
    try:
        yield
    finally:
        factories.JUDGES = kept


def answers(model: str, concept: str, framing: str, group: str, repeat: int) -> Any:
    """Mostly agreement, some planted bias, some refusals, errors and splits, by nothing but the row's key."""
    chance = factories.unit("fate", model, concept, framing, group, repeat)
    value = factories.noise(model, concept, framing, group, repeat)
    if model.endswith("/one") and concept.startswith("age") and group == "g1":
        value = max(0.0, value - 0.5)
    if chance < 0.04:
        return ("REFUSAL", "REFUSAL")
    if chance < 0.06:
        return (None, value)
    if chance < 0.12:
        two = model.split("/", maxsplit=1)[0] in ("sim-judge-a", "judge-a")
        return (0.1, 0.9) if two else (0.1, 0.9, 0.9 if chance < 0.1 else 0.5)
    return factories.answers_from(value)


def hostile(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put hostile text into the first rows of each concept's set."""
    for place, row in enumerate(rows):
        if row["response"] is not None and place % 6 == 0:
            row["response"] = HOSTILE[place // 6 % len(HOSTILE)]
            row["mask_spans"] = []
            for vote in row["votes"]:
                if vote["evidence"] is not None:
                    vote["evidence"] = "<b onmouseover=alert(1)>bold</b> \u202eclaim"
    return rows


def write_runs(runs: Path) -> None:
    """Write the run folders below `runs`: a simulated one, a live one, and a tiny one, there to be removed."""
    bank = factories.make_bank(groups=3, quota=QUOTA, control_quota=QUOTA)
    models = ("sim-alpha/one", "sim-beta/two", "sim-judge-a/three")
    shards = {m: hostile(factories.make_rows(bank, m, repeats=2, run_id=SIMULATED, answers=answers)) for m in models}
    factories.write_run(runs / SIMULATED, bank, shards, planted=PLANTED)
    write_earlier(runs / EARLIER, bank)
    with live_judges():
        live = ("alpha/one", "judge-a/three")
        shards = {m: hostile(factories.make_rows(bank, m, repeats=2, run_id=LIVE, answers=answers)) for m in live}
        judges = factories.JUDGES.model_dump(mode="json")
        factories.write_run(runs / LIVE, bank, shards, kind="live", judges=judges, date="2026-11-29")
    (runs / LIVE / NOTE_FILE).write_text("Asked on one afternoon.\n\nA <b>second</b> paragraph.\n", encoding="utf-8")
    tiny = factories.make_bank(groups=2, quota={"stance": 1}, control_quota={"stance": 1})
    factories.write_run(
        runs / REMOVED, tiny, {"sim-alpha/one": factories.make_rows(tiny, "sim-alpha/one", repeats=1, run_id=REMOVED)}
    )


def write_earlier(folder: Path, bank: factories.Bank) -> None:
    """Write an earlier run of the same bank, with other answers of one model, for the pages of change."""
    rows = factories.make_rows(
        bank, "sim-alpha/one", repeats=1, run_id=EARLIER, answers=lambda *row: answers(*row[:-1], row[-1] + 7)
    )
    for row in rows:
        row["response_key"] = row["response_key"] and row["response_key"][::-1]
    factories.write_run(folder, bank, {"sim-alpha/one": rows}, date="2026-10-30")


def content_folder(folder: Path, root: Path) -> Path:
    """Make a content folder with the project's own site.toml and prose, and the runs."""
    folder.mkdir(parents=True)
    shutil.copy(root / "content" / "site.toml", folder / "site.toml")
    shutil.copytree(root / "content" / "pages", folder / "pages")
    write_runs(folder / "runs")
    return folder
