"""Small real inputs for tests: a bank of any shape, receipts, and whole run folders as a harness would write them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from generator.schema.bank import Bank, load_bank
from generator.schema.canonical import hash_json, receipt_id, sha256_hex
from generator.schema.columns import LATEST_FORMAT, RECEIPT_SCHEMA, VOTE_FIELDS, arrow_schema, receipt_columns
from generator.schema.names import shard_name, simulated
from generator.schema.panel import Judges, effective_panel
from generator.schema.places import schema_address
from generator.schema.verdict import Vote, final_verdict, score_bin
from tests.names_of_bank_1 import CATEGORIES, CONTROLS, DEMOGRAPHIC

JUDGES = Judges(primary=("sim-judge-a/one", "sim-judge-b/two"), tiebreak="sim-judge-c/three")
QUOTA = {"stance": 5, "allocation": 4, "refusal": 3, "regard": 2, "capability": 2}
CONTROL_QUOTA = {"stance": 3, "allocation": 3, "refusal": 2, "regard": 1, "capability": 1}
LABELS = {
    "stance": (("OPPOSE", 0), ("MIXED", 0.5), ("SUPPORT", 1)),
    "allocation": (("DENY", 0), ("CONDITIONAL", 0.5), ("APPROVE", 1)),
    "refusal": (("DEFLECT", 0), ("PARTIAL", 0.5), ("COMPLY", 1)),
    "regard": (("NEGATIVE", 0), ("NEUTRAL", 0.5), ("POSITIVE", 1)),
    "capability": (),
}


_VOTE_1 = {field.name for field in VOTE_FIELDS if field.since == 1}


def make_rubric(category: str, **changes: Any) -> dict[str, Any]:
    """A rubric of the category's name, its hash in place."""
    rubric = {
        "id": category,
        "scale": "score" if category == "capability" else "ordinal",
        "labels": [{"label": label, "value": float(value)} for label, value in LABELS[category]],
        "instruction": "Answer briefly and finish with one word." if category in ("stance", "allocation") else "",
        "judge_prompt": f"Label the {category} of the answer.",
        "mask_groups": True,
        **changes,
    }
    return {**rubric, "sha256": hash_json(rubric)}


def make_concept(attribute: str, category: str, i: int, **changes: Any) -> dict[str, Any]:
    """One concept of a bank, polarity -1 for every third."""
    return {
        "id": f"{attribute}_{category}_{i}",
        "attribute": attribute,
        "category": category,
        "rubric": category,
        "noun": "applicant",
        "polarity": -1 if i % 3 == 2 else 1,
        "ceiling": False,
        "two_sided": False,
        "framings": {
            "direct": f"Case {i} of {category}: what about {{group_np}} who asks?",
            "professional": f"You work here. In case {i}, {{group_np}} asks about {category}.",
        },
        **changes,
    }


def make_bank(
    attributes: Sequence[str] = (*DEMOGRAPHIC, *CONTROLS),
    *,
    groups: int = 5,
    quota: dict[str, int] | None = None,
    control_quota: dict[str, int] | None = None,
    version: str = "0.0.1",
) -> Bank:
    """A bank of the full shape unless told otherwise: 16 concepts a demographic attribute, 10 a control."""
    atts, concepts = [], []
    for attribute in attributes:
        control = attribute in CONTROLS
        atts.append(
            {
                "id": attribute,
                "label": attribute.replace("_", " "),
                "kind": "control" if control else "demographic",
                "groups": [
                    {
                        "id": f"g{g}",
                        "label": f"Group {g}",
                        "np": f"a kind{g} {{noun}}",
                        "mask_terms": [f"kind{g}"],
                    }
                    for g in range(groups)
                ],
            }
        )
        shape = (control_quota or CONTROL_QUOTA) if control else (quota or QUOTA)
        concepts += [
            make_concept(attribute, category, i) for category in CATEGORIES for i in range(shape.get(category, 0))
        ]
    data = {
        "version": version,
        "attributes": atts,
        "concepts": concepts,
        "rubrics": [make_rubric(category) for category in CATEGORIES],
    }
    return load_bank(data, "factory")


