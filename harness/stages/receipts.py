"""Writes what the harness hands over (contract: receipts, "Shards"): receipts shards, `manifest.json`, `bank.json`.

The same inputs give the same bytes. Everything is written under other names first; only then do the files take their
places, the old manifest going first and the new one coming last. So a run folder never holds a manifest that its shards
do not belong to, and a stage that is stopped before that moment leaves the old receipts as they were.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from generator.schema.canonical import receipt_id, sha256_hex
from generator.schema.columns import LATEST_FORMAT, RECEIPT_SCHEMA, VOTE_FIELDS
from generator.schema.names import shard_name, simulated
from generator.schema.places import schema_address
from generator.schema.verdict import STATUSES, filter_word
from harness.calls.call import Answer
from harness.judging.voting import Case
from harness.money.budget import dollars
from harness.plan.records import RunPlan

MANIFEST, BANK, RECEIPTS = "manifest.json", "bank.json", "receipts"


class Till:
    """Costs by key, given out once: a call that several rows share is paid by the first of them."""

    def __init__(self, costs: Mapping[str, int]) -> None:
        self._left = dict(costs)

    def pay(self, keys: Iterable[str]) -> float:
        """Return what these keys cost together, in US dollars; a second time they cost nothing."""
        return dollars(sum(self._left.pop(key, 0) for key in keys))


def receipt(case: Case, plan: RunPlan, *, harness_sha: str, cost: float) -> dict[str, Any]:
    """Return one row of the receipts: every column of (contract: receipts, "Columns")."""
    row, prompt, concept = case.row, case.row.prompt, case.row.prompt.concept
    answer, verdict = case.answer, case.verdict
    return {
        "receipt_id": receipt_id(
            run_id=plan.run_id, bank_sha256=plan.bank.sha256, model=row.model, concept=concept.id,
            framing=prompt.framing, group=prompt.group.id, repeat=row.repeat,
        ),
        "run_id": plan.run_id,
        "bank_version": plan.bank.version,
        "bank_sha256": plan.bank.sha256,
        "harness_sha": harness_sha,
        "model": row.model,
        "attribute": concept.attribute,
        "concept": concept.id,
        "category": concept.category,
        "rubric": case.rubric.id,
        "rubric_sha256": case.rubric.sha256,
        "framing": prompt.framing,
        "group": prompt.group.id,
        "group_np": prompt.rendered.np,
        "prompt": prompt.rendered.text,
        "prompt_sha256": prompt.sha256,
        "swap_start": prompt.rendered.start,
        "swap_end": prompt.rendered.end,
        "repeat": row.repeat,
        "polarity": concept.polarity,
        "two_sided": concept.two_sided,
        "response": answer.text if answer else None,
        "finish_reason": answer.finish_reason if answer else None,
        "response_key": row.key if answer else None,
        "served_by": answer.served_by if answer else None,
        "outcome": case.outcome,
        "failure": case.failure,
        "filter_word": _filter_word(answer),
        "mask_spans": [{"start": start, "end": end} for start, end in case.spans],
        "mask_leak": case.leak,
        "votes": [{field.name: getattr(vote, field.name) for field in VOTE_FIELDS} for vote in case.votes],
        "final_label": verdict.label,
        "value": verdict.value,
        "status": verdict.status,
        "prompt_tokens": answer.prompt_tokens if answer else None,
        "completion_tokens": answer.completion_tokens if answer else None,
        "reasoning_tokens": answer.reasoning_tokens if answer else None,
        "cost_usd": cost,
    }  # fmt: skip


def _filter_word(answer: Answer | None) -> str | None:
    """Return the vendor's word for its filter; of an answer that was kept without one, its finish reason."""
    if answer is None or answer.outcome != "filtered":
        return None
    return filter_word(answer.filter_word or "") or filter_word(answer.finish_reason) or "filtered"


def shard_bytes(rows: Sequence[dict[str, Any]], license_: str = "") -> bytes:
    """Return a shard as zstd Parquet; the file tells what it is, of which run, and whether it is simulated.

    Args:
        rows: the rows of one model, in their order.
        license_: the SPDX id of the license of the data, empty where the plan names none.

    See contract: receipts, "Shards".
    """
    notes = {**(RECEIPT_SCHEMA.metadata or {}), **_notes(rows, license_)}
    table = pa.Table.from_pylist(list(rows), schema=RECEIPT_SCHEMA.with_metadata(notes))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", compression_level=9)
    return bytes(sink.getvalue())


def _notes(rows: Sequence[dict[str, Any]], license_: str) -> dict[str, str]:
    if not rows:
        return {"simulated": "false"}
    first = rows[0]
    return {
        "simulated": "true" if simulated(first["model"]) else "false",
        "title": f"Receipts of {first['model']}, run {first['run_id']}",
        **{key: first[key] for key in ("run_id", "model", "bank_version", "bank_sha256")},
        **({"license": license_} if license_ else {}),
    }


