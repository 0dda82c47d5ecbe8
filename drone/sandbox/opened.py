"""What this process keeps for its sandboxes: networks, cgroups and containers. `close_all` removes them."""

from __future__ import annotations

from typing import Protocol

from drone.processes.receipt import Ended


class Closable(Protocol):
    def close(self) -> Ended | None: ...


opened: set[Closable] = set()


def close_all() -> Ended:
    """End the networks' own processes and the containers, and remove each cgroup that is empty.

    Returns how many processes of commands were still running in containers.

    Call it before the processes of commands are counted, since the networks' are not among them, and again once the
    commands have ended.
    """
    return sum((each.close() or Ended() for each in list(opened)), Ended())
