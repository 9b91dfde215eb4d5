"""Inspect logs: `.eval` (a ZIP archive, Zstandard inside since 0.3.206) and the older `.json`.

A sample becomes one record: its own fields, and beside them, in plain names, what nearly every map needs: `model`,
`prompt`, `response`, `stop_reason`, `usage`, `failure`, `filter_word`. Texts that the log keeps as attachments are put
back. An archive that was written to again holds a sample twice; the later one counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from generator.schema.errors import InputError
from harness.importing.records import Record
from harness.importing.tables import load_document, load_json
from harness.importing.zip_entries import Entries, read_zip

HEADER, START, SAMPLES = "header.json", "_journal/start.json", "samples/"
# A whole value, never a part of one: a text that only speaks of an attachment stays as it is.
_ATTACHMENT = re.compile(r"attachment://([0-9a-f]{32})")
_DEEPEST = 60

DEFAULTS: dict[str, Any] = {
    "model": "model",
    "repeat": {"column": "epoch", "first": 1},
    "prompt": "prompt",
    "response": "response",
    "finish_reason": "stop_reason",
    "failure": "failure",
    "filter_word": "filter_word",
    "prompt_tokens": "usage.input_tokens",
    "completion_tokens": "usage.output_tokens",
    "reasoning_tokens": "usage.reasoning_tokens",
    "cost_usd": "usage.total_cost",
}


def read_log(path: Path, *, unfinished: bool) -> Iterator[Record]:
    """Yield the samples of a log.

    Args:
        path: `.eval` or `.json`.
        unfinished: take a log whose run did not end with success, with the samples that it has.

    Raises:
        InputError: the log cannot be read or is above a bound, has no header, did not end with success, or keeps no
            samples.
    """
    return _from_json(path, unfinished) if path.suffix.lower() == ".json" else _from_archive(path, unfinished)


def _from_archive(path: Path, unfinished: bool) -> Iterator[Record]:
    with read_zip(path) as entries:
        header = _header(path, entries)
        _check_status(path, header, unfinished)
        names = sorted(name for name in entries.names if name.startswith(SAMPLES) and name.endswith(".json"))
        strange = [name for name in names if name.count("/") > 1]
        if strange:
            raise InputError(f"{path}: {strange[0]}: a sample in parts; write it whole with `inspect log convert`")
        if not names:
            raise InputError(f"{path}: no samples inside; the log was written without them (log_samples)")
        for name in names:
            where = f"{path}: {name}"
            yield Record(where, _sample(load_json(entries.read(name), where), header, where, path.name))


def _header(path: Path, entries: Entries) -> dict[str, Any]:
    name = next((name for name in (HEADER, START) if name in entries.names), None)
    if name is None:
        raise InputError(f"{path}: no {HEADER} inside: not an Inspect log")
    header = load_json(entries.read(name), f"{path}: {name}")
    if not isinstance(header, dict):
        raise InputError(f"{path}: {name}: not an object")
    # Only the journal: the run was stopped before its header was written.
    return header if name == HEADER else {"status": "started", **header}


def _from_json(path: Path, unfinished: bool) -> Iterator[Record]:
    log = load_document(path, "write it as .eval with `inspect log convert`")
    if not isinstance(log, dict) or "eval" not in log:
        raise InputError(f"{path}: not an Inspect log: no key eval")
    _check_status(path, log, unfinished)
    samples = log.get("samples")
    if not isinstance(samples, list) or not samples:
        raise InputError(f"{path}: no samples inside; the log was written without them (log_samples)")
    for place, sample in enumerate(samples):
        where = f"{path}: samples.{place}"
        yield Record(where, _sample(sample, log, where, path.name))


def _check_status(path: Path, header: Mapping[str, Any], unfinished: bool) -> None:
    status = header.get("status")
    if status != "success" and not unfinished:
        advice = "finish it, or say source.unfinished = true to take the samples that are there"
        raise InputError(
            f"{path}: the run of this log did not end with success (status {str(status)[:40]!r}); {advice}"
        )


def _sample(sample: Any, header: Mapping[str, Any], where: str, file: str) -> dict[str, Any]:
    if not isinstance(sample, dict):
        raise InputError(f"{where}: not an object")
    kept = sample.pop("attachments", None)
    attachments = kept if isinstance(kept, dict) else {}
    for heavy in ("events", "events_data", "messages", "store", "timelines"):
        sample.pop(heavy, None)
    sample = _whole(sample, attachments, where, 0)
    output = sample.get("output") if isinstance(sample.get("output"), dict) else {}
    model = _at(header, "eval", "model")
    choice = next(iter(_list(output.get("choices"))), None)
    reason = _at(choice, "stop_reason")
    usage = _at(sample, "model_usage", str(model))
    return {
        **sample,
        "model": model,
        "prompt": _question(sample.get("input")),
        "response": _message_text(_at(choice, "message", "content")),
        "stop_reason": reason,
        "usage": usage if isinstance(usage, dict) else output.get("usage") or {},
        "failure": "provider_error" if sample.get("error") or output.get("error") else None,
        "filter_word": reason if reason == "content_filter" else None,
        "task": _at(header, "eval", "task"),
        "@file": file,
    }


def _at(data: Any, *keys: str) -> Any:
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _whole(value: Any, attachments: Mapping[str, Any], where: str, depth: int) -> Any:
    """Return a value with the texts of the log's attachments in their places."""
    if depth > _DEEPEST:
        raise InputError(f"{where}: nested more than {_DEEPEST} deep")
    if isinstance(value, dict):
        return {key: _whole(item, attachments, where, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item, attachments, where, depth + 1) for item in value]
    if isinstance(value, str) and (match := _ATTACHMENT.fullmatch(value)):
        text = attachments.get(match[1])
        if not isinstance(text, str):
            raise InputError(f"{where}: {value}: the log holds no such attachment")
        return text
    return value


def _question(given: Any) -> str | None:
    """Return the question: the input itself, or the last message of the user."""
    if isinstance(given, str):
        return given
    asked = [message for message in _list(given) if _at(message, "role") == "user"]
    return _message_text(asked[-1].get("content")) if asked else None


def _message_text(content: Any) -> str | None:
    """Return what a message says, without the model's thoughts; None where there is no text."""
    if isinstance(content, str):
        return content
    parts = [part.get("text") for part in _list(content) if _at(part, "type") == "text"]
    texts = [part for part in parts if isinstance(part, str)]
    return "\n".join(texts) if texts else None
