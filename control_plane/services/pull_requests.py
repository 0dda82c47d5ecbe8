"""Pull requests: requested, opened from a drone's workstation, and recorded on the order whose branch they are for.

One pull request for one line of work: the next order of a session, and with it the next turn on a task, builds on the
branch of the previous one, so its pull request replaces the previous one, which is closed with a comment that names it.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.contract.declarations.pull_requests import PullRequestDocument
from control_plane.core import Core
from control_plane.core.lookups.drones import serves
from control_plane.db.code_hosts import HostLink, HostThread
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.db.projects import Project, Provider
from control_plane.db.types import without_nul
from control_plane.drones.condition import load_by_drone, status_of
from control_plane.orders.conversations.history import way_of
from control_plane.orders.conversations.new_session import new_session
from control_plane.orders.draft import Draft, create_order
from control_plane.orders.races import race_of
from control_plane.services.pull_request_text import about, body_of, title_of
from shared.events import PullRequestStep
from shared.states import TAKES_WORK, OrderStatus
from shared.work_order import Limits, OpenPullRequest

SECONDS = 300.0
"""Time for a drone to do it; a host responds within one or two seconds."""
OPEN = frozenset({"opened", "updated"})


def order_ended(db: Session, core: Core, order: Order) -> None:
    """Ask for a pull request if the project wants one for each order that succeeded and was pushed."""
    if order.purpose != "work" or order.task_id is not None:
        return
    wanted = db.get_one(Project, order.project_id).pull_requests
    if is_connected(db, order.project_id):
        if _before(db, order) is not None:
            # Its branch is moved on to this order's work, so that reviews and checks stay with it.
            return
        asked_there = select(HostThread.id).where(HostThread.session_id == order.session_id)
        wanted = "open" if db.scalar(asked_there.limit(1)) is not None else wanted
    if wanted == "never" or order.status != OrderStatus.SUCCEEDED or order.head_commit is None:
        return
    race = race_of(db, order)
    if race is not None and (race.winner_id != order.id or not order.pushed):
        # The winner's, once its branch is there.
        return
    asked = wording(db, order)
    if not order.pushed:
        why = f"the branch is not on the remote: {order.push_error or 'it was not pushed'}"
        order.pull_request = _document(order, asked, state="failed", why=why)
    elif wanted == "ready":
        order.pull_request = _document(
            order, asked, state="ready", why="the project's pull requests are opened manually"
        )
    else:
        ask(db, core, order, asked, order.user)


def is_connected(db: Session, project_id: str) -> bool:
    """Whether the project's repository at its code host is read, so that what happens there continues orders."""
    links = select(HostLink.id).where(
        HostLink.project_id == project_id, HostLink.enabled.is_(True), HostLink.removed_at.is_(None)
    )
    return db.scalar(links.limit(1)) is not None


def wording(db: Session, order: Order, *, title: str | None = None, draft: bool = False) -> OpenPullRequest:
    """The request for an order whose branch is on the remote; `title` replaces the generated one."""
    project = db.get_one(Project, order.project_id)
    return OpenPullRequest(
        head=order.branch or "",
        base=project.branch,
        title=title or title_of(about(db, order)) or f"Work of order {order.id}",
        body=body_of(db, order),
        draft=draft,
        replaces=_before(db, order),
    )


def ask(db: Session, core: Core, order: Order, asked: OpenPullRequest, user: str) -> Order:
    """Create the service order that opens it, and record the request on the order."""
    project = db.get_one(Project, order.project_id)
    chat = new_session(core, project, "build", None)
    chat.name = f"pull request of order {order.id}"
    where = _with_the_logins(db, core, order)
    service = create_order(
        db,
        core,
        Draft(
            project=project,
            provider=db.get_one(Provider, order.provider_id),
            session=chat,
            prompt=f"Open a pull request from {asked.head}: {asked.title}",
            user=user,
            purpose="pull_request",
            asked=asked.model_dump(mode="json"),
            limits=Limits(max_run_seconds=SECONDS),
            priority=order.priority,
            labels={} if where else order.wanted_labels,
            drone_id=where,
        ),
    )
    before = order.pull_request or {}
    kept = {key: before.get(key) for key in ("url", "number")}
    order.pull_request = _document(service, asked, state="asked", **kept)
    return service


def noted(db: Session, service: Order, step: PullRequestStep) -> str | None:
    """Record the outcome on the order that it is for, and return that order's id.

    None: reports of an earlier service no longer count.
    """
    order = _asked_by(db, service)
    if order is not None:
        before = order.pull_request or {}
        reported = step.model_dump(mode="json", exclude={"kind"})
        kept = {key: reported[key] if reported[key] is not None else before.get(key) for key in ("url", "number")}
        order.pull_request = PullRequestDocument(**{**without_nul(reported), **kept, "order": service.id}).model_dump(
            mode="json"
        )
    return order.id if order is not None else None


def service_ended(db: Session, _core: Core, service: Order) -> None:
    """The service ended; if it reported nothing, the order says that its pull request could not be opened, and why."""
    if service.purpose != "pull_request":
        return
    order = _asked_by(db, service)
    if order is not None and order.pull_request is not None and order.pull_request["state"] == "asked":
        why = f"service order {service.id} {service.status}: {service.reason}"
        order.pull_request = {**order.pull_request, "state": "failed", "why": why}


def _asked_by(db: Session, service: Order) -> Order | None:
    """The order whose pull request was last requested from this service."""
    named = select(Order).where(
        Order.organization_id == service.organization_id,
        Order.project_id == service.project_id,
        Order.branch == (service.asked or {}).get("head"),
    )
    orders = db.scalars(named.with_for_update())
    return next((order for order in orders if (order.pull_request or {}).get("order") == service.id), None)


def _before(db: Session, order: Order) -> int | None:
    """The number of the pull request whose branch this order's branch builds on, in the same session."""
    for entry in reversed(way_of(db, order)):
        if entry.session_id != order.session_id:
            return None
        earlier = db.get(Order, entry.order_id) if entry.order_id else None
        there = (earlier.pull_request or {}) if earlier is not None and earlier.id != order.id else {}
        if there.get("number") is not None and there.get("state") in OPEN:
            return int(there["number"])
    return None


def _with_the_logins(db: Session, core: Core, order: Order) -> str | None:
    """The drone that pushed the branch, if it takes work now: its workstation is known to the repository's host."""
    drone = db.get(Drone, order.drone_id) if order.drone_id else None
    if drone is None or not serves(drone, order.organization_id):
        return None
    load = load_by_drone(db, [drone.id])[drone.id]
    return drone.id if status_of(drone, load, core.clock.now()) in TAKES_WORK else None


def _document(by: Order, asked: OpenPullRequest, **outcome: Any) -> dict[str, Any]:
    said = {"url": None, "number": None, "via": "", "why": "", "order": by.id}
    words = asked.model_dump(mode="json", include={"head", "base", "title", "body"})
    return PullRequestDocument(**{**said, **words, **outcome}).model_dump(mode="json")
