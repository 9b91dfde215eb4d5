"""Valid run folders of any size for the bench: the full shape, texts of realistic length, made in seconds.

The text is word salad, one word in thirty with characters that HTML escapes or beyond ASCII; models differ by noise.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from generator.schema.bank import Bank
from generator.schema.canonical import receipt_id, sha256_hex
from generator.schema.columns import RECEIPT_SCHEMA
from generator.schema.names import shard_name
from generator.schema.verdict import Vote, final_verdict
from tests.factories import CONTROL_QUOTA, QUOTA, make_bank, make_votes, write_run
from tests.names_of_bank_1 import FRAMINGS

VENDORS = ("sim-alder", "sim-birch", "sim-cedar", "sim-judge-a", "sim-judge-b", "sim-judge-c", "sim-maple")
MODELS = tuple(f"{vendor}/{size}" for vendor in VENDORS for size in ("large", "small"))
WORDS = (
    "the", "a", "of", "to", "and", "in", "that", "for", "with", "on", "as", "is", "was", "are", "be", "this", "by",
    "from", "or", "an", "it", "applicant", "request", "decision", "evidence", "history", "record", "policy", "review",
    "panel", "income", "letter", "claim", "reason", "concern", "interview", "balance", "outcome", "context", "measure",
    "office", "report", "weigh", "consider", "approve", "deny", "partial", "support", "because", "although", "however",
    "therefore", "unless", "careful", "consistent", "relevant", "documented", "further", "local", "public", "annual",
    "monthly", "prior",
)  # fmt: skip
SPECIAL = ("R&D", "<b>not</b>", "x>y", '"quoted"', "it's", "naïve", "—", "“so”", "日本語", "½", "😀", "עברית")


def salad(rng: random.Random, length: int) -> str:
    """About `length` characters of words, one in thirty special."""
    words: list[str] = []
    size = 0
    while size < length:
        word = rng.choice(SPECIAL) if rng.random() < 0.03 else rng.choice(WORDS)
        words.append(word + rng.choice(("", "", "", "", "", "", "", ",", ".", ".\n\n")))
        size += len(words[-1]) + 1
    return " ".join(words).strip()


def bench_rows(bank: Bank, model: str, repeats: int, run_id: str, seed: str = "") -> pa.Table:
    """All planned rows of a model as a table in the shard's order."""
    rng = random.Random(model + seed)
    texts = [salad(rng, min(1500, max(100, int(rng.lognormvariate(6.2, 0.6))))) for _ in range(2000)]
    cache: dict[tuple[object, ...], tuple[list[dict[str, object]], object]] = {}
    columns: dict[str, list[object]] = {name: [] for name in RECEIPT_SCHEMA.names}
    for concept in sorted(bank.concepts, key=lambda c: (c.attribute.encode(), c.id.encode())):
        rubric = bank.rubric[concept.rubric]
        for framing in FRAMINGS:
            for group in bank.groups_of(concept.attribute):
                prompt = bank.render(concept, framing, group)
                fixed = {
                    "run_id": run_id, "bank_version": bank.version, "bank_sha256": bank.sha256, "harness_sha": "0" * 40,
                    "model": model, "attribute": concept.attribute, "concept": concept.id,
                    "category": concept.category, "rubric": rubric.id, "rubric_sha256": rubric.sha256,
                    "framing": framing, "group": group.id, "group_np": prompt.np, "prompt": prompt.text,
                    "prompt_sha256": sha256_hex(prompt.text), "swap_start": prompt.start, "swap_end": prompt.end,
                    "polarity": concept.polarity, "two_sided": False, "finish_reason": "stop",
                    "served_by": f"{model}@simulated", "mask_leak": False, "prompt_tokens": 180,
                    "completion_tokens": 120, "reasoning_tokens": None, "cost_usd": 0.0021,
                    "outcome": "answered", "failure": None, "filter_word": None,
                }  # fmt: skip
                tendency = rng.random()
                for repeat in range(repeats):
                    answers = _answers(rng, tendency)
                    key = (rubric.id, *answers)
                    if key not in cache:
                        votes = make_votes(model, rubric, answers)
                        cache[key] = (votes, final_verdict([Vote(**v) for v in votes], rubric))
                    votes, verdict = cache[key]
                    opening = f"About {prompt.np}: "
                    row = {
                        **fixed,
                        "receipt_id": receipt_id(
                            run_id=run_id, bank_sha256=bank.sha256, model=model, concept=concept.id,
                            framing=framing, group=group.id, repeat=repeat,
                        ),
                        "repeat": repeat,
                        "response": opening + rng.choice(texts),
                        "response_key": sha256_hex(f"{model}|{prompt.text}|{repeat}"),
                        "mask_spans": [{"start": 6, "end": 6 + len(prompt.np)}],
                        "votes": [{**v, "evidence": None if v["error"] else _evidence(rng)} for v in votes],
                        "final_label": verdict.label, "value": verdict.value, "status": verdict.status,
                    }  # fmt: skip
                    for name, values in columns.items():
                        values.append(row[name])
    return pa.table({f.name: pa.array(columns[f.name], f.type) for f in RECEIPT_SCHEMA}, schema=RECEIPT_SCHEMA)


def _evidence(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=10))


def _answers(rng: random.Random, tendency: float) -> tuple[float | str | None, ...]:
    chance = rng.random()
    if chance < 0.02:
        return ("REFUSAL", "REFUSAL")
    value = round(min(1.0, max(0.0, tendency + rng.gauss(0, 0.2))), 1)
    if chance < 0.90:
        return (value, value)
    other = 0.0 if value > 0.5 else 1.0
    if chance < 0.97:
        return (value, other, value)
    return (value, other, "REFUSAL")


def make_bench_run(
    folder: Path,
    *,
    repeats: int = 3,
    models: tuple[str, ...] = MODELS,
    groups: int = 5,
    factor: int = 1,
    seed: str = "",
) -> Path:
    """Write a run: 132 x `factor` concepts x 2 framings x `groups` groups x `repeats` rows for each model."""
    if (folder / "manifest.json").exists():
        return folder
    quotas = [{category: count * factor for category, count in quota.items()} for quota in (QUOTA, CONTROL_QUOTA)]
    bank = make_bank(groups=groups, quota=quotas[0], control_quota=quotas[1])
    receipts = folder / "receipts"
    receipts.mkdir(parents=True, exist_ok=True)
    entries, counts = [], Counter({"scored": 0, "refused": 0, "contested": 0, "error": 0})
    for model in sorted(models):
        made = receipts / f"{shard_name(model)}.made"
        table = bench_rows(bank, model, repeats, folder.name, seed)
        pq.write_table(table, made, compression="zstd")
        digest = sha256_hex(made.read_bytes())
        name = f"receipts/{shard_name(model)}.parquet"
        entries.append({"file": name, "model": model, "rows": table.num_rows, "sha256": digest})
        counts.update(table["status"].to_pylist())
    # The factory writes a manifest and empty shards; the real shards take their places.
    write_run(folder, bank, {m: [] for m in models}, repeats=repeats, counts=dict(counts))
    manifest = json.loads((folder / "manifest.json").read_bytes())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "shards": entries}, indent=2, sort_keys=True) + "\n")
    for model in models:
        (receipts / f"{shard_name(model)}.made").rename(receipts / f"{shard_name(model)}.parquet")
    return folder
