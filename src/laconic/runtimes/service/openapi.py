"""What the sidecar answers, as an OpenAPI document: made from the types that its verbs check with."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import msgspec

from laconic.runtimes.service.pages import JSON
from laconic.runtimes.service.verbs import VERBS, Mistake, Verb

DESCRIPTION = "/openapi.json"
MISTAKES = {
    400: "The body is no JSON, or a key of it stands there twice.",
    403: "The origin, or the host, is foreign.",
    404: "No decision waits under this id.",
    405: "The path takes another method.",
    411: "The body came without a Content-Length.",
    413: "The body is too large.",
    415: "The body is said to be neither JSON nor, as curl says where it is told nothing, of a form.",
    422: "The body does not have the right shape.",
    431: "The header is too long.",
    500: "The agent made a mistake of its own, which its log says.",
    503: "The state file could not be written, or too many wait for that, or for the coordinator.",
    504: "The coordinator did not answer in time.",
}


def openapi() -> dict[str, Any]:
    """What the sidecar answers, as an OpenAPI 3.1 document, made from the types that it checks with."""
    named = [kind for verb in VERBS.values() for kind in (verb.body, verb.answer) if kind is not None]
    kinds: list[Any] = list(dict.fromkeys([*named, Mistake]))
    schemas, parts = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    known = dict(zip(kinds, schemas, strict=True))
    return {
        "openapi": "3.1.0",
        "info": {"title": "laconic agent", "version": version("laconic")},
        "paths": {path: {verb.method.lower(): _operation(path, verb, known)} for path, verb in VERBS.items()},
        "components": {"schemas": parts},
    }


def _operation(path: str, verb: Verb, known: Mapping[Any, Any]) -> dict[str, Any]:
    mistakes = {str(code): _said(about, known[Mistake]) for code, about in MISTAKES.items()}
    body = {} if verb.body is None else {"required": not verb.spares_body, **_said("", known[verb.body])}
    return {
        "operationId": path.strip("/"),
        "summary": verb.about,
        **({"requestBody": body} if body else {}),
        "responses": {"200": _said("Done.", known[verb.answer]), **mistakes},
    }


def _said(about: str, schema: Any) -> dict[str, Any]:
    return {**({"description": about} if about else {}), "content": {JSON: {"schema": schema}}}
