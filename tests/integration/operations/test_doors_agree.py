"""What is wrong with a call is told with the same code in the same words, whichever door it came through."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.command_tree import invoke
from tests.support.fleet import Api
from tests.support.fleet_tools import Connected, over_http

Doc = dict[str, Any]
NO_ORDER = "0" * 12


@dataclass(frozen=True)
class Case:
    """One mistake, made at each door that the operation has."""

    code: str
    http: tuple[str, str, Doc | None]
    command: tuple[str, ...] = ()
    tool: str = ""
    arguments: Doc = field(default_factory=dict)


WRONG_FORM = {
    "a wrong type": Case(
        "E-REQUEST",
        ("POST", "/providers", {"name": "p", "model": "m", "context_window": "wide"}),
        ("provider", "add", "p", "--model", "m", "--context-window", "wide"),
    ),
    "a value that is not offered": Case(
        "E-REQUEST",
        ("PATCH", "/providers/p", {"protocol": "morse"}),
        ("provider", "edit", "p", "--protocol", "morse"),
    ),
    "a number that is too small": Case(
        "E-REQUEST",
        ("PATCH", "/projects/demo", {"budget_usd_day": -1}),
        ("project", "edit", "demo", "--budget", "-1/day"),
    ),
    "a missing field": Case("E-REQUEST", ("POST", "/projects", {"slug": "p"}), ("project", "add", "p")),
    "a missing field of a tool": Case(
        "E-REQUEST", ("POST", f"/orders/{NO_ORDER}/say", {}), tool="say_to_order", arguments={"order_id": NO_ORDER}
    ),
    "an unknown field": Case(
        "E-REQUEST",
        ("POST", f"/orders/{NO_ORDER}/say", {"text": "x", "loud": True}),
        tool="say_to_order",
        arguments={"order_id": NO_ORDER, "text": "x", "loud": True},
    ),
    "a wrong filter": Case("E-REQUEST", ("GET", "/orders?limit=0", None), tool="list_orders", arguments={"limit": 0}),
}
NOT_ALLOWED = {
    "a role too low, to set up": Case(
        "E-ROLE",
        ("POST", "/projects", {"slug": "p", "git_url": "https://git.example/p.git"}),
        ("project", "add", "p", "--git-url", "https://git.example/p.git"),
    ),
    "a role too low, to steer": Case(
        "E-ROLE",
        ("POST", f"/orders/{NO_ORDER}/cancel", None),
        ("cancel", NO_ORDER),
        "cancel_order",
        {"order_id": NO_ORDER},
    ),
    "another organization": Case(
        "E-ORGANIZATION-404",
        ("GET", "/projects?org=payments", None),
        ("project", "ls", "--org", "payments"),
        "list_projects",
        {"organization": "payments"},
    ),
}


def told(api: Api, token: str, case: Case, tools: Connected) -> Iterator[tuple[str, str]]:
    """Code and sentence of each door's refusal."""
    method, path, body = case.http
    with api.http(token) as http:
        problem = http.request(method, f"/api/v1{path}", json=body).json()
    yield problem["code"], problem["detail"]
    if case.command:
        environment = {"FLEET_URL": api.url, "FLEET_API_TOKEN": token}
        said = json.loads(invoke("fleet", *case.command, "--json", env=environment).stderr)
        yield said["code"], said["what"]
    if case.tool:
        refused = tools.refused(case.tool, **case.arguments)
        yield refused["code"], refused["what"]


@pytest.mark.parametrize("case", WRONG_FORM.values(), ids=WRONG_FORM)
def test_a_wrong_form_is_told_alike_at_each_door(api: Api, case: Case) -> None:
    with over_http(api.url, api.token) as tools:
        answers = list(told(api, api.token, case, tools))
    assert len(answers) == 2
    assert {code for code, _ in answers} == {case.code}
    assert len(set(answers)) == 1


@pytest.mark.parametrize("case", NOT_ALLOWED.values(), ids=NOT_ALLOWED)
def test_what_a_viewer_may_not_is_told_alike_at_each_door(api: Api, case: Case) -> None:
    viewer = api.token_for("viewer")
    with over_http(api.url, viewer) as tools:
        answers = list(told(api, viewer, case, tools))
    assert len(answers) == 1 + bool(case.command) + bool(case.tool)
    assert {code for code, _ in answers} == {case.code}
    assert len(set(answers)) == 1
