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
from shared.control import Drain
from tests.support.made import make_drone, make_project, submit
from tests.support.planes import Plane

TABLES = {"attention_messages", "schedules", "trace_exports", "webhook_deliveries"}


def woken(core: Core) -> set[str]:
    """The names of the loops that have work."""
    wakes = {name: Event() for name in (*OUTBOXES, *OPEN_ORDERS)}
    wake_for(core, OUTBOXES, wakes)
    wake_for(core, OPEN_ORDERS, wakes)
    return {name for name, wake in wakes.items() if wake.is_set()}


def test_only_loops_with_work_are_woken(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    drone = make_drone(core, admin)
    assert woken(core) == set()
    with core.database.write() as db:
        notify_drone(db, core, drone.drone_id, Drain(on=True))
    assert woken(core) == {"inbox"}


def test_an_order_wakes_those_that_watch_over_it_and_its_dispatch_those_that_send_it(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    order = submit(core, admin)
    assert woken(core) == set(OPEN_ORDERS)
    make_drone(core, admin)
    place_queued(core)
    assert woken(core) == {*OPEN_ORDERS, "relay"}
    with core.database.write() as db:
        db.get_one(Order, order.id).ended_at = core.clock.now()
    assert woken(core) == {*OPEN_ORDERS, "relay"}, "its run is still open"


def test_an_idle_supervisor_asks_about_all_outboxes_at_once(plane: Plane) -> None:
    plane.supervisor()
    asked: list[set[str]] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("SELECT"):
            asked.append({table for table in TABLES if f"FROM {table}" in statement})

    event.listen(plane.core.database.engine, "before_cursor_execute", note)
    plane.until(lambda: asked.count(TABLES) >= 10)
    event.remove(plane.core.database.engine, "before_cursor_execute", note)

    assert [tables for tables in asked if tables not in (set(), TABLES)] == []
