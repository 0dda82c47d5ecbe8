"""From the outbox to the drones' queues, whatever fails in between, also where a broker lost a run's key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from control_plane.broker.queue_messages import queued_messages
from control_plane.contract.declarations.orders import CancelRequest
from control_plane.contract.declarations.providers import ProviderEdit, ProviderRequest
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order, Turn
from control_plane.db.projects import Provider
from control_plane.operations import providers
from control_plane.operations.drones import managing
from control_plane.operations.orders import canceling, retrying
from control_plane.operations.orders.canceling import cancel
from control_plane.supervisor.outbox_relay import Relay
from control_plane.supervisor.placing import place_queued
from control_plane.supervisor.stale_messages import StaleMessages
from control_plane.supervisor.unclaimed import OFFERS, Unclaimed
from shared import names
from shared.errors import Unreachable
from shared.events import RunBeat
from shared.reasons import CannotBeSent
from shared.work_order import WorkOrder
from tests.support.broker import BrokerServer
from tests.support.made import start_run
from tests.support.planes import QUICK, Plane
from tests.support.stand_in import DroneStandIn
from tests.support.team_rows import add_agent, add_task, order_of


def test_a_submitted_order_is_on_its_drones_queue_at_once(plane: Plane) -> None:
    drone = plane.drone()
    plane.supervisor()
    plane.until(lambda: plane.submit(drone="oka") and plane.until(drone.take))
    # The submission itself wakes the loops: no clock advances.
    plane.submit()
    plane.round(0.0)
    assert drone.take()


def test_the_order_arrives_whole_with_its_secrets(plane: Plane, valkey: BrokerServer) -> None:
    drone = plane.drone()
    order_id = plane.submit("mend the secret test", priority=3)
    Relay(plane.core).publish_all()
    message = valkey.redis.lindex(names.queue(drone.id), 0)
    assert [word in message for word in (order_id, "secret", "git.example")] == [True, False, False]
    assert plane.key(drone, plane.dispatch(order_id).id) == "dispatched:1"
    order = drone.take()
    assert (order.order_id, order.prompt, order.attempt, order.generation) == (order_id, "mend the secret test", 1, 1)
    assert (order.provider.model, order.provider.api_key) == ("openai/scripted", "sk-secret")
    assert (order.project.slug, order.project.git_url) == ("app", "https://git.example/app.git")
    assert (order.session.mode, order.context, order.provider.params) == ("build", (), {})
    assert drone.claim(order)


def test_an_order_waits_in_the_outbox_while_the_broker_is_away(plane: Plane, valkey: BrokerServer) -> None:
    drone = plane.drone()
    valkey.stop()
    order_id = plane.submit()
    with pytest.raises(Unreachable):
        Relay(plane.core).publish_all()
    assert plane.dispatch(order_id).published_at is None
    valkey.start()
    assert Relay(plane.core).publish_all() == 1
    assert drone.take().order_id == order_id


def test_a_crash_after_the_message_publishes_it_twice_and_runs_it_once(plane: Plane) -> None:
    drone = plane.drone()
    run_id = plane.dispatch(plane.submit()).id
    Relay(plane.core).publish_all()
    plane.edit(Dispatch, run_id, published_at=None)
    Relay(plane.core).publish_all()
    first, second = drone.take(), drone.take()
    assert (first.run_id, second.run_id) == (run_id, run_id)
    assert [drone.claim(first), drone.claim(second)] == [True, False]
    # A claimed run is not published again.
    plane.edit(Dispatch, run_id, published_at=None)
    Relay(plane.core).publish_all()
    assert (drone.queued(), plane.key(drone, run_id)) == (0, f"claimed:1:{drone.boot}")


def test_a_run_that_was_withdrawn_or_closed_in_the_meantime_is_not_published(plane: Plane) -> None:
    drone = plane.drone()
    withdrawn, closed = (plane.dispatch(plane.submit()).id for _ in range(2))
    assert plane.core.broker.withdraw_run(drone.id, withdrawn, 1) == ""
    plane.edit(Dispatch, closed, closed_at=plane.core.clock.now())
    Relay(plane.core).publish_all()
    assert (drone.queued(), plane.key(drone, withdrawn)) == (0, "revoked:1")


def test_an_order_that_cannot_be_placed_or_sent_says_why_and_lets_others_pass(plane: Plane) -> None:
    unplaced = plane.submit()
    plane.edit(Order, unplaced, wanted_labels=["no", "mapping"])
    drone = plane.drone()
    place_queued(plane.core)
    secret = plane.submit()
    provider = plane.rows(Provider)[0]
    plane.edit(Provider, provider.id, sealed_key="bm90IHNlYWxlZA==")
    Relay(plane.core).publish_all()
    plane.edit(Provider, provider.id, sealed_key=None)
    waits = {"a stored secret": plane.facts(secret).waits}
    limits, well = plane.submit(), plane.submit()
    plane.edit(Order, limits, limits={"max_iterations": "many"})
    assert Relay(plane.core).publish_all() == 3
    assert ({drone.take().order_id, drone.take().order_id}, drone.queued()) == ({secret, well}, 0)
    waits |= {"ValidationError": plane.facts(limits).waits, "(AttributeError)": plane.facts(unplaced).waits}
    assert {said: isinstance(each, CannotBeSent) and said in each.detail for said, each in waits.items()} == {
        said: True for said in waits
    }


def test_a_provider_travels_with_its_fallbacks_in_their_order_and_the_orders_thinking_level(plane: Plane) -> None:
    drone = plane.drone()
    add = partial(providers.add, plane.core, plane.admin)
    add(ProviderRequest(name="second", model="openai/second", api_key="sk-second"))
    add(ProviderRequest(name="third", model="openai/third", api_key="sk-third", thinking="low"))
    others = ["third", "second"]
    add(ProviderRequest(name="first", model="openai/first", fallbacks=others, rotation="alternate"))
    levels = []
    for thinking in (None, "high"):
        plane.submit(provider="first", thinking=thinking)
        Relay(plane.core).publish_all()
        provider = drone.take().provider
        levels.append((provider.thinking, *(each.thinking for each in provider.fallbacks)))
    assert provider.rotation == "alternate"
    assert [(each.name, each.api_key) for each in provider.fallbacks] == [
        ("third", "sk-third"),
        ("second", "sk-second"),
    ]
    assert levels == [(None, "low", None), ("high", "high", "high")]


def test_an_order_is_sent_with_the_model_that_its_provider_has_now_or_its_agents_own(plane: Plane) -> None:
    waiting, ended = plane.submit(), plane.submit()
    canceling.cancel(plane.core, plane.admin, ended)
    agent = add_agent(plane.core, plane.admin, "lead", model="openai/own")
    of_agent = order_of(plane.core, add_task(plane.core, plane.admin, agent))
    drone = plane.drone(concurrency=9)
    unsent = plane.submit()
    providers.edit(plane.core, plane.admin, "scripted", ProviderEdit(model="openai/next"))
    retrying.retry(plane.core, plane.admin, ended)
    place_queued(plane.core)
    assert Relay(plane.core).publish_all() == 4
    sent = {order.order_id: order.provider.model for order in (drone.take() for _ in range(4))}
    assert sent == {**dict.fromkeys((waiting, ended, unsent), "openai/next"), of_agent.id: "openai/own"}
    for order_id in (waiting, ended, of_agent.id):
        turn = plane.rows(Turn, Turn.order_id == order_id)[0]
        assert (plane.order(order_id).model, turn.model) == (sent[order_id], sent[order_id])


# --- a queue holds the messages of orders that wait in it, also while its drone is switched off


def queued_runs(plane: Plane, drone_id: str) -> set[str]:
    return {message.run_id for message in queued_messages(plane.core.broker, drone_id, 0, 100)} - {""}


def test_canceled_orders_leave_the_queue_of_a_drone_that_is_switched_off(plane: Plane) -> None:
    oka = plane.drone("oka", concurrency=1)
    plane.supervisor()
    first, second, kept = (plane.submit(f"{number}", drone="oka") for number in range(3))
    plane.until(lambda: oka.queued() == 3)
    assert managing.show_drone(plane.core, plane.admin, "oka").queued == 3

    for order_id in (first, second):
        canceling.cancel(plane.core, plane.admin, order_id)

    plane.until(lambda: oka.queued() == 1)
    assert queued_runs(plane, oka.id) == {plane.dispatch(kept).id}
    assert managing.show_drone(plane.core, plane.admin, "oka").queued == 1
    assert (order := oka.take()) is not None
    assert oka.claim(order)


def test_what_is_no_message_and_what_is_unknown_stays(plane: Plane) -> None:
    oka, broker = plane.drone("oka"), plane.core.broker
    junk = ("x", "[]", "{}", '{"headers": 1}', '{"headers": {"id": [1]}}')
    broker.redis.lpush(names.queue(oka.id), *junk)
    broker.publish_order(drone_id=oka.id, order_id="0" * 12, run_id="1" * 12, generation=1, envelope="sealed")

    assert StaleMessages(plane.core).drop() == 0
    assert queued_runs(plane, oka.id) == {"1" * 12}
    assert oka.queued() == len(junk) + 1


# --- runs whose keys a broker lost: only the drone can tell whether it holds them


Check = Callable[[], None]


@pytest.fixture
def check(plane: Plane) -> Check:
    """One round over what is unclaimed, without any wait; beats are heard."""
    plane.collector()
    return Unclaimed(plane.core, Relay(plane.core), replace(QUICK, unclaimed_after=0.0, beat_age=0.0)).check


def published(plane: Plane, oka: DroneStandIn) -> WorkOrder:
    """An order whose message oka has taken from its queue, and not claimed yet."""
    plane.submit()
    Relay(plane.core).publish_all()
    order = oka.take()
    assert order is not None
    return order


def heard(plane: Plane, oka: DroneStandIn, *runs: RunBeat) -> None:
    """Return once a beat that names these runs was written."""
    before = plane.rows(Drone)[0].last_seen_at
    plane.until(lambda: oka.beat(*runs) or plane.rows(Drone)[0].last_seen_at > before)


def test_a_claimed_run_is_not_offered_again_before_its_drone_was_heard(
    plane: Plane, valkey: BrokerServer, oka: DroneStandIn, check: Check
) -> None:
    order = published(plane, oka)
    # A beat from before the key was found missing proves nothing.
    heard(plane, oka)
    oka.claim(order)
    valkey.redis.flushall()
    check(), check()
    assert (plane.key(oka, order.run_id), oka.queued()) == ("", 0)
    heard(plane, oka, oka.run_beat(order))
    check()
    assert (plane.key(oka, order.run_id), oka.queued()) == ("", 0)
    assert cancel(plane.core, plane.admin, order.order_id, CancelRequest()).status == "canceling"


def test_a_run_that_a_later_beat_does_not_name_is_offered_again_and_replaced_if_it_is_never_claimed(
    plane: Plane, valkey: BrokerServer, oka: DroneStandIn, check: Check
) -> None:
    order = published(plane, oka)
    valkey.redis.flushall()
    # The second time, its message is still in the queue, and is not doubled.
    for _ in range(2):
        valkey.redis.delete(names.run_key(oka.id, order.run_id))
        check()
        heard(plane, oka)
        check()
        assert (plane.key(oka, order.run_id), oka.queued()) == ("dispatched:1", 1)
    for _ in range(OFFERS):
        check()
        assert oka.take().run_id == order.run_id
    check()
    assert (plane.key(oka, order.run_id), plane.status(order.order_id)) == ("revoked:1", "queued")
    assert not oka.claim(order)


def test_orders_that_wait_behind_a_busy_drone_are_offered_again_once_a_later_beat_does_not_name_them(
    plane: Plane, valkey: BrokerServer, oka: DroneStandIn, check: Check
) -> None:
    plane.edit(Drone, oka.id, concurrency=3)
    at_work, *waiting = [published(plane, oka) for _ in range(3)]
    start_run(plane.core, at_work.order_id)
    oka.concurrency = 1
    valkey.redis.flushall()
    for key, queued in (("", 0), ("dispatched:1", 1)):
        heard(plane, oka)
        check()
        assert ([plane.key(oka, order.run_id) for order in waiting], oka.queued()) == ([key] * 2, queued)


def test_a_draining_drone_keeps_what_it_may_have_claimed_until_a_later_beat_does_not_name_it(
    plane: Plane, valkey: BrokerServer, oka: DroneStandIn, check: Check
) -> None:
    order = published(plane, oka)
    valkey.redis.flushall()
    managing.drain(plane.core, plane.admin, "oka")
    check(), check()
    assert (plane.key(oka, order.run_id), plane.order(order.order_id).drone) == ("", "oka")
    heard(plane, oka)
    check()
    assert (plane.key(oka, order.run_id), plane.order(order.order_id).status) == ("revoked:1", "queued")
