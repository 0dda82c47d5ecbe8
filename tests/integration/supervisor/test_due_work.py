"""The quick loops are woken when there is work for them, and an idle supervisor asks the database little."""

from __future__ import annotations

from threading import Event
from typing import Any

from sqlalchemy import event

from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from control_plane.drones.inbox import notify_drone
from control_plane.supervisor.due_work import OPEN_ORDERS, OUTBOXES, wake_for
from control_plane.supervisor.placing import place_queued
from control_plane.supervisor.waiting_reasons import refresh_reasons
from shared.control import Drain
from tests.support.made import make_drone, make_project, submit
from tests.support.planes import Plane


def woken(core: Core) -> set[str]:
    """The names of the loops that have work."""
    wakes = {name: Event() for name in (*OUTBOXES, *OPEN_ORDERS)}
    wake_for(core, OUTBOXES, wakes)
    wake_for(core, OPEN_ORDERS, wakes)
    return {name for name, wake in wakes.items() if wake.is_set()}


def test_only_loops_with_work_are_woken(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    assert woken(core) == set()
    order = submit(core, admin)
    assert woken(core) == set(OPEN_ORDERS)
    drone = make_drone(core, admin)
    place_queued(core)
    assert woken(core) == {*OPEN_ORDERS, "relay"}
    with core.database.write() as db:
        db.get_one(Order, order.id).ended_at = core.clock.now()
        notify_drone(db, core, drone.drone_id, Drain(on=True))
    assert woken(core) == {*OPEN_ORDERS, "relay", "inbox"}, "its run is still open"


# --- what a supervisor's rounds cost does not grow with the square of the orders that wait


def test_the_reasons_of_many_waiting_orders_take_as_many_statements_as_those_of_few(plane: Plane) -> None:
    plane.drone()
    statements, counts = list[Any](), []
    event.listen(plane.core.database.engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    for number in (2, 6):
        for _ in range(number):
            plane.submit()
        statements.clear()
        assert refresh_reasons(plane.core) == []
        counts.append(len(statements))
    assert counts[0] == counts[1] > 0
