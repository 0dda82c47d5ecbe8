"""The one function that moves a row, against the database: what it writes, and who wins."""

from __future__ import annotations

from itertools import chain

import pytest

from control_plane.background.leases import Owners
from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from control_plane.db.runs import Run
from control_plane.orders.status_changes import move_order, move_run
from shared.errors import Conflict
from shared.states import OrderStatus, RunStatus
from tests.support.clocks import HandClock
from tests.support.made import make_drone, make_project, start_run, submit
from tests.support.writers import run_together


@pytest.fixture
def order_id(core: Core, admin: Caller) -> str:
    """A queued order."""
    make_project(core, admin)
    return submit(core, admin).id


def test_a_move_writes_the_status_with_what_goes_with_it_or_was_changed_before_and_can_be_followed(
    core: Core, order_id: str
) -> None:
    with core.database.write() as db:
        order = db.get_one(Order, order_id)
        order.lost_runs = 2
        move_order(db, order, OrderStatus.ASSIGNED, generation=1)
        move_order(db, order, OrderStatus.RUNNING)
        assert (order.status, order.generation) == ("running", 1)
        move_order(db, order, OrderStatus.FAILED, response="not needed any more")
    with core.database.read() as db:
        order = db.get_one(Order, order_id)
    assert (order.status, order.response, order.lost_runs) == ("failed", "not needed any more", 2)


def test_a_row_that_another_hand_moved_first_stays_as_that_hand_left_it(core: Core, order_id: str) -> None:
    with core.database.read() as db:
        seen = db.get_one(Order, order_id)
    with core.database.write() as db:
        move_order(db, db.get_one(Order, order_id), OrderStatus.CANCELED)
    refused = pytest.raises(Conflict)
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


def test_a_run_ends_once(core: Core, admin: Caller, order_id: str) -> None:
    make_drone(core, admin)
    run_id = start_run(core, submit(core, admin).id)
    with core.database.write() as db:
        move_run(db, db.get_one(Run, run_id), RunStatus.SUCCESS)
    refused = pytest.raises(Conflict)
    with refused as refusal, core.database.write() as db:
        move_run(db, db.get_one(Run, run_id), RunStatus.LOST)
    assert refusal.value.code == "E-RUN-STATE"


# --- leases: who holds one, and for how long


def test_a_lease_has_one_holder_until_it_expires(core: Core) -> None:
    clock, database = HandClock(core.clock.now()), core.database
    first, second = (Owners(holder, clock, 30) for holder in ("first", "second"))

    assert database.transact(lambda db: first.hold(db, "stream"))
    assert not database.transact(lambda db: second.hold(db, "stream"))
    clock.passed += 31
    assert database.transact(lambda db: second.hold(db, "stream"))
    assert not database.transact(lambda db: first.hold(db, "stream"))


# --- several processes that write at once: nothing is lost, nothing is counted twice


def test_three_processes_writing_at_once_lose_no_transition_and_never_take_the_same_number(
    core: Core, admin: Caller, database_url: str
) -> None:
    make_project(core, admin)
    order_id = submit(core, admin).id
    taken = run_together(database_url, order_id, processes=3, rounds=50)
    with core.database.read() as db:
        order = db.get_one(Order, order_id)
    assert (order.generation, order.status) == (150, "queued")
    assert sorted(chain(*taken)) == list(range(2, 152))
    assert taken == [sorted(each) for each in taken]
