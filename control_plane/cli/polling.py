"""Reads something again and again while a user follows it, across restarts of the server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shared.backoff import delay
from shared.clock import Clock
from shared.errors import FleetFault, TooOften

Doc = dict[str, Any]
EVERY_S = 1.0
MAX_WAIT_S = 10.0


@dataclass
class PatientReader:
    """A read that waits for a server which answered before."""

    read: Callable[[], Doc]
    note: Callable[[str], None]
    """Tells the user that the connection was lost, or is back."""
    clock: Clock
    reached: bool = False
    """Whether the server has answered; if not, its first failure is raised."""

    def __call__(self) -> Doc:
        """The document, as soon as the server answers. Raises the server's refusals."""
        failures = 0
        while True:
            try:
                document = self.read()
            except (FleetFault, TooOften) as trouble:
                if not self.reached:
                    raise
                failures += 1
                if failures == 1:
                    self.note(f"connection lost: {trouble.what}; retrying")
                self.clock.sleep(min(delay(min(failures, 8), base=0.25), MAX_WAIT_S))
                continue
            if failures:
                self.note("reconnected")
            self.reached = True
            return document
