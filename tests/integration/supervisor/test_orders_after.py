"""Orders that start after others, and sessions stacked on others: they wait, and build on what the others left."""

from __future__ import annotations

from io import BytesIO

import pytest
from sqlalchemy import inspect

from control_plane.contract.declarations.projects import ProjectRequest
from control_plane.contract.declarations.sessions import SessionEdit
from control_plane.core import AuthenticatedDrone
from control_plane.db.orders import Order
from control_plane.db.projects import Provider
from control_plane.db.stacks import Stack
from control_plane.operations import projects, sessions
from control_plane.operations.runs import blobs
from control_plane.supervisor.restacking import restack
from shared.blobs import digest
from shared.errors import Invalid, NotFound
from shared.events import Delivered
from shared.names import branch
from shared.reasons import AfterOrder
from shared.work_order import Base, MergedWork, WorkOrder
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn


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


def test_it_waits_until_the_other_has_succeeded_and_starts_from_its_head(running: Plane, oka: DroneStandIn) -> None:
    first = running.submit()
    second = running.submit(after=[first])
    assert running.facts(second).waits == AfterOrder(order=first, status="open", waiting=second)
    assert running.order(second).after == [first]

    works(oka, oka.taken(), "c" * 40)
    order = oka.taken()
    assert (order.order_id, order.base, order.merges) == (second, base_of(first, "c" * 40), ())
    assert order.session.id != running.order(first).session
    assert order.context == ()


def test_one_that_failed_keeps_it_waiting_with_what_to_do(running: Plane, oka: DroneStandIn) -> None:
    first = running.submit()
    second = running.submit(after=[first])
    works(oka, oka.taken(), None, status="failed", exit_status="time_limit", order_at_fault=True)
    running.until(lambda: running.facts(second).waits == AfterOrder(order=first, status="failed", waiting=second))
    reason = running.order(second).reason
    assert f"fleet retry {first}, fleet resume {first}, or fleet cancel {second}" in reason


def test_the_work_of_several_is_merged_in_the_order_in_which_they_are_named(running: Plane) -> None:
    oka = running.drone("oka", concurrency=3)
    ids = [running.submit() for _ in range(3)]
    last = running.submit(after=ids)
    orders = {order.order_id: order for order in (oka.taken() for _ in ids)}
    for number, each in enumerate(reversed(ids)):
        works(oka, orders[each], str(number) * 40)

    order = oka.taken()
    assert (order.order_id, order.base) == (last, base_of(ids[0], "2" * 40))
    assert order.merges == tuple(
        MergedWork(order=each, base=base_of(each, head * 40)) for each, head in ((ids[1], "1"), (ids[2], "0"))
    )


def test_the_drone_may_read_the_bundles_of_what_the_order_builds_on(running: Plane) -> None:
    core, organization = running.core, running.admin.organization_id
    oka, mila = running.drone("oka"), running.drone("mila")
    first = running.submit(drone="oka")
    second = running.submit(after=[first], drone="mila")
    begun = oka.taken()
    bundle = b"bundle"
    told = AuthenticatedDrone(oka.id, organization, "oka")
    blobs.put_blob(core, told, begun.run_id, digest(bundle), BytesIO(bundle))
    left = Delivered(branch=branch(first), base_commit="b" * 40, head_commit="c" * 40, bundle_sha256=digest(bundle))
    oka.report(begun, oka.started(), left, oka.ended())
    order = mila.taken()
    assert (order.order_id, order.base.bundle) == (second, digest(bundle))
    reader = AuthenticatedDrone(mila.id, organization, "mila")
    assert b"".join(blobs.get_blob(core, reader, begun.run_id, digest(bundle)).chunks) == bundle
    works(mila, order, None)
    running.reaches(second, "succeeded")
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


def test_an_order_starts_from_the_commit_that_was_given(running: Plane, oka: DroneStandIn) -> None:
    order_id, commit = running.submit(base="e" * 40), "e" * 40
    order = oka.taken()
    assert (order.order_id, order.base) == (order_id, Base(commit=commit, given=True))
    works(oka, order, "c" * 40)
    session = running.order(order_id).session
    running.reaches(order_id, "succeeded")
    with pytest.raises(Invalid) as refusal:
        running.submit(base=commit, session=session)
    assert refusal.value.code == "E-ORDER-BASE"


# --- stacked sessions: new work below is merged into the sessions above


A, B, C, D = ("a" * 40, "b" * 40, "c" * 40, "d" * 40)


@pytest.fixture
def pair(running: Plane, oka: DroneStandIn) -> tuple[str, str]:
    """A lower order and one on top of it, both done."""
    lower = running.submit()
    upper = running.submit(after=[lower], mode="test", cost_limit=3.5, labels={})
    works(oka, oka.taken(), A)
    works(oka, oka.taken(), B)
    running.reaches(upper, "succeeded")
    return lower, upper


