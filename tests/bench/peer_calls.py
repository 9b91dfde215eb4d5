"""The same calls through Inspect, run in an environment of its own: `python peer_calls.py URL PROMPTS LOGS`.

PROMPTS is a JSON list of texts; each is one sample, asked once, 64 at a time.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from inspect_ai import Task
from inspect_ai import eval as run
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.solver import generate


def main(url: str, prompts: str, logs: str) -> None:
    """Ask every prompt and hold the count."""
    samples = [Sample(input=text) for text in json.loads(Path(prompts).read_text())]
    config = GenerateConfig(temperature=1.0, max_tokens=100, max_connections=64)
    model = get_model("openai-api/local/one", base_url=url, api_key="none", config=config)
    task = Task(dataset=MemoryDataset(samples), solver=generate())
    found = run(task, model=model, display="none", log_dir=logs, max_samples=64, max_connections=64)[0]
    assert found.status == "success", found.error
    assert len(found.samples or []) == len(samples)


if __name__ == "__main__":
    main(*sys.argv[1:])
