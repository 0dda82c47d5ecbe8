"""The one function that moves a row, against the database: what it writes, and who wins."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import pytest
from sqlalchemy import text

from control_plane.core import Caller, Core
from control_plane.core.background.leases import Owners
from control_plane.db.engine import Database
from control_plane.db.orders import Order
from control_plane.orders.numbers import next_number
from control_plane.orders.status_changes import explain, move_order
from shared.errors import Conflict
from shared.reasons import JustSubmitted, OrderFacts, Placed
from shared.states import OrderStatus
from tests.support.clocks import HandClock
from tests.support.made import make_project, submit


@pytest.fixture
def order_id(core: Core, admin: Caller) -> str:
    """A queued order."""
    make_project(core, admin)
    return submit(core, admin).id


@pytest.mark.dialects
def test_a_row_that_another_hand_moved_first_stays_as_that_hand_left_it_also_where_its_status_is_the_same_again(
    core: Core, order_id: str
) -> None:
    def is_refused_to_who_saw(seen: Order) -> None:
        with pytest.raises(Conflict), core.database.write() as db:
            move_order(db, db.merge(seen, load=False), OrderStatus.ASSIGNED, generation=1)

    with core.database.read() as db:
        seen = db.get_one(Order, order_id)
    with core.database.write() as db:
        order = db.get_one(Order, order_id)
        move_order(db, order, OrderStatus.ASSIGNED, generation=1)
        move_order(db, order, OrderStatus.QUEUED)
    is_refused_to_who_saw(seen)
    with core.database.write() as db:
        move_order(db, db.get_one(Order, order_id), OrderStatus.CANCELED)
    is_refused_to_who_saw(seen)
    with core.database.read() as db:
        assert db.get_one(Order, order_id).status == "canceled"


# --- facts about orders, which belong to the state for which they were written


def test_facts_for_a_state_that_another_process_has_left_are_not_written(core: Core, order_id: str) -> None:
    placed = OrderFacts(placed=Placed(code="named", drone="anna"))
    with core.database.read() as db:
        seen = db.get_one(Order, order_id)
    with core.database.write() as db:
        move_order(db, db.get_one(Order, order_id), OrderStatus.ASSIGNED, placed, generation=1)
    with core.database.write() as db:
        assert not explain(db, db.merge(seen, load=False), OrderFacts(waits=JustSubmitted()))
    with core.database.read() as db:
        assert db.get_one(Order, order_id).facts == placed


def test_a_fact_of_a_kind_that_only_a_newer_version_knows_is_read_as_none(core: Core, order_id: str) -> None:
    with core.database.write() as db:
        newer = '{"code": "a kind of tomorrow", "drone": "anna"}'
        db.execute(text("UPDATE orders SET placed_because = :newer, waits_because = :newer"), {"newer": newer})
    with core.database.read() as db:
        order = db.get_one(Order, order_id)
    assert (order.facts, order.reason) == (OrderFacts(), "")


# --- leases: who holds one, and for how long


@pytest.mark.dialects
def test_a_lease_has_one_holder_until_it_expires(core: Core) -> None:
    clock, database = HandClock(core.clock.now()), core.database
    first, second = (Owners(holder, clock, 30) for holder in ("first", "second"))

    assert database.transact(lambda db: first.hold(db, "stream"))
    assert not database.transact(lambda db: second.hold(db, "stream"))
    clock.passed += 31
    assert database.transact(lambda db: second.hold(db, "stream"))
    assert not database.transact(lambda db: first.hold(db, "stream"))


# --- several processes that write at once: nothing is lost, nothing is counted twice


OTHER = {OrderStatus.QUEUED: OrderStatus.ASSIGNED, OrderStatus.ASSIGNED: OrderStatus.QUEUED}


def write(url: str, order_id: str, rounds: int) -> list[int]:
    """Take a number and move the order to its other state, `rounds` times; the numbers."""
    database = Database(url)
    taken = []
    for _ in range(rounds):
        with database.write() as db:
            taken.append(next_number(db))
        while not moved(database, order_id):
            pass
    database.dispose()
    return taken


def moved(database: Database, order_id: str) -> bool:
    """Read the order, then write a change that depends on it: the pattern that loses writes without protection."""
    try:
        with database.write() as db:
            order = db.get_one(Order, order_id)
            move_order(db, order, OTHER[OrderStatus(order.status)], generation=order.generation + 1)
    except Conflict:
        return False
    return True


@pytest.mark.dialects
def test_three_that_write_at_once_lose_no_transition_and_never_take_the_same_number(
    core: Core, order_id: str, database_url: str
) -> None:
    with ThreadPoolExecutor(3) as pool:
        taken = list(pool.map(lambda _: write(database_url, order_id, 20), range(3)))
    with core.database.read() as db:
        order = db.get_one(Order, order_id)
    assert (order.generation, order.status) == (60, "queued")
    assert sorted(chain(*taken)) == list(range(2, 62))
    assert taken == [sorted(each) for each in taken]
