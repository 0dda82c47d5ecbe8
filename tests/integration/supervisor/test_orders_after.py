"""Orders that start after others, and sessions stacked on others: they wait, and build on what the others left."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from sqlalchemy import inspect, select

from control_plane.contract.declarations.sessions import SessionEdit
from control_plane.core import AuthenticatedDrone, Caller, Core
from control_plane.db.groups import OrderGroup
from control_plane.db.orders import Order
from control_plane.db.projects import Provider
from control_plane.db.stacks import Stack
from control_plane.operations import sessions
from control_plane.operations.orders import reading, retrying
from control_plane.operations.runs import blobs
from control_plane.supervisor.placing import place_queued
from control_plane.supervisor.restacking import restack
from shared.blobs import digest
from shared.errors import NotFound
from shared.names import branch
from shared.reasons import AfterOrder
from shared.states import OrderStatus
from shared.work_order import Base, MergedWork
from tests.support.made import make_drone, make_project, run_of, submit
from tests.support.refusals import code_of
from tests.support.turns import end, order_as_sent, session_of

A, B, C, D = ("a" * 40, "b" * 40, "c" * 40, "d" * 40)


@pytest.fixture(autouse=True)
def drone(core: Core, admin: Caller) -> AuthenticatedDrone:
    """A project, and the drone that gets all orders unless they name another."""
    make_project(core, admin)
    return make_drone(core, admin, concurrency=100)


def made(core: Core, admin: Caller, **fields: Any) -> str:
    return submit(core, admin, **fields).id


def works(core: Core, order_id: str, head: str | None, **how: Any) -> str:
    """The run of the order, which leaves a commit or nothing; then a round of the supervisor. Returns the order."""
    left = {"branch": branch(order_id), "base_commit": "e" * 40, "head_commit": head, "pushed": True} if head else {}
    end(core, order_id, steps=(), **left, **how)
    place_queued(core)
    restack(core)
    return order_id


def base_of(order_id: str, head: str) -> Base:
    return Base(commit=head, branch=branch(order_id))


def row(core: Core, order_id: str) -> Order:
    with core.database.read() as db:
        return db.get_one(Order, order_id)


def merging(core: Core) -> list[str]:
    """The orders that only bring a session up to date, in the order of their submission."""
    with core.database.read() as db:
        return list(db.scalars(select(Order.id).where(Order.merge_only).order_by(Order.number)))


def test_it_waits_until_the_other_has_succeeded_and_starts_from_its_head(core: Core, admin: Caller) -> None:
    first = made(core, admin)
    second = submit(core, admin, after=[first])
    assert (second.after, row(core, second.id).facts.waits) == (
        [first],
        AfterOrder(order=first, status="open", waiting=second.id),
    )
    works(core, first, None, to=OrderStatus.FAILED, exit_status="time_limit")
    assert row(core, second.id).facts.waits == AfterOrder(order=first, status="failed", waiting=second.id)

    retrying.retry(core, admin, first)
    place_queued(core)
    works(core, first, C)
    sent = order_as_sent(core, second.id)
    assert (sent.base, sent.merges, sent.context) == (base_of(first, C), (), ())
    assert sent.session.id != session_of(core, first)


def test_the_work_of_several_is_merged_in_the_order_in_which_they_are_named(core: Core, admin: Caller) -> None:
    ids = [made(core, admin) for _ in range(3)]
    last = made(core, admin, after=ids)
    for number, each in enumerate(reversed(ids)):
        works(core, each, str(number) * 40)
    sent = order_as_sent(core, last)
    assert sent.base == base_of(ids[0], "2" * 40)
    assert sent.merges == tuple(
        MergedWork(order=each, base=base_of(each, head * 40)) for each, head in ((ids[1], "1"), (ids[2], "0"))
    )


def test_the_drone_may_read_the_bundles_of_what_the_order_builds_on(
    core: Core, admin: Caller, drone: AuthenticatedDrone
) -> None:
    reader = make_drone(core, admin, "mila")
    first = made(core, admin, drone=drone.name)
    second = made(core, admin, after=[first], drone="mila")
    run_id, bundle = run_of(core, first), b"bundle"

    def read() -> bytes:
        return b"".join(blobs.get_blob(core, reader, run_id, digest(bundle)).chunks)

    blobs.put_blob(core, drone, run_id, digest(bundle), BytesIO(bundle))
    works(core, first, C, bundle_sha256=digest(bundle), result_run_id=run_id)
    assert (order_as_sent(core, second).base.bundle, read()) == (digest(bundle), bundle)
    works(core, second, None)
    with pytest.raises(NotFound):
        read()


def test_what_cannot_be_is_refused(core: Core, admin: Caller) -> None:
    make_project(core, admin, "other")
    elsewhere = made(core, admin, project="other")
    given = works(core, made(core, admin, base="e" * 40), None)
    cases: list[dict[str, Any]] = [
        {"after": ["0" * 12]},
        {"base": "main"},
        {"base": "abc1234"},
        {"after": [elsewhere]},
        {"base": "e" * 40, "session": session_of(core, given)},
    ]
    codes = [code_of(lambda fields=fields: submit(core, admin, **fields)) for fields in cases]
    assert codes == ["E-ORDER-404", "E-ORDER-BASE", "E-ORDER-BASE", "E-ORDER-AFTER", "E-ORDER-BASE"]


def test_an_order_starts_from_the_commit_that_was_given(core: Core, admin: Caller) -> None:
    sent = order_as_sent(core, made(core, admin, base="e" * 40))
    assert sent.base == Base(commit="e" * 40, given=True)


def test_an_order_that_changed_nothing_stands_for_the_commit_that_it_was_given(core: Core, admin: Caller) -> None:
    first = works(core, made(core, admin, base="e" * 40), None)
    second = works(core, made(core, admin, session=session_of(core, first)), None)
    for fields in ({"after": [first]}, {"after": [second]}, {"session": session_of(core, first)}):
        sent = order_as_sent(core, made(core, admin, **fields))
        assert sent.base == Base(commit="e" * 40, given=True)


# --- stacked sessions: new work below is merged into the sessions above


@pytest.fixture
def pair(core: Core, admin: Caller) -> tuple[str, str]:
    """A lower order and one on top of it, both done."""
    lower = made(core, admin)
    upper = made(core, admin, after=[lower], mode="test", cost_limit=3.5)
    return works(core, lower, A), works(core, upper, B)


def new_work(core: Core, admin: Caller, below: str, head: str) -> str:
    """The next order of this one's session, which leaves another commit."""
    return works(core, made(core, admin, session=session_of(core, below)), head)


