"""Batches of a control plane with stand-in drones: submitted, read, and worked off."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from control_plane.contract.declarations.batches import BatchDocument, BatchRequest, BatchRowDocument
from control_plane.operations.batches import reading, submitting
from shared.events import AssistantStep, Delivered, Prepared, Usage, UserStep
from shared.outcome import Verification
from shared.work_order import WorkOrder
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

Doc = dict[str, Any]
COST = 0.25


def rows_of(ids: Iterable[object], **fields: Any) -> list[Doc]:
    return [{"id": str(each), "project": "app", "prompt": f"solve {each}", **fields} for each in ids]


def submit_batch(plane: Plane, rows: list[Doc], name: str = "night", parallel: int = 4) -> BatchDocument:
    request = BatchRequest.model_validate({"name": name, "parallel": parallel, "rows": rows})
    return submitting.submit(plane.core, plane.admin, request)


def shown(plane: Plane, batch: str = "night") -> BatchDocument:
    return reading.show(plane.core, plane.admin, batch)


def rows(plane: Plane, batch: str = "night", **terms: Any) -> list[BatchRowDocument]:
    return reading.rows(plane.core, plane.admin, batch, limit=1000, **terms)


def work(
    drone: DroneStandIn, order: WorkOrder, verification: Verification = Verification.VERIFIED, **ended: Any
) -> None:
    """Claim the order and report a run of one step, which costs 0.25 USD; nothing if it was canceled meanwhile."""
    if drone.claim(order):
        ends(drone, order, verification, **ended)


def ends(
    drone: DroneStandIn, order: WorkOrder, verification: Verification = Verification.VERIFIED, **ended: Any
) -> None:
    """The same for an order that the drone has claimed."""
    answer = AssistantStep(text="done", usage=Usage(cost_usd=COST))
    prompt = UserStep(text=order.prompt, source="prompt")
    drone.report(order, drone.started(), Prepared(base_commit="a" * 40), prompt, answer)
    drone.report(order, Delivered(), drone.ended(verification=verification, **ended))


def work_off(plane: Plane, each: Callable[[DroneStandIn, WorkOrder], None] = work, batch: str = "night") -> None:
    """Let the drones do what they receive until no row of the batch waits or runs."""

    def step() -> bool:
        for drone in plane.drones:
            while (order := drone.take()) is not None:
                each(drone, order)
        return shown(plane, batch).status == "finished"

    plane.until(step)
