"""Users who submit orders during the faults; some of them follow their orders."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any

from control_plane.contract.client.fleet import FleetClient
from control_plane.contract.declarations.orders import SUBMIT, SubmitRequest
from shared.errors import FleetError
from shared.names import new_id
from tests.chaos.fleet_under_load import FleetUnderLoad
from tests.support.fleet import LeavingClock, Left

Doc = dict[str, Any]
RETRY_SECONDS = 0.5


@dataclass
class Follower:
    """A user who follows one order from its submission to its end, through every restart of the server."""

    order_id: str
    client: FleetClient
    events: list[tuple[str, Doc]] = field(default_factory=list)
    error: str = ""
    clock: LeavingClock = field(default_factory=LeavingClock)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._follow, name=f"follow-{self.order_id}", daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        try:
            for event, data in self.client.follow(self.order_id, patient=True, clock=self.clock):
                if event not in {"delta", "heartbeat"}:
                    self.events.append((event, data))
        except Left:
            return
        except Exception as error:  # noqa: BLE001 - kept for the caller
            self.error = f"{type(error).__name__}: {error}"

    def leave(self, seconds: float) -> bool:
        """Stop following; True if the end arrived within `seconds`."""
        self._thread.join(seconds)
        came = not self._thread.is_alive()
        self.clock.leaving.set()
        self.client.close()
        return came

    @property
    def ends(self) -> list[str]:
        """The status in each `end` event."""
        return [data["status"] for event, data in self.events if event == "end"]

    @property
    def seqs(self) -> list[int]:
        return [data["seq"] for event, data in self.events if event == "step"]


class Load:
    """Submits orders until stopped, and keeps the id of each accepted one."""

    def __init__(self, fleet: FleetUnderLoad, *, followers: int) -> None:
        self._fleet = fleet
        self._wanted_followers = followers
        self._guard = threading.Lock()
        self.accepted: list[str] = []
        self.followers: list[Follower] = []

    def submit(self) -> None:
        """Submit one order, retrying with the same key until the fleet has accepted it."""
        number, key = len(self.accepted) + 1, new_id()
        prompt = f"Count to ten for customer {number}, script:count"
        request = SubmitRequest(prompt=prompt, project="demo", max_attempts=self._fleet.size.max_attempts)
        with self._fleet.client() as client:
            while True:
                try:
                    order_id = str(client.call(SUBMIT, request, idempotency_key=key)["id"])
                except FleetError:
                    time.sleep(RETRY_SECONDS)
                    continue
                with self._guard:
                    self.accepted.append(order_id)
                    if len(self.followers) < self._wanted_followers:
                        self.followers.append(Follower(order_id, self._fleet.client(timeout_s=30.0)))
                return
