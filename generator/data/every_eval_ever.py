"""One JSON record a model in the layout of Every Eval Ever, schema 0.3.0, for readers of other tools.

The schema is that of the public repository evaleval/every_eval_ever; `every_eval_ever/<vendor>/<name>/<uuid>.json`
here is meant to be copied to its `data/<collection>/<vendor>/<name>/`. What has no field there stands in `details`.

Mapping: each `consistency`, `calibrated_consistency`, `worst_gap` and `refusal_asymmetry` row with an estimate is one
evaluation result; a number that could not be computed is left out, never written as 0. Refused and contested rows enter
no score: they are counted in `score_details.details` as n_refused and n_contested, rows in error as n_error.

See contract: publication, "Data files".
"""

from __future__ import annotations

import calendar
import datetime as dt
import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from generator.data import citation
from generator.edition.edition import Edition
from generator.schema.manifest import ManifestModel
from generator.schema.names import vendor_of
from generator.schema.tables import OVERALL

SCHEMA_VERSION = "0.3.0"
# metric: (name, is a lower value better, largest value, what it is, with a place for the control of the upper edge)
METRICS = {
    "consistency": ("Consistency", False, 100.0, "100 minus the mean absolute difference between groups."),
    "calibrated_consistency": (
        "Calibrated consistency",
        False,
        100.0,
        "100 minus the disparity beyond that of a control whose labels carry almost no content: {upper}.",
    ),
    "worst_gap": ("Worst gap", True, 100.0, "Mean difference between the highest and the lowest group."),
    "refusal_asymmetry": ("Refusal asymmetry", True, 100.0, "Highest minus lowest refusal rate of the groups."),
}
# How an interval is made, where it is not the plain expanded percentile interval.
_EXPANDED = "expanded percentile bootstrap over concepts"
METHODS = {
    "calibrated_consistency": f"{_EXPANDED}, of the disparity less the control's; 100 minus it, clipped at 100",
    "refusal_asymmetry": f"{_EXPANDED}, reflected about the estimate, then clipped to 0 and 100",
}
STATUSES = ("scored", "refused", "contested", "error")


def records(edition: Edition) -> Iterator[tuple[str, str, bytes]]:
    """Yield (model, path below the data folder, JSON bytes) for each model, in slug order."""
    counts = status_counts(edition)
    scores: dict[str, list[dict[str, Any]]] = {}
    for row in edition.scored.tables["scores"].to_pylist():
        scores.setdefault(row["model"], []).append(row)
    for entry in sorted(edition.run.manifest.models, key=lambda m: m.model.encode()):
        results = list(_results(edition, entry, scores.get(entry.model, []), counts.get(entry.model, {})))
        name = f"every_eval_ever/{entry.model}/{record_uuid(edition.run_id, entry.model)}.json"
        text = json.dumps(record(edition, entry, results), indent=1, ensure_ascii=False, allow_nan=False)
        yield entry.model, name, f"{text}\n".encode()


def record_uuid(run_id: str, model: str) -> uuid.UUID:
    """Return the file's UUID: version 4 in form, as the layout asks, but made from run and model, so it never moves."""
    return uuid.UUID(bytes=hashlib.sha256(f"{run_id}|{model}".encode()).digest()[:16], version=4)


