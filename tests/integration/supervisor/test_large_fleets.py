"""In a fleet of many drones, an order is placed as if all of them were scored, and only some of them are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from sqlalchemy import event, insert

from control_plane.core import Core
from control_plane.db.drones import Drone
from control_plane.db.installation import Organization
from control_plane.db.orders import Order
from control_plane.declarations.organizations import OrganizationRequest
from control_plane.operations import organizations
from control_plane.orders import likely_drones, placement
from control_plane.orders.placement import Placement, place
from shared.names import new_id
from shared.reasons import Placed
from shared.states import OrderStatus
from tests.support.planes import Plane

MANY = 150


def add_drones(plane: Plane, count: int, **fields: Any) -> list[str]:
    """Drones like the newest one, which never beat again; returns their ids."""
    pattern = plane.rows(Drone)[-1]
    kept = {column.key: getattr(pattern, column.key) for column in Drone.__mapper__.column_attrs}
    number = len(plane.rows(Drone))
    rows = [
        {**kept, "id": new_id(), "name": f"d{number + index:04}", "token_hash": new_id(), **fields}
        for index in range(count)
    ]
    with plane.core.database.write() as db:
        db.execute(insert(Drone), rows)
    return [str(row["id"]) for row in rows]


def beats_on(core: Core) -> datetime:
    """A last beat of drones that are online for the whole test, however slow the machine is."""
    return core.clock.now() + timedelta(hours=1)


def found(core: Core, order_id: str) -> Any:
    """Where the order would go now; nothing changes."""
    with core.database.read() as db:
        return place(db, core, db.get_one(Order, order_id))


def chosen(core: Core, order_id: str) -> str:
    placed = found(core, order_id)
    assert isinstance(placed, Placement)
    return placed.drone.name


@pytest.fixture
def queued(any_plane: Plane) -> str:
    """An order of any drone that waits, as its only drone is offline."""
    any_plane.drone("away", online=False)
    return any_plane.submit()


@pytest.fixture
def loads(any_plane: Plane) -> Iterator[list[Any]]:
    """Every drone that is read from the database."""
    seen = list[Any]()

    def note(drone: Drone, _context: object) -> None:
        seen.append(drone)

    event.listen(Drone, "load", note)
    yield seen
    event.remove(Drone, "load", note)


def hold(plane: Plane, drone_id: str, count: int, *, ended: bool = False) -> None:
    """Orders that the drone has in hand, or that it ran once."""
    for _ in range(count):
        order_id = plane.submit(drone="away")
        now = plane.core.clock.now()
        status = OrderStatus.SUCCEEDED if ended else OrderStatus.RUNNING
        plane.edit(Order, order_id, drone_id=drone_id, status=status, started_at=now, ended_at=now if ended else None)


@pytest.mark.parametrize("seed", [0, 5])
def test_the_choice_is_the_one_among_all_drones(
    any_plane: Plane, queued: str, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random, now = Random(seed), beats_on(any_plane.core)
    for number in range(12):
        (made,) = add_drones(any_plane, 1, concurrency=random.randint(2, 4), last_seen_at=now, stopped_at=None)
        if seed == 5:
            hold(any_plane, made, 5 - number % 2)
        elif random.random() < 0.8:
            hold(any_plane, made, random.randint(1, 3), ended=random.random() < 0.2)
    for broken in ({"draining": True}, {"stopped_at": now}, {"removed_at": now}, {"over_quota_at": now}):
        add_drones(any_plane, 1, **{"last_seen_at": now, "stopped_at": None, **broken})
    add_drones(any_plane, 1, last_seen_at=any_plane.core.clock.now() - timedelta(seconds=20), stopped_at=None)
    among_all = chosen(any_plane.core, queued)
    for module in (likely_drones, placement):
        monkeypatch.setattr(module, "ENOUGH", 3)
    assert chosen(any_plane.core, queued) == among_all
    assert found(any_plane.core, queued).scored == 3


@pytest.fixture
def other(any_plane: Plane) -> str:
    """The id of another organization."""
    organizations.create(any_plane.core, replace(any_plane.admin, everywhere=True), OrganizationRequest(name="other"))
    (made,) = any_plane.rows(Organization, Organization.name == "other")
    return str(made.id)


def test_few_drones_of_many_are_read(any_plane: Plane, queued: str, other: str, loads: list[Any]) -> None:
    now = beats_on(any_plane.core)
    add_drones(any_plane, MANY, last_seen_at=now, organization_id=other)
    add_drones(any_plane, MANY, last_seen_at=now, organization_id=any_plane.admin.organization_id)
    loads.clear()
    placed = found(any_plane.core, queued)
    assert (placed.scored, len(placed.scores), len(loads)) == (64, 8, 64)


def test_the_drones_with_a_label_are_found_among_many(any_plane: Plane, queued: str) -> None:
    now = beats_on(any_plane.core)
    add_drones(any_plane, MANY, last_seen_at=now)
    add_drones(any_plane, 1, last_seen_at=now, labels={"gpu": "yes"})
    any_plane.edit(Order, queued, wanted_labels={"gpu": "yes"})
    assert found(any_plane.core, queued).because == Placed(code="only_drone", drone="d0151", labels=("gpu=yes",))
    add_drones(any_plane, 1, last_seen_at=now, labels={"gpu": "yes"})
    placed = found(any_plane.core, queued)
    assert (placed.because.code, placed.scored) == ("least_work", 2)


def test_a_drone_of_another_organization_that_serves_all_is_found(any_plane: Plane, queued: str, other: str) -> None:
    (drone,) = add_drones(any_plane, 1, last_seen_at=beats_on(any_plane.core), organization_id=other)
    assert found(any_plane.core, queued).code == "no_drone_takes_work"
    any_plane.edit(Drone, drone, serves=["*"])
    assert chosen(any_plane.core, queued) == "d0001"
