"""Which streams this process reads: leases on rows, shared fairly with the other collectors."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.core.background.leases import Owners
from control_plane.db.drones import Drone
from shared.errors import FleetError
from shared.terminal import logs

log = logs.get(__name__)

_STREAM = "stream:"
_COLLECTOR = "collector:"


def lease_of(drone_id: str) -> str:
    """The name of the lease on a drone's stream."""
    return f"{_STREAM}{drone_id}"


@dataclass(frozen=True)
class _StreamShares:
    """The distribution of the drones' streams among the collectors."""

    mine: list[str]
    surplus: list[str]
    """Those of `mine` beyond a fair share."""
    free: list[str]
    """Streams without an owner, as many as this collector has room for."""


class Streams:
    """The leases of one collector. `owned` may be read from any thread."""

    def __init__(self, core: Core, owners: Owners) -> None:
        self._core = core
        self._owners = owners
        self._owned: frozenset[str] = frozenset()
        self._every = owners.ttl_s / 3
        self._renewed_at = float("-inf")

    @property
    def owned(self) -> frozenset[str]:
        """Ids of the drones whose streams this process owns, as of the last round.

        Each transaction checks its lease again.
        """
        return self._owned

    def share(self) -> None:
        """Renew our leases, take streams without an owner, and release those beyond our share."""
        now = self._core.clock.monotonic()
        with self._core.database.read() as db:
            seen = self._read_shares(db)
        # Most rounds find nothing to do and write nothing.
        if not seen.free and not seen.surplus and now - self._renewed_at < self._every:
            self._owned = frozenset(seen.mine)
            return
        with self._core.database.write() as db:
            self._owners.hold(db, f"{_COLLECTOR}{self._owners.holder}")
            self._owners.renew_all(db)
            seen = self._read_shares(db)
            self._owners.release(db, [lease_of(drone) for drone in seen.surplus])
            taken = [drone for drone in seen.free if self._owners.hold(db, lease_of(drone))]
        self._renewed_at = now
        self._owned = frozenset([*seen.mine, *taken]) - frozenset(seen.surplus)

    def share_if_possible(self) -> None:
        """Call `share` at startup; if the database is unavailable, the loop waits for it."""
        try:
            self.share()
        except FleetError as error:
            log.warning("the streams could not be assigned yet", why=error.what)

    def release(self) -> None:
        """Release all leases immediately."""
        self._owned = frozenset()
        with self._core.database.write() as db:
            self._owners.release_all(db)

    def _read_shares(self, db: Session) -> _StreamShares:
        drones = list(db.scalars(select(Drone.id).where(Drone.removed_at.is_(None)).order_by(Drone.id)))
        living = self._owners.living(db, _STREAM)
        others = set(self._owners.living(db, _COLLECTOR).values()) - {self._owners.holder}
        share = ceil(len(drones) / (len(others) + 1))
        mine = [drone for drone in drones if living.get(lease_of(drone)) == self._owners.holder]
        free = [drone for drone in drones if lease_of(drone) not in living]
        return _StreamShares(mine, surplus=mine[share:], free=free[: max(0, share - len(mine))])