def record(edition: Edition, entry: ManifestModel, results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a model's record; timestamps are the run's date, so the same run gives the same record."""
    manifest = edition.run.manifest
    day = dt.date.fromisoformat(manifest.date)
    stamp = str(calendar.timegm(day.timetuple()))
    simulated = {"simulated": "true" if manifest.simulated else "false"}
    source: dict[str, Any] = {
        "source_name": citation.title(edition),
        "source_type": "evaluation_run",
        "source_organization_name": edition.site.publisher,
        "evaluator_relationship": "third_party",
        "additional_details": {
            **simulated,
            "run_id": manifest.run_id,
            "standing": edition.standing.state,
            "bank_version": manifest.bank_version,
            "bank_sha256": manifest.bank_sha256,
            "harness_sha": manifest.harness_sha,
            "licence": edition.site.data_licence.url,
        },
    }
    if edition.base_url:
        source["source_organization_url"] = edition.base_url
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{edition.site.file_name}/{manifest.run_id}/{entry.model}/{stamp}",
        "evaluation_timestamp": manifest.date,
        "retrieved_timestamp": stamp,
        "source_metadata": source,
        "model_info": model_info(entry.model, entry.api_model, entry.endpoint, simulated),
        "eval_library": {"name": "aibiasbench", "version": version("aibiasbench")},
        "evaluation_results": results,
    }


def model_info(model: str, api_model: str, endpoint: str, details: dict[str, str]) -> dict[str, Any]:
    """Return a model's `model_info`; what the run does not record of a model is `unknown`, never guessed."""
    return {
        "name": api_model,
        "id": model,
        "developer": vendor_of(model),
        "inference_platform": endpoint,
        "additional_details": {**details, "deployment_type": "unknown", "model_availability": "unknown"},
    }


def _results(
    edition: Edition, entry: ManifestModel, rows: list[dict[str, Any]], counts: dict[str, Counter[str]]
) -> Iterator[dict[str, Any]]:
    for row in rows:
        if row["metric"] not in METRICS or row["estimate"] is None:
            continue
        yield {
            "evaluation_result_id": f"{row['metric']}.{row['attribute']}",
            "evaluation_name": f"{edition.site.file_name}.{row['attribute']}",
            "evaluation_timestamp": edition.run.manifest.date,
            "source_data": _source_data(edition),
            "metric_config": _metric_config(edition, entry, row),
            "score_details": _score_details(edition, row, counts.get(row["attribute"], Counter())),
            "generation_config": _generation(entry),
        }


def _source_data(edition: Edition) -> dict[str, Any]:
    manifest = edition.run.manifest
    details = {"bank_version": manifest.bank_version, "bank_sha256": manifest.bank_sha256}
    collection = edition.site.file_name
    if url := citation.address(edition):
        name = {"dataset_name": collection, "source_type": "url", "url": [url]}
        return {**name, "additional_details": details}
    return {"dataset_name": collection, "source_type": "other", "additional_details": details}


def _metric_config(edition: Edition, entry: ManifestModel, row: dict[str, Any]) -> dict[str, Any]:
    name, lower, top, text = METRICS[row["metric"]]
    bank = edition.run.bank
    upper = bank.attribute.get(bank.roles.band_upper or "")
    panel = entry.panel.all
    prompts = "\n\n".join(f"[{r.id}]\n{r.judge_prompt}" for r in bank.rubrics)
    simulated = {"simulated": "true" if edition.simulated else "false"}
    return {
        "evaluation_description": text.format(upper=upper.label if upper is not None else "none"),
        "metric_id": f"{edition.site.file_name}.{row['metric']}",
        "metric_name": name,
        "metric_kind": row["metric"],
        "metric_unit": "points",
        "lower_is_better": lower,
        "score_type": "continuous",
        "min_score": 0.0,
        "max_score": top,
        "llm_scoring": {
            "judges": [{"model_info": model_info(judge, judge, "unknown", simulated)} for judge in panel],
            "input_prompt": prompts,
            "additional_details": {
                "rule": "two primary judges; where they differ a tiebreak votes and two of three decide, else contested"
            },
        },
    }


def _score_details(edition: Edition, row: dict[str, Any], counts: Counter[str]) -> dict[str, Any]:
    details = {key: json.dumps(row[key]) for key in ("n_concepts", "n_cells", "n_rows")}
    details |= {f"n_{status}": str(counts[status]) for status in STATUSES}
    if row["flag"]:
        details["flag"] = row["flag"]
    if row["ci_tail"] is not None:
        details["ci_tail"] = repr(row["ci_tail"])
    score: dict[str, Any] = {"score": row["estimate"], "details": details}
    if row["ci_low"] is not None:
        score["uncertainty"] = {
            "confidence_interval": {
                "lower": row["ci_low"],
                "upper": row["ci_high"],
                "confidence_level": 0.95,
                "method": METHODS.get(row["metric"], _EXPANDED),
            },
            "num_samples": row["n_concepts"],
            "num_bootstrap_samples": max((len(w) for w in edition.scored.weights.values()), default=0),
        }
    return score


def status_counts(edition: Edition) -> dict[str, dict[str, Counter[str]]]:
    """Return rows by status: model, then attribute; `overall` pools the demographic attributes."""
    sums = edition.scored.tables["cells"].group_by(["model", "attribute"])
    kinds = {a.id: a.kind for a in edition.run.bank.attributes}
    counts: dict[str, dict[str, Counter[str]]] = {}
    for row in sums.aggregate([(f"n_{status}", "sum") for status in STATUSES]).to_pylist():
        own = counts.setdefault(row["model"], {OVERALL: Counter()})
        numbers = Counter({status: row[f"n_{status}_sum"] for status in STATUSES})
        own[row["attribute"]] = numbers
        if kinds[row["attribute"]] == "demographic":
            own[OVERALL].update(numbers)
    return counts


def _generation(entry: ManifestModel) -> dict[str, Any]:
    """Return the parameters that the layout has names for; every parameter stands in the details, too."""
    known: dict[str, Any] = {}
    for key, kind in (("temperature", float), ("top_p", float), ("top_k", float), ("max_tokens", int)):
        value = entry.params.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            known[key] = kind(value)
    details = {key: json.dumps(value, sort_keys=True) for key, value in sorted(entry.params.items())}
    return {"generation_args": known, "additional_details": details}
