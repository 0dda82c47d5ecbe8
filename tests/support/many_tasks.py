"""A database with the work of years: tasks, their comments and their runs, written directly without operations."""

from __future__ import annotations

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

Rows = dict[type[Any], list[dict[str, Any]]]
_AT_ONCE = 500
STATUSES = ("done",) * 14 + ("canceled",) * 2 + ("failed",) + ("open",) * 3


def fill(core: Core, caller: Caller, agents: list[str], *, tasks: int, each: int) -> None:
    """Add `tasks` tasks to the first project, each with `each` comments and runs, by the agents (ids) in turn.

    None of the tasks waits for an agent.
    """
    with core.database.read() as db:
        project = db.scalars(select(Project).where(Project.organization_id == caller.organization_id)).first()
        provider = db.scalars(select(Provider).where(Provider.organization_id == caller.organization_id)).first()
        drone = db.scalars(select(Drone).where(Drone.organization_id == caller.organization_id)).first()
        organization = db.get_one(Organization, caller.organization_id)
    assert project is not None
    assert provider is not None
    assert drone is not None
    made = _Made(organization, (project, provider, drone), agents, core.clock.now() - timedelta(days=365))
    for begin in range(0, tasks, _AT_ONCE):
        rows: Rows = {model: [] for model in (Chat, Task, Order, Dispatch, Run, Turn, SessionEntry, Comment)}
        for number in range(begin + 1, min(begin + _AT_ONCE, tasks) + 1):
            made.task(rows, number, each)
        with core.database.write() as db:
            for model, values in rows.items():
                db.execute(insert(model), values)
    with core.database.write() as db:
        db.get_one(Organization, organization.id).last_task = tasks
        # A database that grew over years would have been analyzed many times.
        db.execute(text("ANALYZE"))


class _Made:
    """Creates the rows of one task after another."""

    def __init__(
        self, organization: Organization, used: tuple[Project, Provider, Drone], agents: list[str], at: datetime
    ) -> None:
        self.organization = organization
        self.project, self.provider, self.drone = used
        self.agents, self.at = agents, at
        self.owned = {"organization_id": organization.id}

    def task(self, rows: Rows, number: int, each: int) -> None:
        task_id, chat_id = f"{self.organization.acronym}-{number:04}", new_id()
        created = self.at + timedelta(minutes=number)
        runs = [(new_id(), new_id(), self.agents[turn % len(self.agents)]) for turn in range(each)]
        entries = [new_id() for _ in runs]
        common = {**self.owned, "created_at": created}
        rows[Chat].append(
            common
            | {"id": chat_id, "project_id": self.project.id, "name": task_id, "mode": "build", "allow": []}
            | {"task_id": task_id, "leaf_id": entries[-1]}
        )
        rows[Task].append(
            common
            | {"id": task_id, "number": number, "title": f"Task number {number}", "description": "Mend it. " * 20}
            | {"status": STATUSES[number % len(STATUSES)], "assignee_id": None, "project_id": self.project.id}
            | {"session_id": chat_id, "mode": "build", "priority": 0, "limits": {}, "order_id": runs[-1][0]}
            | {"hand_offs": 0, "user": "kim", "queued_at": created, "updated_at": created}
        )
        rows[Comment] += self._comments(task_id, created, runs)
        for turn, (order_id, run_id, agent_id) in enumerate(runs):
            times = {"created_at": created, "started_at": created, "ended_at": created}
            self._order(rows, (number - 1) * each + turn + 1, order_id, run_id, chat_id, agent_id, task_id, times)
            rows[SessionEntry].append(
                self.owned
                | {"id": entries[turn], "number": (number - 1) * each + turn + 1, "session_id": chat_id, "kind": "turn"}
                | {"parent_id": entries[turn - 1] if turn else None, "order_id": order_id, "at": created}
                | {"data": {"run": run_id, "status": "succeeded", "exit_status": "stopped", "error": False}}
            )

    def _comments(self, task_id: str, at: datetime, runs: list[tuple[str, str, str]]) -> Iterator[dict[str, Any]]:
        for turn, (_, run_id, agent_id) in enumerate(runs):
            said = f"I did part {turn} of it, and this is what I found out about it. " * 4 + "@user"
            author = {"author": f"agent{turn}", "agent_id": agent_id, "user": "", "kind": "comment", "run_id": run_id}
            yield self.owned | author | {"task_id": task_id, "text": said, "at": at + timedelta(seconds=turn)}

    def _order(  # noqa: PLR0917 - an order has that many ids
        self,
        rows: Rows,
        number: int,
        order_id: str,
        run_id: str,
        chat_id: str,
        agent_id: str,
        task_id: str,
        times: dict[str, datetime],
    ) -> None:
        of_task = self.owned | {"agent_id": agent_id, "task_id": task_id}
        on_drone = {"order_id": order_id, "drone_id": self.drone.id, "generation": 1}
        rows[Order].append(
            of_task
            | times
            | {"id": order_id, "number": number, "user": "kim", "project_id": self.project.id, "session_id": chat_id}
            | {"provider_id": self.provider.id, "model": "openai/scripted", "mode": "build", "priority": 0}
            | {"approve": "yolo", "allow": [], "limits": {}, "prompt": "Mend it. " * 50, "purpose": "work"}
            | {"wanted_labels": {}, "drone_id": self.drone.id, "run_id": run_id, "generation": 1, "attempt": 1}
            | {"status": "succeeded", "reason_written": "the model stopped", "exit_status": "stopped", "late_refs": []}
        )
        rows[Dispatch].append(
            self.owned
            | on_drone
            | {"id": run_id, "created_at": times["created_at"], "published_at": times["created_at"]}
            | {"claimed_at": times["created_at"], "closed_at": times["created_at"]}
        )
        rows[Run].append(
            of_task
            | on_drone
            | {"id": run_id, "attempt": 1, "status": "success", "started_at": times["started_at"]}
            | {"ended_at": times["ended_at"], "input_tokens": 1000, "output_tokens": 100, "cost_usd": 0.01}
            | {"duration_ms": 60_000}
        )
        rows[Turn].append(
            self.owned
            | {"id": new_id(), "session_id": chat_id, "order_id": order_id, "prompt": "Mend it.", "mode": "build"}
            | {"provider": "scripted", "model": "openai/scripted", "status": "finished", "stats": {}}
            | {"created_at": times["created_at"], "ended_at": times["ended_at"]}
        )
