"""An organization with one of everything, each with a mark in it, by which a leak is recognized."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from sqlalchemy import select

from control_plane.contract.declarations.budgets import BudgetRequest
from control_plane.contract.declarations.code_hosts import CodeHostRequest
from control_plane.contract.declarations.modes import ModeRequest
from control_plane.contract.declarations.pools import PoolRequest
from control_plane.contract.declarations.prices import PriceRequest
from control_plane.contract.declarations.profiles import ProfileRequest
from control_plane.contract.declarations.providers import ProviderRequest
from control_plane.contract.declarations.tokens import ApiTokenRequest, JoinTokenRequest
from control_plane.contract.declarations.users import UserRequest
from control_plane.core import Caller
from control_plane.db.groups import OrderGroup
from control_plane.db.orders import Order
from control_plane.operations import budgets, memory, modes, organizations, prices, profiles, providers
from control_plane.operations.access import tokens, users
from control_plane.operations.access.login_sessions import list_login_sessions
from control_plane.operations.automation import webhooks
from control_plane.operations.code_hosts import connections as code_hosts
from control_plane.operations.drones import pools
from control_plane.orders.memory_notes import propose
from shared.events import RememberStep
from shared.names import new_id
from tests.support.fleet import Api
from tests.support.made import make_drone, make_project, start_run, submit
from tests.support.team_rows import add_agent, add_task, begin, order_of, say

TASK = {"title": "x", "description": "x"}
AUTOMATION: dict[str, dict[str, Any]] = {
    "schedules": {"name": "n", "cron": "0 3 * * *", "task": TASK},
    "triggers": {"name": "n", "kind": "github", "task": TASK},
    "webhooks": {"name": "n", "url": "https://hooks.example/x"},
}
"""A request for one of each, by the resource of the address."""


@dataclass(frozen=True)
class Filled:
    """An organization, and the name or id of one thing of each kind, by the resource of its address."""

    caller: Caller
    names: dict[str, str]


def fill(api: Api, caller: Caller, mark: str) -> Filled:
    """Add one of everything to the organization, each with the mark in its name and texts."""
    core = api.core
    teams = {"abilities": ["teams"]}
    make_drone(core, caller, f"{mark}-drone", labels={mark: "yes"}, beat=teams, concurrency=9, sandbox="none")
    providers.add(core, caller, ProviderRequest(name=f"{mark}-provider", model="openai/scripted"))
    make_project(core, caller, f"{mark}-project")
    order = submit(core, caller, mark, project=f"{mark}-project")
    run = start_run(core, order.id)
    task = add_task(core, caller, add_agent(core, caller, f"{mark}_agent"), title=mark, description=mark)
    task_run = begin(core, order_of(core, task).id)
    say(core, task, mark)
    join = tokens.create_join_token(core, caller, JoinTokenRequest(labels={mark: "yes"}))
    token = tokens.create_api_token(core, caller, ApiTokenRequest(role="viewer", name=mark))
    user = users.add(core, caller, UserRequest(email=f"{mark}@example.org", name=mark, role="viewer"))
    tokens.start_session(core, tokens.authenticate(core, str(token.token)))
    budgets.set_(core, caller, "project", f"{mark}-project", BudgetRequest(usd=1000, per="month"))
    prices.set_(core, caller, f"openai/{mark}", PriceRequest(discount_percent=5))
    modes.set_(core, caller, f"{mark}-mode", ModeRequest(text=mark))
    _automate(api, caller, mark)
    connected = CodeHostRequest(name=f"{mark}-host", kind="github", project=f"{mark}-project", repository=f"{mark}/x")
    code_hosts.add(core, caller, connected)
    profiles.add(core, caller, ProfileRequest(name=f"{mark}-profile", description=mark, labels={mark: "yes"}))
    pools.add(core, caller, PoolRequest(name=f"{mark}-pool", labels={mark: "yes"}))
    with core.database.write() as db:
        propose(db, core, db.get_one(Order, order.id), RememberStep(text=f"{mark} is a note", why=mark))
    grouped = {
        "graphs": _group(api, caller, mark, order.id),
        "races": _group(api, caller, mark, order_of(core, task).id),
        "batches": (batch := _batch(api, caller, mark)),
        "compare": batch,
    }
    names = {
        "code-hosts": f"{mark}-host",
        "deliveries": webhooks.test(core, caller, f"{mark}-webhooks").id,
        "drones": f"{mark}-drone",
        "projects": f"{mark}-project",
        "providers": f"{mark}-provider",
        "orders": order.id,
        "review": order.id,
        "runs": run,
        "sessions": order.session,
        "tasks": task,
        "task-runs": task_run,
        "join-tokens": join.id,
        "api-tokens": token.id,
        "users": user.email,
        "login-sessions": list_login_sessions(core, caller)[0].id,
        "organizations": caller.organization,
        "profiles": f"{mark}-profile",
        "pools": f"{mark}-pool",
        "memory": memory.list_(core, caller)[0].id,
        "inbox": f"race:{grouped['races']}",
        "agents": f"{mark}_agent",
        "budgets": f"{mark}-project",
        "budget-kinds": "project",
        "prices": f"openai/{mark}",
        "modes": f"{mark}-mode",
        **{each: f"{mark}-{each}" for each in AUTOMATION},
        **grouped,
    }
    return Filled(caller, names)


def _group(api: Api, caller: Caller, mark: str, order_id: str) -> str:
    """A graph, or for an agent's turn a race, of one order that exists already."""
    with api.core.database.write() as db:
        order = db.get_one(Order, order_id)
        kind = "graph" if order.task_id is None else "race"
        group = OrderGroup(
            id=new_id(),
            organization_id=caller.organization_id,
            kind=kind,
            name=mark,
            pick=None if kind == "graph" else "person",
            created_at=api.core.clock.now(),
        )
        db.add(group)
        order.group_id, order.group_key = group.id, "A"
        return group.id


def _batch(api: Api, caller: Caller, mark: str) -> str:
    """A batch of one row that was canceled."""
    row = {"id": mark, "project": f"{mark}-project", "prompt": mark}
    with inside(api, caller) as http:
        batch = http.post("/api/v1/batches", json={"name": mark, "rows": [row], "more": True}).json()
        http.post(f"/api/v1/batches/{batch['id']}/cancel")
    return str(batch["id"])


def _automate(api: Api, caller: Caller, mark: str) -> None:
    with inside(api, caller) as http:
        for resource, request in AUTOMATION.items():
            body = {**request, "name": f"{mark}-{resource}"}
            assert http.post(f"/api/v1/{resource}", json=body).status_code == 201


@contextmanager
def inside(api: Api, caller: Caller) -> Iterator[httpx.Client]:
    """The everywhere admin, in this organization."""
    with api.http() as http:
        http.params = httpx.QueryParams(org=caller.organization)
        yield http


def untouched(api: Api, caller: Caller) -> bool:
    """Whether a filled organization still is as it was."""
    with api.core.database.read() as db:
        statuses = db.scalars(select(Order.status).where(Order.organization_id == caller.organization_id)).all()
    shown = organizations.show(api.core, caller, caller.organization)
    return (statuses, shown.paused, shown.concurrency, shown.tasks["in_progress"], shown.agent_count) == (
        ["running", "running"],
        False,
        4,
        1,
        1,
    )


def resource_of(path: str, parameter: str = r"(?!seq)\w+") -> str:
    """What the parameter of the address is the name or id of; by default the last one that is a name."""
    if parameter == "kind":
        return "budget-kinds"
    return str(re.findall(rf"/([a-z-]+)(?:/\{{kind\}})?/\{{{parameter}\}}", path)[-1])
