"""Run plans for the harness tests: a valid run.toml as data, changed at will, checked or written as a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from generator.schema.bank import Bank
from harness.plan.records import RunPlan
from harness.plan.run_toml import load_plan

PRICES = {"prompt_per_million": 1.0, "completion_per_million": 10.0}
PARAMS = {"temperature": 1.0, "max_tokens": 100}


def callee(model: str, endpoint: str = "local", **changes: Any) -> dict[str, Any]:
    """One model or judge as run.toml has it."""
    name = model.partition("/")[2]
    return {"model": model, "endpoint": endpoint, "api_model": name, "prices": dict(PRICES), **changes}


def live_data(bank: Bank, base_url: str = "http://127.0.0.1:9/v1", **changes: Any) -> dict[str, Any]:
    """A live plan with one subject and three judges at one endpoint; few attempts without much wait between."""
    endpoint = {
        "base_url": base_url,
        "concurrency": 4,
        "connect_timeout": 20.0,
        "read_timeout": 20.0,
        "max_attempts": 3,
        "total_wait": 60.0,
        "backoff": 0.001,
        "params": ["temperature", "max_tokens"],
    }
    return {
        "kind": "live",
        "date": "2026-11-30",
        "repeats": 1,
        "bank": {"version": bank.version, "sha256": bank.sha256},
        "seeds": {"run": 1, "audit": 2},
        "caps": {"run": 100.0},
        "params": dict(PARAMS),
        "endpoints": {"local": endpoint},
        "models": [callee("alpha/one")],
        "judges": {
            "primary": [callee("judge-a/x"), callee("judge-b/x")],
            "tiebreak": callee("judge-c/x"),
            "params": {"temperature": 0.0, "max_tokens": 50},
        },
        **changes,
    }


def simulated_data(bank: Bank, *models: str, **changes: Any) -> dict[str, Any]:
    """A simulated plan of some models."""
    sim = [callee(model, "simulated") for model in models or ("sim-alpha/one", "sim-beta/two")]
    judges = {
        "primary": [callee("sim-judge-a/x", "simulated"), callee("sim-judge-b/x", "simulated")],
        "tiebreak": callee("sim-judge-c/x", "simulated"),
        "params": {"temperature": 0.0, "max_tokens": 50},
    }
    data = live_data(bank, **{"kind": "simulated", "models": sim, "judges": judges, **changes})
    del data["endpoints"]
    return data


def make_plan(data: dict[str, Any], run_id: str = "test-run") -> RunPlan:
    """Check a plan's data."""
    return load_plan(data, run_id=run_id, where="run.toml")


def write_run_toml(folder: Path, data: dict[str, Any]) -> Path:
    """Write data as run.toml into a run folder; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.toml").write_text("".join(f"{key} = {_toml(value)}\n" for key, value in data.items()))
    return folder


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)
