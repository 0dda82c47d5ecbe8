"""A captured drain message has no effect when it is played again after a restart of the drone."""

from __future__ import annotations

from collections.abc import Callable

from shared import names
from shared.control import ControlMessage, Drain
from tests.support import wait_until
from tests.support.control_stand_in import ControlPlaneStandIn
from tests.support.drones import DroneUnderTest


def test_a_drain_that_is_replayed_after_a_restart_does_not_drain_again(
    stand_in: ControlPlaneStandIn, make_drone: Callable[..., DroneUnderTest]
) -> None:
    drone, redis = make_drone(), stand_in.broker.redis
    drone.start()
    drone.wait_consuming()
    inbox = names.inbox_key(drone.id)
    stand_in.tell(drone.id, ControlMessage(id="on", body=Drain(on=True)))
    captured = str(redis.hget(inbox, "on"))
    wait_until(lambda: stand_in.beats(drone.id)[-1].draining)
    stand_in.tell(drone.id, ControlMessage(id="off", body=Drain(on=False)))
    wait_until(lambda: not stand_in.beats(drone.id)[-1].draining)
    redis.delete(inbox)
    assert drone.stop() == 0

    drone.start()
    drone.wait_consuming()
    redis.hset(inbox, "on", captured)
    redis.publish(names.control_channel(drone.id), captured)
    wait_until(lambda: "on" in stand_in.beats(drone.id)[-1].done)
    assert "a drain message from" in drone.log()
    assert not stand_in.beats(drone.id)[-1].draining

    stand_in.tell(drone.id, ControlMessage(id="newer", body=Drain(on=True)))
    wait_until(lambda: stand_in.beats(drone.id)[-1].draining)
