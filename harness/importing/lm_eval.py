"""Samples of lm-evaluation-harness: `samples_<task>_<date>.jsonl`, one line a document and filter.

`prompt` and `response` are taken out of `arguments` and `resps`, whatever their form; `model` comes from the results
file that lies beside. A line with several responses becomes as many records; `filtered` is the filter's answer to each
where there are as many. Metrics are of the whole line and not of one response, so such records have none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from generator.schema.errors import InputError
from harness.importing.records import Record
from harness.importing.tables import json_lines, load_document

_NAME = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d{2}-\d{2}T[0-9.:-]+)\.jsonl")
_OF_A_LINE = ("doc", "doc_id", "doc_hash", "filter", "target", "target_hash", "prompt_hash")

DEFAULTS: dict[str, Any] = {"model": "model", "prompt": "prompt", "response": "response", "repeat": "repeat"}
MANY_FILTERS = 'there is a line for each filter: keep one with [source.where] filter = "..."'


def read_samples(path: Path) -> Iterator[Record]:
    """Yield the responses of a file of samples; raises InputError where a line is no sample of generated text."""
    beside = _beside(path)
    for line in json_lines(path):
        yield from _responses(line, beside)


def _beside(path: Path) -> dict[str, Any]:
    """Return what the results file of the same date says: the model. Nothing where there is no such file."""
    named = _NAME.fullmatch(path.name)
    found: dict[str, Any] = {"@file": path.name, "task": named["task"] if named else None}
    results = path.with_name(f"results_{named['date']}.json") if named else path
    if named and results.is_file():
        data = load_document(results, "take it away, and say columns.model in the map")
        found["model"] = data.get("model_name") if isinstance(data, dict) else None
    return found


def _responses(line: Record, beside: Mapping[str, Any]) -> Iterator[Record]:
    texts = _texts(line)
    given = line.data.get("filtered_resps")
    filtered = given if isinstance(given, list) else [given]
    if len(texts) == 1:
        first = filtered[0] if filtered else None
        told = first[0] if isinstance(first, list) and len(first) == 1 else first
        own = {"prompt": _prompt(line.data), "response": texts[0], "repeat": 0, "filtered": told}
        yield Record(line.place, {**line.data, **beside, **own})
        return
    inner = filtered[0] if len(filtered) == 1 and isinstance(filtered[0], list) else filtered
    kept = {key: line.data[key] for key in _OF_A_LINE if key in line.data}
    for repeat, text in enumerate(texts):
        own = {"prompt": _prompt(line.data), "response": text, "repeat": repeat}
        own |= {"filtered": inner[repeat]} if len(inner) == len(texts) else {}
        yield Record(f"{line.place}, response {repeat}", {**kept, **beside, **own})


def _texts(line: Record) -> list[str]:
    resps = line.data.get("resps")
    first = resps[0] if isinstance(resps, list) and len(resps) == 1 else resps
    texts: list[Any] = first if isinstance(first, list) else [first]
    if not texts or not all(isinstance(text, str) for text in texts):
        rule = "resps of a task that generates text hold one list of texts"
        raise InputError(f"{line.place}, column resps: saw {json.dumps(resps, default=str)[:80]}; {rule}")
    return texts


def _prompt(data: Mapping[str, Any]) -> str | None:
    """Return the text that was sent: the first argument, of chat messages the last one of the user."""
    given = data.get("arguments")
    if isinstance(given, dict):  # since 0.4.5: {"gen_args_0": {"arg_0": text, "arg_1": settings}}
        given = next(iter(given.values()), None)
        given = given.get("arg_0") if isinstance(given, dict) else given
    else:
        while isinstance(given, list) and given and not isinstance(given, str):
            given = given[0]
    if not isinstance(given, str):
        return None
    return _last_of_user(given) if given.startswith("[{") else given


def _last_of_user(text: str) -> str:
    try:
        messages = json.loads(text)
    except (ValueError, RecursionError):
        return text
    asked = [m["content"] for m in messages if isinstance(m, dict) and m.get("role") == "user" and "content" in m]
    return asked[-1] if asked and isinstance(asked[-1], str) else text
