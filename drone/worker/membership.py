"""Whether this boot is still the drone that its fleet knows: not removed there, and the only active one with its id.

The broker refuses a removed drone, but also one whose user a restarted broker has forgotten for the moment: only the
control plane's own answer distinguishes the two. A machine that was frozen or cut off may find another one active with
its id when it comes back: the one that sent its hello last is the drone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from redis import Redis
from redis.exceptions import AuthenticationError, RedisError

from drone.installation.client import ControlPlane
from drone.worker.identity import DroneIdentity
from shared import names
from shared.clock import Clock
from shared.errors import Conflict, FleetError, Unauthenticated

log = logging.getLogger(__name__)

ASK_EVERY_SECONDS = 5.0
BEATS_OF_TWIN = 2
ALONE_SECONDS = 12.0
"""A boot that is named but has sent no beat for this long is gone."""


class Membership:
    """Checks with each beat. Calls `leave` once, with the reason as an error, when this boot has to end."""

    def __init__(self, identity: DroneIdentity, clock: Clock, leave: Callable[[FleetError], None]) -> None:
        self._boot = identity.boot_id
        self._config = identity.config
        self._token = identity.credentials.api_token
        self._boot_key = names.boot_key(identity.config.drone_id)
        self._lease_key = names.lease_key(identity.config.drone_id)
        self._clock = clock
        self._leave = leave
        self._unclaimed = True
        self._twin_seen = 0
        self._twin_since: float | None = None
        self._asked_at = float("-inf")
        self.over = False
        """This boot no longer represents the drone: it may send no more beats."""

    # --- the only one ------------------------------------------------------------------

    def ask(self, pipe: Redis) -> None:
        """Add two commands to the round trip of a beat, ahead of its own lease; `note_answers` takes their answers."""
        if self._unclaimed:
            pipe.set(self._boot_key, self._boot)
        else:
            pipe.get(self._boot_key)
        pipe.get(self._lease_key)

    def note_answers(self, boot: Any, lease: Any) -> None:
        """End this boot if a later one is named, and was found active twice.

        Its name alone is no proof: a broker that was restored from an older copy names an older boot, which no longer
        beats. Then our own name is written again.
        """
        named, holder = _text(boot), _text(lease).partition(":")[0]
        if self._unclaimed or named == self._boot:
            self._unclaimed, self._twin_seen, self._twin_since = False, 0, None
            return
        now = self._clock.monotonic()
        if named and holder not in {"", self._boot}:
            self._twin_seen, self._twin_since = self._twin_seen + 1, now
        elif self._twin_since is None:
            self._twin_since = now
        if self._twin_seen >= BEATS_OF_TWIN:
            self._end(_twin(named))
        # The broker was emptied, or restored from an older copy.
        self._unclaimed = not named or now - self._twin_since > ALONE_SECONDS

    # --- still known -------------------------------------------------------------------

    def refused(self, error: RedisError) -> None:
        """The broker did not serve us. If it refuses our user, ask the control plane whether we were removed."""
        now = self._clock.monotonic()
        if not isinstance(error, AuthenticationError) or self.over or now - self._asked_at < ASK_EVERY_SECONDS:
            return
        self._asked_at = now
        try:
            with ControlPlane(self._config.server_url, api_token=self._token, ca_file=self._config.ca_file) as server:
                server.confirm_registration()
        except Unauthenticated as removed:
            self._end(removed)
        except FleetError as unknown:
            log.warning("the broker rejects this drone, and the control plane gave no reason: %s", unknown)

    def _end(self, error: FleetError) -> None:
        if not self.over:
            self.over = True
            log.error("this drone must stop: %s", error.what)
            self._leave(error)


def _twin(boot: str) -> Conflict:
    return Conflict(
        "another drone is running with this drone's id",
        code="E-DRONE-TWICE",
        why=f"its boot {boot} started later than this one; a drone's home must not be copied to another machine",
        next="drone register --url URL --token TOKEN --name ANOTHER-NAME    with an empty DRONE_HOME",
    )


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else ""
