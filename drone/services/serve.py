"""Does what a service order asks for."""

from __future__ import annotations

from drone.runs.context import RunContext
from shared.errors import OrderError
from shared.outcome import Outcome
from shared.work_order import WorkOrder


def serve(order: WorkOrder, context: RunContext) -> Outcome:
    """Do it, and say what came of it: `response` is the text that was asked for. Raises OrderError where it fails."""
    raise OrderError(f"this drone does not know the service {order.purpose!r}", code="E-SERVICE")
