"""All addresses of the HTTP interface and the pages, for tests of every route."""

from __future__ import annotations

import re

import httpx
from fastapi import FastAPI
from starlette.routing import Route

from control_plane.contract.declarations.operation import Operation
from tests.support.doors import sample
from tests.support.filled import Filled
from tests.support.fleet import Api

NOBODY = "0" * 12
NO_PAGES = re.compile(
    r"/(actions|answer|api|cost\.csv|favicon|flower|hooks|live|login/|mcp|mentions|metrics|openapi|search)"
)
"""Addresses that answer programs, and forms, which have tests of their own."""
NAMED = {
    "/agents/": "agents",
    "/automation/hosts/": "code-hosts",
    "/automation/webhooks/": "webhooks",
    "/batches/": "batches",
    "/fleet/": "drones",
    "/graphs/": "graphs",
    "/orders/": "orders",
    "/sessions/": "sessions",
    "/tasks/": "tasks",
}
"""What the id in an address names."""
NOT_FOR_VIEWERS = {"/orders/new", "/settings/audit", "/settings/health"}


def addresses(app: FastAPI) -> list[tuple[str, str]]:
    """Method and path of every route, with `000000000000` for each name in the path."""
    routes = [route for route in app.routes if isinstance(route, Route)]
    pairs = {(method, re.sub(r"\{\w+\}", NOBODY, route.path)) for route in routes for method in route.methods or ()}
    return sorted((method, path) for method, path in pairs if method != "HEAD")


def call(http: httpx.Client, operation: Operation) -> httpx.Response:
    """The answer to a well-formed call of the operation, for names that nothing has."""
    path = operation.path.format_map({"organization": "default", **dict.fromkeys(operation.names, "x")})
    body = sample(operation.request) if operation.request and operation.method != "GET" else None
    return http.request(operation.method, f"/api/v1{path}", json=body)


def addresses_of_pages(api: Api) -> list[str]:
    return [path for method, path in addresses(api.app) if method == "GET" and not NO_PAGES.match(path)]


def named(paths: list[str], filled: Filled) -> list[str]:
    """Those of one thing, with the name of one that there is."""
    compared = f"?other={filled.names['batches']}"
    queries = {"children": "?call=1", "sent": "?step=1", "earlier": "?before=x.1", "compare": compared}
    kinds = {path: kind for path in paths for start, kind in NAMED.items() if path.startswith(f"{start}{NOBODY}")}
    return [
        path.replace(NOBODY, filled.names[kind]) + queries.get(path.rpartition("/")[2], "")
        for path, kind in kinds.items()
    ]
