"""Move orders that wait, and change the order in which they start."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from control_plane.contract.declarations.orders import MoveRequest, PriorityRequest
from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order
from control_plane.operations.orders.canceling import cancel
from control_plane.operations.orders.queueing import move, set_priority
from control_plane.operations.orders.reading import order_summary
from control_plane.supervisor.outbox_relay import Relay
from control_plane.supervisor.placing import place_queued
from shared.errors import Conflict, NotFound
from tests.support.fleet import Api
from tests.support.made import make_drone, make_project, start_run, submit


@pytest.fixture
def queue(api: Api, admin: Caller) -> list[str]:
    """Three orders on one drone: the first at work, the other two published to its queue."""
    core = api.core
    make_project(core, admin)
    api.add_drone("anna")
    found = [submit(core, admin, f"order {n}").id for n in range(3)]
    place_queued(core)
    Relay(core).publish_all()
    start_run(core, found[0])
    return found


@pytest.fixture
def admin(api: Api) -> Caller:
    return system_caller(api.core)


def drone_of(core: Core, order_id: str) -> str | None:
    with core.database.read() as db:
        named = select(Drone.name).join(Order, Order.drone_id == Drone.id).where(Order.id == order_id)
        return db.scalar(named)


def queued_on(core: Core) -> list[str]:
    """The orders that wait for a drone, in the order in which they were placed."""
    with core.database.read() as db:
        waiting = select(Order.id).join(Dispatch, Dispatch.id == Order.run_id).where(Order.status == "assigned")
        return list(db.scalars(waiting.order_by(Dispatch.created_at, Dispatch.id)))


def test_a_waiting_order_moves_to_the_named_drone_alone(api: Api, admin: Caller, queue: list[str]) -> None:
    make_drone(api.core, admin, "bela")
    with api.core.database.read() as db:
        before = db.scalars(select(Dispatch).where(Dispatch.order_id == queue[1])).one()
    with pytest.raises(NotFound):
        move(api.core, admin, queue[1], MoveRequest(drone="nobody"))
    moved = move(api.core, admin, queue[1], MoveRequest(drone="bela"))
    assert (moved.status, moved.drone, moved.generation) == ("assigned", "bela", 2)
    assert drone_of(api.core, queue[2]) == "anna"
    assert api.core.broker.run_keys(before.drone_id, [before.id])[before.id].startswith("revoked")
    with api.core.database.read() as db:
        assert db.get_one(Dispatch, before.id).closed_at is not None
    # Without a name, an order may go anywhere again.
    alone = submit(api.core, admin, "only on anna", drone="anna")
    assert move(api.core, admin, alone.id).drone == "bela"


def test_an_order_that_has_started_or_was_claimed_is_not_moved(api: Api, admin: Caller, queue: list[str]) -> None:
    make_drone(api.core, admin, "bela")
    with pytest.raises(Conflict) as refused:
        move(api.core, admin, queue[0], MoveRequest(drone="bela"))
    assert refused.value.code == "E-ORDER-STATE"
    with api.core.database.read() as db:
        dispatch = db.scalars(select(Dispatch).where(Dispatch.order_id == queue[1])).one()
    key = next(key for key in api.core.broker.redis.scan_iter() if dispatch.id in str(key))
    api.core.broker.redis.set(key, f"claimed:{dispatch.generation}")
    with pytest.raises(Conflict, match="is starting"):
        move(api.core, admin, queue[1], MoveRequest(drone="bela"))
    assert [drone_of(api.core, each) for each in queue[:2]] == ["anna", "anna"]


def test_a_higher_priority_starts_first_and_a_lower_one_last_and_the_others_keep_their_place(
    api: Api, admin: Caller, queue: list[str]
) -> None:
    assert queued_on(api.core) == queue[1:]
    set_priority(api.core, admin, queue[1], PriorityRequest(priority=-5))
    assert queued_on(api.core) == [queue[2], queue[1]]
    assert order_summary(api.core, admin, queue[2]).generation == 1
    assert set_priority(api.core, admin, queue[1], PriorityRequest(priority=5)).priority == 5
    assert queued_on(api.core) == [queue[1], queue[2]]
    cancel(api.core, admin, queue[1])
    with pytest.raises(Conflict):
        set_priority(api.core, admin, queue[1], PriorityRequest(priority=1))
