"""Parts of an order's transcript: a range of its steps, those of some kinds, its runs, its to-do list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from control_plane.contract.documents.orders import RunDocument, StepDocument
from control_plane.contract.validation.checks import shown
from control_plane.core import Caller, Core
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Run, Step
from control_plane.operations.flower_links import flower_address, task_link
from control_plane.operations.row_documents import run_document, step_document
from control_plane.orders.conversations.run_paths import order_path
from shared.errors import NotFound


@dataclass(frozen=True)
class StepRange:
    """Which steps of an order; all without limits."""

    after: int = 0
    before: int | None = None
    kinds: Sequence[str] = ()
    """Empty: all kinds."""
    limit: int | None = None
    newest: bool = False
    """With a limit: the last ones of the range instead of the first ones."""


def own_order(db: Db, caller: Caller, order_id: str) -> Order:
    """The order, if it belongs to the caller's organization. Raises NotFound."""
    own = Order.organization_id == caller.organization_id, Order.id == order_id
    order = db.scalar(select(Order).where(*own))
    if order is None:
        raise NotFound(f"order {shown(order_id)} not found", code="E-ORDER-404", next="fleet orders")
    return order


def read_steps(core: Core, caller: Caller, order_id: str, wanted: StepRange) -> list[StepDocument]:
    """The steps of a range, in order. Raises NotFound."""
    with core.database.read() as db:
        return steps_of(db, own_order(db, caller, order_id), wanted)


def read_status_and_steps(
    core: Core, caller: Caller, order_id: str, wanted: StepRange
) -> tuple[str, list[StepDocument]]:
    """The order's status, and the steps of a range, in order. Raises NotFound."""
    with core.database.read() as db:
        order = own_order(db, caller, order_id)
        return order.status, steps_of(db, order, wanted)


def read_runs(core: Core, caller: Caller, order_id: str) -> list[RunDocument]:
    """The order's runs, first one first. Raises NotFound."""
    with core.database.read() as db:
        return runs_of(db, own_order(db, caller, order_id).id, flower_address(core, caller))


def runs_of(db: Db, order_id: str, flower: str | None) -> list[RunDocument]:
    """The order's runs, first one first, with links to their tasks in this Flower."""
    named = select(Run, Drone.name, Dispatch.choice).join(Dispatch, Dispatch.id == Run.id)
    with_drones = named.outerjoin(Drone, Drone.id == Run.drone_id).where(Run.order_id == order_id)
    rows = db.execute(with_drones.order_by(Run.generation))
    return [run_document(run, drone, choice, task_link(flower, run.id)) for run, drone, choice in rows]


def steps_of(db: Db, order: Order, wanted: StepRange) -> list[StepDocument]:
    """The steps of a range, in order, each with whether a later run undid it."""
    path = order_path(db, order)
    query = select(Step).where(Step.order_id == order.id, Step.seq > wanted.after)
    if wanted.before is not None:
        query = query.where(Step.seq < wanted.before)
    if wanted.kinds:
        query = query.where(Step.kind.in_(wanted.kinds))
    order_by = Step.seq.desc() if wanted.newest else Step.seq
    steps = sorted(db.scalars(query.order_by(order_by).limit(wanted.limit)), key=lambda step: step.seq)
    return [
        step_document(
            step,
            undone=path.undone(step.run_id, step.run_seq),
            resumed=_resumed_from(db, step) if step.kind == "resumed" else None,
        )
        for step in steps
    ]


def todo_of(db: Db, order: Order) -> list[dict[str, Any]]:
    """The items of the order's last to-do list that was not undone."""
    path = order_path(db, order)
    lists = select(Step.run_id, Step.run_seq, Step.body).where(Step.order_id == order.id, Step.kind == "todo")
    for run_id, run_seq, body in db.execute(lists.order_by(Step.seq.desc())):
        if not path.undone(run_id, run_seq):
            return list(body["items"])
    return []


def _resumed_from(db: Db, step: Step) -> dict[str, Any]:
    """The point that a run resumed from, in the numbers that users see; null if unknown."""
    run_id, run_seq = step.body.get("run_id"), step.body.get("seq")
    named = select(Run.attempt, Drone.name).outerjoin(Drone, Drone.id == Run.drone_id)
    of_order = Run.id == run_id, Run.order_id == step.order_id
    attempt, drone = db.execute(named.where(*of_order)).one_or_none() or (None, None)
    seq = db.scalar(select(Step.seq).where(Step.run_id == run_id, Step.run_seq == run_seq)) if attempt else None
    return {"from_step": seq, "from_attempt": attempt, "from_drone": drone}
