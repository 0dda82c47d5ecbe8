"""Nonsense at every address: whatever is sent, the answer is a document and never an error of ours."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.fleet import Api, Doc

NAMES = ["💥", "a" * 300, "..%2f..", "' OR 1=1 --", "\u202e", "-1", "9" * 30, "null", "%", "default"]
VALUES: list[Any] = [None, "", "💥", "\ud800", "a\0b", -1, 10**400, 1e400, float("nan"), True, [], {}, [[]], {"a": {}}]
LIKELY = {"prompt": "x", "project": "demo", "name": "x", "slug": "x", "model": "m", "git_url": "https://g/x"}
BODIES = [b"", b"null", b"[]", b"0", b'"x"', b"{", b"[" * 50_000, b'{"a":' * 5_000, b"\xff"]


def routes(document: Doc) -> Iterator[tuple[str, str, Doc]]:
    """Method, path and operation of everything that ends by itself."""
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if not path.endswith("/events"):
                yield method, path, operation


def fields_of(document: Doc, operation: Doc) -> list[str]:
    """Names of the fields of the operation's body."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    schemas = [content.get("schema", {}), *content.get("schema", {}).get("anyOf", [])]
    names = [each["$ref"].rpartition("/")[2] for each in schemas if "$ref" in each]
    return [field for name in names for field in document["components"]["schemas"][name]["properties"]]


def wrong_bodies(fields: list[str]) -> Iterator[bytes]:
    """Bodies that are no JSON, or no object, or hold a value that does not belong."""
    yield from BODIES
    for field, value in itertools.product(fields, VALUES):
        # A small body with every other field as it could be, so that the wrong one is looked at.
        yield json.dumps({**{name: LIKELY[name] for name in fields if name in LIKELY}, field: value}).encode()


def test_no_name_in_an_address_is_an_error_of_ours(api: Api) -> None:
    api.add_work()
    with api.http() as http:
        document = http.get("/openapi.json").json()
        named = [(method, path) for method, path, _ in routes(document) if "{" in path]
        answers = {
            (method, path, name): http.request(
                method, f"{path.partition('{')[0]}{quote(name, safe='')}{path.partition('}')[2]}"
            )
            # Two names for each address, others for the next one.
            for number, (method, path) in enumerate(named)
            for name in (NAMES[number % len(NAMES)], NAMES[(number + 5) % len(NAMES)])
        }
    assert len(answers) > 150
    assert {place: answer.text for place, answer in answers.items() if answer.status_code >= 500} == {}


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.long)])
def test_no_body_is_an_error_of_ours(api: Api, every: int) -> None:
    """Every fifth body; 5 and the number of values have no common divisor, so that each value is tried."""
    api.add_work()
    with api.http(None, Authorization=f"Bearer {api.token}") as http:
        document = http.get("/openapi.json").json()
        answers = [
            (
                method,
                path,
                body[:80],
                http.request(
                    method,
                    path.replace("{", "").replace("}", ""),
                    content=body,
                    headers={"Content-Type": "application/json"},
                ),
            )
            for method, path, operation in routes(document)
            if method in {"post", "patch"}
            for body in itertools.islice(wrong_bodies(fields_of(document, operation)), 0, None, every)
        ]
    assert len(answers) > 250
    assert [(*place, answer.text) for *place, answer in answers if answer.status_code >= 500] == []


def test_no_question_is_an_error_of_ours(api: Api) -> None:
    api.add_work()
    order = api.submit()["id"]
    queries = [f"{key}={quote(name)}" for key in ("org", "status", "project", "limit", "after") for name in NAMES]
    with api.http() as http:
        paths = ["/api/v1/orders", f"/api/v1/orders/{order}/steps", "/"]
        answers = {(path, query): http.get(f"{path}?{query}") for path, query in itertools.product(paths, queries)}
    assert {place: answer.text for place, answer in answers.items() if answer.status_code >= 500} == {}
