"""In a fleet of many drones, an order is placed as if all of them were scored, and only some of them are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from sqlalchemy import event, insert

from control_plane.contract.declarations.organizations import OrganizationRequest
from control_plane.core import Core
from control_plane.db.drones import Drone
from control_plane.db.installation import Organization
from control_plane.db.orders import Order
from control_plane.operations import organizations
from control_plane.orders import placement
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
def queued(plane: Plane) -> str:
    """An order of any drone that waits, as its only drone is offline."""
    plane.drone("away", online=False)
    return plane.submit()


@pytest.fixture
def loads() -> Iterator[list[Any]]:
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


@pytest.mark.dialects
def test_the_choice_is_the_one_among_all_drones(plane: Plane, queued: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random, now = Random(0), beats_on(plane.core)
    for _ in range(12):
        (made,) = add_drones(plane, 1, concurrency=random.randint(2, 4), last_seen_at=now, stopped_at=None)
        if random.random() < 0.8:
            hold(plane, made, random.randint(1, 3), ended=random.random() < 0.2)
    for broken in ({"draining": True}, {"stopped_at": now}, {"removed_at": now}, {"over_quota_at": now}):
        add_drones(plane, 1, **{"last_seen_at": now, "stopped_at": None, **broken})
    add_drones(plane, 1, last_seen_at=plane.core.clock.now() - timedelta(seconds=20), stopped_at=None)
    among_all = chosen(plane.core, queued)
    monkeypatch.setattr(placement, "ENOUGH", 3)
    assert chosen(plane.core, queued) == among_all
    assert found(plane.core, queued).scored == 3


@pytest.mark.dialects
def test_few_drones_of_many_are_read_and_those_with_a_label_or_of_all_organizations_are_found(
    plane: Plane, queued: str, loads: list[Any]
) -> None:
    organizations.create(plane.core, replace(plane.admin, everywhere=True), OrganizationRequest(name="other"))
    (other,) = plane.rows(Organization, Organization.name == "other")
    now = beats_on(plane.core)
    (serving, *_) = add_drones(plane, MANY, last_seen_at=now, organization_id=other.id)
    assert found(plane.core, queued).code == "no_drone_takes_work"
    plane.edit(Drone, serving, serves=["*"])
    assert chosen(plane.core, queued) == "d0001"

    add_drones(plane, MANY, last_seen_at=now, organization_id=plane.admin.organization_id)
    loads.clear()
    placed = found(plane.core, queued)
    assert (placed.scored, len(placed.scores), len(loads)) == (64, 8, 64)

    plane.edit(Order, queued, wanted_labels={"gpu": "yes"})
    mine = {"last_seen_at": now, "labels": {"gpu": "yes"}, "organization_id": plane.admin.organization_id}
    add_drones(plane, 1, **mine)
    assert found(plane.core, queued).because == Placed(code="only_drone", drone="d0301", labels=("gpu=yes",))
    add_drones(plane, 1, **mine)
    placed = found(plane.core, queued)
    assert (placed.because.code, placed.scored) == ("least_work", 2)
