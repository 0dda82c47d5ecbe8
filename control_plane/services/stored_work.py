"""Pushes of stored work: of an order that won its race after it had ended, by any drone of the project."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.orders import Order
from control_plane.db.projects import Project, Provider
from control_plane.orders.conversations.new_session import new_session
from control_plane.orders.draft import Draft, create_order
from control_plane.services import pull_requests
from shared.states import OrderStatus
from shared.work_order import Base, Limits, PushWork

SECONDS = 900.0
"""Time for a drone to do it; it retries a remote that does not answer for five minutes."""


def ask_push(db: Session, core: Core, order: Order, user: str) -> Order:
    """Create the service order that pushes the order's stored work."""
    assert order.branch is not None
    order.push_error = "It is about to be pushed."
    return _push(db, core, order, order.branch, user)


def ask_advance(db: Session, core: Core, order: Order, before: Mapping[str, Any]) -> Order:
    """Create the service order that moves the branch of a pull request on to the order's work.

    `before`: the pull request, as an earlier order of the session has it. The branch is never moved back.
    """
    service = _push(db, core, order, str(before["head"]), order.user)
    order.pull_request = {**before, "state": "asked", "why": "", "order": service.id}
    return service


def _push(db: Session, core: Core, order: Order, branch: str, user: str) -> Order:
    project = db.get_one(Project, order.project_id)
    chat = new_session(core, project, "build", None)
    chat.name = f"push of order {order.id}"
    work = Base(
        commit=order.head_commit,
        bundle=order.bundle_sha256,
        bundle_run=order.result_run_id if order.bundle_sha256 else None,
    )
    draft = Draft(
        project=project,
        provider=db.get_one(Provider, order.provider_id),
        session=chat,
        prompt=f"Push {branch}, the work of order {order.id}.",
        user=user,
        purpose="push",
        asked=PushWork(order=order.id, branch=branch, work=work).model_dump(mode="json"),
        limits=Limits(max_run_seconds=SECONDS),
        priority=order.priority,
        labels=order.wanted_labels,
    )
    return create_order(db, core, draft)


def is_being_pushed(db: Session, order: Order) -> bool:
    """Whether a service order that pushes the order's stored work has not ended."""
    pushes = (Order.organization_id == order.organization_id, Order.purpose == "push", Order.ended_at.is_(None))
    named = Order.asked["order"].as_string() == order.id
    return db.scalar(select(Order.id).where(*pushes, named).limit(1)) is not None


def service_ended(db: Session, core: Core, service: Order) -> None:
    """Record on the order whether its work was pushed; then its pull request may be opened."""
    if service.purpose != "push":
        return
    asked = PushWork.model_validate(service.asked)
    named = select(Order).where(Order.id == asked.order, Order.organization_id == service.organization_id)
    order = db.scalar(named.with_for_update().execution_options(populate_existing=True))
    if order is None:
        return
    if asked.branch != order.branch:
        _advanced(order, service, asked.branch)
        return
    order.pushed = service.status == OrderStatus.SUCCEEDED and service.pushed
    order.push_error = None if order.pushed else service.push_error or service.reason
    pull_requests.order_ended(db, core, order)


def _advanced(order: Order, service: Order, branch: str) -> None:
    """From now on the order's work is on the pull request's branch, where its session's next order starts.

    No effect if the pull request was merged or closed meanwhile.
    """
    there = order.pull_request or {}
    if (there.get("order"), there.get("state")) != (service.id, "asked"):
        return
    done = service.status == OrderStatus.SUCCEEDED and service.pushed
    why = "" if done else f"{branch} was not updated: {service.push_error or service.reason}"
    order.pull_request = {**there, "state": "updated" if done else "failed", "why": why}
    order.branch = branch if done else order.branch
