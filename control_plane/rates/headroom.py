"""How long each drone would wait for its next model call, where each has a key, and so a rate limit, of its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import cast

from control_plane.core import Core
from control_plane.db.projects import Provider
from control_plane.rates.groups import group_of_provider, read_state, state_key
from control_plane.rates.permits import seconds_until_call
from shared.errors import Unreachable


def seconds_until_calls(core: Core, provider: Provider, model: str, drone_ids: Collection[str]) -> Mapping[str, float]:
    """By the drones' ids. Empty where all drones share the limits, and while the broker cannot be reached."""
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
