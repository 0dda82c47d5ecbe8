"""The tools of the fleet's MCP server (S-124), called by the official client.

Most tools are derived from declared operations, which are tested themselves, and so are their refusals: here is one of
each kind, and the hand-written ones. test_mcp_server_doors.py has what differs over stdio.
"""

from __future__ import annotations

from control_plane.contract.declarations import orders, tasks
from shared.events import Delivered
from tests.support.fleet import Api
from tests.support.fleet_tools import Connected, over_http


def about_organizations_and_agents(client: Connected) -> None:
    """An organization and a helper that come and go, and a lead that stays."""
    assert client.get("create_organization", name="payments", description="Money.")["acronym"] == "PAYM"
    assert client.get("update_organization", name="payments", concurrency=2)["concurrency"] == 2
    assert client.get("get_organization", name="payments")["description"] == "Money."
    assert client.get("get_status", organization="payments")["organization"] == "payments"
    assert client.get("delete_organization", name="payments")["name"] == "payments"
    assert [each["name"] for each in client.get("list_organizations")] == ["default"]
    client.get("create_agent", name="lead", instructions="You lead.", project="demo")
    client.get("create_agent", name="helper", instructions="You help.", boss="lead")
    assert client.get("update_agent", name="helper", boss=None)["boss"] is None
    assert client.get("remove_agent", name="helper")["is_removed"]
    assert [each["name"] for each in client.get("list_agents")] == ["lead"]
    assert len(client.get("list_agents", include_removed=True)) == 2


def about_tasks(api: Api, client: Connected) -> None:
    """A task from its beginning to its end; the documents are those of the terminal."""
    task = client.get("create_task", title="Mend it", assignee="user")["id"]
    assert client.get("add_comment", task_id=task, text="Only a note.")["author"] == "user"
    assert client.get("complete_task", task_id=task)["status"] == "done"
    assert client.get("retry_task", task_id=task, assignee="lead")["assignee"] == "lead"
    assert client.get("cancel_task", task_id=task, reason="Not needed.")["status"] == "canceled"
    assert client.get("get_task", task_id=task)["timeline"][0]["comment"]["text"] == "Only a note."
    assert client.get("get_task", task_id=task) == api.client.show_task(task)
    assert client.get("list_tasks") == api.client.call(tasks.LIST)


def about_orders(api: Api, client: Connected) -> None:
    """An order that is steered and approved while it runs; its long texts are cut and its patch comes in parts."""
    order = client.get("submit_order", prompt="Mend it", project="demo")["id"]
    run = api.add_drone("mila").take({"id": order})
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


def test_every_kind_of_tool_does_what_it_says(api: Api) -> None:
    api.add_work()
    with over_http(api.url, api.token) as client:
        about_organizations_and_agents(client)
        about_tasks(api, client)
        about_orders(api, client)
        # Every tool that reads without being told of what answers.
        readers = [tool for tool in client.list() if tool.annotations and tool.annotations.read_only_hint]
        for name in (tool.name for tool in readers if not tool.input_schema.get("required")):
            client.get(name)
