"""`retry` and `resume`: an order that failed or was canceled runs again, from its beginning or from where it was."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from control_plane.db.drones import Drone
from control_plane.db.orders import Order, Turn
from control_plane.db.projects import Project
from control_plane.db.runs import Blob
from control_plane.declarations.sessions import SwitchRequest
from control_plane.documents.orders import OrderSummary, ResumeRequest, SubmitRequest
from control_plane.operations import projects, sessions
from control_plane.operations.orders import retrying
from control_plane.operations.orders.canceling import cancel
from control_plane.operations.orders.submitting import _hash
from control_plane.operations.runs import blobs
from control_plane.supervisor.cleaning import clean
from shared.blobs import digest
from shared.errors import Conflict, Invalid, Precondition
from shared.events import Delivered
from shared.reasons import EarlierOrder, Resumption, RunEnd, RunLoss
from tests.support.going_on import (
    BASE,
    begin,
    bundle_of,
    fail,
    give_back,
    go,
    identity,
    seen,
    succeed,
    told,
    undone,
    work,
)
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn


@pytest.fixture
def oka(plane: Plane) -> DroneStandIn:
    made = plane.drone("oka")
    plane.collector(), plane.supervisor()
    return made


def retry(plane: Plane, order_id: str) -> OrderSummary:
    return retrying.retry(plane.core, plane.admin, order_id)


def resume(plane: Plane, order_id: str, **fields: Any) -> OrderSummary:
    return retrying.resume(plane.core, plane.admin, order_id, ResumeRequest(**fields))


def failed(plane: Plane, drone: DroneStandIn, **fields: Any) -> str:
    """An order that did one complete step, pushed its branch, and failed."""
    order = begin(plane, drone, **fields)
    work(plane, drone, order, "one")
    drone.report(
        order,
        Delivered(branch=f"fleet/{order.order_id}", base_commit=BASE, head_commit="c" * 40, pushed=True),
    )
    fail(plane, drone, order)
    return order.order_id


# --- resume ---------------------------------------------------------------------------------------


def test_a_failed_order_goes_on_with_its_limits_counted_anew_and_set_anew(plane: Plane, oka: DroneStandIn) -> None:
    order_id = failed(plane, oka, max_iterations=10)
    found = resume(plane, order_id, max_run_seconds=60, say="hurry up")
    assert found.status in {"queued", "assigned"}
    order = go(oka)
    assert seen(order) == ["do it", *told("one")]
    assert order.resumed is not None
    assert (order.resumed.by_hand, order.resumed.spent.cost_usd) == (True, 0.0)
    assert (order.limits.max_iterations, order.limits.max_run_seconds) == (10, 60)
    assert [word.text for word in order.said] == ["hurry up"]
    # What a run spent since a person let it go on counts.
    work(plane, oka, order, "two")
    give_back(oka, order)
    third = go(oka)
    assert third.resumed is not None
    assert (third.resumed.by_hand, third.resumed.spent.cost_usd) == (False, 0.5)


def test_an_order_that_runs_again_shows_nothing_that_is_not_true_of_it_any_more(
    plane: Plane, oka: DroneStandIn
) -> None:
    order_id = failed(plane, oka)
    resume(plane, order_id)
    found = plane.order(order_id)
    assert (found.exit_status, found.ended_at, found.receipt, found.response, found.verification) == (None,) * 5
    # What the branch was last known to be is what a push is compared with.
    assert (found.branch, found.head_commit, found.pushed) == (f"fleet/{order_id}", "c" * 40, True)
    order = go(oka)
    assert blobs.grant_push(plane.core, identity(plane, oka), order.run_id)["known"] == "c" * 40
    (turn,) = plane.rows(Turn)
    assert (turn.status, turn.ended_at) == ("processing", None)
    succeed(plane, oka, order)
    assert [turn.status for turn in plane.rows(Turn)] == ["finished"]


def test_an_order_that_had_done_nothing_begins_anew_and_says_so(plane: Plane) -> None:
    order_id = plane.submit()
    cancel(plane.core, plane.admin, order_id)
    plane.edit(Order, order_id, reason_written="")
    resume(plane, order_id)
    assert plane.order(order_id).status == "queued"
    oka = plane.drone("oka")
    plane.collector(), plane.supervisor()
    assert go(oka).resume is False


def test_lost_runs_count_anew(plane: Plane, oka: DroneStandIn) -> None:
    order_id = plane.submit(max_attempts=1)
    order = go(oka)
    assert order.order_id == order_id
    work(plane, oka, order, "one")
    oka.restart()
    found = plane.until(lambda: (o := plane.order(order_id)).status == "failed" and o)
    lost = RunLoss(code="drone_restarted", drone="oka")
    assert (plane.facts(order_id).ended, found.max_attempts) == (RunEnd(loss=lost, attempts=1), 1)
    resume(plane, order_id)
    assert plane.rows(Order)[0].lost_runs == 0
    assert seen(go(oka)) == ["do it", *told("one")]


# --- retry ----------------------------------------------------------------------------------------


def test_a_retry_begins_anew_and_so_does_what_follows_it_until_there_is_a_new_checkpoint(
    plane: Plane, oka: DroneStandIn
) -> None:
    order_id = failed(plane, oka)
    retry(plane, order_id)
    second = go(oka)
    assert (second.resume, seen(second), second.attempt) == (False, [], 2)
    give_back(oka, second)
    third = go(oka)
    assert third.resume is False
    work(plane, oka, third, "anew")
    give_back(oka, third)
    fourth = go(oka)
    assert fourth.resumed is not None
    assert (fourth.resumed.run_id, seen(fourth)) == (third.run_id, ["do it", *told("anew")])
    plane.until(lambda: undone(plane, order_id) == ["do it", "I do one.", "do it"])


# --- refusals ---------------------------------------------------------------------------------------


def test_doing_it_twice_says_what_is_so_already(plane: Plane, oka: DroneStandIn) -> None:
    order_id = failed(plane, oka)
    projects.remove(plane.core, plane.admin, "app")
    with pytest.raises(Precondition):
        retry(plane, order_id)
    with plane.core.database.write() as db:
        db.query(Project).update({"removed_at": None})
    for fields in ({"say": "  "}, {"cost_limit": float("inf")}):
        with pytest.raises(Invalid):
            resume(plane, order_id, **fields)
    resume(plane, order_id)
    for again in (resume, retry):
        with pytest.raises(Conflict) as refusal:
            again(plane, order_id)
        assert (refusal.value.code, refusal.value.next) == ("E-ORDER-STATE", f"fleet follow {order_id}")


def test_an_order_that_succeeded_is_not_run_again(plane: Plane, oka: DroneStandIn) -> None:
    order = begin(plane, oka)
    succeed(plane, oka, order)
    with pytest.raises(Conflict, match="succeeded") as refusal:
        resume(plane, order.order_id)
    assert f"--session {order.session.id}" in refusal.value.next


# --- sessions -----------------------------------------------------------------------------------------


def test_an_order_that_later_turns_were_built_on_is_not_run_again(plane: Plane, oka: DroneStandIn) -> None:
    order_id = failed(plane, oka)
    session = plane.order(order_id).session
    plane.submit("next", session=session)
    later = go(oka)
    with pytest.raises(Conflict, match=f"has continued with order {later.order_id}"):
        resume(plane, order_id)
    succeed(plane, oka, later)
    with pytest.raises(Conflict) as refusal:
        retry(plane, order_id)
    assert refusal.value.code == "E-ORDER-LATER"
    assert refusal.value.next.startswith(f"fleet session fork {session} --at {order_id}")


def test_a_session_that_went_back_to_the_turn_lets_it_run_again_where_it_ran(plane: Plane, oka: DroneStandIn) -> None:
    order_id = failed(plane, oka)
    session = plane.order(order_id).session
    plane.submit("next", session=session)
    succeed(plane, oka, go(oka))
    sessions.switch(plane.core, plane.admin, session, SwitchRequest(entry=order_id))
    resume(plane, order_id)
    order = go(oka)
    assert seen(order) == ["do it", *told("one")]
    succeed(plane, oka, order)
    first, second, again_ = [each for each in sessions.show(plane.core, plane.admin, session).entries if each.turn]
    assert (again_.parent, again_.is_leaf, first.on_path, second.on_path) == (None, True, False, False)


# --- what is kept, and how long ---------------------------------------------------------------------------


def test_checkpoints_are_deleted_when_nobody_goes_on_from_them_any_more(plane: Plane, oka: DroneStandIn) -> None:
    order_id = failed(plane, oka)
    (file,) = plane.core.blobs.root.rglob("*.sealed")
    clean(plane.core)
    assert file.exists()
    plane.edit(Order, order_id, ended_at=plane.core.clock.now() - timedelta(days=8))
    (blob,) = plane.rows(Blob)
    old = plane.core.clock.now().timestamp() - 8 * 24 * 3600
    os.utime(file, (old, old))
    clean(plane.core)
    assert (file.exists(), plane.rows(Blob), blob.sealed) == (False, [], True)
    mila = plane.drone("mila")
    plane.edit(Drone, oka.id, draining=True)
    resume(plane, order_id)
    assert go(mila).resume is False
    placed = plane.facts(order_id).placed
    assert placed is not None
    assert placed.resumes == Resumption(why_not="expired")


def test_of_a_long_run_only_its_newest_checkpoints_are_kept(plane: Plane, oka: DroneStandIn) -> None:
    names = [f"step {number}" for number in range(8)]
    order = begin(plane, oka)
    work(plane, oka, order, *names)
    plane.until(lambda: len(plane.rows(Blob)) == len(names))
    now = plane.core.clock.now()
    for age, name in enumerate(reversed(names)):
        with plane.core.database.write() as db:
            stored = update(Blob).where(Blob.sha256 == digest(bundle_of(name)))
            db.execute(stored.values(created_at=now - timedelta(hours=2, minutes=age)))
    clean(plane.core)
    assert {blob.sha256 for blob in plane.rows(Blob)} == {digest(bundle_of(name)) for name in names[-5:]}


def test_a_key_that_was_used_before_an_upgrade_still_fits() -> None:
    plain = SubmitRequest(prompt="p", project="app")
    assert _hash(plain) == _hash(SubmitRequest(prompt="p", project="app", max_attempts=None))
    assert _hash(plain) != _hash(SubmitRequest(prompt="p", project="app", max_attempts=3))


def test_an_order_that_waits_behind_it_goes_on_waiting(plane: Plane, oka: DroneStandIn) -> None:
    order_id = failed(plane, oka)
    session = plane.order(order_id).session
    plane.edit(Drone, oka.id, draining=True)
    waiting = plane.submit("next", session=session)
    resume(plane, order_id)
    assert plane.order(waiting).status == "queued"
    plane.edit(Drone, oka.id, draining=False)
    first = go(oka)
    assert first.order_id == order_id
    plane.until(lambda: plane.facts(waiting).waits == EarlierOrder(order=order_id))
    succeed(plane, oka, first)
    assert go(oka).order_id == waiting
