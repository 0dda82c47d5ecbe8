"""Blobs and push grants: what a drone may do with its runs, on each kind of database."""

from __future__ import annotations

import io

import pytest

from control_plane.core import AuthenticatedDrone, Caller, Core
from control_plane.db.orders import Order
from control_plane.declarations.sessions import ForkRequest
from control_plane.operations import sessions
from control_plane.operations.audit.reading import list_records
from control_plane.operations.drones import managing
from control_plane.operations.runs import blobs
from control_plane.orders.assignment import place_and_dispatch
from control_plane.orders.ending import Ending, finish
from shared.blobs import digest
from shared.errors import Conflict, Invalid, NotFound
from shared.outcome import ExitStatus
from shared.reasons import RunEnd
from shared.states import OrderStatus
from tests.support.made import later, make_drone, make_project, run_of, start_run, submit

CONTENT = b"a bundle"
NAME = digest(CONTENT)


@pytest.fixture
def anna(core: Core, admin: Caller) -> AuthenticatedDrone:
    make_project(core, admin)
    return make_drone(core, admin)


@pytest.fixture
def run_id(core: Core, admin: Caller, anna: AuthenticatedDrone) -> str:
    """A run that anna began."""
    return start_run(core, submit(core, admin, drone="anna").id)


def put(core: Core, identity: AuthenticatedDrone, run_id: str) -> int:
    return blobs.put_blob(core, identity, run_id, NAME, io.BytesIO(CONTENT))


def test_a_drone_reads_what_its_own_run_stored(core: Core, anna: AuthenticatedDrone, run_id: str) -> None:
    assert put(core, anna, run_id) == len(CONTENT)
    assert put(core, anna, run_id) == len(CONTENT)
    assert b"".join(blobs.get_blob(core, anna, run_id, NAME).chunks) == CONTENT


def test_a_drone_stores_nothing_for_a_run_that_is_not_its_own(
    core: Core, admin: Caller, anna: AuthenticatedDrone, run_id: str
) -> None:
    berta = make_drone(core, admin, "berta")
    with pytest.raises(NotFound):
        put(core, berta, run_id)
    with pytest.raises(NotFound):
        put(core, anna, "nothing")
    assert not core.blobs.has(NAME)


def test_a_drone_reads_no_other_drones_files(core: Core, admin: Caller, anna: AuthenticatedDrone, run_id: str) -> None:
    berta = make_drone(core, admin, "berta")
    put(core, anna, run_id)
    with pytest.raises(NotFound):
        blobs.get_blob(core, berta, run_id, NAME)


def test_a_drone_that_goes_on_with_a_session_reads_what_another_one_left(
    core: Core, admin: Caller, anna: AuthenticatedDrone
) -> None:
    first = submit(core, admin, drone="anna")
    run_id = start_run(core, first.id)
    put(core, anna, run_id)
    end(core, first.id)
    berta = make_drone(core, admin, "berta")
    submit(core, admin, session=first.session, drone="berta")
    assert b"".join(blobs.get_blob(core, berta, run_id, NAME).chunks) == CONTENT


def test_a_drone_with_an_order_of_a_fork_reads_what_the_turns_before_it_left_and_no_others(
    core: Core, admin: Caller, anna: AuthenticatedDrone
) -> None:
    first = submit(core, admin, drone="anna")
    before = start_run(core, first.id)
    put(core, anna, before)
    end(core, first.id)
    fork = sessions.fork(core, admin, first.session, ForkRequest()).id
    second = submit(core, admin, session=first.session, drone="anna")
    beside = start_run(core, second.id)
    put(core, anna, beside)
    end(core, second.id)
    berta = make_drone(core, admin, "berta")
    submit(core, admin, session=fork, drone="berta")
    assert b"".join(blobs.get_blob(core, berta, before, NAME).chunks) == CONTENT
    with pytest.raises(NotFound):
        blobs.get_blob(core, berta, beside, NAME)


