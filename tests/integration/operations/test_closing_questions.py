"""An order that succeeded without changes and closes with a question says so; what ended otherwise does not."""

from __future__ import annotations

from typing import Any

import pytest

from shared.events import Delivered
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

ASKS = {"response": "I looked. **Which one?**"}


@pytest.fixture
def oka(plane: Plane) -> DroneStandIn:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    return drone


def ended(plane: Plane, drone: DroneStandIn, *before: Any, **how: Any) -> Any:
    """The document of an order whose run ended like this."""
    drone.renew_lease()
    plane.submit()
    order = plane.until(drone.take)
    assert drone.claim(order)
    drone.report(order, drone.started(), *before, drone.ended(**how))
    return plane.until(lambda: (o := plane.order(order.order_id)).ended_at and o)


def test_an_order_that_ends_with_a_question_asks_and_succeeded(any_plane: Plane) -> None:
    drone = any_plane.drone()
    any_plane.collector(), any_plane.supervisor()
    order = ended(any_plane, drone, **ASKS)
    assert (order.asks, order.status, order.title) == (True, "succeeded", "do it")


def test_an_order_with_changes_does_not_ask(plane: Plane, oka: DroneStandIn) -> None:
    delivered = Delivered(base_commit="1" * 40, head_commit="2" * 40, patch_bytes=7)
    assert not ended(plane, oka, delivered, **ASKS).asks


@pytest.mark.parametrize("how", [{"response": "Done."}, {**ASKS, "status": "failed", "exit_status": "model_error"}])
def test_an_order_that_failed_or_says_something_else_does_not_ask(
    plane: Plane, oka: DroneStandIn, how: dict[str, Any]
) -> None:
    assert not ended(plane, oka, **how).asks
