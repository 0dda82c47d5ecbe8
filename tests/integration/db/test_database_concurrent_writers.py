"""Several processes that write at once: nothing is lost, nothing is counted twice."""

from __future__ import annotations

from itertools import chain

from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from tests.support.made import make_project, submit
from tests.support.writers import run_together


def test_three_processes_writing_transitions_at_once_lose_none(core: Core, admin: Caller, database_url: str) -> None:
    make_project(core, admin)
    order_id = submit(core, admin).id
    run_together(database_url, order_id, processes=3, rounds=100)
    with core.database.read() as db:
        order = db.get_one(Order, order_id)
    assert (order.generation, order.status) == (300, "queued")


def test_three_processes_taking_numbers_at_once_never_get_the_same(
    core: Core, admin: Caller, database_url: str
) -> None:
    make_project(core, admin)
    order_id = submit(core, admin).id
    taken = run_together(database_url, order_id, processes=3, rounds=30)
    assert sorted(chain(*taken)) == list(range(2, 92))
    assert taken == [sorted(each) for each in taken]
