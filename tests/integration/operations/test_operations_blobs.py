"""Blobs and push grants: what a drone may do with its runs."""

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
from shared.errors import Invalid, NotFound
from shared.outcome import ExitStatus
from shared.reasons import RunEnd
from shared.states import OrderStatus
from tests.support.made import later, make_drone, make_project, run_of, start_run, submit
from tests.support.refusals import code_of

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


def test_a_drone_stores_and_reads_nothing_of_a_run_that_is_not_its_own(
    core: Core, admin: Caller, anna: AuthenticatedDrone, run_id: str
) -> None:
    berta = make_drone(core, admin, "berta")
    with pytest.raises(NotFound):
        put(core, berta, run_id)
    with pytest.raises(NotFound):
        put(core, anna, "nothing")
    assert not core.blobs.has(NAME)
    put(core, anna, run_id)
    with pytest.raises(NotFound):
        blobs.get_blob(core, berta, run_id, NAME)
    with pytest.raises(NotFound):
        blobs.grant_push(core, berta, run_id)


def test_a_drone_that_goes_on_with_a_session_or_its_fork_reads_what_the_turns_before_it_left_and_no_others(
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
    berta, clara = make_drone(core, admin, "berta"), make_drone(core, admin, "clara")
    submit(core, admin, session=fork, drone="berta")
    submit(core, admin, session=first.session, drone="clara")
    assert b"".join(blobs.get_blob(core, berta, before, NAME).chunks) == CONTENT
    with pytest.raises(NotFound):
        blobs.get_blob(core, berta, beside, NAME)
    for run_id in (before, beside):
        assert b"".join(blobs.get_blob(core, clara, run_id, NAME).chunks) == CONTENT


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


@pytest.mark.dialects
def test_the_current_run_may_push_for_a_minute_and_that_is_recorded_once_a_minute(
    core: Core, admin: Caller, anna: AuthenticatedDrone, run_id: str
) -> None:
    assert blobs.grant_push(core, anna, run_id) == {"granted": True, "expires_in": 60, "known": None}
    with core.database.write() as db:
        order = db.query(Order).filter(Order.run_id == run_id).one()
        assert order.grant_until is not None
        assert (order.grant_until - core.clock.now()).total_seconds() == 60
        order.pushed, order.head_commit = True, "a" * 40
    for _ in range(5):
        assert blobs.grant_push(core, anna, run_id)["known"] == "a" * 40
    later(core, seconds=61)
    blobs.grant_push(core, anna, run_id)
    assert len(list_records(core, admin, action="grant_push")) == 2


def test_only_the_current_run_of_an_order_that_has_not_ended_may_push(
    core: Core, admin: Caller, anna: AuthenticatedDrone
) -> None:
    """Also before the report of its start was taken in."""
    order = submit(core, admin)
    assert blobs.grant_push(core, anna, run_of(core, order.id))["granted"]
    late = start_run(core, order.id)
    later(core, seconds=61)
    managing.remove_drone(core, admin, "anna")
    berta = make_drone(core, admin, "berta")
    current = begin_again(core, order.id)
    assert blobs.grant_push(core, berta, current)["granted"]
    assert code_of(lambda: blobs.grant_push(core, anna, late)) == "E-PUSH-STALE"
    end(core, order.id)
    assert code_of(lambda: blobs.grant_push(core, berta, current)) == "E-PUSH-STALE"


def begin_again(core: Core, order_id: str) -> str:
    """The order's next run."""
    with core.database.write() as db:
        place_and_dispatch(db, core, db.get_one(Order, order_id))
    return start_run(core, order_id)
