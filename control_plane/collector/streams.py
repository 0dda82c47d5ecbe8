"""Which streams this process reads: leases on rows, shared fairly with the other collectors."""

from __future__ import annotations

from math import ceil

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.models import Drone
from control_plane.owners import Owners
from shared import logs
from shared.errors import FleetError

log = logs.get(__name__)

_STREAM = "stream:"
_COLLECTOR = "collector:"


def lease_of(drone_id: str) -> str:
    """The name of the lease on a drone's stream."""
    return f"{_STREAM}{drone_id}"


class Streams:
    """The leases of one collector. `owned` may be asked from any thread."""

    def __init__(self, core: Core, owners: Owners) -> None:
        self._core = core
        self._owners = owners
        self._owned: frozenset[str] = frozenset()

    @property
    def owned(self) -> frozenset[str]:
        """Ids of the drones whose streams are ours, as of the last round; each transaction checks its own again."""
        return self._owned

    def share(self) -> None:
        """Renew what is ours, take what nobody has, and leave what is more than our share."""
        with self._core.database.write() as db:
            self._owners.hold(db, f"{_COLLECTOR}{self._owners.holder}")
            self._owners.renew_all(db)
            drones = list(db.scalars(select(Drone.id).where(Drone.removed_at.is_(None)).order_by(Drone.id)))
            living = self._owners.living(db, _STREAM)
            share = ceil(len(drones) / max(1, len(self._owners.living(db, _COLLECTOR))))
            mine = [drone for drone in drones if living.get(lease_of(drone)) == self._owners.holder]
            self._owners.release(db, [lease_of(drone) for drone in mine[share:]])
            free = [drone for drone in drones if lease_of(drone) not in living]
            owned = [*mine[:share], *self._take(db, free, share - len(mine))]
        self._owned = frozenset(owned)

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

    def _take(self, db: Session, free: list[str], room: int) -> list[str]:
        return [drone for drone in free[: max(0, room)] if self._owners.hold(db, lease_of(drone))]
