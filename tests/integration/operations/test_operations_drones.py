"""The board's numbers, and drones that are renamed, drained and removed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import event, select

from control_plane.core import Caller, Core
from control_plane.db.drones import Drone, InboxMessage
from control_plane.db.orders import Order
from control_plane.db.runs import Run
from control_plane.declarations.drones import DroneEdit
from control_plane.lookups.organizations import system_caller
from control_plane.operations.drones import managing
from control_plane.operations.orders import reading
from shared.errors import NotFound
from shared.reasons import TakenBack
from tests.support.made import make_drone, make_project, start_run, submit
from tests.support.refusals import code_of


@pytest.mark.dialects
def test_a_drone_counts_what_it_runs_and_what_waits_and_is_busy_without_a_free_slot(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_drone(core, admin, concurrency=2)
    first, second = submit(core, admin), submit(core, admin)
    start_run(core, first.id)
    drone = managing.show_drone(core, admin, "anna")
    assert (drone.running, drone.queued, drone.status) == (1, 1, "online")
    start_run(core, second.id)
    drone = managing.list_drones(core, admin)[0]
    assert (drone.running, drone.queued, drone.status) == (2, 0, "busy")


def test_drones_are_listed_by_name_with_what_they_do_as_far_as_that_has_not_ended(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    berta = make_drone(core, admin, "berta")
    run_id = start_run(core, submit(core, admin).id)
    doing = {run_id: ("cloning", False), "s": ("", True), "not a run that goes on": ("delivering", False)}
    runs = [{"run_id": run_id, "doing": text, "ended": ended} for run_id, (text, ended) in doing.items()]
    with core.database.write() as db:
        db.get_one(Drone, berta.drone_id).beat = {"runs": runs}
    make_drone(core, admin, "anna", public_key="B" * 43 + "=")
    listed = managing.list_drones(core, admin)
    assert [each.name for each in listed] == ["anna", "berta"]
    assert [each["doing"] for each in listed[1].doing] == ["cloning"]


def test_the_number_of_queries_does_not_grow_with_the_fleet_and_the_orders(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_drone(core, admin)
    start_run(core, submit(core, admin).id)
    few = [queries(core, lists) for lists in (managing.list_drones, reading.list_orders)]
    names = [make_drone(core, admin, f"drone-{number}", public_key=f"{number:044}").name for number in range(5)]
    for name in names:
        start_run(core, submit(core, admin, drone=name).id)
    assert [queries(core, lists) for lists in (managing.list_drones, reading.list_orders)] == few
    assert len(reading.list_orders(core, admin)) == 6


def queries(core: Core, lists: Callable[[Core, Caller], object]) -> int:
    """How many statements this takes."""
    seen: list[str] = []
    event.listen(core.database.engine, "before_cursor_execute", lambda *given: seen.append(given[2]))
    lists(core, system_caller(core))
    return len(seen)


@pytest.mark.dialects
def test_a_removed_drones_run_is_lost_and_its_orders_wait_for_another(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_drone(core, admin, concurrency=2)
    begun, order = submit(core, admin), submit(core, admin)
    run_id = start_run(core, begun.id)
    managing.remove_drone(core, admin, "anna")
    shown = reading.show_order(core, admin, begun.id)
    assert (shown.status, shown.runs[0].status, shown.runs[0].drone) == ("queued", "lost", "anna")
    shown = reading.show_order(core, admin, order.id)
    assert (shown.status, shown.drone) == ("queued", None)
    with core.database.read() as db:
        assert db.get_one(Run, run_id).ended_at is not None
        row = db.get_one(Order, order.id)
    assert isinstance(row.facts.returned, TakenBack)
    assert (row.facts.returned.state.code, row.facts.returned.state.drone, row.lost_runs) == ("removed", "anna", 0)


def test_draining_leaves_word_for_the_drone_once(core: Core, admin: Caller) -> None:
    make_drone(core, admin)
    assert managing.drain(core, admin, "anna").status == "draining"
    managing.drain(core, admin, "anna")
    with core.database.read() as db:
        assert [row.body for row in db.scalars(select(InboxMessage))] == [{"kind": "drain", "on": True}]
    assert managing.resume(core, admin, "anna").status == "online"


def test_a_renamed_drone_is_found_by_its_new_name_alone(core: Core, admin: Caller) -> None:
    anna, _ = make_drone(core, admin, "anna"), make_drone(core, admin, "mila")

    assert code_of(lambda: rename(core, admin, "anna", "mila")) == "E-DRONE-NAME"
    assert rename(core, admin, "anna", "anna") == "anna"
    assert rename(core, admin, "anna", "west.7") == "west.7"
    assert managing.show_drone(core, admin, "west.7").id == anna.drone_id
    with pytest.raises(NotFound):
        managing.show_drone(core, admin, "anna")


def rename(core: Core, admin: Caller, name: str, new_name: str) -> str:
    return managing.edit_drone(core, admin, name, DroneEdit(new_name=new_name)).name


def test_a_name_that_celery_or_the_broker_could_misread_is_refused(core: Core, admin: Caller) -> None:
    make_drone(core, admin, "anna")
    for name in ("", "a b", "West", "a@b", "a*", "é", "-a", "%h", "a" * 65):
        assert code_of(lambda name=name: rename(core, admin, "anna", name)) == "E-NAME", name
