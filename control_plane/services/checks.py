"""Checks: a small order on a drone tries whether a provider, or a project, works; the result is kept with it.

They go to a drone only while it has a free slot, and give it up to any other order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.db.projects import Project, Provider
from control_plane.db.runs import Step
from control_plane.db.types import without_nul
from control_plane.orders.conversations.new_session import new_session
from control_plane.orders.draft import Draft, create_order
from shared.events import ProjectCheckStep, ProviderCheckStep
from shared.names import new_id
from shared.states import OrderStatus
from shared.work_order import CHECKS, Limits

PROVIDER_LIMITS = Limits(max_iterations=2, cost_limit=0.5, max_run_seconds=120, max_retries=0)
PROJECT_LIMITS = Limits(max_run_seconds=900)
PRIORITY = -10
"""Regular work goes first."""
NOTHING = "-"
"""Name of the removed project that an order without a project has, and of the provider of one without a model: no name
that a person can give."""


@dataclass(frozen=True)
class Requester:
    """For whom something is checked; its cost counts as theirs."""

    user: str
    user_id: str | None = None


def ask_check(db: Session, core: Core, row: Provider | Project, requester: Requester) -> Order:
    """Submit an order that tries a provider or project; what earlier ones report no longer counts."""
    draft = (
        _of_provider(db, core, row, requester) if isinstance(row, Provider) else _of_project(db, core, row, requester)
    )
    order = create_order(db, core, draft)
    row.check_state, row.check_order_id, row.check_report = "unchecked", order.id, None
    return order


def noted(db: Session, core: Core, order: Order, drone: Drone, step: ProviderCheckStep | ProjectCheckStep) -> None:
    """Keep what a check found, until its order has ended."""
    row = _tried(db, order)
    if row is not None:
        found = step.model_dump(mode="json", exclude={"kind"})
        row.check_report = without_nul({**found, **_circumstances(core, order, drone)})


def order_ended(db: Session, core: Core, order: Order) -> None:
    """Conclude a check. One that ended without a result failed for the reason of its order."""
    row = _tried(db, order) if order.purpose in CHECKS else None
    if row is None:
        return
    if order.status == OrderStatus.CANCELED:
        row.check_state, row.check_order_id, row.check_report = "unchecked", None, None
        return
    if row.check_report is None or order.status != OrderStatus.SUCCEEDED:
        drone = db.get(Drone, order.drone_id) if order.drone_id is not None else None
        row.check_report = without_nul({**_why(db, order), **_circumstances(core, order, drone)})
    row.check_state = "ok" if row.check_report["ok"] else "failed"


def _of_provider(db: Session, core: Core, provider: Provider, requester: Requester) -> Draft:
    project = _no_project(db, core, provider.organization_id)
    session = new_session(core, project, "plan", requester.user_id)
    session.name = f"check of provider {provider.name}"
    return Draft(
        project=project,
        provider=provider,
        session=session,
        prompt=f"Check provider {provider.name}.",
        user=requester.user,
        user_id=requester.user_id,
        mode="plan",
        purpose="check_provider",
        limits=PROVIDER_LIMITS,
        priority=PRIORITY,
    )


def _of_project(db: Session, core: Core, project: Project, requester: Requester) -> Draft:
    session = new_session(core, project, "plan", requester.user_id)
    session.name = f"check of project {project.slug}"
    return Draft(
        project=project,
        provider=no_provider(db, core, project.organization_id),
        session=session,
        prompt=f"Check project {project.slug}.",
        user=requester.user,
        user_id=requester.user_id,
        mode="plan",
        purpose="check_project",
        limits=PROJECT_LIMITS,
        priority=PRIORITY,
    )


def _no_project(db: Session, core: Core, organization_id: str) -> Project:
    """A removed project that stands for none: every order has one."""
    named = select(Project).where(Project.organization_id == organization_id, Project.slug == NOTHING)
    if found := db.scalar(named.limit(1)):
        return found
    now = core.clock.now()
    kept = {"id": new_id(), "organization_id": organization_id, "created_at": now, "removed_at": now}
    made = Project(slug=NOTHING, name=NOTHING, description="", git_url="", setup=[], verify=[], trailers=[], **kept)
    db.add(made)
    db.flush()
    return made


def no_provider(db: Session, core: Core, organization_id: str) -> Provider:
    """A removed provider that stands for none: every order has one."""
    named = select(Provider).where(Provider.organization_id == organization_id, Provider.name == NOTHING)
    if found := db.scalar(named.limit(1)):
        return found
    now = core.clock.now()
    kept = {"id": new_id(), "organization_id": organization_id, "created_at": now, "removed_at": now}
    made = Provider(name=NOTHING, model=NOTHING, params={}, fallbacks=[], **kept)
    db.add(made)
    db.flush()
    return made


def _tried(db: Session, order: Order) -> Provider | Project | None:
    """What the order checks, locked; None if a newer order checks it."""
    row: Provider | Project
    if order.purpose == "check_provider":
        row = db.get_one(Provider, order.provider_id, with_for_update=True, populate_existing=True)
    else:
        row = db.get_one(Project, order.project_id, with_for_update=True, populate_existing=True)
    return row if row.check_order_id == order.id else None


def _circumstances(core: Core, order: Order, drone: Drone | None) -> dict[str, Any]:
    name = drone.name if drone is not None else None
    return {"at": core.clock.now().isoformat(), "drone": name, "order": order.id}


def _why(db: Session, order: Order) -> dict[str, Any]:
    """What its order says of a check that ended without a result."""
    errors = select(Step.body).where(Step.order_id == order.id, Step.kind == "error").order_by(Step.seq.desc())
    error = db.scalar(errors.limit(1)) or {}
    what = str(error.get("what") or order.reason)
    return {
        "ok": False,
        "summary": f"{what[:1].upper()}{what[1:].rstrip('.')}.",
        "code": str(error.get("code", "")),
        "detail": str(error.get("detail", "")),
        "next": str(error.get("next", "")),
    }
