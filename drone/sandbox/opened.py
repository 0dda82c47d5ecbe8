"""What this process keeps for its sandboxes: networks, cgroups, keepers and containers. `close_all` removes them."""

from __future__ import annotations

from typing import Protocol

from drone.processes.receipt import Ended


class Closable(Protocol):
    def close(self) -> Ended | None: ...


opened: dict[Closable, None] = {}
"""In the order in which they were opened."""


def close_all() -> Ended:
    """End the networks' own processes, the keepers and the containers, and remove each cgroup that is empty.

    The last one opened is closed first: a keeper is in a cgroup, and its sandbox in a network. Returns how many
    processes of commands were still running.

    Call it before the processes of commands are counted, since the networks' are not among them, and again once the
    commands have ended.
    """
    return sum((each.close() or Ended() for each in reversed(list(opened))), Ended())
