"""An organization whose tasks are brought into every state by real actions of users and runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import update

from control_plane.contract.declarations.task_documents import TaskCancelRequest, TaskDocument, TaskRequest
from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.drones import Drone
from control_plane.operations import tasks
from tests.support.clocks import HandClock
from tests.support.database import core_on
from tests.support.made import make_drone, make_project
from tests.support.team_rows import add_agent, claim, edit_organization, order_of, play

STATES = ("open/lead", "open/user", "in_progress/lead", "failed/user", "done/user", "canceled/user")


@dataclass
class Workshop:
    """A paused organization with the agents `lead` and `backend`: an open task stays open until `begin`."""

    core: Core
    caller: Caller

    @classmethod
    def create(cls, database_url: str, directory: Path) -> Workshop:
        core = core_on(database_url, directory, clock=HandClock())
        caller = system_caller(core)
        make_project(core, caller)
        make_drone(core, caller, concurrency=1000)
        add_agent(core, caller, "lead")
        add_agent(core, caller, "backend", boss="lead")
        edit_organization(core, caller, concurrency=0, paused_at=core.clock.now())
        return cls(core, caller)

    def new(self, assignee: str = "lead") -> str:
        """A new task that no agent has worked on."""
        return tasks.create(self.core, self.caller, TaskRequest(title="Mend it", assignee=assignee)).id

    def begin(self) -> None:
        """Start all tasks that wait for an agent."""
        edit_organization(self.core, self.caller, paused_at=None)
        claim(self.core, self.caller)
        edit_organization(self.core, self.caller, paused_at=self.core.clock.now())

    def at(self, state: str) -> str:
        """A task in one of `STATES`; those that have ended were worked on by lead."""
        self.beat()
        match state:
            case "open/lead":
                return self.new()
            case "open/user":
                return self.new("user")
            case "canceled/user":
                return tasks.cancel(self.core, self.caller, self.new(), TaskCancelRequest()).id
        task_id = self.new()
        self.begin()
        if state != "in_progress/lead":
            play(self.core, task_id, "I am through with it, @user.", how="failed" if "failed" in state else "succeeded")
        if state == "done/user":
            tasks.done(self.core, self.caller, task_id)
        return task_id

    def beat(self) -> None:
        """Keep the drone online, however far the clock was advanced."""
        with self.core.database.write() as db:
            db.execute(update(Drone).values(last_seen_at=self.core.clock.now()))

    def show(self, task_id: str) -> TaskDocument:
        return tasks.show(self.core, self.caller, task_id)

    def where(self, task_id: str) -> str:
        """The task's state, in the form of `STATES`."""
        task = self.show(task_id)
        return f"{task.status}/{task.assignee}"

    def order_status(self, task_id: str) -> str:
        return order_of(self.core, task_id).status
