"""Every tool of the fleet's MCP server (S-124), called by the official client over HTTP and over stdio."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from control_plane.db.drones import Drone
from control_plane.declarations import budgets, memory, orders, prices, profiles, schedules, tasks
from control_plane.declarations.budgets import BudgetRequest
from control_plane.declarations.memory import MemoryRequest
from control_plane.declarations.prices import PriceRequest
from control_plane.declarations.profiles import ProfileRequest
from control_plane.declarations.schedules import ScheduleRequest
from control_plane.declarations.task_documents import TaskRequest
from shared.events import ABILITIES, ApprovalStep, Delivered
from shared.names import branch
from shared.plans import AgentPlan, PlanPoint
from shared.states import OrderStatus
from tests.support.fleet import Api, PlayedDrone
from tests.support.fleet_tools import WAYS, Connected, reached

Doc = dict[str, Any]


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


def about_a_plan(api: Api, mila: PlayedDrone, client: Connected) -> None:
    """An order whose plan is sent back, edited and approved."""
    with api.core.database.write() as db:
        db.get_one(Drone, mila.id).beat = {"abilities": list(ABILITIES)}
    order = client.get("submit_order", prompt="Plan it", project="demo", plan_first=True)["id"]
    run = mila.take({"id": order})
    run.presents(AgentPlan(title="Mend it", points=(PlanPoint(text="One"), PlanPoint(text="Two"))))
    assert client.get("get_plan", order_id=order)["text"] == "# Mend it\n\n1. [x] One\n2. [x] Two\n"
    assert "sent the plan back" in client.get("send_back_plan", order_id=order, text="Shorter.")["reason"]
    run.decides_plan(None)
    run.presents(AgentPlan(title="Mend it", points=(PlanPoint(text="Two"),)), 2)
    edited = client.get("edit_plan", order_id=order, text="# Mend it\n\n1. Three\n2. Four\n", revision=0)
    assert [point["text"] for point in edited["points"]] == ["Three", "Four"]
    assert client.refused("approve_plan", order_id=order, points=[9])["code"] == "E-PLAN-POINTS"
    assert "approved the plan" in client.get("approve_plan", order_id=order, points=[2])["reason"]
    assert client.refused("approve_plan", order_id=order)["code"] == "E-PLAN-DECIDED"
    run.ends()


def about_orders(api: Api, mila: PlayedDrone, client: Connected) -> None:
    """An order that is steered while it runs, and another one that is canceled."""
    order = client.get("submit_order", prompt="Mend it", project="demo", idempotency_key="one")
    assert client.get("submit_order", prompt="Mend it", project="demo", idempotency_key="one")["id"] == order["id"]
    run = mila.take(order)
    assert client.get("say_to_order", order_id=order["id"], text="Look at the tests.")["status"] == "running"
    with api.core.database.write() as db:
        db.execute(update(Drone).values(beat={"abilities": ["queue", "teams"]}))
    taken = client.get("take_back_messages", order_id=order["id"])
    assert [(each["text"], each["state"]) for each in taken] == [("Look at the tests.", "taking_back")]
    run.asks("c1", "shell", "Deletes files")
    assert client.get("approve_call", order_id=order["id"], call="c1")["id"] == order["id"]
    run.asks("c2", "shell", "Deletes files")
    assert client.get("deny_call", order_id=order["id"], call="c2", comment="No.")["id"] == order["id"]
    run.step(ApprovalStep(about="question", call_id="c3", tool="ask", why="Which?", choices=("a", "b")))
    assert [item["order"] for item in client.get("list_inbox", kind="question")] == [order["id"]]
    answered = client.get("answer_order", order_id=order["id"], text="2")
    assert "answered the question" in answered["reason"]
    run.says("Mended.")
    about_a_plan(api, mila, client)
    patch = b"diff --git a/calc.py b/calc.py\n"
    run.step(Delivered(patch_sha256=api.store_blob(run, patch), patch_bytes=len(patch)))
    run.ends()
    assert client.get("get_order", order_id=order["id"])["status"] == "succeeded"
    assert client.get("get_order", order_id=order["id"], full=True) == api.client.call(
        orders.SHOW, order_id=order["id"]
    )
    assert client.get("get_patch", order_id=order["id"], limit=4)["next_offset"] == 4
    comment = {"order_id": order["id"], "path": "calc.py", "text": "Add a test."}
    first = client.get("add_review_comment", **comment)["id"]
    assert client.get("remove_review_comment", order_id=order["id"], comment_id=first)["id"] == first
    second = client.get("add_review_comment", **comment)["id"]
    review = client.get("send_review", order_id=order["id"], text="Nearly there.")["id"]
    assert [(each["id"], each["sent_to"]) for each in client.get("list_review", order_id=order["id"])] == [
        (second, review)
    ]
    client.get("cancel_order", order_id=review)
    assert client.get("get_run", run_id=run.id)["steps"][-1]["kind"] == "run_ended"
    other = client.get("submit_order", prompt="And this", project="demo")
    mila.take(other).ends(OrderStatus.FAILED)
    other = client.get("retry_order", order_id=other["id"])
    mila.take(other).ends(OrderStatus.FAILED)
    assert client.get("resume_order", order_id=other["id"], cost_limit=5, say="Try once more.")["id"] == other["id"]
    assert [word["text"] for word in client.get("get_order", order_id=other["id"])["unheard"]] == ["Try once more."]
    other = other["id"]
    assert client.get("set_order_priority", order_id=other, priority=5)["priority"] == 5
    assert client.refused("move_order", order_id=other, drone="nowhere")["status"] == 404
    assert client.get("cancel_order", order_id=other, reason="Not needed.")["id"] == other
    assert {each["id"] for each in client.get("list_orders", project="demo")} >= {order["id"], other}


def about_groups(api: Api, mila: PlayedDrone, client: Connected) -> None:
    """A graph and a race that are canceled, and a race of which one is taken."""
    with api.core.database.write() as db:
        db.get_one(Drone, mila.id).concurrency = 4
        db.get_one(Drone, mila.id).beat = {"abilities": list(ABILITIES)}
    two = [{"name": "one", "prompt": "One"}, {"name": "two", "prompt": "Two", "after": ["one"]}]
    graph = client.get("submit_graph", project="demo", orders=two)["id"]
    assert [order["key"] for order in client.get("get_graph", graph_id=graph)["orders"]] == ["one", "two"]
    assert client.get("cancel_graph", graph_id=graph)["failed"] == 2
    assert [each["id"] for each in client.get("list_graphs")] == [graph]
    about_batches(client)
    wanted = {"prompt": "Mend it", "project": "demo", "count": 2, "pick": "person"}
    race, other = client.get("submit_race", **wanted), client.get("submit_race", **wanted)["race"]["id"]
    for order in race["orders"]:
        run = mila.take(order)
        run.step(Delivered(branch=branch(order["id"]), head_commit="c" * 40, pushed=True))
        run.ends()
    race_id = race["race"]["id"]
    assert client.get("get_race", race_id=race_id)["race"]["status"] == "undecided"
    assert client.get("take_order", race_id=race_id, order="B")["race"]["winner"] == race["orders"][1]["id"]
    assert client.get("cancel_race", race_id=other)["race"]["id"] == other
    assert {each["id"] for each in client.get("list_races")} == {race_id, other}


def about_batches(client: Connected) -> None:
    """A batch that is canceled and retried, and compared with itself."""
    rows = [{"id": each, "project": "demo", "prompt": f"Mend {each}"} for each in ("one", "two")]
    batch = client.get("submit_batch", name="night", rows=rows, parallel=1)["id"]
    assert client.get("submit_batch", name="night", rows=rows)["id"] == batch
    assert client.get("get_batch", batch_id="night")["total"] == 2
    assert [row["id"] for row in client.get("list_batch_rows", batch_id=batch)] == ["one", "two"]
    assert client.get("cancel_batch", batch_id=batch)["canceled"] == 2
    assert client.get("retry_batch", batch_id=batch, which="canceled")["canceled"] == 0
    assert client.get("cancel_batch", batch_id=batch)["id"] == batch
    assert [each["id"] for each in client.get("list_batches")] == [batch]
    assert client.get("get_batch_comparison", batch_id=batch, other_id="night")["p_value"] == 1.0


def about_sessions(mila: PlayedDrone, client: Connected) -> None:
    """A session with a turn; it begins again, is forked at the turn, and is to be compacted."""
    session = client.get("create_session", project="demo", name="Parser")["id"]
    order = client.get("submit_order", prompt="Mend it", project="demo", session=session)
    mila.take(order).ends()
    shown = client.get("get_session", session_id=session)
    assert client.get("switch_session", session_id=session, entry="root")["leaf"] is None
    fork = client.get("fork_session", session_id=session, at=order["id"], name="Aside")
    assert (fork["forked_from"], fork["leaf"], fork["name"]) == (session, shown["leaf"], "Aside")
    assert client.get("compact_session", session_id=session, instructions="Keep the API.")["order"] is None
    assert client.get("get_session", session_id=session)["compact"] == "Keep the API."
    assert {session, fork["id"]} <= {each["id"] for each in client.get("list_sessions")}


def about_automation(api: Api, client: Connected) -> None:
    """A schedule that is run, a task's and an order's pull request, and what there is none of."""
    task = TaskRequest(title="Mend it", project="demo", assignee="lead")
    request = ScheduleRequest(name="nightly", cron="0 3 * * *", task=task)
    api.client.call(schedules.ADD, request)
    assert [each["name"] for each in client.get("list_schedules")] == ["nightly"]
    made = client.get("run_schedule", name="nightly")["id"]
    order = client.get("submit_order", prompt="Mend it", project="demo")["id"]
    assert client.refused("open_task_pull_request", task_id=made)["code"] == "E-PULL-REQUEST-BRANCH"
    assert client.refused("open_pull_request", order_id=order)["code"] == "E-PULL-REQUEST-EARLY"
    api.client.call(profiles.ADD, ProfileRequest(name="careful", approve="all"))
    assert [(each["name"], each["approve"]) for each in client.get("list_profiles")] == [("careful", "all")]
    api.client.call(memory.ADD, MemoryRequest(text="Run make check", project="demo"))
    assert [(each["text"], each["state"]) for each in client.get("list_memory")] == [("Run make check", "kept")]
    assert client.get("list_triggers") == []
    assert client.get("list_code_hosts") == []
    assert client.refused("sync_code_host", name="nowhere")["status"] == 404
    assert client.refused("list_host_events", name="nowhere")["status"] == 404
    assert client.get("list_webhooks") == []
    assert client.get("list_audit_records", limit=1)[0]["outcome"] in {"changed", "refused"}
    assert client.refused("list_webhook_deliveries", name="nowhere")["status"] == 404


def about_the_rest(api: Api, client: Connected) -> None:
    """What work runs on."""
    assert client.get("drain_drone", name="mila")["draining"]
    assert not client.get("resume_drone", name="mila")["draining"]
    assert "mila" in [each["name"] for each in client.get("list_drones")]
    assert [each["slug"] for each in client.get("list_projects")] == ["demo"]
    assert [each["name"] for each in client.get("list_providers")] == ["scripted"]
    assert client.get("test_project", slug="demo")["check"]["state"] == "unchecked"
    assert client.get("test_provider", name="scripted")["check"]["order"]
    api.client.call(budgets.SET, BudgetRequest(usd=5, per="day"), kind="project", name="demo")
    assert [each["left_usd"] for each in client.get("list_budgets")] == [5]
    api.client.call(prices.SET, PriceRequest(discount_percent=5), model="openai/scripted")
    assert [each["model"] for each in client.get("list_prices")] == ["openai/scripted"]
    assert "max_retries" in [each["name"] for each in client.get("list_limits")]
    assert [each["name"] for each in client.get("list_modes")] == ["plan", "build", "test", "ship", "develop"]
    assert client.get("list_costs", by="project", until="2000-01-01") == []


@pytest.mark.parametrize("way", WAYS)
def test_every_tool_does_what_it_says(api: Api, way: str, tmp_path: Path) -> None:
    api.add_work()
    mila = api.add_drone("mila")
    with reached(way, api.url, api.token, tmp_path) as client:
        about_organizations(client)
        about_agents(client)
        about_tasks(api, client)
        about_orders(api, mila, client)
        about_groups(api, mila, client)
        about_sessions(mila, client)
        about_automation(api, client)
        about_the_rest(api, client)

        assert client.called == {tool.name for tool in client.list()}


NOWHERE = "a1b2c3d4e5f6"
BAD: dict[str, tuple[Doc, str]] = {
    "get_status": ({"organization": "nowhere"}, "E-ORGANIZATION-404"),
    "list_organizations": ({"nonsense": 1}, "E-REQUEST"),
    "get_organization": ({"name": "nowhere"}, "E-ORGANIZATION-404"),
    "create_organization": ({"name": "user"}, "E-NAME"),
    "update_organization": ({"name": "default"}, "E-NOTHING"),
    "delete_organization": ({"name": "default"}, "E-ORGANIZATION-DEFAULT"),
    "list_agents": ({"include_removed": "perhaps"}, "E-REQUEST"),
    "get_agent": ({"name": "nobody"}, "E-AGENT-404"),
    "create_agent": ({"name": "writer", "instructions": "You write.", "boss": "nobody"}, "E-AGENT-404"),
    "update_agent": ({"name": "lead"}, "E-AGENT-EDIT"),
    "remove_agent": ({"name": "nobody"}, "E-AGENT-404"),
    "list_tasks": ({"status": "sleeping"}, "E-REQUEST"),
    "get_task": ({"task_id": "NONE-0001"}, "E-TASK-404"),
    "create_task": ({"title": ""}, "E-EMPTY"),
    "add_comment": ({"task_id": "DEFA-0001", "text": "@nobody go on"}, "E-TASK-TAG"),
    "preempt_task": ({"task_id": "DEFA-0001"}, "E-TASK-STATE"),
    "complete_task": ({"task_id": "NONE-0001"}, "E-TASK-404"),
    "reopen_task": ({"task_id": "DEFA-0001"}, "E-TASK-STATE"),
    "retry_task": ({"task_id": "DEFA-0001", "assignee": "user"}, "E-TASK-ASSIGNEE"),
    "cancel_task": ({"task_id": "DEFA-0001", "reason": 7}, "E-REQUEST"),
    "assign_task": ({"task_id": "DEFA-0001", "assignee": "nobody"}, "E-AGENT-404"),
    "list_runs": ({"task_id": "NONE-0001"}, "E-TASK-404"),
    "get_run": ({"run_id": NOWHERE}, "E-RUN-404"),
    "submit_order": ({"prompt": "x", "project": "nowhere"}, "E-PROJECT-404"),
    "list_orders": ({"limit": 0}, "E-REQUEST"),
    "submit_graph": ({"project": "demo", "orders": [{"name": "a", "prompt": "x", "after": ["a"]}]}, "E-GRAPH-CYCLE"),
    "list_graphs": ({"limit": 0}, "E-REQUEST"),
    "get_graph": ({"graph_id": NOWHERE}, "E-GROUP-404"),
    "cancel_graph": ({"graph_id": NOWHERE}, "E-GROUP-404"),
    "submit_batch": ({"name": "b", "rows": [{"id": "a", "project": "nowhere", "prompt": "x"}]}, "E-PROJECT-404"),
    "list_batches": ({"limit": 0}, "E-REQUEST"),
    "get_batch": ({"batch_id": NOWHERE}, "E-GROUP-404"),
    "list_batch_rows": ({"batch_id": NOWHERE}, "E-GROUP-404"),
    "cancel_batch": ({"batch_id": NOWHERE}, "E-GROUP-404"),
    "retry_batch": ({"batch_id": NOWHERE}, "E-GROUP-404"),
    "get_batch_comparison": ({"batch_id": NOWHERE, "other_id": NOWHERE}, "E-GROUP-404"),
    "submit_race": ({"prompt": "x", "project": "demo"}, "E-RACE-SIZE"),
    "list_races": ({"limit": 0}, "E-REQUEST"),
    "get_race": ({"race_id": NOWHERE}, "E-GROUP-404"),
    "take_order": ({"race_id": NOWHERE, "order": "A"}, "E-GROUP-404"),
    "cancel_race": ({"race_id": NOWHERE}, "E-GROUP-404"),
    "get_order": ({"order_id": NOWHERE}, "E-ORDER-404"),
    "cancel_order": ({"order_id": NOWHERE}, "E-ORDER-404"),
    "move_order": ({"order_id": NOWHERE, "drone": "nobody"}, "E-ORDER-404"),
    "set_order_priority": ({"order_id": NOWHERE, "priority": 1}, "E-ORDER-404"),
    "retry_order": ({"order_id": NOWHERE}, "E-ORDER-404"),
    "resume_order": ({"order_id": NOWHERE, "max_iterations": 100}, "E-ORDER-404"),
    "say_to_order": ({"order_id": NOWHERE, "text": "x"}, "E-ORDER-404"),
    "take_back_messages": ({"order_id": NOWHERE}, "E-ORDER-404"),
    "list_inbox": ({"kind": "mail"}, "E-REQUEST"),
    "answer_order": ({"order_id": NOWHERE, "text": "x"}, "E-ORDER-404"),
    "get_plan": ({"order_id": NOWHERE}, "E-ORDER-404"),
    "edit_plan": ({"order_id": NOWHERE, "text": "x"}, "E-PLAN-TEXT"),
    "approve_plan": ({"order_id": NOWHERE}, "E-ORDER-404"),
    "send_back_plan": ({"order_id": NOWHERE, "text": "x"}, "E-ORDER-404"),
    "approve_call": ({"order_id": NOWHERE}, "E-ORDER-404"),
    "deny_call": ({"order_id": NOWHERE}, "E-ORDER-404"),
    "get_patch": ({"order_id": NOWHERE}, "E-ORDER-404"),
    "add_review_comment": ({"order_id": NOWHERE, "text": "x", "path": "x"}, "E-ORDER-404"),
    "list_review": ({"order_id": NOWHERE}, "E-ORDER-404"),
    "remove_review_comment": ({"order_id": NOWHERE, "comment_id": "x"}, "E-ORDER-404"),
    "send_review": ({"order_id": NOWHERE}, "E-ORDER-404"),
    "list_drones": ({"name": "mila"}, "E-REQUEST"),
    "drain_drone": ({"name": "nobody"}, "E-DRONE-404"),
    "resume_drone": ({"name": "nobody"}, "E-DRONE-404"),
    "list_sessions": ({"project": "nowhere"}, "E-PROJECT-404"),
    "get_session": ({"session_id": NOWHERE}, "E-SESSION-404"),
    "create_session": ({"project": "nowhere"}, "E-PROJECT-404"),
    "switch_session": ({"session_id": NOWHERE, "entry": "root"}, "E-SESSION-404"),
    "fork_session": ({"session_id": NOWHERE}, "E-SESSION-404"),
    "compact_session": ({"session_id": NOWHERE}, "E-SESSION-404"),
    "list_projects": ({"organization": 7}, "E-REQUEST"),
    "list_profiles": ({"name": "x"}, "E-REQUEST"),
    "list_memory": ({"state": "lost"}, "E-REQUEST"),
    "open_pull_request": ({"order_id": NOWHERE}, "E-ORDER-404"),
    "open_task_pull_request": ({"task_id": "NONE-0001"}, "E-TASK-404"),
    "list_schedules": ({"name": "nightly"}, "E-REQUEST"),
    "run_schedule": ({"name": "nowhere"}, "E-SCHEDULE-404"),
    "list_triggers": ({"name": "nightly"}, "E-REQUEST"),
    "list_code_hosts": ({"name": "nightly"}, "E-REQUEST"),
    "list_host_events": ({"name": "nowhere"}, "E-HOST-404"),
    "sync_code_host": ({"name": "nowhere"}, "E-HOST-404"),
    "list_webhooks": ({"name": "nightly"}, "E-REQUEST"),
    "list_audit_records": ({"since": "yesterday"}, "E-REQUEST"),
    "list_webhook_deliveries": ({"name": "nowhere"}, "E-WEBHOOK-404"),
    "list_budgets": ({"organization": ""}, "E-ORGANIZATION-404"),
    "list_prices": ({"organization": ""}, "E-ORGANIZATION-404"),
    "list_limits": ({"organization": ""}, "E-ORGANIZATION-404"),
    "list_modes": ({"project": "nowhere"}, "E-PROJECT-404"),
    "list_costs": ({"since": "yesterday"}, "E-TIME"),
    "list_providers": ({"organization": ""}, "E-ORGANIZATION-404"),
    "test_project": ({"slug": "nowhere"}, "E-PROJECT-404"),
    "test_provider": ({"name": "nowhere"}, "E-PROVIDER-404"),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_tool_refuses_bad_input_with_a_typed_error_and_nothing_is_lost(
    api: Api, way: str, tmp_path: Path
) -> None:
    api.add_work()
    with reached(way, api.url, api.token, tmp_path) as client:
        client.get("create_agent", name="lead", instructions="You lead.")
        task = client.get("create_task", title="Mend it", assignee="user")
        told = {tool: client.refused(tool, **arguments) for tool, (arguments, _) in BAD.items()}
        before = client.get("get_task", task_id="DEFA-0001")

        assert set(BAD) == {tool.name for tool in client.list()}
        assert {tool: error["code"] for tool, error in told.items()} == {tool: code for tool, (_, code) in BAD.items()}
        assert all(set(error) == {"code", "what", "why", "next", "status", "help"} for error in told.values())
        assert before["timeline"] == task["timeline"]
