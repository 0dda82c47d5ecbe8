"""The facts about orders, which belong to the state for which they were written."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from control_plane.orders.status_changes import explain, move_order
from shared.reasons import JustSubmitted, OrderFacts, Placed
from shared.states import OrderStatus
from tests.support.made import make_drone, make_project, submit

PLACED = OrderFacts(placed=Placed(code="named", drone="anna"))


@pytest.fixture
def order_id(core: Core, admin: Caller) -> str:
    """An order that a drone has."""
    make_project(core, admin)
    make_drone(core, admin)
    return submit(core, admin).id


def order(core: Core, order_id: str) -> Order:
    with core.database.read() as db:
        return db.get_one(Order, order_id)


def test_facts_for_a_state_that_another_process_has_left_are_not_written(core: Core, order_id: str) -> None:
    seen = order(core, order_id)
    with core.database.write() as db:
        move_order(db, db.get_one(Order, order_id), OrderStatus.RUNNING, PLACED)
    with core.database.write() as db:
        assert not explain(db, db.merge(seen, load=False), OrderFacts(waits=JustSubmitted()))
    assert order(core, order_id).facts == PLACED


def test_a_fact_of_a_kind_that_only_a_newer_version_knows_is_read_as_none(core: Core, order_id: str) -> None:
    with core.database.write() as db:
        newer = '{"code": "a kind of tomorrow", "drone": "anna"}'
        db.execute(text("UPDATE orders SET placed_because = :newer, waits_because = :newer"), {"newer": newer})
    assert (order(core, order_id).facts, order(core, order_id).reason) == (OrderFacts(), "")
