"""The drones' users on one server of the broker. Users do not replicate: a replica gets them from here, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import redis

from control_plane.broker.users import DroneUser, rules
from shared import names


class ServerUsers:
    """Reads and writes the drones' users on one server. The errors are redis-py's."""

    def __init__(self, client: redis.Redis) -> None:
        self._redis = client
        self._granted: dict[str, DroneUser] = {}
        """What this process wrote to the server below."""
        self._run_id = ""
        """Of the server's process."""

    def drones(self) -> set[str]:
        """The drones that have a user now."""
        return {user for user in cast("list[str]", self._redis.acl_users()) if _is_drone(user)}

    def give(self, drone_id: str, user: DroneUser) -> None:
        """Create or renew a drone's user."""
        self._set(drone_id, user, self._redis.info("server"))
        self._save()

    def correct(self, wanted: Mapping[str, DroneUser], there: set[str]) -> list[str]:
        """Create missing users, renew changed ones, and delete others; `there`: the drones that have one.

        Returns the ids that were missing or surplus. The first call for a server's process writes every user, as that
        process may have been started with users from before a change, and newer rules must take effect.
        """
        server = self._redis.info("server")
        if server["run_id"] != self._run_id:
            self._granted = {}
        missing = [drone for drone, user in wanted.items() if drone not in there or self._granted.get(drone) != user]
        surplus = sorted(there - set(wanted))
        for drone_id in missing:
            self._set(drone_id, wanted[drone_id], server)
        if surplus:
            self._redis.acl_deluser(*surplus)
        if missing or surplus:
            self._save()
        self._granted, self._run_id = dict(wanted), server["run_id"]
        return [drone for drone in missing if drone not in there] + surplus

    def delete(self, drone_id: str) -> None:
        """Delete a drone's user, which closes its connections."""
        self._redis.acl_deluser(drone_id)
        self._save()
        self._granted.pop(drone_id, None)

    def close(self) -> None:
        self._redis.close()

    def _set(self, drone_id: str, user: DroneUser, server: Mapping[str, Any]) -> None:
        words = rules(drone_id, user, knows_setinfo=redis_version(server) >= (7, 2))
        cast("Any", self._redis).execute_command("ACL SETUSER", drone_id, *words)
        self._granted[drone_id] = user

    def _save(self) -> None:
        try:
            self._redis.acl_save()
        except redis.ResponseError as error:
            # A server without an ACL file loses its users when it restarts; the supervisor corrects them.
            if "ACL file" not in str(error):
                raise


def redis_version(server: Mapping[str, Any]) -> tuple[int, int]:
    """Major and minor Redis version whose commands a server supports, from its `INFO server`."""
    major, minor = str(server["redis_version"]).split(".")[:2]
    return int(major), int(minor)


def _is_drone(user: str) -> bool:
    return len(user) == names.ID_LENGTH and all(letter in "0123456789abcdef" for letter in user)
