"""Submitting a work order."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from control_plane.core import Caller, Core
from control_plane.db.orders import Dispatch, Order, Turn
from control_plane.declarations.providers import ProviderRequest
from control_plane.operations import providers
from control_plane.operations.orders import reading
from shared.errors import Conflict, Precondition
from shared.reasons import DroneLabels, DroneState, EarlierOrder, InQueue, NoDrone, NoDroneFits, Waits
from tests.support.made import later, make_drone, make_project, submit
from tests.support.refusals import code_of
from tests.support.turns import order_as_sent


@pytest.mark.dialects
def test_an_order_is_assigned_to_the_only_drone_and_has_a_turn_and_an_outbox_row(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    drone = make_drone(core, admin)
    prompt = "Grüße 🛸 'quoted' \"too\" \\ \x1b[31m %s $1 ; DROP TABLE orders\n"
    order = submit(core, admin, prompt)
    with core.database.read() as db:
        dispatch, turn = db.scalars(select(Dispatch)).one(), db.scalars(select(Turn)).one()
    assert (order.status, order.drone, order.generation) == ("assigned", "anna", 1)
    assert (dispatch.order_id, dispatch.drone_id, dispatch.published_at) == (order.id, drone.drone_id, None)
    assert (turn.order_id, turn.prompt, turn.status) == (order.id, prompt, "processing")
    assert reading.show_order(core, admin, order.id).prompt == prompt


def waits(core: Core, order_id: str) -> Waits | None:
    """What the order waits for."""
    with core.database.read() as db:
        return db.get_one(Order, order_id).facts.waits


def test_an_order_that_cannot_start_says_what_it_waits_for(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    order = submit(core, admin)
    assert (order.status, waits(core, order.id)) == ("queued", NoDrone())

    make_drone(core, admin, last_seen_at=None)
    order = submit(core, admin, labels={"gpu": "yes"})
    fits_none = NoDroneFits(labels=("gpu=yes",), fleet=(DroneLabels(drone="anna"),))
    assert (order.status, waits(core, order.id)) == ("queued", fits_none)

    order = submit(core, admin, drone="anna")
    offline = InQueue(state=DroneState(drone="anna", code="never_started"))
    assert (order.status, order.drone, waits(core, order.id)) == ("assigned", "anna", offline)


def test_a_later_order_of_a_session_waits_for_the_earlier_one(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_drone(core, admin)
    first = submit(core, admin)
    second = submit(core, admin, session=first.session)
    assert second.status == "queued"
    assert waits(core, second.id) == EarlierOrder(order=first.id)


def test_a_session_keeps_its_mode_and_an_order_may_have_another(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    first = submit(core, admin, mode="plan")
    second = submit(core, admin, session=first.session)
    third = submit(core, admin, session=first.session, mode="test")
    assert (first.mode, second.mode, third.mode) == ("plan", "plan", "test")


def test_the_checks_of_an_order_replace_those_of_its_project(core: Core, admin: Caller) -> None:
    make_project(core, admin, verify=["pytest -q"])
    make_drone(core, admin, concurrency=3)
    given: list[list[str] | None] = [None, ["make 'it'"], []]
    orders = [submit(core, admin, verify=verify) for verify in given]
    assert [order.verify for order in orders] == given
    sent = [order_as_sent(core, order.id).project.verify for order in orders]
    assert sent == [("pytest -q",), ("make 'it'",), ()]


def test_a_request_that_is_refused_leaves_nothing_behind(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_project(core, admin, slug="shop")
    session = submit(core, admin, project="shop").session
    before = reading.list_orders(core, admin)
    bad: list[tuple[str, dict[str, Any]]] = [
        ("E-EMPTY", {"verify": [""]}),
        ("E-TEXT", {"verify": ["a\0"]}),
        ("E-TOO-LONG", {"verify": ["x" * 10_001]}),
        ("E-COMMANDS", {"verify": ["x"] * 51}),
        ("E-ORDER-PROMPT", {"prompt": "  \n\t "}),
        ("E-TEXT", {"prompt": "a\0b"}),
        ("E-TEXT", {"prompt": "half of a pair: \ud83d"}),
        ("E-ORDER-PROMPT-SIZE", {"prompt": "x" * 200_001}),
        ("E-ORDER-PLACE", {"drone": "anna", "labels": {"gpu": "yes"}}),
        ("E-ORDER-LIMIT", {"cost_limit": float("inf")}),
        ("E-DRONE-404", {"drone": "nobody"}),
        ("E-PROVIDER-404", {"provider": "locla"}),
        ("E-PROJECT-404", {"project": "x" * 10_000}),
        ("E-SESSION-404", {"session": "000000000000"}),
        ("E-SESSION-PROJECT", {"session": session}),
        ("E-EMPTY", {"key": " "}),
        ("E-TOO-LONG", {"key": "k" * 256}),
        ("E-TEXT", {"key": "a\0b"}),
    ]
    found = [(code_of(lambda given=given: submit(core, admin, **given)), given) for _, given in bad]
    assert [code for code, _ in found] == [code for code, _ in bad]
    assert reading.list_orders(core, admin) == before
    with core.database.read() as db:
        assert len(db.scalars(select(Turn)).all()) == 1


def test_the_projects_provider_goes_before_the_others(core: Core, admin: Caller) -> None:
    """Without it, the organization's only provider is taken, and of several one has to be named."""
    make_project(core, admin)
    order = submit(core, admin)
    assert (order.provider, order.model) == ("local", "openai/scripted")
    providers.add(core, admin, ProviderRequest(name="other", model="openai/y"))
    with pytest.raises(Precondition) as refusal:
        submit(core, admin)
    assert (refusal.value.exit_code, "--provider" in refusal.value.next) == (2, True)
    make_project(core, admin, "shop", provider="other")
    assert submit(core, admin, project="shop").provider == "other"
    assert submit(core, admin, project="shop", provider="local").provider == "local"


def test_the_same_key_with_the_same_request_gives_the_same_order_for_seven_days(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    first = submit(core, admin, key="k1")
    assert submit(core, admin, key="k1") == first
    assert len(reading.list_orders(core, admin)) == 1
    for other in ({"prompt": "something else"}, {"verify": []}):
        with pytest.raises(Conflict, match=first.id):
            submit(core, admin, key="k1", **other)
    later(core, seconds=timedelta(days=7).total_seconds() - 1)
    assert submit(core, admin, key="k1").id == first.id
    later(core, seconds=1)
    assert submit(core, admin, prompt="something else", key="k1").id != first.id


@pytest.mark.dialects
def test_orders_submitted_at_once_stand_in_one_line_and_one_key_makes_one(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_drone(core, admin)
    session = submit(core, admin).session
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: submit(core, admin, session=session), range(4)))
        same = set(pool.map(lambda _: submit(core, admin, key="k1").id, range(6)))
    orders = reading.list_orders(core, admin)
    assert same == {orders[0].id}
    assert sorted(order.status for order in orders[1:]) == ["assigned", *["queued"] * 4]
    with core.database.read() as db:
        assert db.scalars(select(Order.number).order_by(Order.number)).all() == [1, 2, 3, 4, 5, 6]
