"""Carries out a service order."""

from __future__ import annotations

from drone.agent.budget import RunBudget
from drone.services.context import ServiceContext
from drone.services.texts import describe, write_title
from shared.errors import OrderError
from shared.outcome import Outcome
from shared.work_order import WorkOrder


def serve(order: WorkOrder, context: ServiceContext, budget: RunBudget) -> Outcome:
    """Carry out a service order; `response` in the outcome is the requested text. Raises OrderError if it fails.

    Model usage is charged to `budget`.
    """
    match order.purpose:
        case "describe":
            return describe(order, context, budget)
        case "pull_request":
            # Imported only when needed, like the others below: most runs are none of these.
            from drone.services.pull_request import open_pull_request

            return open_pull_request(order, context)
        case "code_host":
            from drone.services.code_host import sync_code_host

            return sync_code_host(order, context)
        case "title":
            return write_title(order, context, budget)
        case "check_provider":
            from drone.services.checks import check_provider

            return check_provider(order, context, budget)
        case "check_project":
            from drone.services.checks import check_project

            return check_project(order, context, budget)
        case _:
            raise OrderError(f"this drone does not support the service {order.purpose!r}", code="E-SERVICE-UNKNOWN")
