"""The tools of the fleet's MCP server (S-124), called by the official client over HTTP and over stdio.

Most tools are derived from declared operations, which are tested themselves: here are those of organizations, agents
and tasks, one of each other kind, and the hand-written ones.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from control_plane.contract.declarations import orders, tasks
from shared.events import Delivered
from tests.support.fleet import Api, PlayedDrone
from tests.support.fleet_tools import WAYS, Connected, reached


def about_organizations(client: Connected) -> None:
    """The tools of S-124 for the fleet and its organizations."""
    assert client.get("create_organization", name="payments", description="Money.")["acronym"] == "PAYM"
    assert [each["name"] for each in client.get("list_organizations")] == ["default", "payments"]
    assert client.get("update_organization", name="payments", concurrency=2)["concurrency"] == 2
    assert client.get("get_organization", name="payments")["description"] == "Money."
    assert client.get("get_status", organization="payments")["organization"] == "payments"
    assert client.get("delete_organization", name="payments")["name"] == "payments"
    assert [each["name"] for each in client.get("list_organizations")] == ["default"]


def about_agents(client: Connected) -> None:
    """A lead, and a helper that comes and goes."""
    client.get("create_agent", name="lead", instructions="You lead.", project="demo")
    client.get("create_agent", name="helper", instructions="You help.", boss="lead")
    assert client.get("get_agent", name="helper")["instructions"] == "You help."
    assert client.get("update_agent", name="helper", boss=None)["boss"] is None
    assert client.get("remove_agent", name="helper")["is_removed"]
    assert [each["name"] for each in client.get("list_agents")] == ["lead"]
    assert len(client.get("list_agents", include_removed=True)) == 2


def about_tasks(api: Api, client: Connected) -> None:
    """A task from its beginning to done, and on to its end; the documents are those of the terminal."""
    task = client.get("create_task", title="Mend it", assignee="user")["id"]
    assert client.get("add_comment", task_id=task, text="Only a note.")["author"] == "user"
    assert client.get("complete_task", task_id=task)["status"] == "done"
    assert client.get("reopen_task", task_id=task)["status"] == "open"
    assert client.get("assign_task", task_id=task, assignee="lead")["assignee"] == "lead"
    assert client.get("preempt_task", task_id=task)["assignee"] == "user"
    assert client.get("list_runs", task_id=task) == []
    assert client.get("complete_task", task_id=task)["status"] == "done"
    assert client.get("retry_task", task_id=task, assignee="lead")["assignee"] == "lead"
    assert client.get("cancel_task", task_id=task, reason="Not needed.")["status"] == "canceled"
    assert [each["id"] for each in client.get("list_tasks", status="canceled")] == [task]
    assert client.get("get_task", task_id=task)["timeline"][0]["comment"]["text"] == "Only a note."
    assert client.get("get_task", task_id=task) == api.client.show_task(task)
    assert client.get("list_tasks") == api.client.call(tasks.LIST)


def about_orders(api: Api, mila: PlayedDrone, client: Connected) -> None:
    """An order that is steered and approved while it runs; its long texts are cut and its patch comes in parts."""
    wanted = {"prompt": "Mend it", "project": "demo", "idempotency_key": "one"}
    order = client.get("submit_order", **wanted)["id"]
    assert client.get("submit_order", **wanted)["id"] == order
    run = mila.take({"id": order})
    assert client.get("say_to_order", order_id=order, text="Look at the tests.")["status"] == "running"
    run.asks("c1", "shell", "Deletes files")
    assert client.get("approve_call", order_id=order, call="c1")["id"] == order
    run.says("x" * 1_000)
    patch = b"diff --git a/calc.py b/calc.py\n"
    run.step(Delivered(patch_sha256=api.store_blob(run, patch), patch_bytes=len(patch)))
    run.ends()
    assert client.get("get_order", order_id=order, full=True) == api.client.call(orders.SHOW, order_id=order)
    short, full = (client.get("get_run", run_id=run.id, full=each)["steps"] for each in (False, True))
    assert ("x" * 1_000 in str(short), "x" * 1_000 in str(full)) == (False, True)
    part = client.get("get_patch", order_id=order, limit=4)
    assert (part["patch"], part["next_offset"], part["characters"]) == ("diff", 4, len(patch))
    assert client.get("get_patch", order_id=order, offset=4)["next_offset"] is None
    assert client.refused("get_order", order_id="nothing")["status"] == 404


def about_lists(client: Connected) -> None:
    """Every tool that reads without being told of what answers, and refuses what it does not know."""
    readers = [tool for tool in client.list() if tool.annotations and tool.annotations.read_only_hint]
    for tool in (tool.name for tool in readers if not tool.input_schema.get("required")):
        client.get(tool)
        assert client.refused(tool, nonsense=1)["code"] == "E-REQUEST", tool


@pytest.mark.parametrize("way", WAYS)
def test_every_kind_of_tool_does_what_it_says(api: Api, way: str, tmp_path: Path) -> None:
    api.add_work()
    mila = api.add_drone("mila")
    with reached(way, api.url, api.token, tmp_path) as client:
        about_agents(client)
        about_tasks(api, client)
        about_orders(api, mila, client)
        if way == "http":
            about_organizations(client)
            about_lists(client)
