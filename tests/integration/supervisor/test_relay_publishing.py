"""From the outbox to the drones' queues, whatever fails in between."""

from __future__ import annotations

from functools import partial

import pytest

from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order
from control_plane.db.projects import Provider
from control_plane.declarations.providers import ProviderRequest
from control_plane.operations import providers
from control_plane.orders.status_changes import move_order
from control_plane.supervisor.outbox_relay import Relay
from shared import names
from shared.errors import Unreachable
from shared.events import ABILITIES, Delivered
from shared.reasons import CancelAsked, CannotBeSent, OrderFacts
from shared.states import OrderStatus
from tests.support.broker import BrokerServer
from tests.support.planes import QUICK, Plane


def test_a_submitted_order_is_on_its_drones_queue_at_once(plane: Plane) -> None:
    drone = plane.drone()
    plane.supervisor()
    plane.until(lambda: plane.submit(drone="oka") and plane.until(drone.take))
    # The submission itself wakes the loops: no clock advances.
    plane.submit()
    plane.round(0.0)
    assert drone.take()


def test_an_order_that_had_to_wait_is_sent_in_the_round_that_places_it(plane: Plane) -> None:
    plane.supervisor()
    order_id = plane.submit()
    assert plane.status(order_id) == "queued"
    drone = plane.drone(online=False)
    plane.round(0.0)
    plane.edit(Drone, drone.id, last_seen_at=plane.core.clock.now(), beat={"abilities": list(ABILITIES)})
    # Nothing announces this: the search for open orders finds the order.
    plane.round(4 * QUICK.poll)
    assert drone.take()


def test_the_order_arrives_whole_with_its_secrets(plane: Plane) -> None:
    drone = plane.drone()
    order_id = plane.submit("mend the test", priority=3)
    Relay(plane.core).publish_all()
    order = drone.take()
    assert (order.order_id, order.prompt, order.attempt, order.generation) == (order_id, "mend the test", 1, 1)
    assert (order.provider.model, order.provider.api_key) == ("openai/scripted", "sk-secret")
    assert (order.project.slug, order.project.git_url) == ("app", "https://git.example/app.git")
    assert (order.session.mode, order.context, order.provider.params) == ("build", (), {})


def test_only_ids_are_readable_in_redis(plane: Plane, valkey: BrokerServer) -> None:
    plane.drone()
    order_id = plane.submit("mend the secret test")
    Relay(plane.core).publish_all()
    message = valkey.redis.lindex(names.queue(plane.dispatch(order_id).drone_id), 0)
    assert order_id in message
    assert "secret" not in message
    assert "git.example" not in message


def test_the_key_is_there_before_the_message(plane: Plane) -> None:
    drone = plane.drone()
    run_id = plane.dispatch(plane.submit()).id
    Relay(plane.core).publish_all()
    assert plane.key(drone, run_id) == "dispatched:1"
    assert drone.claim(drone.take())


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


def test_the_supervisor_publishes_again_after_each_restart_of_the_broker(plane: Plane, valkey: BrokerServer) -> None:
    drone = plane.drone()
    plane.supervisor()
    for _ in range(3):
        valkey.restart(kill=True)
        order_id = plane.submit()
        order = plane.until(drone.take)
        assert (order.order_id, drone.claim(order)) == (order_id, True)


def test_a_crash_after_the_message_publishes_it_twice_and_runs_it_once(plane: Plane) -> None:
    drone = plane.drone()
    run_id = plane.dispatch(plane.submit()).id
    Relay(plane.core).publish_all()
    plane.edit(Dispatch, run_id, published_at=None)
    Relay(plane.core).publish_all()
    first, second = drone.take(), drone.take()
    assert (first.run_id, second.run_id) == (run_id, run_id)
    assert [drone.claim(first), drone.claim(second)] == [True, False]


def test_a_claimed_run_is_not_published_again(plane: Plane) -> None:
    drone = plane.drone()
    run_id = plane.dispatch(plane.submit()).id
    Relay(plane.core).publish_all()
    drone.claim(drone.take())
    plane.edit(Dispatch, run_id, published_at=None)
    Relay(plane.core).publish_all()
    assert drone.queued() == 0
    assert plane.key(drone, run_id) == f"claimed:1:{drone.boot}"


def test_a_run_that_was_withdrawn_in_the_meantime_is_not_published(plane: Plane) -> None:
    drone = plane.drone()
    run_id = plane.dispatch(plane.submit()).id
    assert plane.core.broker.withdraw_run(drone.id, run_id, 1) == ""
    Relay(plane.core).publish_all()
    assert (drone.queued(), plane.key(drone, run_id)) == (0, "revoked:1")


def test_a_closed_dispatch_is_not_published(plane: Plane) -> None:
    drone = plane.drone()
    run_id = plane.dispatch(plane.submit()).id
    plane.edit(Dispatch, run_id, closed_at=plane.core.clock.now())
    assert Relay(plane.core).publish_all() == 0
    assert drone.queued() == 0


def test_an_order_whose_secret_does_not_open_says_so_and_lets_others_pass(plane: Plane) -> None:
    drone = plane.drone()
    broken = plane.submit()
    provider = plane.rows(Provider)[0]
    plane.edit(Provider, provider.id, sealed_key="bm90IHNlYWxlZA==")
    Relay(plane.core).publish_all()
    plane.edit(Provider, provider.id, sealed_key=None)
    well = plane.submit()
    waits = plane.facts(broken).waits
    assert isinstance(waits, CannotBeSent)
    assert "a stored secret" in waits.detail
    assert Relay(plane.core).publish_all() == 2
    assert {drone.take().order_id, drone.take().order_id} == {broken, well}


