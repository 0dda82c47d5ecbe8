"""Work orders: submit and read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Unpack

from sqlalchemy import Select, select
from sqlalchemy.orm import Session as Db
from sqlalchemy.orm import aliased

from control_plane.contract.declarations import orders as declared
from control_plane.contract.declarations.orders import SubmitRequest
from control_plane.contract.documents.limits import EffectiveLimit, effective_limits
from control_plane.contract.documents.orders import OrderDocument, OrderSummary, SteeringMessageDocument, StepDocument
from control_plane.contract.documents.plans import PlanDocument, plan_document
from control_plane.contract.validation.checks import shown
from control_plane.core import Caller, Core
from control_plane.core.lookups.sessions import session_title
from control_plane.db.drones import Drone
from control_plane.db.groups import OrderGroup
from control_plane.db.orders import Order
from control_plane.db.projects import Project, Provider
from control_plane.db.runs import Run, Step
from control_plane.db.teams import Agent
from control_plane.db.waits import Wait
from control_plane.operations import row_documents
from control_plane.operations.flower_links import flower_address
from control_plane.operations.gateway import performs
from control_plane.operations.orders import progress
from control_plane.operations.orders.filtering import OrderTerms, narrowed
from control_plane.operations.orders.removed import has_file, has_patch, no_longer_stored, removed_note
from control_plane.operations.orders.step_reading import StepRange, own_order, runs_of, steps_of, todo_of
from control_plane.operations.orders.submitting import check_request, submit_within
from control_plane.operations.row_documents import OrderClocks, OrderNames, word_document
from control_plane.operations.runs.blobs import blob_of_run
from control_plane.orders import totals
from control_plane.orders.conversations.plan_progress import plan_of_order
from control_plane.orders.conversations.review_answers import unsettled
from control_plane.orders.conversations.steering_messages import unread
from control_plane.orders.plan_waits import PLAN, edit_of
from control_plane.orders.waits import find_wait, open_waits, time_waited
from shared.blobs import INLINE_PATCH
from shared.errors import NotFound
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
def list_orders(core: Core, caller: Caller, limit: int = 50, **terms: Unpack[OrderTerms]) -> list[OrderSummary]:
    """Orders, newest first, in the same few queries for any number of orders.

    Orders that the control plane itself submitted for a service, for example the description of an agent, are included
    only with `every`. Raises Invalid or NotFound for a wrong filter, and Invalid for `mine` with a token of no user.
    """
    with core.database.read() as db:
        wanted = narrowed(db, caller, _orders(caller), terms)
        rows = db.execute(wanted.order_by(Order.number.desc()).limit(max(1, min(limit, MAX_LISTED)))).all()
        return _summaries(db, caller, rows, core.clock.now())


def ended_orders(
    core: Core, caller: Caller, limit: int, since: datetime | None = None, drone: str | None = None
) -> list[OrderSummary]:
    """The work that ended last, after `since`, on `drone`, if given; what ended last comes first.

    Raises NotFound for an unknown drone.
    """
    by_end = Order.ended_at.desc(), Order.number.desc()
    ended = Order.ended_at.is_not(None) if since is None else Order.ended_at > since
    own = select(Order.id).where(Order.organization_id == caller.organization_id, ended)
    with core.database.read() as db:
        # Its names are read only for the few that are shown.
        newest = narrowed(db, caller, own, {"drone": drone}).order_by(*by_end).limit(limit)
        rows = db.execute(_orders(caller).where(Order.id.in_(newest)).order_by(*by_end)).all()
        return _summaries(db, caller, rows, core.clock.now())


def orders_of_groups(db: Db, core: Core, caller: Caller, group_ids: Sequence[str]) -> dict[str, list[OrderSummary]]:
    """The orders of each of these graphs and races, in the order in which they were submitted."""
    found: dict[str, list[OrderSummary]] = {group_id: [] for group_id in group_ids}
    rows = db.execute(_orders(caller).where(Order.group_id.in_(group_ids)).order_by(Order.number)).all()
    for summary in _summaries(db, caller, rows, core.clock.now()):
        found[summary.graph or summary.race or ""].append(summary)
    return found


@performs(declared.SHOW)
def show_order(core: Core, caller: Caller, order_id: str) -> OrderDocument:
    """An order with its runs and steps. Raises NotFound."""
    with core.database.read() as db:
        row = _find(db, caller, order_id)
        (summary,) = _summaries(db, caller, [row], core.clock.now())
        known = {
            "limits": effective_limits(row[0].limits, row[0].limit_sources),
            "todo": todo_of(db, row[0]),
            "unheard": [word_document(word) for word in unread(db, row[0])],
            "runs": runs_of(db, order_id, flower_address(core, caller)),
            "steps": steps_of(db, row[0], StepRange()),
            "unsettled": unsettled(db, order_id),
            "plan": _plan(db, row[0]),
            "removed": removed_note(db, row[0]),
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
        order = own_order(db, caller, order_id)
        return todo_of(db, order), [word_document(word) for word in unread(db, order)]


def limits_of(core: Core, caller: Caller, order_id: str) -> dict[str, EffectiveLimit]:
    """Each limit of an order with its value and where it is set. Raises NotFound."""
    with core.database.read() as db:
        order = own_order(db, caller, order_id)
        return effective_limits(order.limits, order.limit_sources)


def removed_from(core: Core, caller: Caller, order_id: str) -> str | None:
    """What of the order is no longer stored, in one sentence; None: all of it is. Raises NotFound."""
    with core.database.read() as db:
        return removed_note(db, own_order(db, caller, order_id))


def plan_of(core: Core, caller: Caller, order_id: str) -> PlanDocument | None:
    """The order's plan; None if it needs none. Raises NotFound."""
    with core.database.read() as db:
        return _plan(db, own_order(db, caller, order_id))


