"""Nothing of one organization can be seen or reached from another (S-004): every address of the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from control_plane.declarations.tokens import ApiTokenRequest
from control_plane.operations.access import tokens
from tests.support.filled import AUTOMATION, TASK, Filled, fill, inside, resource_of, untouched
from tests.support.fleet import Api
from tests.support.made import make_project
from tests.support.organizations import add_organization
from tests.support.team_rows import add_agent

Doc = dict[str, Any]
MARK = "zebra"
"""Is in every name and text of the organization that must not be seen."""
OF_THE_INSTALLATION = ("/api/v1/audit/head", "/api/v1/audit/verification", "/api/v1/retention")
"""For administrators of all organizations only."""
NOBODY = "0" * 12
SETS_OWN = {
    ("put", "/api/v1/prices/{model}"),
    ("put", "/api/v1/modes/{name}"),
    *((method, "/api/v1/drafts/{subject}") for method in ("get", "put", "delete")),
    ("delete", "/api/v1/attention/browsers/{browser}"),
}
"""A model is nobody's: its price in the own organization is set. A draft is the caller's own,
whatever its subject, and so is a browser."""
OF_DRONES = ("/api/v1/runs/", "/api/v1/registrations")
OPEN = {"/api/v1/health", "/hooks/{trigger_id}", "/hooks/hosts/{link_id}"}
BODIES: dict[str, Doc] = {
    "ScheduleRequest": AUTOMATION["schedules"],
    "TakeRequest": {"order": "A"},
    "RowsRequest": {"rows": [{"id": "a", "project": "x", "prompt": "x"}]},
    "TriggerRequest": AUTOMATION["triggers"],
    "WebhookRequest": AUTOMATION["webhooks"],
    "ScheduleEdit": {"enabled": False},
    "TriggerEdit": {"enabled": False},
    "WebhookEdit": {"enabled": False},
    "CodeHostEdit": {"enabled": False},
    "HostUserRequest": {"user": "x"},
    "AgentRequest": {"name": "n", "instructions": "x"},
    "AgentEdit": {"max_iterations": 3},
    "UserEdit": {"role": "viewer"},
    "ProviderEdit": {"model": "openai/x"},
    "BudgetRequest": {"usd": 1, "per": "day"},
    "ProjectEdit": {"name": "x"},
    "SessionEdit": {"name": "x"},
    "SwitchRequest": {"entry": NOBODY},
    "LabelRequest": {"entry": NOBODY, "text": "x"},
    "OrganizationEdit": {"concurrency": 3},
    "SayRequest": {"text": "x"},
    "AnswerRequest": {"text": "x"},
    "EditPlanRequest": {"text": "# T\n\n1. x"},
    "SendBackPlanRequest": {"text": "x"},
    "PriorityRequest": {"priority": 1},
    "CommentRequest": {"text": "x"},
    "ReviewCommentRequest": {"text": "x", "path": "x"},
    "ReviewCommentEdit": {"text": "x"},
    "AssignRequest": {"assignee": "user"},
    "MemoryRequest": {"text": "x"},
    "ProfileEdit": {"mode": "plan"},
    "MemoryEdit": {"text": "x"},
}


@dataclass
class Outside:
    """Somebody with every right in an organization of their own, and none elsewhere."""

    http: httpx.Client
    hidden: Filled
    document: Doc


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
        yield Outside(http, hidden, http.get("/openapi.json").json())


def routes(document: Doc) -> Iterator[tuple[str, str, Doc]]:
    """Method, path and operation of each address for people."""
    for path, item in document["paths"].items():
        if path not in OPEN and not path.startswith(OF_DRONES):
            yield from ((method, path, operation) for method, operation in item.items())


def missing(resource: str) -> str:
    """What could be the name or id of such a thing, and is none."""
    return "NONE-0001" if resource == "tasks" else "nothing"


def body_for(operation: Doc) -> Doc | None:
    """A body that is acceptable as such, so that the answer is about what the address names."""
    content = operation.get("requestBody", {}).get("content", {})
    text = str(content.get("application/json", {}).get("schema", {}))
    named = re.search(r"schemas/(\w+)", text)
    return BODIES.get(named.group(1), {}) if named else None


def ask(  # noqa: PLR0917 - one per part of the request
    http: httpx.Client, method: str, path: str, operation: Doc, value: str, other: str
) -> tuple[int, str]:
    """The answer with what was asked for taken out of it."""
    address = re.sub(r"\{organization\}", other, path)
    address = re.sub(r"\{seq\}", "1", address)
    address = re.sub(r"\{kind\}", "project", address)
    address = re.sub(r"\{\w+\}", value, address)
    answer = http.request(method, address, json=body_for(operation))
    told = answer.text
    for each in (value, other):
        told = told.replace(each, "IT")
    return answer.status_code, told


def test_what_another_organization_has_is_refused_in_the_words_for_what_does_not_exist(
    api: Api, outside: Outside
) -> None:
    differing, leaking, asked = {}, {}, 0
    for method, path, operation in routes(outside.document):
        if "{" not in path or (method, path) in SETS_OWN:
            continue
        asked += 1
        resource = resource_of(path)
        value = outside.hidden.names["organizations" if "{organization}" in path else resource]
        own = outside.hidden.names.get(resource, value)
        there = ask(outside.http, method, path, operation, own, value)
        nothing = ask(outside.http, method, path, operation, missing(resource), "nobody")
        if there != nothing or there[0] not in ({403, 404} if resource == "organizations" else {404}):
            differing[method, path] = there, nothing
        if MARK in there[1]:
            leaking[method, path] = there
    assert differing == {}
    assert leaking == {}
    assert asked >= 55
    assert untouched(api, outside.hidden.caller)


def test_no_list_and_no_overview_shows_anything_of_another_organization(outside: Outside) -> None:
    answers = {
        path: outside.http.get(path)
        for method, path, _ in routes(outside.document)
        if method == "get" and "{" not in path
    }
    expected = dict.fromkeys(answers, 200) | dict.fromkeys(OF_THE_INSTALLATION, 403)
    # The token belongs to no user.
    expected["/api/v1/attention"] = 422
    assert {path: answer.status_code for path, answer in answers.items()} == expected
    assert [path for path, answer in answers.items() if MARK in answer.text] == []
    assert answers["/api/v1/orders"].json() == answers["/api/v1/tasks"].json() == []
    assert len(answers) >= 15


REFERENCES: list[tuple[str, str, Doc, str, str]] = [
    ("POST", "/orders", {"prompt": "x", "project": "web"}, "project", "projects"),
    ("POST", "/orders", {"prompt": "x", "project": "web"}, "drone", "drones"),
    ("POST", "/orders", {"prompt": "x", "project": "web"}, "session", "sessions"),
    ("POST", "/sessions", {"project": "web"}, "project", "projects"),
    ("POST", "/tasks", TASK, "project", "projects"),
    ("POST", "/tasks", TASK, "assignee", "agents"),
    ("POST", "/organizations/payments/agents", BODIES["AgentRequest"], "project", "projects"),
    ("POST", "/organizations/payments/agents", BODIES["AgentRequest"], "boss", "agents"),
    ("PATCH", "/organizations/payments", {}, "project", "projects"),
    ("POST", "/code-hosts", {"name": "n", "kind": "github"}, "project", "projects"),
    ("POST", "/profiles", {"name": "x"}, "provider", "providers"),
    ("POST", "/profiles", {"name": "x"}, "reviewer", "providers"),
    ("POST", "/memory", {"text": "x"}, "project", "projects"),
    ("POST", "/schedules", {**BODIES["ScheduleRequest"], "task": {**TASK, "project": "IT"}}, "", "projects"),
    ("POST", "/schedules", {**BODIES["ScheduleRequest"], "task": {**TASK, "assignee": "IT"}}, "", "agents"),
    ("POST", "/triggers", {**BODIES["TriggerRequest"], "task": {**TASK, "project": "IT"}}, "", "projects"),
]


def test_nothing_of_another_organization_can_be_named_in_a_request_or_a_filter(outside: Outside) -> None:
    differing = {}
    for method, path, body, name, resource in REFERENCES:
        value = outside.hidden.names[resource]
        there, nothing = (refer(outside.http, method, path, body, name, each) for each in (value, "nothing"))
        if there != nothing or there[0] != 404:
            differing[method, path, name or "task", resource] = there, nothing
    for path, name, resource in FILTERS:
        value = outside.hidden.names[resource]
        there, nothing = (filtered(outside.http, path, name, each) for each in (value, "nothing"))
        if there != nothing or there[0] != 404:
            differing["GET", path, name, resource] = there, nothing
    assert differing == {}


def refer(  # noqa: PLR0917 - one per part of the request
    http: httpx.Client, method: str, path: str, body: Doc, name: str, value: str
) -> tuple[int, str]:
    sent = (
        {**body, name: value}
        if name
        else {**body, "task": {k: value if v == "IT" else v for k, v in body["task"].items()}}
    )
    answer = http.request(method, f"/api/v1{path}", json=sent)
    return answer.status_code, answer.text.replace(value, "IT")


FILTERS = (
    ("/orders", "project", "projects"),
    ("/orders", "drone", "drones"),
    ("/orders", "org", "organizations"),
    ("/sessions", "project", "projects"),
    ("/tasks", "project", "projects"),
    ("/memory", "project", "projects"),
    ("/tasks", "assignee", "agents"),
)


def filtered(http: httpx.Client, path: str, name: str, value: str) -> tuple[int, str]:
    answer = http.get(f"/api/v1{path}", params={name: value})
    return answer.status_code, answer.text.replace(value, "IT")


def test_whoever_may_act_everywhere_reaches_all_of_it_with_org_also_in_a_browser(api: Api, outside: Outside) -> None:
    with inside(api, outside.hidden.caller) as http:
        listed = http.get("/api/v1/orders").json()
        shown = http.get(f"/api/v1/orders/{outside.hidden.names['orders']}")
        agents = http.get(f"/api/v1/organizations/{MARK}_team/agents")
    with api.browser() as browser:
        found = browser.get("/api/v1/orders", params={"org": f"{MARK}_team"}).json()
    assert [order["id"] for order in found] == [order["id"] for order in listed]
    assert (len(listed), shown.status_code, agents.status_code) == (2, 200, 200)
    assert {order["organization"] for order in listed} == {f"{MARK}_team"}


def test_a_browsers_session_stays_in_the_organization_of_the_token_that_began_it(api: Api, outside: Outside) -> None:
    link = outside.http.post("/api/v1/login-links").json()["secret"]
    with api.browser(link=link) as browser:
        page = browser.get("/", headers={"Accept": "text/html"})
        refused = browser.get("/api/v1/orders", params={"org": f"{MARK}_team"})
        orders = browser.get("/api/v1/orders")
    assert (page.status_code, MARK in page.text, refused.status_code, orders.json()) == (200, False, 404, [])
