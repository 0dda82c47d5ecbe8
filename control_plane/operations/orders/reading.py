"""Work orders: submit and read them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.orm import Session as Db

from control_plane.conversations.run_paths import order_path
from control_plane.conversations.steering_messages import undelivered_steering
from control_plane.core import Caller, Core
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.db.projects import Project, Provider
from control_plane.db.runs import Run, Step
from control_plane.db.teams import Agent
from control_plane.db.waits import Wait
from control_plane.declarations import orders as declared
from control_plane.documents.orders import (
    OrderDocument,
    OrderSummary,
    RunDocument,
    SteeringMessageDocument,
    StepDocument,
    SubmitRequest,
)
from control_plane.lookups.drones import serving
from control_plane.lookups.projects import find_project
from control_plane.lookups.users import require_user
from control_plane.operations import row_documents
from control_plane.operations.gateway import performs
from control_plane.operations.orders import progress
from control_plane.operations.orders.submitting import check_request, submit_within
from control_plane.operations.row_documents import OrderNames, run_document, step_document, word_document
from control_plane.operations.runs.blobs import blob_of_run
from control_plane.orders import totals
from control_plane.orders.waits import open_waits
from control_plane.validation.checks import shown, unknown
from shared.blobs import INLINE_PATCH
from shared.errors import Invalid, NotFound
from shared.events import Stats
from shared.states import OrderStatus

MAX_LISTED = 1000
MAX_STEPS = 10_000
_AT_WORK = frozenset({OrderStatus.RUNNING, OrderStatus.AWAITING_APPROVAL, OrderStatus.CANCELING})


@performs(declared.SUBMIT)
def submit(core: Core, caller: Caller, request: SubmitRequest, idempotency_key: str | None = None) -> OrderDocument:
    """Submit a work order; it is durable when this returns.

    The same key with the same request within 7 days returns the same order again. Raises Invalid, TooLarge or NotFound
    for the contents of the request, Precondition if the provider is ambiguous or missing, Conflict for a key that was
    used for another request.
    """
    check_request(request, idempotency_key)
    order_id, new = core.database.transact(lambda db: submit_within(db, core, caller, request, idempotency_key))
    if new:
        core.broker.changed(order_id)
    return show_order(core, caller, order_id)


@performs(declared.LIST)
def list_orders(  # noqa: PLR0913, PLR0917 - the filters are the interface
    core: Core,
    caller: Caller,
    status: str | None = None,
    project: str | None = None,
    drone: str | None = None,
    limit: int = 50,
    *,
    every: bool = False,
    mine: bool = False,
) -> list[OrderSummary]:
    """Orders, newest first, in the same few queries for any number of orders.

    Orders that the control plane itself submitted for a service, for example the description of an agent, are included
    only with `every`. Raises Invalid or NotFound for a wrong filter, and Invalid for `mine` with a token of no user.
    """
    with core.database.read() as db:
        wanted = _filtered(db, caller, (status, project, drone))
        if not every:
            wanted = wanted.where(Order.purpose == "work")
        if mine:
            wanted = wanted.where(Order.user_id == require_user(caller))
        rows = db.execute(wanted.order_by(Order.number.desc()).limit(max(1, min(limit, MAX_LISTED)))).all()
        return _summaries(db, caller, rows, core.clock.now())


@performs(declared.SHOW)
def show_order(core: Core, caller: Caller, order_id: str) -> OrderDocument:
    """An order with its runs and steps. Raises NotFound."""
    with core.database.read() as db:
        row = _find(db, caller, order_id)
        (summary,) = _summaries(db, caller, [row], core.clock.now())
        known = {
            "todo": _todo(db, row[0]),
            "unheard": [word_document(word) for word in undelivered_steering(db, row[0])],
            "runs": _runs(db, order_id),
            "steps": _steps(db, row[0], 0, None),
            "patch": _patch_text(db, core, row[0]),
        }
    return OrderDocument(**dict(summary), **known)


@performs(declared.FOLLOW)
def order_summary(core: Core, caller: Caller, order_id: str) -> OrderSummary:
    """An order without runs and steps. Raises NotFound."""
    with core.database.read() as db:
        return _summaries(db, caller, [_find(db, caller, order_id)], core.clock.now())[0]


def beside_summary(
    core: Core, caller: Caller, order_id: str
) -> tuple[list[dict[str, Any]], list[SteeringMessageDocument]]:
    """The model's to-do list, and the messages that it has not read yet. Raises NotFound."""
    with core.database.read() as db:
        order = _find(db, caller, order_id)[0]
        return _todo(db, order), [word_document(word) for word in undelivered_steering(db, order)]