def is_decided(core: Core, caller: Caller, order_id: str, call_id: str) -> bool:
    """Whether the wait of this call has its answer, which the run has not confirmed yet. Raises NotFound."""
    with core.database.read() as db:
        order = own_order(db, caller, order_id)
        wait = find_wait(db, order.run_id, call_id) if order.run_id else None
        return wait is not None and wait.answer is not None


@performs(declared.STEPS)
def steps_after(core: Core, caller: Caller, order_id: str, after: int = 0, limit: int = 1000) -> list[StepDocument]:
    """At most `limit` steps with a number above `after`, in order. Raises NotFound."""
    with core.database.read() as db:
        wanted = StepRange(after, limit=max(1, min(limit, MAX_STEPS)))
        return steps_of(db, own_order(db, caller, order_id), wanted)


@performs(declared.PATCH)
def patch_of(core: Core, caller: Caller, order_id: str) -> bytes:
    """The patch against the base commit, of any size; empty if nothing changed. Raises NotFound if there is none."""
    with core.database.read() as db:
        order = own_order(db, caller, order_id)
        if order.result_run_id is not None and (order.patch_sha256 is None or has_patch(db, order)):
            return blob_of_run(db, core, order.result_run_id, order.patch_sha256) if order.patch_sha256 else b""
    if order.result_run_id is not None:
        raise no_longer_stored(f"the patch of order {order.id}", "FLEET_KEEP_WORK_DAYS", order.id)
    raise NotFound(
        f"order {order.id} has no patch{'' if order.ended_at else ' yet'}: it is {order.status}",
        code="E-ORDER-PATCH",
        why=order.reason,
        next=f"fleet follow {order.id}" if not order.ended_at else f"fleet show {order.id}",
    )


@performs(declared.EXPORT)
def exported(core: Core, caller: Caller, order_id: str) -> tuple[OrderDocument, bytes | None]:
    """An order with its steps, and its patch; None if there is none, or no longer. Raises NotFound."""
    order = show_order(core, caller, order_id)
    try:
        return order, patch_of(core, caller, order.id)
    except NotFound:
        return order, None


@performs(declared.LOG)
def log_of(core: Core, caller: Caller, order_id: str, seq: int) -> bytes:
    """The full output of the tool result at step `seq`. Raises NotFound if that step is no tool result."""
    with core.database.read() as db:
        own_order(db, caller, order_id)
        step = db.scalar(select(Step).where(Step.order_id == order_id, Step.seq == seq))
        if step is not None and step.kind == "tool_result" and (name := step.body.get("log_sha256")):
            if not has_file(db, step.run_id, name):
                raise no_longer_stored(f"the log of step {seq}", "FLEET_KEEP_LOGS_DAYS", order_id)
            return blob_of_run(db, core, step.run_id, name)
    if step is None or step.kind != "tool_result":
        raise NotFound(
            f"step {seq} of order {order_id} {'is not a tool result' if step else 'does not exist'}",
            code="E-ORDER-LOG",
            next=f"fleet show {order_id}    lists the steps with their numbers",
        )
    # A short output is stored in the step, without a separate file.
    return str(step.body.get("output", "")).encode("utf-8", "replace")


