"""What a plan must keep besides its shape: names, days, panels, prices, parameters, endpoints, pin.

Each check yields its faults, so that all of them are shown together.

See contract: stages, "run.toml".
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from generator.schema.errors import InputError
from generator.schema.names import SHA256, model_fault, run_id_fault, simulated, successor_fault, vendor_of
from harness.plan.records import SIMULATED, Callee, EndpointPlan, RunPlan, Subject

RESERVED_PARAMS = ("messages", "model", "n", "provider", "response_format", "stream", "tools", "tool_choice")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[A-Za-z0-9-]+")
_RESERVED_HEADERS = {"authorization", "content-length", "content-type", "host"}


def plan_faults(plan: RunPlan) -> Iterator[str]:
    """Yield every fault of a plan, each with its place in run.toml."""
    yield from _name_faults(plan)
    yield from _day_faults(plan)
    yield from _kind_faults(plan)
    yield from _panel_faults(plan)
    yield from _cap_faults(plan)
    for name, endpoint in plan.endpoints.items():
        yield from _endpoint_faults(name, endpoint)
    for place, callee in _callees(plan):
        yield from _callee_faults(plan, place, callee)
    for place, params in (("params", plan.params), ("judges.params", plan.judges.params)):
        yield from _param_faults(place, params)


def _callees(plan: RunPlan) -> Iterator[tuple[str, Callee]]:
    for i, model in enumerate(plan.models):
        yield f"models.{i} ({model.model})", model
    for i, judge in enumerate(plan.judges.primary):
        yield f"judges.primary.{i} ({judge.model})", judge
    yield f"judges.tiebreak ({plan.judges.tiebreak.model})", plan.judges.tiebreak


def _name_faults(plan: RunPlan) -> Iterator[str]:
    if fault := run_id_fault(plan.run_id):
        yield f"{fault}; rename the run's folder"
    for place, callee in _callees(plan):
        if fault := model_fault(callee.model):
            yield f"{place}: {fault}; what the endpoint calls it goes into api_model"
    for slug in plan.subject.keys() & plan.judge.keys():
        subject, judge = plan.subject[slug], plan.judge[slug]
        if subject.endpoint == judge.endpoint and _routing(subject) != _routing(judge):
            yield f"models: {slug} is a judge, too, with another provider or served_as; give both the same"
    for i, model in enumerate(plan.models):
        if model.successor_of is not None and (fault := successor_fault(model.model, model.successor_of)):
            yield f"models.{i} ({model.model}): successor_of: {fault}"
    for slug, times in Counter(m.model for m in plan.models).items():
        if times > 1:
            yield f"models: {slug} is listed {times} times; give each setting of a model its own slug"
    if plan.supersedes is not None:
        if fault := run_id_fault(plan.supersedes):
            yield f"supersedes: {fault}"
        elif plan.supersedes == plan.run_id:
            yield f"supersedes: {plan.supersedes} is this run itself; name the run that it replaces"
    if SHA256.fullmatch(plan.bank.sha256) is None:
        yield f"bank.sha256: {plan.bank.sha256!r} is not 64 hex digits; `aibiasbench bank hash` prints it"


def _routing(callee: Callee) -> tuple[object, object]:
    return callee.provider, callee.served_as


def _day_faults(plan: RunPlan) -> Iterator[str]:
    days = [("date", plan.date), *((f"models.{i}.added", m.added) for i, m in enumerate(plan.models) if m.added)]
    for place, day in days:
        try:
            right = dt.date.fromisoformat(day).isoformat() == day
        except ValueError:
            right = False
        if not right:
            yield f"{place}: {day!r} is no day; use YYYY-MM-DD"


def _kind_faults(plan: RunPlan) -> Iterator[str]:
    """Keep simulated and real apart."""
    for place, callee in _callees(plan):
        if plan.kind == "simulated":
            if not simulated(callee.model):
                yield f"{place}: a simulated run takes only vendors that begin 'sim-'"
            if callee.endpoint != SIMULATED:
                yield f"{place}: endpoint {callee.endpoint!r} in a simulated run; use '{SIMULATED}'"
        else:
            if simulated(callee.model):
                yield f"{place}: a vendor that begins 'sim-' in a live run; such names are for simulated runs"
            if callee.endpoint == SIMULATED:
                yield f"{place}: endpoint '{SIMULATED}' in a live run; name a real endpoint"


def _panel_faults(plan: RunPlan) -> Iterator[str]:
    judges = [j.model for j in plan.judges.all]
    if len({vendor_of(j) for j in judges}) < len(judges):
        yield f"judges: {', '.join(judges)} share a vendor, so that some panel cannot be formed; use three vendors"
        return
    for model in plan.models:
        try:
            plan.panel(model.model)
        except InputError as error:
            yield f"models: {model.model}: no panel can be formed: {error}"


def _cap_faults(plan: RunPlan) -> Iterator[str]:
    for name, caps, known in (
        ("models", plan.caps.models, plan.subject),
        ("judges", plan.caps.judges, plan.judge),
    ):
        for slug in caps:
            if slug not in known:
                yield f"caps.{name}: {slug!r} is none of this run's {name}: {', '.join(sorted(known))}"


def _endpoint_faults(name: str, endpoint: EndpointPlan) -> Iterator[str]:
    place = f"endpoints.{name}"
    if name == SIMULATED:
        yield f"{place}: '{SIMULATED}' is built in; choose another name"
    try:
        url = urlsplit(endpoint.base_url)
        port_is_fine = url.port is None or url.port > 0
    except ValueError:
        url, port_is_fine = urlsplit(""), False
    plain = endpoint.base_url.isascii() and endpoint.base_url.isprintable() and " " not in endpoint.base_url
    if url.scheme not in ("http", "https") or not url.hostname or not port_is_fine or not plain:
        yield f"{place}.base_url: {endpoint.base_url!r} is no http or https address, such as https://host/v1"
    if url.username or url.password or url.query or url.fragment:
        yield (
            f"{place}.base_url: leave out user, password, ? and #: it is published; a key belongs into key_env,"
            " what follows ? into query"
        )
    if endpoint.key_env is not None and _ENV_NAME.fullmatch(endpoint.key_env) is None:
        yield f"{place}.key_env: give the name of an environment variable, never the key itself"
    yield from _reach_faults(place, endpoint)
    if "max_tokens" not in endpoint.params:
        yield f"{place}.params: 'max_tokens' is missing; no spend cap holds at an endpoint that cannot be told it"
    for param in sorted(set(endpoint.params) & set(RESERVED_PARAMS)):
        yield f"{place}.params: {param!r} is set by the harness; leave it out"
    yield from _batch_faults(place, endpoint)
    for header, value in endpoint.headers.items():
        if header.lower() in _RESERVED_HEADERS:
            yield f"{place}.headers: {header!r} is set by the harness; leave it out"
        elif _HEADER.fullmatch(header) is None or not (value.isascii() and value.isprintable()):
            yield f"{place}.headers: {header!r}: {value!r} is no header that can be sent; use printable ASCII"


def _batch_faults(place: str, endpoint: EndpointPlan) -> Iterator[str]:
    """Yield what a vendor's batches do not know under the name that a chat completion has for it."""
    if endpoint.mode != "batch" or endpoint.batch.api != "anthropic":
        return
    if endpoint.response_format != "none":
        yield f"{place}.response_format: {endpoint.response_format!r} is unknown to this batch endpoint; use 'none'"
    if endpoint.max_tokens_name != "max_tokens":
        yield f"{place}.max_tokens_name: this batch endpoint knows only 'max_tokens'"
    if "seed" in endpoint.params:
        yield f"{place}.params: 'seed' is unknown to this batch endpoint; leave it out"


