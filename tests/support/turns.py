"""Turns of sessions in the state that the collector leaves, created with the fleet's own transitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select

from control_plane.core import Caller, Core
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Step
from control_plane.db.sessions import ChatSession as Chat
from control_plane.orders.assignment import place_and_dispatch
from control_plane.orders.conversations.history import messages_along, way_to
from control_plane.orders.ending import Ending, finish, try_again
from control_plane.supervisor.work_orders import work_order
from shared.events import AssistantStep, Body, ToolResultStep, UserStep
from shared.messages import Message, ToolCall
from shared.outcome import ExitStatus
from shared.reasons import RunEnd
from shared.states import OrderStatus
from shared.work_order import WorkOrder
from tests.support.made import start_run, submit

SUCCEEDED, FAILED, CANCELED = OrderStatus.SUCCEEDED, OrderStatus.FAILED, OrderStatus.CANCELED


def said(prompt: str, answer: str = "done") -> list[Body]:
    """The steps of a short turn: one call, its result, and an answer."""
    call = ToolCall(id=f"call of {prompt}", name="shell", arguments='{"command": "ls"}')
    return [
        UserStep(text=prompt, source="prompt"),
        AssistantStep(text="I look.", tool_calls=(call,)),
        ToolResultStep(call_id=call.id, output=f"what {prompt} found"),
        AssistantStep(text=answer),
    ]


def session_of(core: Core, order_id: str) -> str:
    with core.database.read() as db:
        return db.get_one(Order, order_id).session_id


def play(core: Core, caller: Caller, prompt: str, session: str | None = None, **how: Any) -> str:
    """Submit an order and play it to its end (`end`); returns its id."""
    fields = how.pop("fields", {})
    order_id = submit(core, caller, prompt, session=session, **fields).id
    return end(core, order_id, **{"steps": said(prompt), **how})


def end(
    core: Core,
    order_id: str,
    *,
    steps: Sequence[Body],
    to: OrderStatus = SUCCEEDED,
    exit_status: str = "stopped",
    lost: Sequence[Sequence[Body]] = (),
    **columns: Any,
) -> str:
    """Run a placed order: first the `lost` runs, each with its steps, then one that ends the order with `to`."""
    for attempt in lost:
        report(core, start_run(core, order_id), attempt)
        lose(core, order_id)
    report(core, start_run(core, order_id), steps)
    with core.database.write() as db:
        order = db.get_one(Order, order_id)
        for name, value in columns.items():
            setattr(order, name, value)
        if to is CANCELED:
            order.status = OrderStatus.CANCELING.value
            db.flush()
        finish(db, core, order, to, Ending(ExitStatus(exit_status), RunEnd(detail="so it ended")))
    return order_id


def lose(core: Core, order_id: str) -> None:
    """Lose the order's run, and place the next one."""
    with core.database.write() as db:
        order = db.get_one(Order, order_id)
        try_again(db, core, order, Ending(ExitStatus.LOST, RunEnd(detail="the drone fell silent")))
        place_and_dispatch(db, core, order)


def report(core: Core, run_id: str, bodies: Sequence[Body], *, late: bool = False) -> None:
    """Store the run's next steps, as the collector does."""
    with core.database.write() as db:
        dispatch = db.get_one(Dispatch, run_id)
        seq = db.scalar(select(func.max(Step.seq)).where(Step.order_id == dispatch.order_id)) or 0
        own = db.scalar(select(func.max(Step.run_seq)).where(Step.run_id == run_id)) or 0
        now = core.clock.now()
        for number, body in enumerate(bodies, 1):
            document = body.model_dump(mode="json")
            places = {"seq": seq + number, "run_seq": own + number, "at": now, "drone_at": now}
            owned = {"organization_id": dispatch.organization_id, "order_id": dispatch.order_id, "run_id": run_id}
            db.add(Step(kind=body.kind, body=document, late=late, **owned, **places))


def order_as_sent(core: Core, order_id: str) -> WorkOrder:
    """The order as its drone would receive it now."""
    with core.database.read() as db:
        return work_order(db, core, db.get_one(Dispatch, db.get_one(Order, order_id).run_id))


def context(core: Core, session_id: str) -> list[Message]:
    """The messages that the session's next turn would see."""
    with core.database.read() as db:
        return messages_along(db, way_to(db, db.get_one(Chat, session_id).leaf_id))


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.content for message in messages]
