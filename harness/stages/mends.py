"""What an endpoint refuses and run.toml can mend: the reason is read, the setting changed, the line to write told."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from harness.calls.call import CallError, Request
from harness.plan.records import Callee, EndpointPlan

LONGEST = 32_768  # tokens of answer up to which a probe goes by itself
_REFUSED = frozenset({400, 404, 415, 422, 501})
_OTHER_LIMIT = re.compile(r"max_completion_tokens")
_ANSWERED_BY = re.compile(r"answered by '([^']+)'")
_ROLE = re.compile(r"system_role")


@dataclass(frozen=True)
class Setting:
    """How a call is made: model and endpoint as run.toml has them, and the request that follows from both."""

    callee: Callee
    endpoint: EndpointPlan
    request: Request


@dataclass(frozen=True)
class Mend:
    """One change of run.toml: in which table, the line to write there, and what it does to a setting.

    `in_place` says that the client has made the change itself and keeps it as long as it lives.
    """

    table: str
    line: str
    applied: Callable[[Setting], Setting]
    in_place: bool = False


def mend_of(error: CallError, setting: Setting) -> Mend | None:
    """Return the change that an error asks for, None where run.toml cannot help or nothing is known that would."""
    if error.code == "wrong_model":
        return _served_as(error.reason, setting)
    if error.status not in _REFUSED:
        return None
    for look in (_other_form, _merged_role, _other_limit, _dropped):
        if (mend := look(error, setting)) is not None:
            return mend
    return None


def _endpoint_mend(setting: Setting, key: str, value: Any, *, in_place: bool = False) -> Mend:
    def applied(before: Setting) -> Setting:
        return replace(before, endpoint=before.endpoint.model_copy(update={key: value}))

    return Mend(f"[endpoints.{setting.callee.endpoint}]", f"{key} = {json.dumps(value)}", applied, in_place)


def _callee_mend(setting: Setting, line: str, **changes: Any) -> Mend:
    def applied(before: Setting) -> Setting:
        return replace(before, callee=before.callee.model_copy(update=changes))

    return Mend(f"the table of {setting.callee.model}", line, applied)


def _other_form(error: CallError, setting: Setting) -> Mend | None:
    """Return the form of JSON that the client has stepped down to by itself, as its notice names it."""
    found = re.search(r'response_format = "(\w+)"', error.notice or "")
    return None if found is None else _endpoint_mend(setting, "response_format", found[1], in_place=True)


def _merged_role(error: CallError, setting: Setting) -> Mend | None:
    """Return the setting that puts the system text into the user's message."""
    refused = _ROLE.search(error.reason) and setting.endpoint.system_role != "merge"
    return _endpoint_mend(setting, "system_role", "merge") if refused else None


def _other_limit(error: CallError, setting: Setting) -> Mend | None:
    """Return the other name of the limit of answer tokens, where the endpoint says that it wants that one."""
    wanted = _OTHER_LIMIT.search(error.reason) and setting.endpoint.max_tokens_name == "max_tokens"
    return _endpoint_mend(setting, "max_tokens_name", "max_completion_tokens") if wanted else None


def _dropped(error: CallError, setting: Setting) -> Mend | None:
    """Return the removal of a parameter that the error names; `max_tokens` stays, or no cap would hold."""
    named = [name for name in setting.request.params if name != "max_tokens" and _names(error.reason, name)]
    if not named:
        return None
    drop = tuple(sorted({*setting.callee.drop, named[0]}))
    mend = _callee_mend(setting, f"drop = {json.dumps(list(drop))}", drop=drop)
    gone = named[0]

    def applied(before: Setting) -> Setting:
        params = {k: v for k, v in before.request.params.items() if k != gone}
        return replace(mend.applied(before), request=replace(before.request, params=params))

    return replace(mend, applied=applied)


def _names(reason: str, parameter: str) -> bool:
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(parameter)}(?![A-Za-z0-9_])", reason) is not None


def _served_as(reason: str, setting: Setting) -> Mend | None:
    """Return the name under which the endpoint says that it answered, for the operator to judge."""
    found = _ANSWERED_BY.search(reason)
    if found is None or found[1] in setting.callee.served_as:
        return None
    names = (*setting.callee.served_as, found[1])
    line = f"served_as = {json.dumps(list(names))}  # if that is the model you mean"
    return _callee_mend(setting, line, served_as=names)


def longer(setting: Setting) -> Mend | None:
    """Return four times the tokens of answer for one that never left its thinking, None above `LONGEST`."""
    limit = int(setting.request.params["max_tokens"]) * 4
    if limit > LONGEST:
        return None
    own: Mapping[str, Any] = {**setting.callee.params, "max_tokens": limit}
    line = f"params = {toml_table(own)}  # or less effort, where the model has such a parameter"
    mend = _callee_mend(setting, line, params=dict(own))

    def applied(before: Setting) -> Setting:
        params = {**before.request.params, "max_tokens": limit}
        return replace(mend.applied(before), request=replace(before.request, params=params))

    return replace(mend, applied=applied)


def toml_table(values: Mapping[str, Any]) -> str:
    """Return a mapping of JSON values as an inline table of TOML."""
    return "{ " + ", ".join(f"{_toml_key(key)} = {_toml(value)}" for key, value in values.items()) + " }"


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return toml_table(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)
