"""Blobs and push grants: what a drone may do with its runs; and the raw answers that it sends, for users."""

from __future__ import annotations

import io

import pytest

from control_plane.contract.declarations.sessions import ForkRequest
from control_plane.core import AuthenticatedDrone, Caller, Core
from control_plane.db.orders import Order
from control_plane.operations import sessions
from control_plane.operations.audit.reading import list_records
from control_plane.operations.drones import managing
from control_plane.operations.orders import reading
from control_plane.operations.orders.next_turn import next_turn
from control_plane.operations.runs import blobs, push_grants
from control_plane.orders.assignment import place_and_dispatch
from control_plane.orders.draft import as_asked
from shared.blobs import digest
from shared.errors import Invalid, NotFound
from shared.events import AssistantStep
from tests.support.made import later, make_drone, make_project, run_of, start_run, submit
from tests.support.refusals import code_of
from tests.support.turns import end, order_as_sent, report

CONTENT = b"a bundle"
NAME = digest(CONTENT)
ASKED = {"keep_raw": True, "ticket": "PAYM-12"}


@pytest.fixture
def anna(core: Core, admin: Caller) -> AuthenticatedDrone:
    make_project(core, admin)
    return make_drone(core, admin)


def put(core: Core, identity: AuthenticatedDrone, run_id: str) -> int:
    return blobs.put_blob(core, identity, run_id, NAME, io.BytesIO(CONTENT))


def get(core: Core, identity: AuthenticatedDrone, run_id: str, name: str = NAME) -> bytes:
    return b"".join(blobs.get_blob(core, identity, run_id, name).chunks)


def test_a_drone_stores_and_reads_files_of_its_own_runs_only(
    core: Core, admin: Caller, anna: AuthenticatedDrone
) -> None:
    """A file that is there and was never stored with the run is not found either; a late run may still store."""
    run_id = start_run(core, submit(core, admin).id)
    berta = make_drone(core, admin, "berta")
    core.blobs.store(NAME, io.BytesIO(CONTENT))
    for act in (
        lambda: get(core, anna, run_id),
        lambda: put(core, berta, run_id),
        lambda: put(core, anna, "nothing"),
        lambda: push_grants.grant_push(core, berta, run_id),
    ):
        with pytest.raises(NotFound):
            act()
    with pytest.raises(Invalid):
        get(core, anna, run_id, "../../fleet.db")
    assert [put(core, anna, run_id) for _ in range(2)] == [len(CONTENT)] * 2
    assert get(core, anna, run_id) == CONTENT
    with pytest.raises(NotFound):
        get(core, berta, run_id)
    managing.remove_drone(core, admin, "anna")
    assert put(core, anna, run_id) == len(CONTENT)


def test_a_drone_reads_what_the_turns_before_its_own_left(core: Core, admin: Caller, anna: AuthenticatedDrone) -> None:
    def play(order_id: str) -> str:
        """Let the order succeed after its run stored the file; return the run."""
        put(core, anna, run_of(core, order_id))
        end(core, order_id, steps=())
        return run_of(core, order_id)

    first = submit(core, admin, drone="anna")
    before = play(first.id)
    fork = sessions.fork(core, admin, first.session, ForkRequest()).id
    beside = play(submit(core, admin, session=first.session, drone="anna").id)
    berta, clara = make_drone(core, admin, "berta"), make_drone(core, admin, "clara")
    submit(core, admin, session=fork, drone="berta")
    submit(core, admin, session=first.session, drone="clara")
    assert get(core, berta, before) == CONTENT
    with pytest.raises(NotFound):
        get(core, berta, beside)
    assert [get(core, clara, run_id) for run_id in (before, beside)] == [CONTENT, CONTENT]


def test_what_an_order_is_asked_for_goes_to_its_drone_and_to_its_next_turn_and_raw_answers_come_back(
    core: Core, admin: Caller, anna: AuthenticatedDrone
) -> None:
    order = submit(core, admin, **ASKED).id
    with core.database.read() as db:
        again = next_turn(db, admin, db.get_one(Order, order), "And the docs")
    assert (as_asked(order_as_sent(core, order)), again.as_asked) == (ASKED, ASKED)

    run_id = start_run(core, order)
    put(core, anna, run_id)
    report(core, run_id, [AssistantStep(text="done", raw_sha256=NAME), AssistantStep(text="x", raw_note="not kept")])
    assert reading.raw_of(core, admin, order, 1) == CONTENT
    with pytest.raises(NotFound) as refusal:
        reading.raw_of(core, admin, order, 2)
    assert refusal.value.why == "not kept"


@pytest.mark.dialects
def test_only_the_current_run_may_push_for_a_minute(core: Core, admin: Caller, anna: AuthenticatedDrone) -> None:
    """Also before the report of its start was taken in. It is recorded once a minute."""
    order = submit(core, admin)
    late = run_of(core, order.id)
    assert push_grants.grant_push(core, anna, late) == {"granted": True, "expires_in": 60, "known": None}
    start_run(core, order.id)
    with core.database.write() as db:
        row = db.get_one(Order, order.id)
        assert row.grant_until is not None
        assert (row.grant_until - core.clock.now()).total_seconds() == 60
        row.pushed, row.head_commit = True, "a" * 40
    assert push_grants.grant_push(core, anna, late)["known"] == "a" * 40
    later(core, seconds=61)
    push_grants.grant_push(core, anna, late)
    records = [(each.actor, each.door, each.target) for each in list_records(core, admin, action="grant_push")]
    assert records == [("anna", "control plane", order.id)] * 2

    later(core, seconds=61)
    managing.remove_drone(core, admin, "anna")
    berta = make_drone(core, admin, "berta")
    with core.database.write() as db:
        place_and_dispatch(db, core, db.get_one(Order, order.id))
    current = run_of(core, order.id)
    assert push_grants.grant_push(core, berta, current)["granted"]
    assert code_of(lambda: push_grants.grant_push(core, anna, late)) == "E-PUSH-STALE"
    end(core, order.id, steps=())
    assert code_of(lambda: push_grants.grant_push(core, berta, current)) == "E-PUSH-STALE"
