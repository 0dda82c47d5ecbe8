"""The control plane writes the bindings that drones share, and repairs them."""

from __future__ import annotations

from typing import Any

import pytest

from control_plane.broker.bindings import ensure_bindings
from control_plane.broker.broker import Broker
from control_plane.db.access import JoinToken
from control_plane.db.drones import Drone
from shared.errors import Precondition
from shared.events import ABILITIES
from tests.support.broker import BrokerServer
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

OKA = "0" * 11 + "a"
WORKER = f"oka.{OKA}@host"
PIDBOX, PERMANENT = "_kombu.binding.celery.pidbox", "_kombu.binding_permanent.celery.pidbox"
MEMBER = f"\x06\x16\x06\x16{WORKER}.celery.pidbox"


def test_each_drones_mailbox_is_bound_and_no_other_and_flowers_stay(broker: Broker) -> None:
    broker.redis.sadd(PIDBOX, "stale")
    broker.redis.sadd("_kombu.binding.reply.celery.pidbox", "flower")
    broker.redis.zadd("_kombu.binding_deadlines", {"celeryev": 1})
    assert ensure_bindings(broker, {OKA: WORKER}) == [PIDBOX, PERMANENT]
    assert broker.redis.smembers(PIDBOX) == broker.redis.smembers(PERMANENT) == {MEMBER}
    assert ensure_bindings(broker, {OKA: WORKER}) == []
    ensure_bindings(broker, {})
    assert broker.redis.exists(PIDBOX, PERMANENT) == 0
    assert broker.redis.smembers("_kombu.binding.reply.celery.pidbox") == {"flower"}
    assert broker.redis.zcard("_kombu.binding_deadlines") == 1


def test_a_binding_of_a_wrong_type_is_repaired(broker: Broker) -> None:
    others = ("reply.celery.pidbox", "_permanent.reply.celery.pidbox", "celeryev", "_permanent.celeryev")
    keys = {PIDBOX, PERMANENT, "_kombu.binding_deadlines", f"_kombu.binding.drone.{OKA}"}
    keys |= {f"_kombu.binding{name}" if name[0] == "_" else f"_kombu.binding.{name}" for name in others}
    ensure_bindings(broker, {OKA: WORKER})
    for key in keys:
        broker.redis.set(key, "x")
    assert keys <= set(ensure_bindings(broker, {OKA: WORKER}))
    assert {broker.redis.type(key) for key in keys} <= {"none", "set"}
    assert broker.redis.smembers(PIDBOX) == {MEMBER}


# --- drones of the previous version -----------------------------------------------------------


def drone_from_before(plane: Plane) -> DroneStandIn:
    """A drone of the previous version that registered before drones reported what they need, and again since."""
    first = plane.drone("old", online=False)
    plane.edit(Drone, first.id, needs_broker_scripts=True)
    return plane.drone("old", private_key=first.private_key, abilities=(), online=False)


def may_run_scripts(plane: Plane, drone_id: str) -> bool:
    answer: Any = plane.core.broker.redis.execute_command("ACL DRYRUN", drone_id, "EVAL", "return 1", "0")
    return str(answer) == "OK"


def test_a_drone_loses_the_rights_of_the_previous_version_when_it_is_updated_and_the_bindings_are_repaired(
    plane: Plane, valkey: BrokerServer
) -> None:
    old = drone_from_before(plane)
    plane.supervisor()
    assert may_run_scripts(plane, old.id)
    plane.until(lambda: valkey.redis.type(PIDBOX) == "set")
    old.redis.delete(PIDBOX)
    old.redis.set(PIDBOX, "x")
    plane.until(lambda: valkey.redis.type(PIDBOX) == "set")
    assert valkey.redis.smembers(PIDBOX) == {f"\x06\x16\x06\x16{old.id}@test-host.celery.pidbox"}
    plane.edit(Drone, old.id, beat={"abilities": list(ABILITIES)})
    plane.until(lambda: not may_run_scripts(plane, old.id))
    # It does not come back with the previous one.
    with pytest.raises(Precondition):
        plane.drone("old", private_key=old.private_key, abilities=())
    plane.drone("old", private_key=old.private_key)
    assert not may_run_scripts(plane, old.id)


def test_registering_again_does_not_give_the_rights_of_the_previous_version_back(plane: Plane) -> None:
    oka = plane.drone()
    used = [token.used for token in plane.rows(JoinToken)]
    for name, key, abilities in (
        ("oka", oka.private_key, ()),
        ("oka", oka.private_key, ("resume", "teams")),
        ("new", None, ()),
    ):
        with pytest.raises(Precondition) as refused:
            plane.drone(name, **({"private_key": key} if key else {}), abilities=abilities)
        assert refused.value.code == "E-DRONE-VERSION"
    assert oka.redis.ping()
    assert sum(token.used for token in plane.rows(JoinToken)) == sum(used)
    assert [drone.id for drone in plane.rows(Drone)] == [oka.id]
    # Nor does a heartbeat.
    plane.edit(Drone, oka.id, beat={"abilities": []})
    plane.core.broker.redis.acl_deluser(oka.id)
    plane.supervisor()
    plane.until(lambda: oka.id in plane.core.broker.redis.acl_users())
    assert not may_run_scripts(plane, oka.id)
