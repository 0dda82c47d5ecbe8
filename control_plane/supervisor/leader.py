"""Leader election by a lease on one row. Two leaders for a moment do no harm, as every write checks its row."""

from __future__ import annotations

from control_plane.background.leases import LEADER, Owners
from control_plane.background.timings import Timings
from control_plane.core import Core
from shared.terminal import logs

log = logs.get(__name__)


class Leader:
    """Holds or waits for the leadership. `leads` turns false automatically if the lease is not renewed in time."""

    def __init__(self, core: Core, holder: str, timings: Timings) -> None:
        self._core = core
        self._owners = Owners(holder, core.clock, timings.owner_ttl)
        self._ttl = timings.owner_ttl
        self._until = 0.0

    @property
    def leads(self) -> bool:
        return self._core.clock.monotonic() < self._until

    def renew(self) -> bool:
        """Take or renew the lease; true if this supervisor leads from now on and did not before."""
        # Counted from before the write: the lease in the row may outlast our belief in it, never the other way round.
        began, led = self._core.clock.monotonic(), self.leads
        with self._core.database.write() as db:
            held = self._owners.hold(db, LEADER)
        self._until = began + self._ttl if held else 0.0
        if held is not led:
            log.info(
                "this supervisor is the leader" if held else "another supervisor is the leader",
                holder=self._owners.holder,
            )
        return held and not led

    def resign(self) -> None:
        """Let another supervisor lead immediately."""
        if self.leads:
            self._until = 0.0
            with self._core.database.write() as db:
                self._owners.release(db, [LEADER])