@performs(declared.STEPS)
def steps_after(core: Core, caller: Caller, order_id: str, after: int = 0, limit: int = 1000) -> list[StepDocument]:
    """At most `limit` steps with a number above `after`, in order. Raises NotFound."""
    with core.database.read() as db:
        return _steps(db, _find(db, caller, order_id)[0], after, max(1, min(limit, MAX_STEPS)))


@performs(declared.PATCH)
def patch_of(core: Core, caller: Caller, order_id: str) -> bytes:
    """The patch against the base commit, of any size; empty if nothing changed. Raises NotFound if there is none."""
    with core.database.read() as db:
        order = _find(db, caller, order_id)[0]
        if order.result_run_id is not None:
            return blob_of_run(db, core, order.result_run_id, order.patch_sha256) if order.patch_sha256 else b""
    raise NotFound(
        f"order {order.id} has no patch{'' if order.ended_at else ' yet'}: it is {order.status}",
        code="E-ORDER-PATCH",
        why=order.reason,
        next=f"fleet follow {order.id}" if not order.ended_at else f"fleet show {order.id}",
    )


@performs(declared.LOG)
def log_of(core: Core, caller: Caller, order_id: str, seq: int) -> bytes:
    """The full output of the tool result at step `seq`. Raises NotFound if that step is no tool result."""
    with core.database.read() as db:
        _find(db, caller, order_id)
        step = db.scalar(select(Step).where(Step.order_id == order_id, Step.seq == seq))
        if step is not None and step.kind == "tool_result" and step.body.get("log_sha256"):
            return blob_of_run(db, core, step.run_id, step.body["log_sha256"])
    if step is None or step.kind != "tool_result":
        raise NotFound(
            f"step {seq} of order {order_id} {'is not a tool result' if step else 'does not exist'}",
            code="E-ORDER-LOG",
            next=f"fleet show {order_id}    lists the steps with their numbers",
        )
    # A short output is stored in the step, without a separate file.
    return str(step.body.get("output", "")).encode("utf-8", "replace")


Row = tuple[Order, str | None, str, str | None, str | None]


def _orders(caller: Caller) -> Select[Order, str | None, str, str | None, str | None]:
    return (
        select(Order, Project.slug, Provider.name, Drone.name, Agent.name)
        .join(Project, Project.id == Order.project_id)
        .join(Provider, Provider.id == Order.provider_id)
        .outerjoin(Drone, Drone.id == Order.drone_id)
        .outerjoin(Agent, Agent.id == Order.agent_id)
        .where(Order.organization_id == caller.organization_id)
    )


def _find(db: Db, caller: Caller, order_id: str) -> Row:
    row = db.execute(_orders(caller).where(Order.id == order_id)).one_or_none()
    if row is None:
        raise NotFound(f"order {shown(order_id)} not found", code="E-ORDER-404", next="fleet orders")
    return row


def _filtered(
    db: Db, caller: Caller, filters: tuple[str | None, str | None, str | None]
) -> Select[Order, str | None, str, str | None, str | None]:
    status, project, drone = filters
    query = _orders(caller)
    if status is not None:
        query = query.where(Order.status == _status(status))
    if project is not None:
        query = query.where(Order.project_id == find_project(db, caller.organization_id, project).id)
    if drone is not None:
        # Removed drones count too: their history remains readable.
        known = serving(db, caller.organization_id, removed=True)
        ids = [each.id for each in known if each.name == drone]
        if not ids:
            raise unknown("drone", drone, [each.name for each in known], "fleet drones")
        query = query.where(Order.drone_id.in_(ids))
    return query


