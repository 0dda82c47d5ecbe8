"""The one function that moves a row, against the database: what it writes, and who wins."""

from __future__ import annotations

import pytest

from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from control_plane.db.runs import Run
from control_plane.orders.status_changes import move_order, move_run
from shared.errors import Conflict
from shared.states import OrderStatus, RunStatus
from tests.support.made import make_drone, make_project, start_run, submit


@pytest.fixture
def order_id(core: Core, admin: Caller) -> str:
    """A queued order."""
    make_project(core, admin)
    return submit(core, admin).id


def test_a_move_writes_the_status_and_what_goes_with_it(core: Core, order_id: str) -> None:
    with core.database.write() as db:
        move_order(db, db.get_one(Order, order_id), OrderStatus.CANCELED, response="not needed any more")
    with core.database.read() as db:
        order = db.get_one(Order, order_id)
    assert (order.status, order.response) == ("canceled", "not needed any more")


def test_a_row_that_another_hand_moved_first_stays_as_that_hand_left_it(core: Core, order_id: str) -> None:
    with core.database.read() as db:
        seen = db.get_one(Order, order_id)
    with core.database.write() as db:
        move_order(db, db.get_one(Order, order_id), OrderStatus.CANCELED)
    refused = pytest.raises(Conflict, match=r"it was queued and is now canceled; it cannot become assigned")
    with refused, core.database.write() as db:
        move_order(db, db.merge(seen, load=False), OrderStatus.ASSIGNED)
    with core.database.read() as db:
        assert db.get_one(Order, order_id).status == "canceled"


def test_an_order_that_went_round_and_is_queued_again_is_not_moved_by_who_saw_it_before(
    core: Core, order_id: str
) -> None:
    with core.database.read() as db:
        seen = db.get_one(Order, order_id)
    with core.database.write() as db:
        order = db.get_one(Order, order_id)
        move_order(db, order, OrderStatus.ASSIGNED, generation=1)
        move_order(db, order, OrderStatus.QUEUED)
    with pytest.raises(Conflict), core.database.write() as db:
        move_order(db, db.merge(seen, load=False), OrderStatus.ASSIGNED, generation=1)


def test_what_was_changed_by_hand_before_the_move_is_kept(core: Core, order_id: str) -> None:
    with core.database.write() as db:
        order = db.get_one(Order, order_id)
        order.lost_runs = 2
        move_order(db, order, OrderStatus.CANCELED)
    with core.database.read() as db:
        assert db.get_one(Order, order_id).lost_runs == 2


def test_after_the_move_the_row_shows_the_new_state_and_can_move_on(core: Core, order_id: str) -> None:
    with core.database.write() as db:
        order = db.get_one(Order, order_id)
        move_order(db, order, OrderStatus.ASSIGNED, generation=1)
        move_order(db, order, OrderStatus.RUNNING)
        assert (order.status, order.generation) == ("running", 1)


def test_a_run_ends_once(core: Core, admin: Caller, order_id: str) -> None:
    make_drone(core, admin)
    run_id = start_run(core, submit(core, admin).id)
    with core.database.write() as db:
        move_run(db, db.get_one(Run, run_id), RunStatus.SUCCESS)
    refused = pytest.raises(Conflict, match=f"run {run_id} is success; it cannot become lost")
    with refused as refusal, core.database.write() as db:
        move_run(db, db.get_one(Run, run_id), RunStatus.LOST)
    assert refusal.value.code == "E-RUN-STATE"
