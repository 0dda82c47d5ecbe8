"""Stacked sessions: when a lower one has new work, the upper one is brought up to date by an order of its own."""

from __future__ import annotations

import pytest
from sqlalchemy import inspect

from control_plane.db.orders import Order
from control_plane.db.projects import Provider
from control_plane.db.stacks import Stack
from control_plane.declarations.sessions import SessionEdit
from control_plane.operations import sessions
from control_plane.supervisor.restacking import restack
from shared.work_order import MergedWork
from tests.integration.supervisor.test_orders_after import base_of, taken, works
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

A, B, C, D = ("a" * 40, "b" * 40, "c" * 40, "d" * 40)


@pytest.fixture
def running(plane: Plane) -> Plane:
    plane.collector()
    plane.supervisor()
    return plane


@pytest.fixture
def oka(running: Plane) -> DroneStandIn:
    return running.drone("oka")


@pytest.fixture
def pair(running: Plane, oka: DroneStandIn) -> tuple[str, str]:
    """A lower order and one on top of it, both done."""
    lower = running.submit()
    upper = running.submit(after=[lower], mode="test", cost_limit=3.5, labels={})
    works(oka, taken(oka), A)
    works(oka, taken(oka), B)
    running.until(lambda: running.order(upper).status == "succeeded")
    return lower, upper


def session_of(plane: Plane, order_id: str) -> str:
    return plane.order(order_id).session


def test_new_work_below_is_merged_into_the_session_above(
    running: Plane, oka: DroneStandIn, pair: tuple[str, str]
) -> None:
    lower, upper = pair
    again = running.submit(session=session_of(running, lower))
    works(oka, taken(oka), C)
    order = taken(oka)
    assert (order.session.id, order.merge_only, order.base) == (session_of(running, upper), True, base_of(upper, B))
    assert order.merges == (MergedWork(order=again, base=base_of(again, C)),)
    assert order.prompt.startswith(f"Bring this branch up to date with order {again}, whose work")
    document = running.order(order.order_id)
    assert (document.after, document.merge_only, document.mode) == ([again], True, "test")
    assert order.limits.cost_limit == 3.5
    works(oka, order, D)
    running.until(lambda: running.order(order.order_id).status == "succeeded")
    shown = sessions.show(running.core, running.admin, order.session.id)
    assert (shown.restack, shown.stacked_on) == (True, [session_of(running, lower)])


def test_the_next_session_follows_the_one_that_was_brought_up_to_date(
    running: Plane, oka: DroneStandIn, pair: tuple[str, str]
) -> None:
    lower, upper = pair
    top = running.submit(after=[upper])
    works(oka, taken(oka), "e" * 40)
    running.submit(session=session_of(running, lower))
    works(oka, taken(oka), C)
    middle = taken(oka)
    works(oka, middle, D)
    last = taken(oka)
    assert last.session.id == session_of(running, top)
    assert last.merges == (MergedWork(order=middle.order_id, base=base_of(middle.order_id, D)),)


def test_it_waits_until_the_session_above_is_idle_and_is_submitted_once(
    running: Plane, oka: DroneStandIn, pair: tuple[str, str]
) -> None:
    lower, upper = pair
    busy = running.submit(session=session_of(running, upper))
    held = taken(oka)
    running.submit(session=session_of(running, lower))
    works(oka, taken(oka), C)
    newest = running.submit(session=session_of(running, lower))
    works(oka, taken(oka), D)
    running.until(lambda: running.order(newest).status == "succeeded")
    works(oka, held, "e" * 40)
    order = taken(oka)
    assert order.base == base_of(busy, "e" * 40)
    # Only the newest work counts.
    assert [each.order for each in order.merges] == [newest]
    works(oka, order, "f" * 40)
    running.until(lambda: running.order(order.order_id).status == "succeeded")
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
        works(oka, taken(oka), C)
        running.until(lambda order_id=again: running.order(order_id).status == "succeeded")
        restack(running.core)
        assert not running.rows(Order, Order.merge_only), state


def test_a_session_whose_provider_is_gone_is_passed_over_and_others_are_brought_up_to_date(
    running: Plane, oka: DroneStandIn, pair: tuple[str, str]
) -> None:
    lower, upper = pair
    other = running.submit(after=[lower])
    works(oka, taken(oka), "e" * 40)
    running.until(lambda: running.order(other).status == "succeeded")
    with running.core.database.write() as db:
        gone = db.get_one(Provider, db.get_one(Order, upper).provider_id)
        copy = Provider(**{each.key: getattr(gone, each.key) for each in inspect(Provider).column_attrs})
        copy.id, copy.name, copy.removed_at = "f" * 12, "gone", running.core.clock.now()
        db.add(copy)
        db.flush()
        db.get_one(Order, upper).provider_id = copy.id
    running.submit(session=session_of(running, lower))
    works(oka, taken(oka), C)
    order = taken(oka)
    assert (order.session.id, order.merge_only) == (session_of(running, other), True)
    running.until(lambda: not running.rows(Stack, Stack.due))
    assert len(running.rows(Order, Order.merge_only)) == 1


def test_a_person_who_merged_it_already_is_not_followed_by_another_order(
    running: Plane, oka: DroneStandIn, pair: tuple[str, str]
) -> None:
    lower, upper = pair
    again = running.submit(session=session_of(running, lower))
    by_hand = running.submit(session=session_of(running, upper), after=[again])
    works(oka, taken(oka), C)
    order = taken(oka)
    assert (order.order_id, order.merge_only) == (by_hand, False)
    works(oka, order, D)
    running.until(lambda: running.order(by_hand).status == "succeeded")
    restack(running.core)
    assert not running.rows(Order, Order.merge_only)
