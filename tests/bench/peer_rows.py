"""The rows of the side-by-side bench: receipts of a bench run, flattened to what the common page shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.bench.peer_pages import TEXTS
from tests.bench.runs import MODELS, bench_rows
from tests.factories import make_bank

VOTE = pa.struct([("judge", pa.string()), ("label", pa.string()), ("evidence", pa.string())])
SCHEMA = pa.schema([*((name, pa.string()) for name in TEXTS), ("votes", pa.list_(VOTE))])
ROW_GROUP = 4_096


def flat_rows(count: int) -> Iterator[dict[str, Any]]:
    """Yield `count` rows, models in turn; every value is text already, so that no peer formats numbers its own way."""
    bank = make_bank(groups=6)
    done = 0
    for model in MODELS:
        for row in bench_rows(bank, model, 3, "peer").to_pylist():
            if done == count:
                return
            done += 1
            start, end = row["swap_start"], row["swap_end"]
            yield {
                **{k: row[k] for k in ("model", "attribute", "concept", "category", "framing", "group", "status")},
                "id": row["receipt_id"],
                "path": f"receipts/{row['receipt_id']}",
                "repeat": str(row["repeat"]),
                "before": row["prompt"][:start],
                "swap": row["prompt"][start:end],
                "after": row["prompt"][end:],
                "response": row["response"],
                "label": row["final_label"] or "none",
                "value": "none" if row["value"] is None else f"{row['value']:.3f}",
                "votes": [
                    {"judge": v["judge"], "label": v["label"] or "none", "evidence": v["evidence"] or ""}
                    for v in row["votes"]
                ],
            }


def write_peer_rows(folder: Path, count: int) -> Path:
    """Write `rows.parquet` and `rows.json` of `count` rows into a folder of their own; returns it."""
    target = folder / f"rows-{count}"
    if (target / "rows.json").exists():
        return target
    target.mkdir(parents=True, exist_ok=True)
    rows = list(flat_rows(count))
    for i, row in enumerate(rows):
        row["previous"], row["following"] = rows[i - 1]["path"], rows[(i + 1) % len(rows)]["path"]
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), target / "rows.parquet", row_group_size=ROW_GROUP)
    (target / "rows.json").write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    return target


def write_hugo_files(rows: Path, content: Path) -> None:
    """Write a content file a row with its fields as front matter: Hugo's other way in."""
    content.mkdir(parents=True)
    for row in json.loads((rows / "rows.json").read_bytes()):
        front = json.dumps({"title": row["id"], "params": row}, ensure_ascii=False)
        (content / f"{row['id']}.md").write_text(f"{front}\n", encoding="utf-8")
