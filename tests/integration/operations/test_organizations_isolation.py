"""Nothing of one organization can be seen or reached from another (S-004): every operation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from control_plane.contract.declarations.operation import Operation, every_operation
from control_plane.contract.declarations.tokens import ApiTokenRequest
from control_plane.operations.access import tokens
from tests.support.doors import sample
from tests.support.filled import AUTOMATION, TASK, Filled, fill, resource_of, untouched
from tests.support.fleet import Api
from tests.support.made import make_project
from tests.support.organizations import add_organization
from tests.support.team_rows import add_agent

Doc = dict[str, Any]
MARK = "zebra"
"""Is in every name and text of the organization that must not be seen."""
OF_THE_INSTALLATION = ("/api/v1/audit/head", "/api/v1/audit/verification", "/api/v1/retention")
"""For administrators of all organizations only."""
SETS_OWN = {
    ("PUT", "/api/v1/prices/{model}"),
    ("PUT", "/api/v1/modes/{name}"),
    *((method, "/api/v1/drafts/{subject}") for method in ("GET", "PUT", "DELETE")),
    ("DELETE", "/api/v1/attention/browsers/{browser}"),
}
"""A model is nobody's: its price in the own organization is set. Drafts and browsers are the caller's own."""
OPERATIONS = {(each.method, f"/api/v1{each.path}"): each for each in every_operation()}
BODIES: dict[str, Doc] = {
    **{f"{kind}Edit": {"enabled": False} for kind in ("Schedule", "Trigger", "Webhook", "CodeHost")},
    **{f"{kind}Edit": {"name": "x"} for kind in ("Project", "Session")},
    **{f"{kind}Request": AUTOMATION[f"{kind.lower()}s"] for kind in ("Schedule", "Trigger", "Webhook")},
    "AgentRequest": {"name": "n", "instructions": "x"},
    "AgentEdit": {"max_iterations": 3},
    "UserEdit": {"role": "viewer"},
    "ProviderEdit": {"model": "openai/x"},
    "OrganizationEdit": {"concurrency": 3},
    "EditPlanRequest": {"text": "# T\n\n1. x"},
    "ProfileEdit": {"mode": "plan"},
}
"""What a request needs besides its required fields, to be acceptable as such."""


@dataclass
class Outside:
    """Somebody with every right in an organization of their own, and none elsewhere."""

    http: httpx.Client
    hidden: Filled


@pytest.fixture
def outside(api: Api) -> Iterator[Outside]:
    core = api.core
    admin = tokens.authenticate(core, api.token)
    own = add_organization(core, admin, "payments")
    make_project(core, own)
    add_agent(core, own, "lead")
    hidden = fill(api, add_organization(core, admin, f"{MARK}_team", description=MARK), MARK)
    bearer = str(tokens.create_api_token(core, own, ApiTokenRequest(role="admin", name="pay")).token)
    with api.http(bearer) as http:
        yield Outside(http, hidden)


def body_for(operation: Operation) -> Doc | None:
    """A body that is acceptable as such, so that the answer is about what the address names."""
    if operation.request is None or operation.takes_filters:
        return None
    return {**sample(operation.request), **BODIES.get(operation.request.__name__, {})}


def ask(http: httpx.Client, method: str, address: str, body: Doc | None, *named: str) -> tuple[int, str]:
    """The answer with what was named taken out of it."""
    answer = http.request(method, address, json=body)
    told = answer.text
    for each in named:
        told = told.replace(each, "IT")
    return answer.status_code, told


REFERENCES: list[tuple[str, str, Doc, str, str]] = [
    ("POST", "/orders", {"prompt": "x", "project": "web"}, "project", "projects"),
    ("POST", "/orders", {"prompt": "x", "project": "web"}, "drone", "drones"),
    ("POST", "/orders", {"prompt": "x", "project": "web"}, "session", "sessions"),
    ("POST", "/sessions", {"project": "web"}, "project", "projects"),
    ("POST", "/tasks", TASK, "project", "projects"),
    ("POST", "/tasks", TASK, "assignee", "agents"),
    ("POST", "/organizations/payments/agents", BODIES["AgentRequest"], "project", "projects"),
    ("POST", "/organizations/payments/agents", BODIES["AgentRequest"], "boss", "agents"),
    ("POST", "/organizations/payments/agents", BODIES["AgentRequest"], "provider", "providers"),
    ("PATCH", "/organizations/payments", {}, "project", "projects"),
    ("POST", "/code-hosts", {"name": "n", "kind": "github"}, "project", "projects"),
    ("POST", "/profiles", {"name": "x"}, "provider", "providers"),
    ("POST", "/profiles", {"name": "x"}, "reviewer", "providers"),
    ("POST", "/memory", {"text": "x"}, "project", "projects"),
    ("POST", "/schedules", BODIES["ScheduleRequest"], "task.project", "projects"),
    ("POST", "/schedules", BODIES["ScheduleRequest"], "task.assignee", "agents"),
    ("POST", "/triggers", BODIES["TriggerRequest"], "task.project", "projects"),
    *(("GET", path, {}, "project", "projects") for path in ("/orders", "/sessions", "/tasks", "/memory")),
    ("GET", "/orders", {}, "drone", "drones"),
    ("GET", "/orders", {}, "org", "organizations"),
    ("GET", "/tasks", {}, "assignee", "agents"),
]
"""Fields of requests, and filters of lists, that name something."""


def refer(http: httpx.Client, reference: tuple[str, str, Doc, str, str], value: str) -> tuple[int, str]:
    """The answer to a request that names this, with the name taken out of it."""
    method, path, body, field, _ = reference
    if method == "GET":
        return ask(http, method, f"/api/v1{path}?{field}={value}", None, value)
    within, _, name = field.rpartition(".")
    changed = {within: {**TASK, name: value}} if within else {name: value}
    return ask(http, method, f"/api/v1{path}", {**body, **changed}, value)


def test_what_another_organization_has_is_refused_in_the_words_for_what_does_not_exist(
    api: Api, outside: Outside
) -> None:
    """In an address, in a request, and in a filter."""
    differing, names, asked = {}, outside.hidden.names, 0
    for (method, path), operation in OPERATIONS.items():
        if "{" not in path or (method, path) in SETS_OWN:
            continue
        asked += 1
        resource = resource_of(path)
        hidden = names["organizations" if "{organization}" in path else resource]
        answers = []
        for value, other in (
            (names.get(resource, hidden), hidden),
            ("NONE-0001" if resource == "tasks" else "nothing", "nobody"),
        ):
            address = path.replace("{organization}", other).replace("{seq}", "1").replace("{kind}", "project")
            address = re.sub(r"\{\w+\}", value, address)
            answers.append(ask(outside.http, method, address, body_for(operation), value, other))
        there, nothing = answers
        refused = {403, 404} if resource == "organizations" else {404}
        if there != nothing or there[0] not in refused or MARK in there[1]:
            differing[method, path] = there, nothing
    for reference in REFERENCES:
        there, nothing = (refer(outside.http, reference, each) for each in (names[reference[-1]], "nothing"))
        if there != nothing or there[0] != 404:
            differing[reference[0], f"{reference[1]} {reference[3]}"] = there, nothing
    assert differing == {}
    assert asked >= 55
    assert untouched(api, outside.hidden.caller)


def test_no_list_and_no_overview_shows_anything_of_another_organization(api: Api, outside: Outside) -> None:
    """Nor does a browser, which stays in the organization of its token; who may act everywhere reaches all with org."""
    lists = [path for method, path in OPERATIONS if method == "GET" and "{" not in path]
    answers = {path: outside.http.get(path) for path in lists}
    expected = dict.fromkeys(answers, 200) | dict.fromkeys(OF_THE_INSTALLATION, 403)
    # The token belongs to no user.
    expected["/api/v1/attention"] = 422
    assert {path: answer.status_code for path, answer in answers.items()} == expected
    assert [path for path, answer in answers.items() if MARK in answer.text] == []
    assert answers["/api/v1/orders"].json() == answers["/api/v1/tasks"].json() == []
    assert len(answers) >= 15

    hidden = {"org": f"{MARK}_team"}
    with api.browser(link=outside.http.post("/api/v1/login-links").json()["secret"]) as browser:
        page = browser.get("/", headers={"Accept": "text/html"})
        refused = browser.get("/api/v1/orders", params=hidden)
        assert browser.get("/api/v1/orders").json() == []
    assert (page.status_code, MARK in page.text, refused.status_code) == (200, False, 404)

    with api.http() as http, api.browser() as browser:
        listed = [each.get("/api/v1/orders", params=hidden).json() for each in (http, browser)]
        shown = http.get(f"/api/v1/orders/{outside.hidden.names['orders']}", params=hidden)
        agents = http.get(f"/api/v1/organizations/{MARK}_team/agents", params=hidden)
    assert [order["id"] for order in listed[0]] == [order["id"] for order in listed[1]]
    assert [order["organization"] for order in listed[0]] == [f"{MARK}_team"] * 2
    assert (shown.status_code, agents.status_code) == (200, 200)
