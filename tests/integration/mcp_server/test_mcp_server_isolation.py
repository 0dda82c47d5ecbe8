"""What a token may see and do by the fleet's MCP server: its own organization, and what its role allows (S-004)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from control_plane.contract.declarations import agents, tasks
from control_plane.contract.declarations.agents import AgentRequest
from control_plane.contract.declarations.task_documents import TaskRequest
from control_plane.contract.declarations.tokens import ApiTokenRequest
from control_plane.core.lookups.organizations import system_caller
from control_plane.operations.access import tokens
from tests.support.fleet import Api
from tests.support.fleet_tools import Connected, over_http
from tests.support.organizations import add_organization

Doc = dict[str, Any]
VALUES: Doc = {
    "text": "# Mend it\n\n1. [x] Test",
    "priority": 1,
    "assignee": "user",
    "drone": "mila",
    "path": "a.py",
}
"""What tools need beside an id; any other text is `root`."""


@pytest.fixture
def theirs(api: Api) -> Doc:
    """What the organization `default` has: the id of one thing of each kind."""
    api.add_work()
    drone = api.add_drone("mila")
    order = api.submit("Mend it")
    run = drone.take(order)
    api.client.call(agents.ADD, AgentRequest(name="lead", instructions="You lead."))
    task = api.client.call(tasks.ADD, TaskRequest(title="Mend it", assignee="user"))
    return {"order_id": order["id"], "session_id": order["session"], "run_id": run.id, "task_id": task["id"]}


@pytest.fixture
def ours(api: Api) -> str:
    """An admin's token of another organization, `payments`."""
    caller = add_organization(api.core, system_caller(api.core))
    return str(tokens.create_api_token(api.core, caller, ApiTokenRequest(role="admin")).token)


def wishes(client: Connected, ids: Doc, agent: str, drone: str) -> Iterator[tuple[str, Doc]]:
    """Each tool that names one of these things, with its arguments."""
    for tool in client.list():
        required = tool.input_schema.get("required", [])
        if set(required) & set(ids):
            yield tool.name, {name: ids.get(name, VALUES.get(name, "root")) for name in required}
    yield from ((name, {"name": agent}) for name in ("get_agent", "remove_agent"))
    yield "update_agent", {"name": agent, "concurrency": 1}
    yield from ((name, {"name": drone}) for name in ("drain_drone", "resume_drone"))


def refusals(client: Connected, ids: Doc, agent: str, drone: str) -> dict[str, str]:
    """What each tool says to these names, with the names taken out."""
    told = {tool: client.refused(tool, **wish) for tool, wish in wishes(client, ids, agent, drone)}
    assert {tool: error["status"] for tool, error in told.items()} == dict.fromkeys(told, 404)
    names = re.compile("|".join({*ids.values(), agent, drone}))
    return {tool: names.sub("ID", json.dumps(error)) for tool, error in told.items()}


def test_things_of_another_organization_are_as_if_they_did_not_exist(api: Api, theirs: Doc, ours: str) -> None:
    nothing = {kind: "NONE-0001" if kind == "task_id" else "a1b2c3d4e5f6" for kind in theirs}
    with over_http(api.url, ours) as client:
        told = refusals(client, theirs, "lead", "mila")
        assert told == refusals(client, nothing, "nobody", "nothing")
        assert len(told) > 35
        shared = {"list_organizations", "list_modes", "list_limits", "list_audit_records"}
        lists = [tool for tool in client.list() if tool.name.startswith("list_")]
        free = [tool.name for tool in lists if not tool.input_schema.get("required")]
        assert {tool: found for tool in free if tool not in shared and (found := client.get(tool))} == {}
        assert [each["name"] for each in client.get("list_organizations")] == ["payments"]
        status = client.get("get_status")
    assert (status["organization"], sum(status["tasks"].values()), status["totals"]["runs"]) == ("payments", 0, 0)


def test_another_organization_cannot_be_named_either(api: Api, theirs: Doc, ours: str) -> None:
    with over_http(api.url, ours) as client:
        told = [client.refused("list_tasks", organization=name) for name in ("default", "nowhere")]
        made = client.refused("create_organization", name="mine")
        shown = [client.refused("get_organization", name=name) for name in ("default", "nowhere")]
    with over_http(api.url, ours, org="default") as client:
        by_address = client.refused("list_tasks")
    assert (made["code"], made["status"]) == ("E-EVERYWHERE", 403)
    assert {each["status"] for each in [*told, *shown, by_address]} == {404}
    assert json.dumps(told[0]).replace("default", "nowhere") == json.dumps(told[1])
    assert json.dumps(shown[0]).replace("default", "nowhere") == json.dumps(shown[1])


def test_a_token_that_may_act_everywhere_chooses_by_argument_or_by_address(api: Api, ours: str) -> None:
    with over_http(api.url, api.token, org="payments") as client:
        assert client.get("get_status")["organization"] == "payments"
        assert client.get("get_status", organization="default")["organization"] == "default"
        assert client.get("create_agent", name="lead", instructions="You lead.")["organization"] == "payments"
    with over_http(api.url, ours) as client:
        assert [each["name"] for each in client.get("list_agents")] == ["lead"]