def test_new_work_below_is_merged_into_the_session_above_and_that_into_the_next(
    core: Core, admin: Caller, pair: tuple[str, str]
) -> None:
    lower, upper = pair
    top = works(core, made(core, admin, after=[upper]), "e" * 40)
    again = new_work(core, admin, lower, C)
    (merge,) = merging(core)
    order = order_as_sent(core, merge)
    assert (order.session.id, order.merge_only, order.base) == (session_of(core, upper), True, base_of(upper, B))
    assert order.merges == (MergedWork(order=again, base=base_of(again, C)),)
    assert order.prompt.startswith(f"Bring this branch up to date with order {again}, whose work")
    document = reading.show_order(core, admin, merge)
    assert (document.after, document.merge_only, document.mode) == ([again], True, "test")
    assert order.limits.cost_limit == 3.5
    works(core, merge, D)
    shown = sessions.show(core, admin, order.session.id)
    assert (shown.restack, shown.stacked_on) == (True, [session_of(core, lower)])
    last = order_as_sent(core, merging(core)[1])
    assert last.session.id == session_of(core, top)
    assert last.merges == (MergedWork(order=merge, base=base_of(merge, D)),)


def test_it_waits_until_the_session_above_is_idle_and_is_submitted_once(
    core: Core, admin: Caller, pair: tuple[str, str]
) -> None:
    lower, upper = pair
    busy = made(core, admin, session=session_of(core, upper))
    new_work(core, admin, lower, C)
    newest = new_work(core, admin, lower, D)
    assert merging(core) == []
    works(core, busy, "e" * 40)
    (merge,) = merging(core)
    order = order_as_sent(core, merge)
    assert order.base == base_of(busy, "e" * 40)
    # Only the newest work counts.
    assert [each.order for each in order.merges] == [newest]
    works(core, merge, "f" * 40)
    assert merging(core) == [merge]


