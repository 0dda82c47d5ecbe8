"""The facts about orders during a rolling upgrade: an older process writes status and sentence, and knows no facts."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from control_plane.orders.ending import canceled, finish
from control_plane.orders.status_changes import explain, move_order
from control_plane.supervisor.waiting_reasons import refresh_reasons
from shared.events import Receipt
from shared.reasons import CanceledEnd, JustSubmitted, OrderFacts, Placed
from shared.states import OrderStatus
from tests.support.made import make_drone, make_project, submit

PLACED = OrderFacts(placed=Placed(code="named", drone="anna"))


@pytest.fixture
def order_id(core: Core, admin: Caller) -> str:
    """An order that a drone has."""
    make_project(core, admin)
    make_drone(core, admin)
    return submit(core, admin).id


def older_process_writes(core: Core, order_id: str, **columns: Any) -> None:
    sets = ", ".join(f"{name} = :{name}" for name in columns)
    with core.database.write() as db:
        db.execute(text(f"UPDATE orders SET {sets} WHERE id = :id"), {"id": order_id, **columns})


def order(core: Core, order_id: str) -> Order:
    with core.database.read() as db:
        return db.get_one(Order, order_id)


def test_what_an_older_process_wrote_is_shown_with_a_new_state_or_where_nothing_is_known_and_else_the_facts_win(
    core: Core, order_id: str
) -> None:
    before = order(core, order_id)
    older_process_writes(core, order_id, reason="an older sentence")
    assert (order(core, order_id).facts, order(core, order_id).reason) == (before.facts, before.reason)
    newer = '{"code": "a kind of tomorrow", "drone": "anna"}'
    older_process_writes(core, order_id, placed_because=newer, waits_because=newer, reason="what it means")
    assert (order(core, order_id).facts, order(core, order_id).reason) == (OrderFacts(), "what it means")
    older_process_writes(core, order_id, status="running", reason="an older sentence")
    assert (order(core, order_id).facts, order(core, order_id).reason) == (OrderFacts(), "an older sentence")


def test_an_order_that_an_older_process_placed_is_left_alone_while_it_waits(core: Core, order_id: str) -> None:
    older_process_writes(core, order_id, generation=2, reason="placed by an older process")
    assert refresh_reasons(core) == []
    assert order(core, order_id).reason == "placed by an older process"


def test_a_cancel_that_an_older_process_recorded_keeps_who_asked(core: Core, order_id: str) -> None:
    older_process_writes(core, order_id, status="canceling", reason="cancel asked for by kim")
    with core.database.write() as db:
        ending = canceled(CanceledEnd(code="with_receipt"), Receipt(at=core.clock.now()))
        finish(db, core, db.get_one(Order, order_id), OrderStatus.CANCELED, ending)
    ended = order(core, order_id)
    assert (ended.facts.ended, ended.facts.cancel) == (
        CanceledEnd(code="with_receipt", earlier="cancel asked for by kim"),
        None,
    )


def test_facts_for_a_state_that_another_process_has_left_are_not_written(core: Core, order_id: str) -> None:
    seen = order(core, order_id)
    with core.database.write() as db:
        move_order(db, db.get_one(Order, order_id), OrderStatus.RUNNING, PLACED)
    with core.database.write() as db:
        assert not explain(db, db.merge(seen, load=False), OrderFacts(waits=JustSubmitted()))
    assert order(core, order_id).facts == PLACED
