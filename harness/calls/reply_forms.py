"""The forms in which a judge's JSON can be asked for, and the next one where an endpoint refuses one.

See contract: stages, "Asking for JSON".
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

from harness.calls.call import CallError, Request

Form = Literal["json_schema", "json_object", "none"]
_NEXT: Mapping[Form, Form] = {"json_schema": "json_object", "json_object": "none"}
_WORDS: Mapping[Form, str] = {
    "json_schema": "a JSON schema",
    "json_object": "a JSON object",
    "none": "nothing but the prompt",
}
_STATUSES = frozenset({400, 404, 415, 422, 501})
_ABOUT_FORM = re.compile(
    r"response_?format|json_?schema|json_?object|json[ -]mode|structured[ _-]?output|output_(?:format|config)|guided_"
    r"|grammar|\bschema\b",
    re.IGNORECASE,
)
_ABOUT_ROLE = re.compile(
    r"system[ \w'\"`-]{0,30}(?:role|prompt|message|instruction)|role[ \w'\"`:-]{0,30}system", re.IGNORECASE
)
# What some vendor's strict mode refuses is never sent: numbers' bounds, lengths, patterns, defaults. All of it is
# checked where the verdict is read.
_KEYWORDS = frozenset(
    {"type", "properties", "required", "additionalProperties", "enum", "description", "items", "anyOf"}
)


class ReplyForms:
    """The form that each model is asked for under each schema. It starts as run.toml says and only ever steps down."""

    def __init__(self, first: Form) -> None:
        self._first: Form = first
        self._now: dict[tuple[str, str], Form] = {}

    def of(self, request: Request) -> Form:
        """Return the form to ask for at present; `none` for a request without a schema."""
        if request.schema is None:
            return "none"
        return self._now.get(_place(request), self._first) if self._now else self._first

    def refused(self, request: Request, form: Form, error: CallError) -> CallError | None:
        """Return an error as one to ask again in the next form; None where it was not the form that was refused.

        The first call that is refused steps down and tells the operator in `notice`. Those in flight with it only
        follow.

        Args:
            request: the request that failed.
            form: the form in which it was asked.
            error: how it failed.
        """
        if error.status not in _STATUSES or form not in _NEXT or not _ABOUT_FORM.search(error.reason):
            return None
        again = CallError(error.code, error.reason, retryable=True, billed=error.billed, status=error.status)
        if self.of(request) == form:
            self._now[_place(request)] = after = _NEXT[form]
            again.notice = (
                f"{request.model}: the endpoint refuses {_WORDS[form]} ({error.reason}); asked with {_WORDS[after]}"
                f' from now on: set response_format = "{after}" in run.toml to ask so at once'
            )
        return again


def response_format(form: Form, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the `response_format` to send; None where the prompt alone asks for JSON."""
    if form == "none":
        return None
    if form == "json_object":
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": "label", "strict": True, "schema": sendable(schema)}}


def sendable(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON schema without the keywords that some vendor's strict mode refuses.

    Nothing is lost: the full schema is checked when the answer is read.
    """
    kept = {key: value for key, value in schema.items() if key in _KEYWORDS}
    if isinstance(properties := kept.get("properties"), Mapping):
        kept["properties"] = {name: sendable(inner) for name, inner in properties.items()}
    if isinstance(items := kept.get("items"), Mapping):
        kept["items"] = sendable(items)
    if isinstance(choices := kept.get("anyOf"), list):
        kept["anyOf"] = [sendable(choice) for choice in choices]
    return kept


def role_hint(request: Request, error: CallError) -> str:
    """Return what to do where an endpoint seems to refuse the system role, to be added to its error; else nothing."""
    asked = any(message.role == "system" for message in request.messages)
    refused = asked and error.status in _STATUSES and _ABOUT_ROLE.search(error.reason)
    return '; an endpoint without system messages needs system_role = "merge" in run.toml' if refused else ""


def _place(request: Request) -> tuple[str, str]:
    return request.model, json.dumps(request.schema, sort_keys=True)
