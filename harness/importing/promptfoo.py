"""Results of promptfoo, version 3: one JSON file with a result for each test, prompt and provider.

`metrics.<name>` is the component of the grading whose assertion has that metric. A grader that failed itself has no
verdict: its `pass` and `score` are taken away, so that no failure turns into a label. `error` also holds the reason of
an assertion that was not met; `failure` is set only where the provider failed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from generator.schema.errors import InputError
from harness.importing.records import Record
from harness.importing.tables import load_document

VERSION = 3
_PROVIDER_FAILED = 2  # ResultFailureReason: 0 none, 1 an assertion, 2 an error

DEFAULTS: dict[str, Any] = {
    "model": "model",
    "prompt": "prompt.raw",
    "response": "response_text",
    "finish_reason": "response.finishReason",
    "failure": "failure",
    "prompt_tokens": "response.tokenUsage.prompt",
    "completion_tokens": "response.tokenUsage.completion",
    "cost_usd": "cost",
}


def read_results(path: Path) -> Iterator[Record]:
    """Yield the results of a file; raises InputError where it is none of version 3, or above the bound."""
    whole = load_document(path, "export fewer results a file")
    # An export from the web viewer wraps the file of `promptfoo eval --output`.
    found = whole.get("results") if isinstance(whole, dict) else None
    if not isinstance(found, dict) or not isinstance(found.get("results"), list):
        raise InputError(f"{path}: not a results file of promptfoo: no list results.results")
    if found.get("version") != VERSION:
        raise InputError(f"{path}: results.version is {found.get('version')!r}; version {VERSION} is read")
    for place, result in enumerate(found["results"]):
        where = f"{path}: results.{place}"
        if not isinstance(result, dict):
            raise InputError(f"{where}: not an object")
        yield Record(where, _flat(result, path.name))


def _flat(result: Mapping[str, Any], file: str) -> dict[str, Any]:
    response, grading = _object(result.get("response")), _object(result.get("gradingResult"))
    told = grading.get("componentResults")
    components = [_component(item) for item in told if isinstance(item, dict)] if isinstance(told, list) else []
    provider = result.get("provider")
    output = response.get("output")
    return {
        **result,
        "model": provider.get("id") if isinstance(provider, dict) else provider,
        # An answer as an object is one that a program parsed; its text is lost, its content is not.
        "response_text": output
        if output is None or isinstance(output, str)
        else json.dumps(output, ensure_ascii=False),
        "failure": "provider_error" if _failed(result, response) else None,
        "components": components,
        "metrics": {name: item for item in components if (name := _metric(item)) is not None},
        "@file": file,
    }


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _failed(result: Mapping[str, Any], response: Mapping[str, Any]) -> bool:
    if "failureReason" in result:
        return bool(result["failureReason"] == _PROVIDER_FAILED)
    return bool(response.get("error") or (result.get("error") and response.get("output") is None))


def _component(item: Mapping[str, Any]) -> dict[str, Any]:
    told = item.get("metadata")
    failed = isinstance(told, dict) and bool(told.get("graderError"))
    return {**item, "pass": None, "score": None} if failed else dict(item)


def _metric(item: Mapping[str, Any]) -> str | None:
    assertion = item.get("assertion")
    found = assertion.get("metric") if isinstance(assertion, dict) else None
    return found if isinstance(found, str) else None
