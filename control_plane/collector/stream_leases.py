"""Which streams this process reads: leases on rows, shared fairly with the other collectors."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.background.leases import Owners
from control_plane.core import Core
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
    """How the drones' streams are shared between the collectors."""

    mine: list[str]
    surplus: list[str]
    """Of mine, what is more than a fair share."""
    free: list[str]
    """Of those that nobody has, as many as there is room for."""


class Streams:
    """The leases of one collector. `owned` may be asked from any thread."""

    def __init__(self, core: Core, owners: Owners) -> None:
        self._core = core
        self._owners = owners
        self._owned: frozenset[str] = frozenset()
        self._every = owners.ttl_s / 3
        self._renewed_at = float("-inf")

    @property
    def owned(self) -> frozenset[str]:
        """Ids of the drones whose streams are ours, as of the last round; each transaction checks its own again."""
        return self._owned

    def share(self) -> None:
        """Renew what is ours, take what nobody has, and leave what is more than our share."""
        now = self._core.clock.monotonic()
        with self._core.database.read() as db:
            seen = self._read_shares(db)
        # Most rounds find nothing to do, and then nothing is written.
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
        """As `share`, for the start: a database that is away for the moment is the loop's to wait for."""
        try:
            self.share()
        except FleetError as error:
            log.warning("the streams could not be shared yet", why=error.what)

    def release(self) -> None:
        """Let others have all of them at once."""
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
