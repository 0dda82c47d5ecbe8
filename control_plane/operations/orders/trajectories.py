"""The trajectory of an order's run, read from its stored steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from control_plane.contract.declarations import orders as declared
from control_plane.contract.validation.checks import shown
from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from control_plane.db.runs import Run, Step
from control_plane.operations.gateway import performs
from control_plane.operations.orders.step_reading import own_order
from control_plane.orders.conversations.history import messages_along, way_of
from control_plane.orders.conversations.run_paths import Segment, path_to
from shared.errors import NotFound
from shared.events import Body
from shared.messages import Message
from shared.terminal.boundary import version
from shared.trajectories import RunFacts, trajectory

_BODY: TypeAdapter[Body] = TypeAdapter(Body)
_AT_ONCE = 500
"""Steps read from the database together."""


@performs(declared.TRAJECTORY)
def trajectory_of(core: Core, caller: Caller, order_id: str, run: str | None = None) -> dict[str, Any]:
    """The trajectory document of one run: `run`, else the run that was delivered, else the last one.

    For a run that resumed from another run's checkpoint, that run's path up to the checkpoint precedes its own steps.

    Raises NotFound for an unknown order or run, and while no run has begun.
    """
    with core.database.read() as db:
        order = own_order(db, caller, order_id)
        shown_run = _run(db, order, run)
        facts = RunFacts(order.id, shown_run.id, order.model, order.mode, order.limits, version())
        return trajectory(facts, _steps(db, path_to(db, shown_run.id)))


def sent_for(core: Core, caller: Caller, order_id: str, seq: int) -> list[Message]:
    """What the model was sent for the answer in this step, earlier turns first; the system prompt is not stored.

    Raises NotFound for an unknown order, and for a step that is no answer.
    """
    with core.database.read() as db:
        order = own_order(db, caller, order_id)
        answers = select(Step).where(Step.order_id == order.id, Step.seq == seq, Step.kind == "assistant")
        answer = db.scalar(answers)
        if answer is None:
            raise NotFound(
                f"step {seq} of order {order.id} is no answer of a model",
                code="E-STEP-404",
                next=f"fleet show {order.id}",
            )
        return messages_along(db, way_of(db, order), path_to(db, answer.run_id, answer.run_seq - 1))


def _run(db: Db, order: Order, run_id: str | None) -> Run:
    runs = list(db.scalars(select(Run).where(Run.order_id == order.id).order_by(Run.generation)))
    if not runs:
        raise NotFound(
            f"order {order.id} has no trajectory{'' if order.ended_at else ' yet'}: it is {order.status}",
            code="E-ORDER-TRAJECTORY",
            why=order.reason or "none of its runs has started",
            next=f"fleet show {order.id}" if order.ended_at else f"fleet follow {order.id}",
        )
    wanted = run_id or order.result_run_id
    found = next((run for run in runs if run.id == wanted), None)
    if found is None and run_id is not None:
        raise NotFound(
            f"order {order.id} has no run {shown(run_id)}",
            code="E-ORDER-RUN",
            why=f"its runs are {', '.join(run.id for run in runs)}",
            next=f"fleet trajectory {order.id} --run {runs[-1].id}",
        )
    return found or runs[-1]


def _steps(db: Db, path: Sequence[Segment]) -> Iterator[tuple[datetime, Body]]:
    """The recorded steps along the path, in the drones' order and with the drones' timestamps, read in parts."""
    for segment in path:
        wanted = select(Step.drone_at, Step.body).where(Step.run_id == segment.run_id)
        if segment.upto is not None:
            wanted = wanted.where(Step.run_seq <= segment.upto)
        for at, body in db.execute(wanted.order_by(Step.run_seq).execution_options(yield_per=_AT_ONCE)):
            yield at, _BODY.validate_python(body)
