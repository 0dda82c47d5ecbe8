"""An organization on a whole fleet: three agents, two workstations, and tasks that a test inspects."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from control_plane.contract.client.fleet import FleetClient
from control_plane.contract.declarations import agents, orders, organizations, projects, providers, tasks
from control_plane.contract.declarations.agents import AgentRequest
from control_plane.contract.declarations.organizations import OrganizationEdit
from control_plane.contract.declarations.projects import ProjectRequest
from control_plane.contract.declarations.providers import ProviderRequest
from control_plane.contract.declarations.task_documents import TaskRequest
from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.team_scripts import DESCRIBED
from tests.support.whole_fleet import WholeFleet

Doc = dict[str, Any]
ORG = "payments"
MODEL = "openai/gpt-4o-mini"
"""A model name with a price in litellm's list; a script answers for it."""
LEAD, BACKEND, TESTER = "lead", "backend", "tester"
SECONDS = 120.0


@dataclass
class TeamFleet:
    """The organization `payments`: lead, and below it backend, which works on oka, and tester, which works on mila."""

    fleet: WholeFleet
    client: FleetClient

    @classmethod
    def of(cls, fleet: WholeFleet, client: FleetClient, model: ScriptedServer, remote: Path) -> TeamFleet:
        """Set everything up, as users do, and wait until the agents are described."""
        fleet.json("organization", "add", ORG, "--description", "Keeps the money.")
        client.call(providers.ADD, ProviderRequest(name="scripted", model=MODEL, api_base=model.url))
        client.call(projects.ADD, ProjectRequest(slug="shop", git_url=f"file://{remote}", provider="scripted"))
        for name, kind in (("oka", "build"), ("mila", "test")):
            options = ("--label", f"kind={kind}", "--concurrency", "3")
            fleet.workstation(name, *options, token_options=("--serves", ORG)).start()
        fleet.online("oka", "mila")
        client.call(organizations.EDIT, OrganizationEdit(project="shop", concurrency=6), name=ORG)
        team = cls(fleet, client)
        team._add_agents()
        return team

    def create(self, script: str, **more: Any) -> Doc:
        """A task whose first turn plays a script."""
        request = {"title": f"Play {script}", "description": f"Do your part. script:{script}", **more}
        return self.client.call(tasks.ADD, TaskRequest.model_validate(request))

    def show(self, task_id: str) -> Doc:
        return self.client.show_task(task_id)

    def with_user(self, task_id: str, *, runs: int = 1) -> Doc:
        """The task, once it is back with the user after at least this many ended runs."""

        def back() -> Doc | None:
            task = self.show(task_id)
            ended = [run for run in runs_of(task) if run["ended_at"]]
            return task if (task["status"], task["assignee"]) == ("open", "user") and len(ended) >= runs else None

        return wait_until(back, seconds=SECONDS, every=0.2)

    def order(self, order_id: str) -> Doc:
        return self.client.call(orders.SHOW, order_id=order_id)

    def _add_agents(self) -> None:
        lead = AgentRequest(name=LEAD, instructions="You plan, and you judge what comes back.")
        backend = AgentRequest(name=BACKEND, boss=LEAD, labels={"kind": "build"}, instructions_path="agents/backend.md")
        tester = AgentRequest(
            name=TESTER, boss=LEAD, labels={"kind": "test"}, instructions="You test what others build."
        )
        for request in (lead, backend, tester):
            self.client.call(agents.ADD, request)
        # Until all are described, the roster changes, and with it the prompts.
        wait_until(
            lambda: all(agent["description"].startswith(DESCRIBED) for agent in self.client.call(agents.LIST)),
            seconds=SECONDS,
        )


def thread(task: Doc) -> list[tuple[str, str]]:
    """Author and text of each comment."""
    written = [each["comment"] for each in task["timeline"] if each["kind"] == "comment"]
    return [(each["author"], each["text"]) for each in written]


def runs_of(task: Doc) -> list[Doc]:
    return [each["run"] for each in task["timeline"] if each["kind"] == "run"]


def told(task: Doc) -> list[str]:
    """The timeline in words: which agent ran, and which author wrote."""
    return [
        f"{each['run']['agent']} runs" if each["kind"] == "run" else f"{each['comment']['author']} writes"
        for each in task["timeline"]
    ]