def replace_file(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    replace_files({path: data})


def replace_files(files: Mapping[Path, bytes]) -> None:
    """Write files that belong together: all of them are on the disk before the first takes its place, in their order.

    Raises OSError that names the file, and leaves all as they were, when the disk is full or may not be written.
    """
    try:
        for path, data in files.items():
            write_aside(path, data)
        for path in files:
            take_place(path)
    finally:
        for path in files:
            aside(path).unlink(missing_ok=True)


def aside(path: Path) -> Path:
    """Return the name under which a file is written before it takes its place."""
    return path.with_name(f".{path.name}.part")


def write_aside(path: Path, data: bytes) -> None:
    """Put a file's bytes on the disk under its other name."""
    with _of(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with aside(path).open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())


def take_place(path: Path) -> None:
    """Let a file that was written aside take its place."""
    with _of(path):
        aside(path).replace(path)


@contextmanager
def _of(path: Path) -> Iterator[None]:
    """Name the file in an error of the system: a full disk does not say of itself which file it was."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, error.filename or str(path)) from None


class ReceiptsWriter:
    """Writes a run's shards aside one by one; `finish` lets them, bank and manifest take their places together."""

    def __init__(
        self, folder: Path, plan: RunPlan, *, harness_sha: str, costs: Mapping[str, int],
        planted: list[dict[str, Any]] | None = None,
    ) -> None:  # fmt: skip
        self._folder, self._plan, self._sha = folder, plan, harness_sha
        self._planted = planted
        self._from_cache: dict[str, float] = {}
        self._till = Till(costs)
        self._shards: list[dict[str, Any]] = []
        self.counts: Counter[str] = Counter(dict.fromkeys(STATUSES, 0))
        for left in (folder / RECEIPTS).glob(".*.part"):  # of a stage that was killed
            left.unlink()

    def shard(self, model: str, cases: Iterable[Case], *, from_cache: float = 0.0) -> None:
        """Write the shard of one model; `from_cache` is the share of its answers that were not asked for this run."""
        self._from_cache[model] = from_cache
        rows = [
            receipt(case, self._plan, harness_sha=self._sha, cost=self._till.pay((case.row.key, *case.keys)))
            for case in cases
        ]
        self.counts.update(row["status"] for row in rows)
        name = f"{RECEIPTS}/{shard_name(model)}.parquet"
        data = shard_bytes(rows, self._plan.data_license)
        write_aside(self._folder / name, data)
        self._shards.append({"file": name, "model": model, "rows": len(rows), "sha256": sha256_hex(data)})

    def finish(self, bank: bytes, *, subjects: int, judges: int, partial: bool) -> dict[str, Any]:
        """Put everything in its place and drop shards of models that left the plan; returns the manifest.

        `subjects` and `judges` are spend in picodollars; `partial` says that planned rows are absent.
        """
        manifest = self._manifest(subjects, judges, partial=partial)
        text = json.dumps(manifest, indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False)
        shards = [self._folder / shard["file"] for shard in self._shards]
        last = {self._folder / BANK: bank, self._folder / MANIFEST: f"{text}\n".encode()}
        for path, data in last.items():
            write_aside(path, data)
        (self._folder / MANIFEST).unlink(missing_ok=True)
        for path in (self._folder / RECEIPTS).glob("*.parquet"):
            if path not in shards:
                path.unlink()
        for path in (*shards, *last):
            take_place(path)
        return manifest

    def _manifest(self, subjects: int, judges: int, *, partial: bool) -> dict[str, Any]:
        plan = self._plan
        return {
            "$schema": schema_address(f"run-manifest.{LATEST_FORMAT}.schema.json"),
            "format": LATEST_FORMAT,
            "run_id": plan.run_id,
            "kind": plan.kind,
            "imported": None,
            "planted": self._planted,
            "partial": partial,
            "date": plan.date,
            "bank_version": plan.bank.version,
            "bank_sha256": plan.bank.sha256,
            "repeats": plan.repeats,
            "seeds": {"run": plan.seeds.run, "audit": plan.seeds.audit},
            "harness_sha": self._sha,
            "judges": plan.judge_names.model_dump(mode="json"),
            "supersedes": plan.supersedes,
            "models": [self._model(slug) for slug in sorted(plan.subject, key=str.encode)],
            "spend": {
                "subjects_usd": dollars(subjects),
                "judges_usd": dollars(judges),
                "total_usd": dollars(subjects + judges),
            },
            "counts": dict(self.counts),
            "shards": self._shards,
        }

    def _model(self, slug: str) -> dict[str, Any]:
        plan, subject = self._plan, self._plan.subject[slug]
        return {
            "model": slug,
            "api_model": subject.api_model,
            "endpoint": subject.endpoint,
            "params": plan.published_params(subject),
            "added": plan.added(slug),
            "panel": plan.panel(slug).model_dump(mode="json"),
            "successor_of": subject.successor_of,
            "from_cache": self._from_cache[slug],
        }


def harness_commit(root: Path) -> str:
    """Return the git commit of the harness, `-dirty` when its code differs from it, `unknown` outside its repository.

    What counts as its code is what decides an answer or a label: `harness/` and `generator/schema/`.
    """
    try:
        if Path(_git(root, "rev-parse", "--show-toplevel")).resolve() != root.resolve():
            return "unknown"
        head = _git(root, "rev-parse", "HEAD")
        changes = _git(root, "status", "--porcelain", "--", "harness", "generator/schema")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{head}-dirty" if changes else head


def _git(root: Path, *words: str) -> str:
    command = ("git", "-C", str(root), *words)
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603 - own words