def test_after_redis_was_emptied_an_unclaimed_order_is_offered_again(plane: Plane, valkey: BrokerServer) -> None:
    drone = plane.drone()
    run_id = plane.dispatch(plane.submit()).id
    plane.collector(), plane.supervisor()
    plane.until(drone.queued)
    valkey.redis.flushall()
    order = plane.until(lambda: drone.beat() or drone.take())
    assert (order.run_id, order.generation) == (run_id, 1)
    assert drone.claim(order)


def test_a_message_that_is_still_in_the_queue_is_not_doubled(plane: Plane) -> None:
    drone = plane.drone()
    run_id = plane.dispatch(plane.submit()).id
    plane.collector(), plane.supervisor(unclaimed_after=0.05)
    plane.until(drone.queued)
    plane.core.broker.redis.delete(names.run_key(drone.id, run_id))
    plane.until(lambda: drone.beat() or plane.key(drone, run_id) == "dispatched:1")
    assert drone.queued() == 1


def test_more_orders_than_a_batch_holds_reach_the_queue(plane: Plane) -> None:
    drone = plane.drone()
    order_ids = [plane.submit(drone="oka") for _ in range(120)]
    assert Relay(plane.core).publish_all() == 120
    assert [drone.take().order_id for _ in range(120)] == order_ids


def test_the_session_so_far_travels_with_the_order(plane: Plane) -> None:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    first = plane.submit("what is it")
    drone.do(plane.until(drone.take))
    second = plane.submit("and now", session=plane.order(first).session)
    order = plane.until(drone.take)
    assert order.order_id == second
    assert [(message.role, message.content) for message in order.context] == [
        ("user", "what is it"),
        ("assistant", "done"),
    ]


def test_a_session_goes_on_from_the_head_of_its_last_order_that_changed_files(plane: Plane) -> None:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    first = plane.submit()
    order = plane.until(drone.take)
    drone.claim(order)
    work = Delivered(branch=f"fleet/{first}", head_commit="c" * 40, pushed=True, bundle_sha256="d" * 64)
    drone.report(order, drone.started(), work, drone.ended())
    plane.submit(session=plane.order(first).session)
    base = plane.until(drone.take).base
    assert (base.commit, base.branch, base.bundle) == ("c" * 40, f"fleet/{first}", "d" * 64)
    assert base.bundle_run == plane.dispatch(first).id


def test_a_provider_travels_with_its_fallbacks_in_their_order(plane: Plane) -> None:
    drone = plane.drone()
    add = partial(providers.add, plane.core, plane.admin)
    add(ProviderRequest(name="second", model="openai/second", api_key="sk-second"))
    add(ProviderRequest(name="third", model="openai/third", api_key="sk-third"))
    others = ["third", "second"]
    add(ProviderRequest(name="first", model="openai/first", fallbacks=others, rotation="alternate"))
    plane.submit(provider="first")
    Relay(plane.core).publish_all()
    provider = drone.take().provider
    assert provider.rotation == "alternate"
    fallbacks = provider.fallbacks
    assert [(each.name, each.api_key) for each in fallbacks] == [("third", "sk-third"), ("second", "sk-second")]


def test_a_drone_whose_models_cannot_take_turns_gets_no_order_for_such_a_provider(plane: Plane) -> None:
    old = plane.drone("old")
    plane.edit(Drone, old.id, beat={"abilities": [each for each in ABILITIES if each != "taking-turns"]})
    add = partial(providers.add, plane.core, plane.admin)
    add(ProviderRequest(name="second", model="openai/second"))
    add(ProviderRequest(name="turning", model="openai/x", fallbacks=["second"], rotation="random"))
    add(ProviderRequest(name="falling", model="openai/x", fallbacks=["second"]))
    waiting, sent = plane.submit(provider="turning"), plane.submit(provider="falling")
    assert (plane.status(waiting), plane.status(sent)) == ("queued", "assigned")


def test_the_orders_thinking_level_goes_to_the_fallbacks_which_have_their_own_without_one(plane: Plane) -> None:
    drone = plane.drone()
    add = partial(providers.add, plane.core, plane.admin)
    add(ProviderRequest(name="second", model="openai/second", thinking="low"))
    add(ProviderRequest(name="first", model="openai/first", fallbacks=["second"]))
    levels = []
    for thinking in (None, "high"):
        plane.submit(provider="first", thinking=thinking)
        Relay(plane.core).publish_all()
        provider = drone.take().provider
        levels.append((provider.thinking, provider.fallbacks[0].thinking))
    assert levels == [(None, "low"), ("high", "high")]


def test_a_service_is_not_asked_to_think(plane: Plane) -> None:
    drone = plane.drone()
    made = providers.add(plane.core, plane.admin, ProviderRequest(name="a", model="openai/a", thinking="high"))
    providers.try_out(plane.core, plane.admin, made.name)
    Relay(plane.core).publish_all()
    order = drone.take()
    assert (order.purpose, order.provider.thinking) == ("check_provider", None)


def test_an_order_that_is_being_canceled_keeps_its_reason_where_it_cannot_be_sent(plane: Plane) -> None:
    plane.drone()
    order_id = plane.submit()
    provider = plane.rows(Provider)[0]
    plane.edit(Provider, provider.id, sealed_key="bm90IHNlYWxlZA==")
    with plane.core.database.write() as db:
        asked = OrderFacts(cancel=CancelAsked(by="kim"))
        move_order(db, db.get_one(Order, order_id), OrderStatus.CANCELING, asked)
    Relay(plane.core).publish_all()
    assert plane.facts(order_id) == asked
