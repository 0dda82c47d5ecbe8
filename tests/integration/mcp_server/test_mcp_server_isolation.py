"""What a token may see and do by the fleet's MCP server: its own organization, and what its role allows (S-004)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from control_plane.declarations import agents, tasks
from control_plane.declarations.agents import AgentRequest
from control_plane.declarations.task_documents import TaskRequest
from control_plane.declarations.tokens import ApiTokenRequest
from control_plane.lookups.organizations import system_caller
from control_plane.operations.access import tokens
from tests.support.fleet import Api
from tests.support.fleet_tools import Connected, over_http
from tests.support.organizations import add_organization

Doc = dict[str, Any]
BY_ID = {
    "get_agent": "name",
    "update_agent": "name",
    "remove_agent": "name",
    "get_task": "task_id",
    "add_comment": "task_id",
    "preempt_task": "task_id",
    "complete_task": "task_id",
    "reopen_task": "task_id",
    "retry_task": "task_id",
    "cancel_task": "task_id",
    "assign_task": "task_id",
    "list_runs": "task_id",
    "get_run": "run_id",
    "get_order": "order_id",
    "cancel_order": "order_id",
    "move_order": "order_id",
    "set_order_priority": "order_id",
    "retry_order": "order_id",
    "resume_order": "order_id",
    "open_pull_request": "order_id",
    "open_task_pull_request": "task_id",
    "say_to_order": "order_id",
    "take_back_messages": "order_id",
    "answer_order": "order_id",
    "get_plan": "order_id",
    "edit_plan": "order_id",
    "approve_plan": "order_id",
    "send_back_plan": "order_id",
    "approve_call": "order_id",
    "deny_call": "order_id",
    "get_patch": "order_id",
    "add_review_comment": "order_id",
    "list_review": "order_id",
    "remove_review_comment": "order_id",
    "send_review": "order_id",
    "drain_drone": "drone",
    "resume_drone": "drone",
    "get_session": "session_id",
    "switch_session": "session_id",
    "fork_session": "session_id",
    "compact_session": "session_id",
}
"""Each tool that names one thing by its id, with the argument, or the kind where that is called `name` too."""
MORE: dict[str, Doc] = {
    "update_agent": {"concurrency": 1},
    "add_comment": {"text": "Hello."},
    "assign_task": {"assignee": "user"},
    "say_to_order": {"text": "Hello."},
    "answer_order": {"text": "Hello."},
    "edit_plan": {"text": "# Mend it\n\n1. [x] Test it"},
    "send_back_plan": {"text": "Hello."},
    "set_order_priority": {"priority": 1},
    "add_review_comment": {"text": "Hello.", "path": "calc.py"},
    "remove_review_comment": {"comment_id": "nothing"},
    "switch_session": {"entry": "root"},
}
LISTS = ("list_agents", "list_tasks", "list_orders", "list_drones", "list_sessions", "list_projects", "list_providers")
LISTS += ("list_inbox", "list_memory", "list_profiles", "list_schedules", "list_triggers", "list_webhooks")
LISTS += ("list_code_hosts",)


@pytest.fixture
def theirs(api: Api) -> Doc:
    """What the organization `default` has: the id of one thing of each kind."""
    api.add_work()
    drone = api.add_drone("mila")
    order = api.submit("Mend it")
    run = drone.take(order)
    api.client.call(agents.ADD, AgentRequest(name="lead", instructions="You lead."))
    task = api.client.call(tasks.ADD, TaskRequest(title="Mend it", assignee="user"))
    ids = {"order_id": order["id"], "session_id": order["session"], "run_id": run.id}
    return {**ids, "task_id": task["id"], "name": "lead", "drone": "mila"}


@pytest.fixture
def ours(api: Api) -> str:
    """An admin's token of another organization, `payments`."""
    caller = add_organization(api.core, system_caller(api.core))
    return str(tokens.create_api_token(api.core, caller, ApiTokenRequest(role="admin")).token)


def wish(tool: str, ids: Doc) -> Doc:
    """Arguments for a tool that names one of these things."""
    kind = BY_ID[tool]
    return {"name" if kind == "drone" else kind: ids[kind], **MORE.get(tool, {})}


def refusals(client: Connected, ids: Doc) -> dict[str, str]:
    """What each tool says to these ids, with the ids taken out."""
    told = {tool: client.refused(tool, **wish(tool, ids)) for tool in BY_ID}
    return {tool: json.dumps(error).replace(ids[BY_ID[tool]], "ID") for tool, error in told.items()}


def test_things_of_another_organization_are_as_if_they_did_not_exist(api: Api, theirs: Doc, ours: str) -> None:
    nothing = {kind: "NONE-0001" if kind == "task_id" else "a1b2c3d4e5f6" for kind in theirs}
    nothing |= {"name": "nobody", "drone": "nobody"}
    with over_http(api.url, ours) as client:
        assert refusals(client, theirs) == refusals(client, nothing)
        assert {tool: client.get(tool) for tool in LISTS} == {tool: [] for tool in LISTS}
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


def test_a_viewer_reads_and_changes_nothing(api: Api, theirs: Doc) -> None:
    wishes = {
        **{tool: wish(tool, theirs) for tool in BY_ID},
        "create_agent": {"name": "other", "instructions": "You help."},
        "create_task": {"title": "Mend it"},
        "submit_order": {"prompt": "x", "project": "demo"},
        "submit_graph": {"project": "demo", "orders": [{"name": "a", "prompt": "x"}]},
        "cancel_graph": {"graph_id": "a1b2c3d4e5f6"},
        "submit_race": {"prompt": "x", "project": "demo", "count": 2},
        "take_order": {"race_id": "a1b2c3d4e5f6", "order": "A"},
        "cancel_race": {"race_id": "a1b2c3d4e5f6"},
        "submit_batch": {"name": "b", "rows": [{"id": "a", "project": "demo", "prompt": "x"}]},
        "cancel_batch": {"batch_id": "a1b2c3d4e5f6"},
        "retry_batch": {"batch_id": "a1b2c3d4e5f6"},
        "create_session": {"project": "demo"},
        "run_schedule": {"name": "nightly"},
        "sync_code_host": {"name": "shop"},
        "test_project": {"slug": "demo"},
        "test_provider": {"name": "scripted"},
        "create_organization": {"name": "other"},
        "update_organization": {"name": "default", "concurrency": 1},
        "delete_organization": {"name": "default"},
    }
    with over_http(api.url, api.token_for("viewer")) as client:
        changing = [tool.name for tool in client.list() if not (tool.annotations and tool.annotations.read_only_hint)]
        told = {tool: client.refused(tool, **wishes[tool])["code"] for tool in changing}
        assert client.get("get_task", task_id=theirs["task_id"])["status"] == "open"
    assert told == dict.fromkeys(changing, "E-ROLE")