def session_of(plane: Plane, order_id: str) -> str:
    return plane.order(order_id).session


def test_new_work_below_is_merged_into_the_session_above_and_that_into_the_next(
    running: Plane, oka: DroneStandIn, pair: tuple[str, str]
) -> None:
    lower, upper = pair
    top = running.submit(after=[upper])
    works(oka, oka.taken(), "e" * 40)
    again = running.submit(session=session_of(running, lower))
    works(oka, oka.taken(), C)
    order = oka.taken()
    assert (order.session.id, order.merge_only, order.base) == (session_of(running, upper), True, base_of(upper, B))
    assert order.merges == (MergedWork(order=again, base=base_of(again, C)),)
    assert order.prompt.startswith(f"Bring this branch up to date with order {again}, whose work")
    document = running.order(order.order_id)
    assert (document.after, document.merge_only, document.mode) == ([again], True, "test")
    assert order.limits.cost_limit == 3.5
    works(oka, order, D)
    running.reaches(order.order_id, "succeeded")
    shown = sessions.show(running.core, running.admin, order.session.id)
    assert (shown.restack, shown.stacked_on) == (True, [session_of(running, lower)])
    last = oka.taken()
    assert last.session.id == session_of(running, top)
    assert last.merges == (MergedWork(order=order.order_id, base=base_of(order.order_id, D)),)


def test_it_waits_until_the_session_above_is_idle_and_is_submitted_once(
    running: Plane, oka: DroneStandIn, pair: tuple[str, str]
) -> None:
    lower, upper = pair
    busy = running.submit(session=session_of(running, upper))
    held = oka.taken()
    running.submit(session=session_of(running, lower))
    works(oka, oka.taken(), C)
    newest = running.submit(session=session_of(running, lower))
    works(oka, oka.taken(), D)
    running.reaches(newest, "succeeded")
    works(oka, held, "e" * 40)
    order = oka.taken()
    assert order.base == base_of(busy, "e" * 40)
    # Only the newest work counts.
    assert [each.order for each in order.merges] == [newest]
    works(oka, order, "f" * 40)
    running.reaches(order.order_id, "succeeded")
    assert len(running.rows(Order, Order.merge_only)) == 1


def test_a_session_that_is_not_to_be_restacked_or_whose_pull_request_is_over_stays_as_it_is(
    running: Plane, oka: DroneStandIn, pair: tuple[str, str]
) -> None:
    lower, upper = pair
    for restacked, state in ((False, "opened"), (True, "merged"), (True, "closed")):
        edited = sessions.edit(running.core, running.admin, session_of(running, upper), SessionEdit(restack=restacked))
        assert edited.restack is restacked
        running.edit(Order, upper, pull_request={"state": state})
        again = running.submit(session=session_of(running, lower))
        works(oka, oka.taken(), C)
        running.reaches(again, "succeeded")
        restack(running.core)
        assert not running.rows(Order, Order.merge_only), state


def test_a_session_whose_provider_is_gone_is_passed_over_and_others_are_brought_up_to_date(
    running: Plane, oka: DroneStandIn, pair: tuple[str, str]
) -> None:
    lower, upper = pair
    other = running.submit(after=[lower])
    works(oka, oka.taken(), "e" * 40)
    running.reaches(other, "succeeded")
    with running.core.database.write() as db:
        gone = db.get_one(Provider, db.get_one(Order, upper).provider_id)
        copy = Provider(**{each.key: getattr(gone, each.key) for each in inspect(Provider).column_attrs})
        copy.id, copy.name, copy.removed_at = "f" * 12, "gone", running.core.clock.now()
        db.add(copy)
        db.flush()
        db.get_one(Order, upper).provider_id = copy.id
    running.submit(session=session_of(running, lower))
    works(oka, oka.taken(), C)
    order = oka.taken()
    assert (order.session.id, order.merge_only) == (session_of(running, other), True)
    running.until(lambda: not running.rows(Stack, Stack.due))
    assert len(running.rows(Order, Order.merge_only)) == 1


def test_a_person_who_merged_it_already_is_not_followed_by_another_order(
    running: Plane, oka: DroneStandIn, pair: tuple[str, str]
) -> None:
    lower, upper = pair
    again = running.submit(session=session_of(running, lower))
    by_hand = running.submit(session=session_of(running, upper), after=[again])
    works(oka, oka.taken(), C)
    order = oka.taken()
    assert (order.order_id, order.merge_only) == (by_hand, False)
    works(oka, order, D)
    running.reaches(by_hand, "succeeded")
    restack(running.core)
    assert not running.rows(Order, Order.merge_only)
