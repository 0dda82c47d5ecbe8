"""Which runs share limits, and their state in the broker, changed in one atomic step."""

from __future__ import annotations

import hashlib
import hmac
import random
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any, cast

import redis
from pydantic import ValidationError

from control_plane.broker.broker import Broker
from control_plane.core import Core
from control_plane.core.vault import Vault
from control_plane.db.projects import Provider
from control_plane.money.rates.permits import Asker, PermitDecision, seconds_until_call
from control_plane.money.rates.state import GroupState
from shared.errors import Unreachable
from shared.rates import ModelPermit, PermitRequest

KEPT_SECONDS = 2 * 3600
_TRIES = 100
_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
"""Requests of one process to one group wait for each other instead of repeating their step again and again."""


def group_of(vault: Vault, *parts: str) -> str:
    """The name of the group that these parts identify; it reveals nothing about a key among them.

    It changes with the master key: then the groups begin with an empty state.
    """
    key = hmac.digest(vault.keys()[0], b"dronefleet rate limits", hashlib.sha256)
    return hmac.digest(key, "\0".join(parts).encode(), hashlib.sha256).hex()[:32]


def group_of_provider(vault: Vault, provider: Provider, drone_id: str) -> str:
    """The group of a provider: by its key, if the control plane has it, else by where the key or the endpoint is."""
    endpoint = provider.api_base or provider.model.partition("/")[0]
    if provider.sealed_key:
        return group_of(vault, "key", endpoint, vault.open_at_rest(provider.sealed_key, "providers.sealed_key"))
    if provider.key_variable:
        return group_of(vault, "drone", provider.id, drone_id)
    return group_of(vault, "open", endpoint, provider.organization_id)


def state_key(group: str) -> str:
    """The key of a group's state. Drones have rights to keys below `fleet:<drone>:` and to their queues, not to it."""
    return f"rates:{group}"


def decide(broker: Broker, group: str, asker: Asker, request: PermitRequest) -> ModelPermit:
    """Answer a request by the group's state, and store the changed state. Raises Unreachable."""
    key = state_key(group)
    with _locks[group], broker.reaching(), broker.redis.pipeline() as pipe:
        for _ in range(_TRIES):
            try:
                cast("Any", pipe).watch(key)
                # The server's clock, which all control planes share.
                seconds, micros = pipe.time()
                state = read_state(cast("str | None", pipe.get(key)))
                answer = PermitDecision(state, asker, seconds + micros / 1e6).answer(request)
                pipe.multi()
                pipe.set(key, state.model_dump_json(), ex=KEPT_SECONDS)
                pipe.execute()
            except redis.WatchError:
                time.sleep(random.uniform(0.0, 0.01))  # noqa: S311 - not a secret
            else:
                return answer
    raise Unreachable(
        "the rate limits could not be stored in the broker",
        code="E-BROKER-UNREACHABLE",
        why="too many requests changed them at the same time",
        next="wait: the run asks again automatically",
    )


def read_state(stored: str | None) -> GroupState:
    """The stored state of a group; an empty one if there is none, or if another version wrote it."""
    try:
        return GroupState.model_validate_json(stored) if stored else GroupState()
    except ValidationError:
        return GroupState()


def seconds_until_calls(core: Core, provider: Provider, model: str, drone_ids: Collection[str]) -> Mapping[str, float]:
    """How long each drone would wait for its next model call, where each has a key, and so a rate limit, of its own.

    By the drones' ids. Empty where all drones share the limits, and while the broker cannot be reached.
    """
    if not provider.key_variable or provider.sealed_key or not drone_ids:
        return {}
    drones = list(drone_ids)
    keys = [state_key(group_of_provider(core.vault, provider, drone)) for drone in drones]
    try:
        with core.broker.reaching():
            seconds, micros = core.broker.redis.time()
            found = cast("list[str | None]", core.broker.redis.mget(keys))
    except Unreachable:
        # The scores are then without it; the runs wait for their permits anyway.
        return {}
    now = seconds + micros / 1e6
    return {
        drone: seconds_until_call(read_state(stored), model, now)
        for drone, stored in zip(drones, found, strict=True)
        if stored
    }
