"""The board's numbers, draining and removing, on each kind of database."""

from __future__ import annotations

import pytest
from sqlalchemy import event, select

from control_plane.core import Caller, Core
from control_plane.db.drones import Drone, InboxMessage
from control_plane.db.orders import Order
from control_plane.db.runs import Run
from control_plane.operations.drones import managing
from control_plane.operations.orders import reading
from shared.errors import Forbidden, NotFound
from shared.reasons import TakenBack
from tests.support.made import later, make_drone, make_project, start_run, submit


def test_a_drone_counts_what_it_runs_and_what_waits_in_its_queue(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_drone(core, admin, concurrency=2)
    first, _second = submit(core, admin), submit(core, admin)
    start_run(core, first.id)
    drone = managing.show_drone(core, admin, "anna")
    assert (drone.running, drone.queued, drone.status) == (1, 1, "online")


def test_a_drone_without_a_free_slot_is_busy(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_drone(core, admin)
    start_run(core, submit(core, admin).id)
    assert managing.list_drones(core, admin)[0].status == "busy"


def test_drones_are_listed_by_name_with_what_they_do(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    berta = make_drone(core, admin, "berta")
    run_id = start_run(core, submit(core, admin).id)
    runs = [{"run_id": run_id, "doing": "cloning", "ended": False}, {"run_id": "s", "doing": "", "ended": True}]
    with core.database.write() as db:
        db.get_one(Drone, berta.drone_id).beat = {"runs": runs}
    make_drone(core, admin, "anna", public_key="B" * 43 + "=")
    listed = managing.list_drones(core, admin)
    assert [each.name for each in listed] == ["anna", "berta"]
    assert [each["doing"] for each in listed[1].doing] == ["cloning"]


def test_a_beat_that_is_older_than_the_end_of_its_run_is_not_shown_as_work(core: Core, admin: Caller) -> None:
    make_drone(core, admin, beat={"runs": [{"run_id": "r", "doing": "delivering", "ended": False}]})
    assert managing.list_drones(core, admin)[0].doing == []


def test_the_number_of_queries_does_not_grow_with_the_fleet(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    few = queries(core, lambda: managing.list_drones(core, admin))
    names = [make_drone(core, admin, f"drone-{number}", public_key=f"{number:044}").name for number in range(20)]
    for name in names:
        start_run(core, submit(core, admin, drone=name).id)
    assert queries(core, lambda: managing.list_drones(core, admin)) == few
    assert len(reading.list_orders(core, admin)) == 20


def test_the_number_of_queries_does_not_grow_with_the_orders(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    submit(core, admin)
    few = queries(core, lambda: reading.list_orders(core, admin))
    ids = [submit(core, admin).id for _ in range(20)]
    assert queries(core, lambda: reading.list_orders(core, admin)) == few
    assert ids


def queries(core: Core, act: object) -> int:
    """How many statements this takes."""
    seen: list[str] = []
    event.listen(core.database.engine, "before_cursor_execute", lambda *given: seen.append(given[2]))
    act()  # type: ignore[operator]
    return len(seen)


def test_a_removed_drones_order_that_had_not_begun_waits_for_another(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_drone(core, admin)
    order = submit(core, admin)
    managing.remove_drone(core, admin, "anna")
    shown = reading.show_order(core, admin, order.id)
    assert (shown.status, shown.drone) == ("queued", None)
    with core.database.read() as db:
        row = db.get_one(Order, order.id)
    assert isinstance(row.facts.returned, TakenBack)
    assert (row.facts.returned.state.code, row.facts.returned.state.drone, row.lost_runs) == ("removed", "anna", 0)


def test_a_removed_drones_run_is_lost_and_its_order_waits_for_another(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_drone(core, admin)
    order = submit(core, admin)
    run_id = start_run(core, order.id)
    managing.remove_drone(core, admin, "anna")
    shown = reading.show_order(core, admin, order.id)
    assert (shown.status, shown.runs[0].status, shown.runs[0].drone) == ("queued", "lost", "anna")
    with core.database.read() as db:
        assert db.get_one(Run, run_id).ended_at is not None


def test_draining_leaves_word_for_the_drone_once(core: Core, admin: Caller) -> None:
    make_drone(core, admin)
    assert managing.drain(core, admin, "anna").status == "draining"
    managing.drain(core, admin, "anna")
    with core.database.read() as db:
        assert [row.body for row in db.scalars(select(InboxMessage))] == [{"kind": "drain", "on": True}]
    assert managing.resume(core, admin, "anna").status == "online"


def test_a_drone_that_fell_silent_is_unresponsive_then_offline(core: Core, admin: Caller) -> None:
    make_drone(core, admin)
    later(core, seconds=15)
    assert managing.show_drone(core, admin, "anna").status == "unresponsive"
    later(core, seconds=45)
    assert managing.show_drone(core, admin, "anna").status == "offline"


def test_only_an_admin_removes_a_drone(core: Core, admin: Caller) -> None:
    make_drone(core, admin)
    with pytest.raises(Forbidden):
        managing.remove_drone(core, Caller(admin.organization_id, "default", "operator", "u"), "anna")


def test_a_drone_of_another_organization_is_not_there(core: Core, admin: Caller) -> None:
    make_drone(core, admin)
    stranger = Caller("000000000000", "other", "admin", "u")
    assert managing.list_drones(core, stranger) == []
    with pytest.raises(NotFound):
        managing.show_drone(core, stranger, "anna")
