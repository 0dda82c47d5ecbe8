"""Does what a service order asks for."""

from __future__ import annotations

from drone.agent.budget import Budget
from drone.services.context import ServiceContext
from drone.services.describe import describe
from shared.errors import OrderError
from shared.outcome import Outcome
from shared.work_order import WorkOrder


def serve(order: WorkOrder, context: ServiceContext, budget: Budget) -> Outcome:
    """Do it, and say what came of it: `response` is the text that was asked for. Raises OrderError where it fails.

    What a model is asked on the way is charged to `budget`.
    """
    match order.purpose:
        case "describe":
            return describe(order, context, budget)
        case "pull_request":
            # Not before it is needed: most drones never open one.
            from drone.services.pull_request import open_pull_request

            return open_pull_request(order, context)
        case _:
            raise OrderError(f"this drone does not know the service {order.purpose!r}", code="E-SERVICE-UNKNOWN")
