"""The control plane writes the bindings that drones share, and repairs them."""

from __future__ import annotations

from control_plane.broker.bindings import ensure_bindings
from control_plane.broker.broker import Broker

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
