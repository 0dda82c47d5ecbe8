"""All addresses of the HTTP interface and the pages, for tests of every route."""

from __future__ import annotations

import re

import httpx
from fastapi import FastAPI
from starlette.routing import Route

from control_plane.declarations.operation import Operation
from tests.support.doors import sample


def addresses(app: FastAPI) -> list[tuple[str, str]]:
    """Method and path of every route, with `000000000000` for each name in the path."""
    routes = [route for route in app.routes if isinstance(route, Route)]
    pairs = {(method, re.sub(r"\{\w+\}", "0" * 12, route.path)) for route in routes for method in route.methods or ()}
    return sorted((method, path) for method, path in pairs if method != "HEAD")


def call(http: httpx.Client, operation: Operation) -> httpx.Response:
    """The answer to a well-formed call of the operation, for names that nothing has."""
    path = operation.path.format_map({"organization": "default", **dict.fromkeys(operation.names, "x")})
    body = sample(operation.request) if operation.request and operation.method != "GET" else None
    return http.request(operation.method, f"/api/v1{path}", json=body)