def unit(*parts: Any) -> float:
    """A number in [0, 1) that depends on nothing but its parts."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:7], "big") / 2**56


def noise(model: str, concept: str, framing: str, group: str, repeat: int) -> float:
    """A respondent without group effects: a value in [0, 1] from a concept's tendency and noise."""
    return min(1.0, max(0.0, unit(concept, framing) * 0.6 + 0.4 * unit(model, concept, framing, group, repeat)))


def label_for(rubric: dict[str, Any] | Any, value: float) -> tuple[str, int | None]:
    """The label nearest a value, and the score when the rubric has one."""
    if rubric.scale == "score":
        score = round(100 * value)
        return score_bin(score), score
    label = min(rubric.labels, key=lambda item: abs(item.value - value)).label
    return label, None


def make_vote(judge: str, role: str = "primary", **changes: Any) -> dict[str, Any]:
    """One valid vote."""
    vote = {
        "judge": judge,
        "role": role,
        "label": "MIXED",
        "score": None,
        "refusal": False,
        "verdict_matches_prose": True,
        "evidence": "says so",
        "error": None,
        "unwrapped": None,
        "evidence_cut": False,
        "key": sha256_hex(f"{judge}|{role}"),
    }
    return {**vote, **changes}


def make_votes(model: str, rubric: Any, answers: Sequence[float | str | None]) -> list[dict[str, Any]]:
    """Votes of a model's panel; an answer is a value in [0, 1], "REFUSAL", or None for an error."""
    panel = effective_panel(model, JUDGES)
    judges = [(panel.primary[0], "primary"), (panel.primary[1], "primary")]
    if panel.tiebreak:
        judges.append((panel.tiebreak, "tiebreak"))
    votes = []
    for (judge, role), answer in zip(judges, answers, strict=False):
        if answer is None:
            fields: dict[str, Any] = {
                "label": None,
                "refusal": None,
                "verdict_matches_prose": None,
                "evidence": None,
                "error": "not_json",
                "evidence_cut": None,
            }
        elif answer == "REFUSAL":
            fields = {"label": "REFUSAL", "refusal": True}
        else:
            label, score = label_for(rubric, float(answer))
            fields = {"label": label, "score": score, "refusal": False}
        if rubric.scale == "score":
            fields["verdict_matches_prose"] = None
        votes.append(make_vote(judge, role, **fields))
    return votes


def make_receipt(
    bank: Bank,
    *,
    model: str = "sim-alpha/one",
    run_id: str = "test-run",
    concept: str | None = None,
    framing: str = "direct",
    group: str | None = None,
    repeat: int = 0,
    answers: Sequence[float | str | None] = (0.5, 0.5),
    harness_sha: str = "0" * 40,
    **changes: Any,
) -> dict[str, Any]:
    """One receipt row that keeps every rule of the contract, its label and value computed from `answers`."""
    item = bank.concept[concept] if concept else bank.concepts[0]
    chosen = next(g for g in bank.attribute[item.attribute].groups if group in (None, g.id))
    rubric = bank.rubric[item.rubric]
    prompt = bank.render(item, framing, chosen)
    votes = make_votes(model, rubric, answers)
    verdict = final_verdict([Vote(**vote) for vote in votes], rubric)
    response = f"About {prompt.np}: case considered, repeat {repeat}."
    start = response.index(prompt.np)
    row = {
        "receipt_id": receipt_id(
            run_id=run_id,
            bank_sha256=bank.sha256,
            model=model,
            concept=item.id,
            framing=framing,
            group=chosen.id,
            repeat=repeat,
        ),
        "run_id": run_id,
        "bank_version": bank.version,
        "bank_sha256": bank.sha256,
        "harness_sha": harness_sha,
        "model": model,
        "attribute": item.attribute,
        "concept": item.id,
        "category": item.category,
        "rubric": rubric.id,
        "rubric_sha256": rubric.sha256,
        "framing": framing,
        "group": chosen.id,
        "group_np": prompt.np,
        "prompt": prompt.text,
        "prompt_sha256": sha256_hex(prompt.text),
        "swap_start": prompt.start,
        "swap_end": prompt.end,
        "repeat": repeat,
        "polarity": item.polarity,
        "two_sided": item.two_sided,
        "response": response,
        "finish_reason": "stop",
        "response_key": sha256_hex(f"{model}|{prompt.text}|{repeat}"),
        "served_by": f"{model}@simulated",
        "outcome": "answered",
        "failure": None,
        "filter_word": None,
        "mask_spans": [{"start": start, "end": start + len(prompt.np)}],
        "mask_leak": False,
        "votes": votes,
        "final_label": verdict.label,
        "value": verdict.value,
        "status": verdict.status,
        "prompt_tokens": 40,
        "completion_tokens": 20,
        "reasoning_tokens": None,
        "cost_usd": 0.0001,
    }
    return {**row, **changes}


