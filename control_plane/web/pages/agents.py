"""Agents: the tree of who reports to whom, one agent with its instructions, and names for completion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from control_plane.contract.declarations import orders as declared_orders
from control_plane.contract.declarations import tasks as declared_tasks
from control_plane.contract.declarations.agents import AgentDocument, AgentNode
from control_plane.contract.declarations.task_documents import TaskSummary
from control_plane.contract.documents.base import USER
from control_plane.core import Caller, Core
from control_plane.operations import costs
from control_plane.operations.agents import reading
from control_plane.operations.orders import reading as orders
from control_plane.operations.tasks import reading as tasks
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.forms.filters import Filters
from control_plane.web.pages.frame import frame_for
from control_plane.web.pages.tasks import thread_text
from control_plane.web.rendering import page, wants_part
from shared.states import TaskStatus

router = APIRouter(include_in_schema=False)
SHOWN = 10
COMPLETED = 8
AT_WORK = {"status": TaskStatus.IN_PROGRESS.value, "limit": "200"}


@dataclass(frozen=True)
class AgentRow:
    """An agent in the tree."""

    agent: AgentDocument
    depth: int
    tasks: Sequence[TaskSummary]
    """Those in progress."""
    spent_usd: float


@router.get("/agents")
def list_agents(request: Request, core: CoreDep, caller: CallerDep) -> Response:
    """The tree, with what each agent does now and what it cost."""
    part = wants_part(request)
    at_work = Filters.of("/tasks", declared_tasks.LIST, AT_WORK)
    topics = ["agents", at_work.topic]
    around = frame_for(request, caller, "agents", topics)
    rows = list(_rows(core, caller, tasks.list_(core, caller, **at_work.arguments())))
    context = {**around, "rows": rows, "topics": topics}
    return page("agents/tree.html" if part else "agents/page.html", context)


def _rows(core: Core, caller: Caller, in_progress: Sequence[TaskSummary]) -> Iterator[AgentRow]:
    known = {each.name: each for each in reading.list_(core, caller)}
    spent = {each.name: each.spent_usd for each in costs.list_(core, caller, by="agent")}
    at_work: dict[str, list[TaskSummary]] = {}
    for task in in_progress:
        at_work.setdefault(task.assignee, []).append(task)
    for name, depth in _in_order(reading.tree(core, caller), 0):
        if name in known:
            yield AgentRow(known[name], depth, at_work.get(name, ()), spent.get(name, 0.0))


def _in_order(nodes: Sequence[AgentNode], depth: int) -> Iterator[tuple[str, int]]:
    """The tree from the top, each agent before its reports."""
    for node in nodes:
        yield node.name, depth
        yield from _in_order(node.reports, depth + 1)


@router.get("/agents/{name}")
def show_agent(request: Request, core: CoreDep, caller: CallerDep, name: str) -> Response:
    """One agent: instructions, limits, reports, tasks and newest turns."""
    part = wants_part(request)
    own = Filters.of("/tasks", declared_tasks.LIST, {"assignee": name, "limit": str(SHOWN * 2)})
    turns = Filters.of("/orders", declared_orders.LIST, {"agent": name, "limit": str(SHOWN)})
    topics = ["agents", own.topic, turns.topic]
    around = frame_for(request, caller, "agents", topics)
    agent = reading.show(core, caller, name)
    context = {
        **around,
        "agent": agent,
        "text_of": thread_text,
        "tasks": [each for each in tasks.list_(core, caller, **own.arguments()) if _is_open(each)],
        "turns": orders.list_orders(core, caller, **turns.arguments()),
        "topics": topics,
    }
    return page("agents/details.html" if part else "agents/agent.html", context)


def _is_open(task: TaskSummary) -> bool:
    return task.status in {TaskStatus.OPEN, TaskStatus.IN_PROGRESS, TaskStatus.FAILED}


@router.get("/mentions")
def mentions(
    core: CoreDep, caller: CallerDep, text: Annotated[str, Query(max_length=64)] = ""
) -> list[Mapping[str, str]]:
    """What can follow an @ in a comment: agents whose name begins so, and the user."""
    begun = text.casefold()
    names = {each.name: each.description for each in reading.list_(core, caller)} | {USER: "gives the task to you"}
    found = [(name, about) for name, about in names.items() if name.startswith(begun)]
    return [{"name": name, "about": about} for name, about in found[:COMPLETED]]