def end(core: Core, order_id: str) -> None:
    """The order's run succeeds."""
    with core.database.write() as db:
        finish(
            db,
            core,
            db.get_one(Order, order_id),
            OrderStatus.SUCCEEDED,
            Ending(ExitStatus.STOPPED, RunEnd()),
        )


def test_a_blob_that_was_never_stored_is_not_found_even_if_its_file_exists(
    core: Core, anna: AuthenticatedDrone, run_id: str
) -> None:
    core.blobs.store(NAME, io.BytesIO(CONTENT))
    with pytest.raises(NotFound):
        blobs.get_blob(core, anna, run_id, NAME)
    with pytest.raises(Invalid):
        blobs.get_blob(core, anna, run_id, "../../fleet.db")


def test_a_late_run_may_still_store_its_work(core: Core, admin: Caller, anna: AuthenticatedDrone) -> None:
    order = submit(core, admin)
    late = start_run(core, order.id)
    managing.remove_drone(core, admin, "anna")
    assert put(core, anna, late) == len(CONTENT)


# --- leave to push ------------------------------------------------------------------------


def test_the_current_run_may_push_for_a_minute(
    core: Core, admin: Caller, anna: AuthenticatedDrone, run_id: str
) -> None:
    assert blobs.grant_push(core, anna, run_id) == {"granted": True, "expires_in": 60, "known": None}
    with core.database.read() as db:
        until = db.query(Order.grant_until).filter(Order.run_id == run_id).scalar()
    assert (until - core.clock.now()).total_seconds() == 60


def test_leave_to_push_is_recorded_once_a_minute_however_often_a_drone_asks(
    core: Core, admin: Caller, anna: AuthenticatedDrone, run_id: str
) -> None:
    for _ in range(20):
        blobs.grant_push(core, anna, run_id)
    later(core, seconds=61)
    blobs.grant_push(core, anna, run_id)
    assert len(list_records(core, admin, action="grant_push")) == 2


def test_the_grant_tells_where_the_branch_was_last_pushed_to(
    core: Core, admin: Caller, anna: AuthenticatedDrone, run_id: str
) -> None:
    with core.database.write() as db:
        order = db.query(Order).filter(Order.run_id == run_id).one()
        order.pushed, order.head_commit = True, "a" * 40
    assert blobs.grant_push(core, anna, run_id)["known"] == "a" * 40


def test_a_run_whose_start_was_not_taken_in_yet_may_push(core: Core, admin: Caller, anna: AuthenticatedDrone) -> None:
    order = submit(core, admin)
    assert blobs.grant_push(core, anna, run_of(core, order.id))["granted"]


def test_a_run_that_is_not_the_current_one_may_not_push(core: Core, admin: Caller, anna: AuthenticatedDrone) -> None:
    order = submit(core, admin)
    late = start_run(core, order.id)
    managing.remove_drone(core, admin, "anna")
    berta = make_drone(core, admin, "berta")
    current = begin_again(core, order.id)
    assert blobs.grant_push(core, berta, current)["granted"]
    with pytest.raises(Conflict) as refusal:
        blobs.grant_push(core, anna, late)
    assert refusal.value.code == "E-PUSH-STALE"


def begin_again(core: Core, order_id: str) -> str:
    """The order's next run."""
    with core.database.write() as db:
        place_and_dispatch(db, core, db.get_one(Order, order_id))
    return start_run(core, order_id)


def test_a_run_of_an_order_that_ended_may_not_push(core: Core, anna: AuthenticatedDrone, run_id: str) -> None:
    with core.database.write() as db:
        db.query(Order).filter(Order.run_id == run_id).one().status = "succeeded"
    with pytest.raises(Conflict):
        blobs.grant_push(core, anna, run_id)


def test_another_drone_gets_no_leave(core: Core, admin: Caller, run_id: str) -> None:
    with pytest.raises(NotFound):
        blobs.grant_push(core, make_drone(core, admin, "berta"), run_id)