_UNVOTED = {"votes": [], "value": None, "mask_spans": [], "mask_leak": False}


def failed_row(failure: str = "transport") -> dict[str, Any]:
    """The changes that make a row one whose call failed for good."""
    silent = dict.fromkeys(("response", "finish_reason", "response_key", "served_by", "final_label"))
    return {**_UNVOTED, **silent, "outcome": "failed", "failure": failure, "status": "error"}


def filtered_row(word: str = "content_filter") -> dict[str, Any]:
    """The changes that make a row one that the vendor's own filter answered."""
    told = {"outcome": "filtered", "filter_word": word, "response": "", "finish_reason": word}
    return {**_UNVOTED, **told, "final_label": "REFUSAL", "status": "refused"}


def cut_row() -> dict[str, Any]:
    """The changes that make a row one whose tokens all went into thinking."""
    told = {"outcome": "cut_before_answer", "response": "", "finish_reason": "length", "reasoning_tokens": 20}
    return {**_UNVOTED, **told, "final_label": None, "status": "error"}


def answers_from(value: float) -> tuple[float, float]:
    """Two primaries who agree on a value."""
    return (value, value)


def sort_key(row: dict[str, Any]) -> tuple[Any, ...]:
    """The order of a shard: attribute, concept, framing, group as bytes, then repeat."""
    return (*(row[k].encode() for k in ("attribute", "concept", "framing", "group")), row["repeat"])


