"""Runs of a drone stand-in that take checkpoints and resume from them, with the reports of real runs."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

from control_plane.core import AuthenticatedDrone
from control_plane.operations.runs import blobs
from shared.blobs import digest
from shared.events import (
    AssistantStep,
    Body,
    CheckpointStep,
    Prepared,
    ResumedStep,
    Spent,
    ToolResultStep,
    Usage,
    UserStep,
)
from shared.messages import ToolCall
from shared.work_order import WorkOrder
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

BASE = "b" * 40
NOTE = "It goes on here."


def commit_of(name: str) -> str:
    """The commit of the checkpoint after step `name`."""
    return digest(name.encode())[:40]


def bundle_of(name: str) -> bytes:
    return f"# v2 git bundle with {name}".encode()


def begin(plane: Plane, drone: DroneStandIn, **fields: Any) -> WorkOrder:
    """Submit an order and start it on the drone, up to its prompt."""
    plane.submit("do it", **fields)
    return go(drone)


def go(drone: DroneStandIn) -> WorkOrder:
    """Take the next order and start it: from the beginning, or resumed where it says."""
    drone.renew_lease()
    order = drone.until(drone.take)
    assert drone.claim(order)
    drone.report(order, drone.started(), Prepared(base_commit=BASE))
    if order.resumed is None:
        drone.report(order, UserStep(text=order.prompt, source="prompt"))
    else:
        told = order.resumed
        body = ResumedStep(run_id=told.run_id, seq=told.seq, commit=told.commit, cut_off=told.cut_off, why=told.why)
        drone.report(order, body, UserStep(text=NOTE, source="loop"))
    return order


def steps(name: str) -> list[Body]:
    """An answer with a call, and the call's result."""
    call = ToolCall(id=f"call {name}", name="shell", arguments='{"command": "ls"}')
    said = AssistantStep(text=f"I do {name}.", tool_calls=(call,), usage=Usage(input_tokens=10, cost_usd=0.5))
    return [said, ToolResultStep(call_id=call.id, output=f"{name} is done", return_code=0)]


def checkpoint(name: str, **fields: Any) -> CheckpointStep:
    """The checkpoint after step `name`."""
    known = {"commit": commit_of(name), "bundle_sha256": digest(bundle_of(name))}
    return CheckpointStep.model_validate({**known, "spent": Spent(iterations=1, cost_usd=0.5), **fields})


def work(plane: Plane, drone: DroneStandIn, order: WorkOrder, *names: str, stored: bool = True) -> None:
    """Report complete steps, each with its checkpoint."""
    for name in names:
        if stored:
            content = BytesIO(bundle_of(name))
            run = identity(plane, drone), order.run_id
            blobs.put_blob(plane.core, *run, digest(bundle_of(name)), content, "checkpoint")
        drone.report(order, *steps(name), checkpoint(name))


def identity(plane: Plane, drone: DroneStandIn) -> AuthenticatedDrone:
    return AuthenticatedDrone(drone.id, plane.admin.organization_id, drone.name)


def give_back(drone: DroneStandIn, order: WorkOrder) -> None:
    """End the run so that the order is queued again."""
    drone.report(order, drone.ended(status="preempted", exit_status="canceled", reason="drained", give_back=True))


def fail(plane: Plane, drone: DroneStandIn, order: WorkOrder, exit_status: str = "time_limit") -> None:
    """End the run and the order as failed."""
    ended = drone.ended(status="failed", exit_status=exit_status, reason="out of time", order_at_fault=True)
    drone.report(order, ended)
    plane.until(lambda: plane.status(order.order_id) == "failed")


def succeed(plane: Plane, drone: DroneStandIn, order: WorkOrder) -> None:
    drone.report(order, AssistantStep(text="All done.", usage=Usage(cost_usd=0.5)), drone.ended())
    plane.until(lambda: plane.status(order.order_id) == "succeeded")


def seen(order: WorkOrder) -> list[str]:
    """The contents of the model's context."""
    return [message.content for message in order.context]


def told(*names: str) -> list[str]:
    """The contents that these steps add to a conversation."""
    return [text for name in names for text in (f"I do {name}.", f"{name} is done")]


def undone(plane: Plane, order_id: str, kinds: Sequence[str] = ("user", "assistant")) -> list[str]:
    """The texts of undone steps."""
    return [s.model_dump()["text"] for s in plane.order(order_id).steps if s.undone and s.kind in kinds]
