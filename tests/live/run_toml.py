"""The run.toml of a run over the real models of this machine: two subjects that judge each other, and the reader."""

from __future__ import annotations

from generator.schema.bank import Bank

_HEAD = """\
# Two small real models on the operator's own machine, each also a judge of the other, and a reader of verdict words
# as the third judge. Near-chance judges must not pass the agreement gate: this run shows that they do not. Only some of
# the bank's concepts are asked, so that it appears as a preview.
kind = "live"
date = "{date}"
repeats = 1

[bank]
version = "{version}"
sha256 = "{sha256}"

[seeds]
run = 20261130
audit = 7

[caps]
run = 0

[params]
temperature = 0.7
top_p = 0.95
max_tokens = {max_tokens}
seed = 1
cache_prompt = false
"""
_ENDPOINT = """
[endpoints.{name}]
base_url = "{url}"
concurrency = 1
read_timeout = 240
params = ["temperature", "top_p", "max_tokens", "seed", "cache_prompt"]
"""
_CALLEE = """
{comment}[{table}]
model = "{model}"
endpoint = "{endpoint}"
api_model = "{api_model}"
prices = {{ prompt_per_million = 0, completion_per_million = 0 }}
"""
_SMOLLM2 = {"model": "huggingfacetb/smollm2-135m-instruct", "endpoint": "smollm2", "api_model": "smollm2-135m-instruct"}
_GEMMA = {"model": "google/gemma-3-270m", "endpoint": "gemma", "api_model": "gemma-3-270m"}
_READER = {"model": "local/verdict-reader", "endpoint": "reader", "api_model": "verdict-reader"}
_READS = "# Holds no model: it reads an answer's last verdict word or SCORE line, and makes an error of one without.\n"


def local_run_toml(bank: Bank, *, urls: dict[str, str], date: str, max_tokens: int = 110) -> str:
    """Return run.toml; `urls` are base URLs by endpoint (smollm2, gemma, reader)."""
    parts = [_HEAD.format(date=date, version=bank.version, sha256=bank.sha256, max_tokens=max_tokens)]
    parts += [_ENDPOINT.format(name=name, url=url) for name, url in urls.items()]
    parts += [_CALLEE.format(table="[models]", comment="", **callee) for callee in (_SMOLLM2, _GEMMA)]
    parts.append("\n[judges]\nparams = { temperature = 0, max_tokens = 120, seed = 1, cache_prompt = true }\n")
    parts += [_CALLEE.format(table="[judges.primary]", comment="", **callee) for callee in (_SMOLLM2, _GEMMA)]
    parts.append(_CALLEE.format(table="judges.tiebreak", comment=_READS, **_READER))
    return "".join(parts)