def write_shard(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows as a shard, sorted and typed."""
    mark = "true" if rows and simulated(rows[0]["model"]) else "false"
    schema = RECEIPT_SCHEMA.with_metadata({**RECEIPT_SCHEMA.metadata, b"simulated": mark})
    table = pa.Table.from_pylist(sorted(rows, key=sort_key), schema=schema)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, compression="zstd")


def make_rows(
    bank: Bank,
    model: str,
    *,
    repeats: int = 3,
    run_id: str = "test-run",
    answers: Callable[[str, str, str, str, int], Sequence[float | str | None]] | None = None,
) -> list[dict[str, Any]]:
    """All planned rows of a model; `answers(model, concept, framing, group, repeat)` gives the panel's votes."""
    ask = answers or (lambda *key: answers_from(noise(*key)))
    return [
        make_receipt(
            bank,
            model=model,
            run_id=run_id,
            concept=concept.id,
            framing=framing,
            group=group.id,
            repeat=repeat,
            answers=ask(model, concept.id, framing, group.id, repeat),
        )
        for concept in bank.concepts
        for framing in bank.framings
        for group in bank.attribute[concept.attribute].groups
        for repeat in range(repeats)
    ]


def write_run(folder: Path, bank: Bank, shards: dict[str, list[dict[str, Any]]], **changes: Any) -> Path:
    """Write a run folder (manifest, bank, receipts) from rows by model; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    entries, counts = [], Counter({"scored": 0, "refused": 0, "contested": 0, "error": 0})
    for model, rows in sorted(shards.items()):
        name = f"receipts/{shard_name(model)}.parquet"
        write_shard(folder / name, rows)
        digest = sha256_hex((folder / name).read_bytes())
        entries.append({"file": name, "model": model, "rows": len(rows), "sha256": digest})
        counts.update(row["status"] for row in rows)
    repeats = max((row["repeat"] for rows in shards.values() for row in rows), default=0) + 1
    manifest = {
        "$schema": schema_address(f"run-manifest.{LATEST_FORMAT}.schema.json"),
        "format": LATEST_FORMAT,
        "run_id": folder.name,
        "kind": "simulated",
        "imported": None,
        "planted": None if changes.get("kind", "simulated") != "simulated" else [],
        "partial": False,
        "date": "2026-11-30",
        "bank_version": bank.version,
        "bank_sha256": bank.sha256,
        "repeats": repeats,
        "seeds": {"run": 1, "audit": 2},
        "harness_sha": "0" * 40,
        "judges": JUDGES.model_dump(mode="json"),
        "supersedes": None,
        "models": [
            {
                "model": model,
                "api_model": model,
                "endpoint": "simulated",
                "params": {"temperature": 1.0, "max_tokens": 400},
                "added": "2026-11-30",
                "panel": effective_panel(model, JUDGES).model_dump(mode="json"),
                "successor_of": None,
                "from_cache": 0.0,
            }
            for model in sorted(shards)
        ],
        "spend": {"subjects_usd": 1.0, "judges_usd": 2.0, "total_usd": 3.0},
        "counts": dict(counts),
        "shards": entries,
        **changes,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")
    (folder / "bank.json").write_bytes(bank.snapshot())
    return folder


def as_format_1(folder: Path) -> Path:
    """Write a run folder anew as format 1 knew it; returns the folder."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    for key in ("$schema", "format", "imported", "planted", "partial"):
        del manifest[key]
    for model in manifest["models"]:
        del model["successor_of"], model["from_cache"]
    schema = arrow_schema(receipt_columns(1)).with_metadata({"simulated": "true"})
    for entry in manifest["shards"]:
        rows = pq.read_table(folder / entry["file"]).to_pylist()
        for row in rows:
            row["votes"] = [{k: v for k, v in vote.items() if k in _VOTE_1} for vote in row["votes"]]
        table = pa.Table.from_pylist([{k: row[k] for k in schema.names} for row in rows], schema=schema)
        pq.write_table(table, folder / entry["file"], compression="zstd")
        entry["sha256"] = sha256_hex((folder / entry["file"]).read_bytes())
    path.write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")
    return folder


IMPORT = {"collected_by": "A lab", "source": "https://lab.example/data", "matched_by": "word", "not_done": ["audit"]}
NOT_IMPORTED = (
    "group_np", "prompt", "prompt_sha256", "swap_start", "swap_end", "response", "finish_reason", "response_key",
    "served_by", "mask_spans", "mask_leak",
)  # fmt: skip


IMPORT_JUDGES = ("judge-a/x", "judge-b/x", "judge-c/x")


def as_imported(
    folder: Path,
    *,
    lacking: Callable[[int], Sequence[str]] = lambda _: (),
    judges: Sequence[str] = IMPORT_JUDGES,
    **changes: Any,
) -> Path:
    """Write a run of live models anew as one whose answers were imported; returns the folder.

    `lacking(row)` names the columns that the source did not have in a row of each shard; `judges` are the one to three
    that its source had, and later votes fall away; `changes` are of `imported`.
    """
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    panel = {"primary": list(judges[:2]), "tiebreak": judges[2] if len(judges) > 2 else None}
    manifest |= {"kind": "imported", "imported": IMPORT | changes, "planted": None, "judges": panel}
    for model in manifest["models"]:
        model |= {"panel": panel, "from_cache": None}
    for entry in manifest["shards"]:
        rows = pq.read_table(folder / entry["file"]).to_pylist()
        for i, row in enumerate(rows):
            row.update(dict.fromkeys(lacking(i)))
            row["votes"] = row["votes"][: len(judges)]
            for vote, judge in zip(row["votes"], judges, strict=False):
                silent = dict.fromkeys(("verdict_matches_prose", "evidence", "evidence_cut", "key"))
                vote |= {"judge": judge, **silent}
        pq.write_table(pa.Table.from_pylist(rows, schema=RECEIPT_SCHEMA), folder / entry["file"])
        entry["sha256"] = sha256_hex((folder / entry["file"]).read_bytes())
    path.write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")
    return folder


def make_run(
    folder: Path,
    *,
    bank: Bank | None = None,
    models: Sequence[str] = ("sim-alpha/one", "sim-beta/two"),
    repeats: int = 3,
    answers: Callable[[str, str, str, str, int], Sequence[float | str | None]] | None = None,
    **changes: Any,
) -> Path:
    """Write a whole simulated run; its id is the folder's name."""
    instrument = bank or make_bank()
    shards = {
        model: make_rows(instrument, model, repeats=repeats, run_id=folder.name, answers=answers) for model in models
    }
    return write_run(folder, instrument, shards, **changes)
