"""Every page for a viewer, to whom it offers no action, and for another organization, to which it shows nothing."""

from __future__ import annotations

import re

import httpx

from control_plane.lookups.organizations import system_caller
from tests.support.filled import Filled, fill
from tests.support.fleet import Api
from tests.support.organizations import add_organization
from tests.support.routes import addresses

MARK = "mark"
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
NO_PAGES = re.compile("/(actions|answer|api|favicon|flower|hooks|live|login|mcp|metrics|openapi)")
NOT_FOR_VIEWERS = {"/orders/new", "/settings/audit", "/settings/health"}
OWN = {"/settings/access", "/settings/attention"}
"""Where everyone changes what is their own: log-ins of their browsers, and how they are told."""
ACTS = re.compile(r'(?:action|href)="/actions/|<textarea')
NOBODY = "0" * 12


def pages(api: Api) -> list[str]:
    """The address of every page."""
    return [path for method, path in addresses(api.app) if method == "GET" and not NO_PAGES.match(path)]


def named(paths: list[str], filled: Filled) -> list[str]:
    """Those of one thing, with the name of one that there is."""
    queries = {"children": "?call=1", "earlier": "?before=x.1", "compare": f"?other={filled.names['batches']}"}
    kinds = {path: kind for path in paths for start, kind in NAMED.items() if path.startswith(f"{start}{NOBODY}")}
    return [
        path.replace(NOBODY, filled.names[kind]) + queries.get(path.rpartition("/")[2], "")
        for path, kind in kinds.items()
    ]


def read(browser: httpx.Client, paths: list[str]) -> dict[str, httpx.Response]:
    return {path: browser.get(path, headers={"Accept": "text/html"}, follow_redirects=True) for path in paths}


def test_a_viewer_reads_every_page_and_is_offered_no_action(api: Api) -> None:
    filled = fill(api, system_caller(api.core), MARK)
    paths = pages(api)
    with api.browser(token=api.token_for("viewer")) as viewer:
        answers = read(viewer, [*(path for path in paths if NOBODY not in path), *named(paths, filled)])
    assert {path for path, each in answers.items() if each.status_code == 403} == NOT_FOR_VIEWERS
    refused = {path for path, each in answers.items() if each.status_code not in {200, 403}}
    # There is no plan, and the other one asks for a join token.
    assert {path.rpartition("/")[2] for path in refused} == {"plan", "joined"}
    assert {path for path, each in answers.items() if ACTS.search(each.text)} <= OWN
    assert sum(MARK in each.text for each in answers.values()) > 20


def test_no_page_shows_anything_of_another_organization(api: Api) -> None:
    filled = fill(api, system_caller(api.core), MARK)
    add_organization(api.core, system_caller(api.core), "payments")
    paths = pages(api)
    with api.browser() as browser:
        browser.post("/organization", data={"organization": "payments"})
        found = read(browser, named(paths, filled))
        others = read(browser, [path for path in paths if NOBODY not in path])
    assert (len(found) > 15, {path for path, each in found.items() if each.status_code != 404}) == (True, set())
    assert {path for path, each in others.items() if f"{MARK}-" in each.text} == set()
