"""A fleet under load whose parts a test takes away one after the other, and the examination in the end."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from tests.chaos import invariants
from tests.chaos.facts import Facts, look
from tests.chaos.fleet_under_load import ROLES, FleetUnderLoad
from tests.chaos.invariants import Findings
from tests.chaos.load import Load
from tests.support import wait_until

SETTLE_SECONDS = 240.0


@dataclass
class Stage:
    """A fleet under load."""

    fleet: FleetUnderLoad
    load: Load

    def submit(self, count: int) -> None:
        for _ in range(count):
            self.load.submit()

    def facts(self) -> Facts:
        return look(self.fleet.database)

    def running(self, count: int) -> None:
        """Wait until this many runs are running."""
        wait_until(lambda: len(self.facts().running()) >= count, seconds=90, every=0.3)

    def end_roles(self, names: Sequence[str]) -> None:
        for name in names:
            self.fleet.roles[name].end(signal.SIGKILL)

    def start_roles(self, names: Sequence[str]) -> None:
        for name in names:
            self.fleet.roles[name].start()

    def control_plane_gone(self, seconds: float) -> None:
        """Kill the whole control plane, and start it again after this time."""
        self.end_roles(ROLES)
        time.sleep(seconds)
        self.start_roles(ROLES)

    def api(self) -> httpx.Response:
        """The API's answer to a request for the orders."""
        return self.fleet.get("/api/v1/orders", self.fleet.token)

    def all_succeeded(self) -> Findings:
        """Assert that every order has succeeded and was delivered, nothing is broken, and no role ended by itself."""
        ended = [name for name, role in self.fleet.roles.items() if not role.alive]
        wait_until(self._is_settled, seconds=SETTLE_SECONDS, every=1.0)
        late = [follower.order_id for follower in self.load.followers if not follower.leave(30)]
        found = invariants.examine(self.fleet, self.load, late_followers=late)
        assert (found.broken, ended) == ([], [])
        assert (found.statuses, found.unpushed) == ({"succeeded": len(self.load.accepted)}, {})
        return found

    def _is_settled(self) -> bool:
        ended = all(order.ended for order in self.facts().orders.values())
        return ended and not invariants.unsent(self.fleet)


@contextmanager
def staged(fleet: FleetUnderLoad) -> Iterator[Stage]:
    """Start the fleet; it ends with the block."""
    try:
        fleet.start()
        yield Stage(fleet, Load(fleet, followers=1))
    finally:
        fleet.close()