def _status(text: str) -> str:
    if text not in {each.value for each in OrderStatus}:
        raise Invalid(
            f"unknown order status {shown(text)}",
            code="E-ORDER-STATUS",
            next=f"expected one of {', '.join(OrderStatus)}",
        )
    return text


def _summaries(db: Db, caller: Caller, rows: Sequence[Row], now: datetime) -> list[OrderSummary]:
    orders = [row[0] for row in rows]
    stats = totals.of_orders(db, [order.id for order in orders])
    waits = [order.run_id for order in orders if order.status == OrderStatus.AWAITING_APPROVAL and order.run_id]
    calls = open_waits(db, waits) if waits else {}
    at_work = [order.run_id for order in orders if order.status in _AT_WORK and order.run_id]
    runs = db.scalars(select(Run).where(Run.id.in_(at_work))).all() if at_work else ()
    doing = {run.id: {"doing": progress.of_run(run, now), "stalled": progress.is_stalled(run, now)} for run in runs}
    for run in runs:
        before = stats[run.order_id]
        stats[run.order_id] = before.model_copy(update={"duration_ms": before.duration_ms + progress.so_far(run, now)})
    return [
        _summary(caller, row, stats[row[0].id], calls.get(row[0].run_id or "")).model_copy(
            update=doing.get(row[0].run_id or "", {})
        )
        for row in rows
    ]


def _summary(caller: Caller, row: Row, stats: Stats, waiting: Sequence[Wait] | None) -> OrderSummary:
    order, project, provider, drone, agent = row
    names = OrderNames(caller.organization, project, provider, drone, agent)
    return row_documents.order_summary(order, names, stats, waiting[0] if waiting else None)


def _runs(db: Db, order_id: str) -> list[RunDocument]:
    named = select(Run, Drone.name).outerjoin(Drone, Drone.id == Run.drone_id).where(Run.order_id == order_id)
    return [run_document(run, drone) for run, drone in db.execute(named.order_by(Run.generation))]


def _steps(db: Db, order: Order, after: int, limit: int | None) -> list[StepDocument]:
    path = order_path(db, order)
    wanted = select(Step).where(Step.order_id == order.id, Step.seq > after).order_by(Step.seq).limit(limit)
    return [
        step_document(
            step,
            undone=path.undone(step.run_id, step.run_seq),
            resumed=_resumed_from(db, step) if step.kind == "resumed" else None,
        )
        for step in db.scalars(wanted).all()
    ]


def _resumed_from(db: Db, step: Step) -> dict[str, Any]:
    """The point that a run resumed from, in the numbers that users see; null if unknown."""
    run_id, run_seq = step.body.get("run_id"), step.body.get("seq")
    named = select(Run.attempt, Drone.name).outerjoin(Drone, Drone.id == Run.drone_id)
    of_order = Run.id == run_id, Run.order_id == step.order_id
    attempt, drone = db.execute(named.where(*of_order)).one_or_none() or (None, None)
    seq = db.scalar(select(Step.seq).where(Step.run_id == run_id, Step.run_seq == run_seq)) if attempt else None
    return {"from_step": seq, "from_attempt": attempt, "from_drone": drone}


def _todo(db: Db, order: Order) -> list[dict[str, Any]]:
    """The items of the order's last to-do list that was not undone."""
    path = order_path(db, order)
    lists = select(Step.run_id, Step.run_seq, Step.body).where(Step.order_id == order.id, Step.kind == "todo")
    for run_id, run_seq, body in db.execute(lists.order_by(Step.seq.desc())):
        if not path.undone(run_id, run_seq):
            return list(body["items"])
    return []


def _patch_text(db: Db, core: Core, order: Order) -> str | None:
    if order.result_run_id is None or order.patch_bytes > INLINE_PATCH:
        return None
    if order.patch_sha256 is None:
        return ""
    try:
        return blob_of_run(db, core, order.result_run_id, order.patch_sha256).decode("utf-8", "replace")
    except NotFound:
        # The file was lost with its disk. The rest is still worth showing; `fleet patch` reports the problem.
        return None
