"""Orders that start after others: they wait for success and say so, and build on what the others left."""

from __future__ import annotations

from io import BytesIO

import pytest

from control_plane.core import AuthenticatedDrone
from control_plane.db.drones import Drone
from control_plane.declarations.projects import ProjectRequest
from control_plane.operations import projects
from control_plane.operations.runs import blobs
from shared.blobs import digest
from shared.errors import FleetError, Invalid, NotFound
from shared.events import Delivered
from shared.names import branch
from shared.reasons import AfterOrder
from shared.work_order import Base, MergedWork, WorkOrder
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn


def taken(drone: DroneStandIn) -> WorkOrder:
    """The next order that the drone receives, claimed."""
    order = drone.until(drone.take)
    assert order is not None
    assert drone.claim(order)
    return order


def works(drone: DroneStandIn, order: WorkOrder, head: str | None, **ended: str) -> None:
    """The run of the order, which leaves a commit or nothing."""
    drone.report(order, drone.started())
    if head is not None:
        drone.report(order, delivered(order.order_id, head))
    drone.report(order, drone.ended(**ended))


def delivered(order_id: str, head: str) -> Delivered:
    return Delivered(branch=branch(order_id), base_commit="b" * 40, head_commit=head, pushed=True)


def base_of(order_id: str, head: str) -> Base:
    return Base(commit=head, branch=branch(order_id))


@pytest.fixture
def running(plane: Plane) -> Plane:
    plane.collector()
    plane.supervisor()
    return plane


def test_it_waits_until_the_other_has_succeeded_and_starts_from_its_head(running: Plane) -> None:
    oka = running.drone("oka")
    first = running.submit()
    second = running.submit(after=[first])
    assert running.facts(second).waits == AfterOrder(order=first, status="open", waiting=second)
    assert running.order(second).after == [first]

    works(oka, taken(oka), "c" * 40)
    order = taken(oka)
    assert (order.order_id, order.base, order.merges) == (second, base_of(first, "c" * 40), ())
    assert order.session.id != running.order(first).session
    assert order.context == ()


def test_one_that_failed_or_was_canceled_keeps_it_waiting_with_what_to_do(running: Plane) -> None:
    oka = running.drone("oka")
    first = running.submit()
    second = running.submit(after=[first])
    works(oka, taken(oka), None, status="failed", exit_status="time_limit", order_at_fault=True)
    running.until(lambda: running.facts(second).waits == AfterOrder(order=first, status="failed", waiting=second))
    assert running.order(second).reason == (
        f"waiting for order {first} to succeed, but it failed "
        f"(next: fleet retry {first}, fleet resume {first}, or fleet cancel {second})"
    )


def test_the_work_of_several_is_merged_in_the_order_in_which_they_are_named(running: Plane) -> None:
    oka = running.drone("oka", concurrency=3)
    ids = [running.submit() for _ in range(3)]
    last = running.submit(after=ids)
    orders = {order.order_id: order for order in (taken(oka) for _ in ids)}
    for number, each in enumerate(reversed(ids)):
        works(oka, orders[each], str(number) * 40)

    order = taken(oka)
    assert (order.order_id, order.base) == (last, base_of(ids[0], "2" * 40))
    assert order.merges == tuple(
        MergedWork(order=each, base=base_of(each, head * 40)) for each, head in ((ids[1], "1"), (ids[2], "0"))
    )


def test_an_order_that_changed_nothing_stands_for_what_it_built_on(running: Plane) -> None:
    oka = running.drone("oka")
    first = running.submit()
    middle = running.submit(after=[first])
    last = running.submit(after=[middle, first])
    works(oka, taken(oka), "c" * 40)
    works(oka, taken(oka), None)
    order = taken(oka)
    assert (order.order_id, order.base, order.merges) == (last, base_of(first, "c" * 40), ())


def test_a_session_with_work_continues_from_it_and_the_others_are_merged_in(running: Plane) -> None:
    oka = running.drone("oka")
    own, other = running.submit(), running.submit()
    for head in ("c", "d"):
        works(oka, taken(oka), head * 40)
    following = running.submit(session=running.order(own).session, after=[other])
    order = taken(oka)
    assert (order.order_id, order.base) == (following, base_of(own, "c" * 40))
    assert order.merges == (MergedWork(order=other, base=base_of(other, "d" * 40)),)


def test_a_drone_of_an_earlier_version_is_not_given_one(running: Plane) -> None:
    running.drone("old", online=False)
    first = running.submit(drone="old")
    oka = running.drone("oka")
    running.edit(Drone, oka.id, beat={"abilities": ["resume", "teams", "no-scripts"]})
    second = running.submit(after=[first])
    old = next(each for each in running.drones if each.name == "old")
    works(old, taken(old), "c" * 40)
    running.until(lambda: "no drone" in running.order(second).reason)


def test_the_drone_may_read_the_bundles_of_what_the_order_builds_on(running: Plane) -> None:
    core, organization = running.core, running.admin.organization_id
    oka, mila = running.drone("oka"), running.drone("mila")
    first = running.submit(drone="oka")
    second = running.submit(after=[first], drone="mila")
    begun = taken(oka)
    bundle = b"bundle"
    told = AuthenticatedDrone(oka.id, organization, "oka")
    blobs.put_blob(core, told, begun.run_id, digest(bundle), BytesIO(bundle))
    left = Delivered(branch=branch(first), base_commit="b" * 40, head_commit="c" * 40, bundle_sha256=digest(bundle))
    oka.report(begun, oka.started(), left, oka.ended())
    order = taken(mila)
    assert (order.order_id, order.base.bundle) == (second, digest(bundle))
    reader = AuthenticatedDrone(mila.id, organization, "mila")
    assert b"".join(blobs.get_blob(core, reader, begun.run_id, digest(bundle)).chunks) == bundle
    works(mila, order, None)
    running.until(lambda: running.status(second) == "succeeded")
    with pytest.raises(NotFound):
        blobs.get_blob(core, reader, begun.run_id, digest(bundle))


@pytest.mark.parametrize(
    ("fields", "error", "code"),
    [
        ({"after": ["0" * 12]}, NotFound, "E-ORDER-404"),
        ({"base": "main"}, Invalid, "E-ORDER-BASE"),
        ({"base": "abc1234"}, Invalid, "E-ORDER-BASE"),
    ],
)
def test_what_cannot_be_is_refused(plane: Plane, fields: dict[str, object], error: type[FleetError], code: str) -> None:
    with pytest.raises(error) as refusal:
        plane.submit(**fields)
    assert refusal.value.code == code


def test_an_order_starts_from_the_commit_that_was_given(running: Plane) -> None:
    oka = running.drone("oka")
    order_id, commit = running.submit(base="e" * 40), "e" * 40
    order = taken(oka)
    assert (order.order_id, order.base) == (order_id, Base(commit=commit, given=True))
    works(oka, order, "c" * 40)
    session = running.order(order_id).session
    running.until(lambda: running.status(order_id) == "succeeded")
    with pytest.raises(Invalid) as refusal:
        running.submit(base=commit, session=session)
    assert refusal.value.code == "E-ORDER-BASE"


def test_an_order_of_another_project_is_refused(plane: Plane) -> None:
    projects.add(plane.core, plane.admin, ProjectRequest(slug="other", git_url="https://git.example/other.git"))
    elsewhere = plane.submit(project="other")
    with pytest.raises(Invalid) as refusal:
        plane.submit(after=[elsewhere])
    assert refusal.value.code == "E-ORDER-AFTER"
