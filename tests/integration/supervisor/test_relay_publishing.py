"""From the outbox to the drones' queues, whatever fails in between."""

from __future__ import annotations

from functools import partial

import pytest

from control_plane.broker.queue_messages import queued_messages
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch
from control_plane.db.projects import Provider
from control_plane.declarations.providers import ProviderRequest
from control_plane.operations import providers
from control_plane.operations.drones import managing
from control_plane.operations.orders import canceling
from control_plane.supervisor.outbox_relay import Relay
from control_plane.supervisor.stale_messages import StaleMessages
from shared import names
from shared.errors import Unreachable
from shared.events import ABILITIES, Delivered
from shared.reasons import CannotBeSent
from tests.support.broker import BrokerServer
from tests.support.planes import Plane


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


def test_a_drone_whose_models_cannot_take_turns_gets_no_order_for_such_a_provider(plane: Plane) -> None:
    old = plane.drone("old")
    plane.edit(Drone, old.id, beat={"abilities": [each for each in ABILITIES if each != "taking-turns"]})
    add = partial(providers.add, plane.core, plane.admin)
    add(ProviderRequest(name="second", model="openai/second"))
    add(ProviderRequest(name="turning", model="openai/x", fallbacks=["second"], rotation="random"))
    add(ProviderRequest(name="falling", model="openai/x", fallbacks=["second"]))
    waiting, sent = plane.submit(provider="turning"), plane.submit(provider="falling")
    assert (plane.status(waiting), plane.status(sent)) == ("queued", "assigned")