@performs(declared.RAW)
def raw_of(core: Core, caller: Caller, order_id: str, seq: int) -> bytes:
    """The raw answer that the provider gave at step `seq`, as JSON Lines. Raises NotFound if none is kept."""
    with core.database.read() as db:
        own_order(db, caller, order_id)
        step = db.scalar(select(Step).where(Step.order_id == order_id, Step.seq == seq))
        if step is not None and (name := step.body.get("raw_sha256")):
            if not has_file(db, step.run_id, name):
                raise no_longer_stored(f"the raw answer of step {seq}", "FLEET_KEEP_LOGS_DAYS", order_id)
            return blob_of_run(db, core, step.run_id, name)
    raise NotFound(
        f"step {seq} of order {order_id} has no raw answer",
        code="E-ORDER-RAW",
        why=str(step.body.get("raw_note") or "") if step is not None else "",
        next="fleet submit … --keep-raw    keeps those of an order",
    )


Row = tuple[Order, str | None, str, str | None, str | None, str | None, str | None, str | None, str]
_Orders = Select[Order, str | None, str, str | None, str | None, str | None, str | None, str | None, str]
_Reviewer = aliased(Provider)


def _orders(caller: Caller) -> _Orders:
    return _all_orders().where(Order.organization_id == caller.organization_id)


@cache
def _all_orders() -> _Orders:
    """Built once: for each request, it took longer than the query itself."""
    names = Project.slug, Provider.name, Drone.name, Agent.name, OrderGroup.kind, OrderGroup.winner_id, _Reviewer.name
    return (
        select(Order, *names, session_title())
        .join(Project, Project.id == Order.project_id)
        .join(Provider, Provider.id == Order.provider_id)
        .outerjoin(Drone, Drone.id == Order.drone_id)
        .outerjoin(Agent, Agent.id == Order.agent_id)
        .outerjoin(OrderGroup, OrderGroup.id == Order.group_id)
        .outerjoin(_Reviewer, _Reviewer.id == Order.reviewer_id)
    )


def _find(db: Db, caller: Caller, order_id: str) -> Row:
    row = db.execute(_orders(caller).where(Order.id == order_id)).one_or_none()
    if row is None:
        raise NotFound(f"order {shown(order_id)} not found", code="E-ORDER-404", next="fleet orders")
    return row


def _summaries(db: Db, caller: Caller, rows: Sequence[Row], now: datetime) -> list[OrderSummary]:
    orders = [row[0] for row in rows]
    stats = totals.of_orders(db, [order.id for order in orders])
    waits = [order.run_id for order in orders if order.status == OrderStatus.AWAITING_APPROVAL and order.run_id]
    calls = open_waits(db, waits) if waits else {}
    at_work = [order.run_id for order in orders if order.status in _AT_WORK and order.run_id]
    runs = db.scalars(select(Run).where(Run.id.in_(at_work))).all() if at_work else ()
    doing = {run.id: {"doing": progress.of_run(run, now), "stalled": progress.is_stalled(run, now)} for run in runs}
    waited = time_waited(db, [order.id for order in orders], now)
    clocks = {order.id: _clocks(order.id, waited) for order in orders}
    for run in runs:
        before, so_far = stats[run.order_id], progress.so_far(run, waited.get((run.order_id, run.id), timedelta()), now)
        stats[run.order_id] = before.model_copy(update={"duration_ms": before.duration_ms + so_far})
        if run.ended_at is None and not calls.get(run.id):
            since = now - timedelta(milliseconds=stats[run.order_id].duration_ms)
            clocks[run.order_id] = replace(clocks[run.order_id], working_since=since)
    return [
        _summary(caller, row, (stats[row[0].id], clocks[row[0].id]), calls.get(row[0].run_id or "")).model_copy(
            update=doing.get(row[0].run_id or "", {})
        )
        for row in rows
    ]


def _clocks(order_id: str, waited: Mapping[tuple[str, str], timedelta]) -> OrderClocks:
    return OrderClocks(waited=sum((time for (order, _), time in waited.items() if order == order_id), timedelta()))


def _summary(
    caller: Caller, row: Row, figures: tuple[Stats, OrderClocks], waiting: Sequence[Wait] | None
) -> OrderSummary:
    order, project, provider, drone, agent, group_kind, winner, reviewer, title = row
    names = OrderNames(caller.organization, project, provider, drone, agent, group_kind, winner, reviewer, title)
    return row_documents.order_summary(order, names, *figures, waiting[0] if waiting else None)


def _plan(db: Db, order: Order) -> PlanDocument | None:
    progress = plan_of_order(db, order)
    if progress is None:
        return None
    # While a run that continues the order has not asked yet, the wait of the earlier run has the edits.
    same = select(Wait).where(Wait.order_id == order.id, Wait.kind == PLAN, Wait.subject == progress.subject)
    wait = db.scalar(same.order_by(Wait.number.desc()).limit(1))
    return plan_document(progress, edit_of(wait) if wait is not None else None)


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
