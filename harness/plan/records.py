"""The plan of a run as frozen records: every key that `run.toml` knows (contract: stages, "run.toml").

Read with `harness.plan.run_toml.read_plan`, which refuses whatever breaks a rule.
"""

from __future__ import annotations

import datetime as dt
import math
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from generator.schema.bank import Frozen
from generator.schema.panel import Judges, Panel, effective_panel

PICO = 10**12  # money is counted in whole picodollars: sums are exact and do not depend on their order
SIMULATED = "simulated"  # the name of the built-in endpoint, and of the kind of run that uses it
SIMULATED_VERSION = "1"  # part of every simulated key: raised when the simulated models change their answers


def _iso(value: Any) -> Any:
    return value.isoformat() if isinstance(value, dt.date) and not isinstance(value, dt.datetime) else value


Day = Annotated[str, BeforeValidator(_iso)]
# Bounds that no plan needs: beyond them picodollars leave the ledger's integers, and waits those of the system.
Usd = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]


class PlanRecord(Frozen):
    """A table of run.toml; the string below each field is its meaning in the reference."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class BankPin(PlanRecord):
    """The bank that this run was planned for."""

    version: str
    """The version of the bank, as `aibiasbench bank hash` prints it."""
    sha256: str
    """The hash of the bank, 64 hex digits, as `aibiasbench bank hash` prints it."""


class PlannedSeeds(PlanRecord):
    """The seeds of the simulated models and of the audit draw."""

    run: int = Field(ge=0, lt=2**32)
    """Seeds the simulated models."""
    audit: int = Field(ge=0, lt=2**32)
    """Seeds the draw of the human audit."""


class Prices(PlanRecord):
    """Declared prices in US dollars: a million prompt or completion tokens, and one request. 0 is a price."""

    prompt_per_million: Usd
    """US dollars for a million prompt tokens; 0 is a price."""
    completion_per_million: Usd
    """US dollars for a million completion tokens, thinking included."""
    request: Usd = 0.0
    """US dollars for one request, besides its tokens."""

    def cost(self, prompt_tokens: int, completion_tokens: int) -> int:
        """Return the cost of one call in picodollars, rounded up."""
        million = self.prompt_per_million * prompt_tokens + self.completion_per_million * completion_tokens
        return math.ceil(round(million * (PICO / 1e6) + self.request * PICO, 3))


class BatchPlan(PlanRecord):
    """How an endpoint with `mode = "batch"` takes calls: whose form it speaks, and how long to wait.

    `requests` bounds a batch (the vendor's own limit applies as well), `at_once` the batches that are open together.
    `poll` is the seconds between looks; after `wait` seconds a stage no longer waits, and a later one may collect.
    """

    api: Literal["openai", "anthropic"] = "openai"
    """Whose form of batches the endpoint speaks."""
    requests: int = Field(default=10_000, ge=1)
    """Maximum requests per batch."""
    at_once: int = Field(default=2, ge=1, le=100)
    """Maximum batches open together."""
    poll: Seconds = 60.0
    """Seconds between looks at a batch."""
    wait: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] = 93_600.0
    """Seconds after which a stage no longer waits; a later one may collect."""


class EndpointPlan(PlanRecord):
    """An OpenAI-compatible endpoint: where it is, what it knows, how long to wait for it.

    `params` are the names of the parameters that it knows; no other is sent. `key_env` names the environment variable
    with the key. `total_wait` bounds the seconds that one call may take with all its attempts; `backoff` is the
    first wait between them, doubled each time. With `mode = "batch"` calls go to the vendor's batch endpoint as `batch`
    says, at the prices that the vendor asks for batches.
    """

    base_url: str
    """The address before `/chat/completions`."""
    key_env: str | None = None
    """The environment variable with the key, sent as a bearer token."""
    concurrency: int = Field(default=4, ge=1, le=512)
    """Calls in flight at once."""
    connect_timeout: Seconds = 10.0
    """Seconds for a connection."""
    read_timeout: Seconds = 120.0
    """Seconds for a reply; a model that thinks may need several minutes."""
    max_attempts: int = Field(default=6, ge=1, le=20)
    """Attempts at one call; status 429 does not count."""
    total_wait: Seconds = 300.0
    """Seconds for one call with all its attempts; a longer wait closes the model."""
    backoff: Seconds = 0.5
    """Seconds before the second attempt, doubled each time up to 30."""
    requests_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """No more requests a minute, spread evenly."""
    tokens_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """No more tokens a minute, spread evenly."""
    max_bytes: int = Field(default=2_000_000, ge=1_000)
    """The largest reply that is read, unpacked."""
    params: tuple[str, ...] = Field(default=("temperature", "top_p", "max_tokens"), strict=False)
    """The parameters that the endpoint knows; no other is sent."""
    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The name under which `max_tokens` is sent."""
    response_format: Literal["json_schema", "json_object", "none"] = "json_schema"
    """How a judge is asked for JSON."""
    system_role: Literal["system", "merge"] = "system"
    """`merge` puts a system message into the user's, for endpoints that refuse one."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Headers of every request; they are no secret."""
    header_env: dict[str, str] = Field(default_factory=dict)
    """Headers whose values are in environment variables: header to variable."""
    query: dict[str, str] = Field(default_factory=dict)
    """What follows `?` in every address: name to value."""
    ca_file: str | None = None
    """A file of PEM certificates to trust besides, as seen from the run's folder."""
    mode: Literal["single", "batch"] = "single"
    """`batch` hands calls to the vendor's batch endpoint."""
    batch: BatchPlan = BatchPlan()
    """How batches are taken."""


class Callee(PlanRecord):
    """A model as it is called: subjects and judges alike.

    `served_as` lists further names under which the endpoint may say that it answered. `provider` is sent as it stands,
    and only where it is given.
    """

    model: str
    """The slug under which results are published: `vendor/name`."""
    endpoint: str
    """The name of an endpoint, or `simulated`."""
    api_model: str
    """What the endpoint calls the model."""
    prices: Prices
    """Declared prices."""
    params: dict[str, Any] = Field(default_factory=dict)
    """Parameters of this model, in place of the defaults."""
    drop: tuple[str, ...] = Field(default=(), strict=False)
    """Defaults that this model is not sent."""
    provider: dict[str, Any] | None = None
    """Routing of a router, sent as it stands."""
    served_as: tuple[str, ...] = Field(default=(), strict=False)
    """Further names under which the endpoint may say that it answered."""


class Subject(Callee):
    """A model under test; `added` is the day it joined the run (the run's date unless given).

    `successor_of` is the slug of the model that it follows, in this run or an earlier one.
    """

    added: Day | None = None
    """The day on which the model joined the run; the run's date unless given."""
    successor_of: str | None = None
    """The model that this one follows."""


class JudgesPlan(PlanRecord):
    """Two primary judges and a tiebreak, of three vendors; `params` are their defaults."""

    primary: tuple[Callee, Callee] = Field(strict=False)
    """Two judges, of two vendors."""
    tiebreak: Callee
    """The third judge, of a third vendor."""
    params: dict[str, Any] = Field(default_factory=dict)
    """Default parameters of the judges; `max_tokens` has to be among them or with each judge."""

    @property
    def all(self) -> tuple[Callee, Callee, Callee]:
        """The three judges in order."""
        return (*self.primary, self.tiebreak)


class Caps(PlanRecord):
    """Spend caps in US dollars: the run, and optionally single models and judges by slug."""

    run: Usd
    """The most that the whole run may spend, in US dollars."""
    models: dict[str, Usd] = Field(default_factory=dict)
    """The most for single models, by slug."""
    judges: dict[str, Usd] = Field(default_factory=dict)
    """The most for single judges, by slug."""


class RunPlan(PlanRecord):
    """A run as its `run.toml` declares it.

    `run_id` is the name of its folder; `fresh` are the tokens of models that are asked anew, from its ledger. Neither
    stands in run.toml.
    """

    run_id: str
    fresh: dict[str, str] = Field(default_factory=dict)
    kind: Literal["live", "simulated"]
    """`live` asks real models, `simulated` the built-in ones."""
    date: Day
    """The day of the run, YYYY-MM-DD."""
    repeats: int = Field(default=3, ge=1, le=32767)
    """How often each prompt is asked."""
    supersedes: str | None = None
    """The id of the run that this one replaces."""
    data_license: str = Field(default="", pattern=r"^[A-Za-z0-9.+-]{0,64}$")
    """The SPDX id of the license of the receipts, such as `CC-BY-4.0`; the receipts' files name it."""
    bank: BankPin
    """The bank that this run was planned for."""
    seeds: PlannedSeeds
    """Seeds."""
    caps: Caps
    """Spend caps."""
    params: dict[str, Any] = Field(default_factory=dict)
    """Default parameters of the models; `max_tokens` has to be here or with each model."""
    endpoints: dict[str, EndpointPlan] = Field(default_factory=dict)
    """Endpoints by name."""
    models: tuple[Subject, ...] = Field(strict=False, min_length=1)
    """The models under test."""
    judges: JudgesPlan
    """The panel."""

    @cached_property
    def judge_names(self) -> Judges:
        """The judges as the manifest names them."""
        a, b = self.judges.primary
        return Judges(primary=(a.model, b.model), tiebreak=self.judges.tiebreak.model)

    @cached_property
    def judge(self) -> dict[str, Callee]:
        """Judges by slug."""
        return {j.model: j for j in self.judges.all}

    @cached_property
    def subject(self) -> dict[str, Subject]:
        """Subjects by slug."""
        return {m.model: m for m in self.models}

    def panel(self, model: str) -> Panel:
        """Return the panel of a subject."""
        return effective_panel(model, self.judge_names)

    def added(self, model: str) -> str:
        """Return the day on which a subject joined the run, YYYY-MM-DD."""
        return self.subject[model].added or self.date

    def sent_params(self, callee: Callee) -> dict[str, Any]:
        """Return the parameters to send: the defaults overlaid by its own, those that its endpoint knows."""
        defaults = self.params if isinstance(callee, Subject) else self.judges.params
        merged = {k: v for k, v in {**defaults, **callee.params}.items() if k not in callee.drop}
        if callee.endpoint == SIMULATED:
            return merged
        known = self.endpoints[callee.endpoint].params
        return {name: value for name, value in merged.items() if name in known}

    def published_params(self, callee: Callee) -> dict[str, Any]:
        """Return the effective parameters without the address of the endpoint, which may be a private one."""
        return {name: value for name, value in self.effective_params(callee).items() if name != "base_url"}

    def unsent_params(self, callee: Callee) -> list[str]:
        """Return the defaults that are meant for a model and not sent, because its endpoint does not list them."""
        defaults = self.params if isinstance(callee, Subject) else self.judges.params
        return sorted(set(defaults) - set(self.sent_params(callee)) - set(callee.drop))

    def effective_params(self, callee: Callee) -> dict[str, Any]:
        """Return what decides an answer: sent parameters, provider, api_model, and base URL or simulator and seed.

        For a judge the way in which JSON is asked for belongs to it, too.
        """
        place: dict[str, Any] = (
            {"simulated": SIMULATED_VERSION, "simulated_seed": self.seeds.run}
            if callee.endpoint == SIMULATED
            else {"base_url": self.endpoints[callee.endpoint].base_url}
        )
        provider = {"provider": callee.provider} if callee.provider is not None else {}
        form: dict[str, Any] = {}
        if callee.endpoint != SIMULATED and not isinstance(callee, Subject):
            asked = self.endpoints[callee.endpoint]
            form = {"response_format": asked.response_format}
            form |= {"system_role": asked.system_role} if asked.system_role != "system" else {}
        return {**self.sent_params(callee), **provider, **form, "api_model": callee.api_model, **place}
