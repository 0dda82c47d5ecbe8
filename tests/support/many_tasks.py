"""A database with the work of years: tasks, their comments and their runs, written directly without operations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import insert, select, text

from control_plane.core import Caller, Core
from control_plane.db.drones import Drone
from control_plane.db.installation import Organization
from control_plane.db.orders import Dispatch, Order, Turn
from control_plane.db.projects import Project, Provider
from control_plane.db.runs import Run
from control_plane.db.sessions import ChatSession as Chat
from control_plane.db.sessions import SessionEntry
from control_plane.db.teams import Comment, Task
from shared.names import new_id
from shared.reasons import RunEnd

Row = tuple[type[Any], dict[str, Any]]
_AT_ONCE = 500
STATUSES = ("done",) * 14 + ("canceled",) * 2 + ("failed",) + ("open",) * 3


def fill(core: Core, caller: Caller, agents: list[str], *, tasks: int, each: int) -> None:
    """Add `tasks` tasks to the first project, each with `each` comments and runs, by the agents (ids) in turn.

    None of the tasks waits for an agent.
    """
    with core.database.read() as db:
        organization = db.get_one(Organization, caller.organization_id)
        first = [
            db.scalars(select(model.id).where(model.organization_id == organization.id)).first()
            for model in (Project, Provider, Drone)
        ]
    assert None not in first
    began = core.clock.now() - timedelta(days=365)
    for begin in range(0, tasks, _AT_ONCE):
        rows: dict[type[Any], list[dict[str, Any]]] = defaultdict(list)
        for number in range(begin + 1, min(begin + _AT_ONCE, tasks) + 1):
            task = f"{organization.acronym}-{number:04}", number, began + timedelta(minutes=number)
            in_turn = [agents[turn % len(agents)] for turn in range(each)]
            for model, row in _task(task, [str(found) for found in first], in_turn):
                rows[model].append({"organization_id": organization.id, **row})
        with core.database.write() as db:
            for model, values in rows.items():
                db.execute(insert(model), values)
    with core.database.write() as db:
        db.get_one(Organization, organization.id).last_task = tasks
        # A database that grew over years would have been analyzed many times.
        db.execute(text("ANALYZE"))


def _task(task: tuple[str, int, datetime], used: list[str], agents: list[str]) -> Iterator[Row]:
    """A task with a turn of each of these agents, in an order in which the rows can be inserted."""
    task_id, number, at = task
    project = {"project_id": used[0]}
    chat, orders, entries = new_id(), [new_id() for _ in agents], [new_id() for _ in agents]
    begun = {"mode": "build", "created_at": at}
    yield Chat, {"id": chat, **project, "name": task_id, "task_id": task_id, "leaf_id": entries[-1], **begun}
    about = {"title": f"Task number {number}", "description": "Mend it. " * 20, "user": "kim", "limits": {}}
    state = {"status": STATUSES[number % len(STATUSES)], "assignee_id": None, "order_id": orders[-1]}
    times = {"queued_at": at, "updated_at": at}
    yield Task, {"id": task_id, "number": number, **project, "session_id": chat, **about, **state, **times, **begun}
    for turn, agent in enumerate(agents):
        run, numbered = new_id(), {"number": (number - 1) * len(agents) + turn + 1}
        ids, by = {"order_id": orders[turn], "session_id": chat}, {"agent_id": agent, "task_id": task_id}
        on_drone = {"drone_id": used[2], "generation": 1}
        ended, model = {"started_at": at, "ended_at": at}, {"model": "openai/scripted"}
        asked = {"prompt": "Mend it. " * 50, "provider_id": used[1], "wanted_labels": {}, "limits": {}, "user": "kim"}
        reason = {"exit_status": "stopped", "ended_because": RunEnd(detail="the model stopped")}
        how = {"run_id": run, "attempt": 1, "status": "succeeded", "late_refs": [], **reason}
        order = {"id": orders[turn], "session_id": chat, **project, **numbered}
        yield Order, {**order, **by, **on_drone, **asked, **model, **how, **ended, **begun}
        closed = dict.fromkeys(("created_at", "published_at", "claimed_at", "closed_at"), at)
        yield Dispatch, {"id": run, "order_id": orders[turn], **on_drone, **closed}
        spent = {"input_tokens": 1000, "output_tokens": 100, "cost_usd": 0.01, "duration_ms": 60_000}
        outcome = {"attempt": 1, "status": "success", **ended, **spent}
        yield Run, {"id": run, "order_id": orders[turn], **by, **on_drone, **outcome}
        done = {"provider": "scripted", **model, "status": "finished", "stats": {}, "ended_at": at}
        yield Turn, {"id": new_id(), **ids, "prompt": "Mend it.", **done, **begun}
        data = {"run": run, "status": "succeeded", "exit_status": "stopped", "error": False}
        entry = {"parent_id": entries[turn - 1] if turn else None, "kind": "turn", "data": data, "at": at}
        yield SessionEntry, {"id": entries[turn], **ids, **numbered, **entry}
        said = f"I did part {turn} of it, and this is what I found out about it. " * 4 + "@user"
        yield Comment, {**by, "author": f"agent{turn}", "run_id": run, "text": said, "at": at + timedelta(seconds=turn)}