def test_only_work_below_that_succeeded_is_merged(core: Core, admin: Caller, pair: tuple[str, str]) -> None:
    lower, upper = pair
    busy = made(core, admin, session=session_of(core, upper))
    newest = new_work(core, admin, lower, C)
    failed = made(core, admin, session=session_of(core, lower))
    works(core, failed, D, to=OrderStatus.FAILED, exit_status="time_limit")
    works(core, busy, "e" * 40)
    (merge,) = merging(core)
    assert reading.show_order(core, admin, merge).after == [newest]


def test_a_session_without_work_is_brought_up_to_date_once_it_has_some(core: Core, admin: Caller) -> None:
    lower = works(core, made(core, admin), A)
    upper = works(core, made(core, admin, after=[lower]), None)
    again = new_work(core, admin, lower, C)
    assert merging(core) == []
    new_work(core, admin, upper, B)
    (merge,) = merging(core)
    assert reading.show_order(core, admin, merge).after == [again]


def test_work_of_a_race_is_brought_up_to_date_once_it_has_won(core: Core, admin: Caller, pair: tuple[str, str]) -> None:
    lower, upper = pair
    lost = works(core, made(core, admin, after=[lower]), "e" * 40)
    with core.database.write() as db:
        race = OrderGroup(id="f" * 12, organization_id=admin.organization_id, kind="race", name="", pick="person")
        race.created_at = core.clock.now()
        db.add(race)
        for each in (upper, lost):
            db.get_one(Order, each).group_id = race.id
    new_work(core, admin, lower, C)
    assert merging(core) == []
    with core.database.write() as db:
        db.get_one(OrderGroup, race.id).winner_id = upper
    for _ in range(2):
        restack(core)
        assert [session_of(core, each) for each in merging(core)] == [session_of(core, upper)]


@pytest.mark.parametrize(("restacked", "state"), [(False, "opened"), (True, "merged"), (True, "closed")])
def test_a_session_that_is_not_to_be_restacked_or_whose_pull_request_is_over_stays_as_it_is(
    core: Core, admin: Caller, pair: tuple[str, str], restacked: bool, state: str
) -> None:
    lower, upper = pair
    edited = sessions.edit(core, admin, session_of(core, upper), SessionEdit(restack=restacked))
    assert edited.restack is restacked
    with core.database.write() as db:
        db.get_one(Order, upper).pull_request = {"state": state}
    new_work(core, admin, lower, C)
    assert merging(core) == []


def test_a_session_whose_provider_is_gone_is_passed_over_and_others_are_brought_up_to_date(
    core: Core, admin: Caller, pair: tuple[str, str]
) -> None:
    lower, upper = pair
    other = works(core, made(core, admin, after=[lower]), "e" * 40)
    with core.database.write() as db:
        gone = db.get_one(Provider, db.get_one(Order, upper).provider_id)
        copy = Provider(**{each.key: getattr(gone, each.key) for each in inspect(Provider).column_attrs})
        copy.id, copy.name, copy.removed_at = "f" * 12, "gone", core.clock.now()
        db.add(copy)
        db.flush()
        db.get_one(Order, upper).provider_id = copy.id
    new_work(core, admin, lower, C)
    assert [session_of(core, each) for each in merging(core)] == [session_of(core, other)]
    with core.database.read() as db:
        assert db.scalars(select(Stack).where(Stack.due)).all() == []


def test_a_person_who_merged_it_already_is_not_followed_by_another_order(
    core: Core, admin: Caller, pair: tuple[str, str]
) -> None:
    lower, upper = pair
    again = made(core, admin, session=session_of(core, lower))
    by_hand = made(core, admin, session=session_of(core, upper), after=[again])
    works(core, again, C)
    works(core, by_hand, D)
    assert merging(core) == []