def _reach_faults(place: str, endpoint: EndpointPlan) -> Iterator[str]:
    for header, variable in endpoint.header_env.items():
        # A key may well go by the name that a vendor gives it, but never beside another one.
        taken = _RESERVED_HEADERS if endpoint.key_env else _RESERVED_HEADERS - {"authorization"}
        if header.lower() in taken or header.lower() in {name.lower() for name in endpoint.headers}:
            yield f"{place}.header_env: {header!r} is set already; leave it out here or there"
        elif _HEADER.fullmatch(header) is None:
            yield f"{place}.header_env: {header!r} is no name of a header; use letters, digits and -"
        if _ENV_NAME.fullmatch(variable) is None:
            yield f"{place}.header_env.{header}: give the name of an environment variable, never the value itself"
    for name, value in endpoint.query.items():
        if not name or not (name + value).isascii() or not (name + value).isprintable():
            yield f"{place}.query: {name!r}: {value!r} cannot be sent; use printable ASCII"


def _drop_faults(plan: RunPlan, place: str, callee: Callee) -> Iterator[str]:
    defaults = plan.params if isinstance(callee, Subject) else plan.judges.params
    for name in callee.drop:
        if name == "max_tokens":
            yield f"{place}.drop: 'max_tokens' has to be sent: without it no spend cap would hold"
        elif name in callee.params:
            yield f"{place}.drop: {name!r} stands in its params, too; leave it out of one of them"
        elif name not in defaults:
            known = ", ".join(sorted(defaults)) or "none"
            yield f"{place}.drop: {name!r} is no default of this run, which has: {known}"


def _callee_faults(plan: RunPlan, place: str, callee: Callee) -> Iterator[str]:
    yield from _param_faults(f"{place}.params", callee.params)
    yield from _drop_faults(plan, place, callee)
    if callee.provider is not None and not _is_json(callee.provider):
        yield f"{place}.provider: {callee.provider!r} has no JSON form"
    if not callee.api_model.strip():
        yield f"{place}.api_model: empty; give the name that the endpoint knows"
    if callee.endpoint != SIMULATED:
        if callee.endpoint not in plan.endpoints:
            known = ", ".join(sorted(plan.endpoints)) or "none"
            yield f"{place}.endpoint: {callee.endpoint!r} is not declared; [endpoints] has: {known}"
            return
        for name in sorted(set(callee.params) - set(plan.endpoints[callee.endpoint].params)):
            yield (
                f"{place}.params: {name!r} is no parameter that endpoint {callee.endpoint} knows;"
                f" take it out, or add it to endpoints.{callee.endpoint}.params"
            )
    limit = plan.sent_params(callee).get("max_tokens")
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        yield f"{place}: max_tokens is {limit!r}; give a whole number from 1, here or among the defaults"
    seed = plan.sent_params(callee).get("seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**31:
        yield f"{place}: seed is {seed!r}; give a whole number from 0 to 2147483647"


def _param_faults(place: str, params: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(set(params) & set(RESERVED_PARAMS)):
        yield f"{place}: {name!r} is set by the harness; leave it out"
    for name, value in params.items():
        if not _is_json(value):
            yield f"{place}.{name}: {value!r} has no JSON form; use a number, text, true or false, a list or a table"


def _is_json(value: Any) -> bool:
    """Tell whether a TOML value can be hashed as canonical JSON: no dates, no nan, integers within 2**53."""
    if isinstance(value, Mapping):
        return all(isinstance(k, str) and _is_json(v) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return all(_is_json(item) for item in value)
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return abs(value) < 2**53
    return isinstance(value, str)
