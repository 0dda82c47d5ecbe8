"""Orders that start after others: they wait for success and say so, and build on what the others left."""

from __future__ import annotations

from io import BytesIO

import pytest

from control_plane.core import AuthenticatedDrone
from control_plane.declarations.projects import ProjectRequest
from control_plane.operations import projects
from control_plane.operations.runs import blobs
from shared.blobs import digest
from shared.errors import Invalid, NotFound
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


def test_one_that_failed_keeps_it_waiting_with_what_to_do(running: Plane) -> None:
    oka = running.drone("oka")
    first = running.submit()
    second = running.submit(after=[first])
    works(oka, taken(oka), None, status="failed", exit_status="time_limit", order_at_fault=True)
    running.until(lambda: running.facts(second).waits == AfterOrder(order=first, status="failed", waiting=second))
    reason = running.order(second).reason
    assert f"fleet retry {first}, fleet resume {first}, or fleet cancel {second}" in reason


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


def test_what_cannot_be_is_refused(plane: Plane) -> None:
    projects.add(plane.core, plane.admin, ProjectRequest(slug="other", git_url="https://git.example/other.git"))
    elsewhere = plane.submit(project="other")
    codes = []
    for fields in ({"after": ["0" * 12]}, {"base": "main"}, {"base": "abc1234"}, {"after": [elsewhere]}):
        with pytest.raises((NotFound, Invalid)) as refusal:
            plane.submit(**fields)
        codes.append(refusal.value.code)
    assert codes == ["E-ORDER-404", "E-ORDER-BASE", "E-ORDER-BASE", "E-ORDER-AFTER"]


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
