"""What this process keeps for its sandboxes: networks and cgroups. `close_all` removes them."""

from __future__ import annotations

from typing import Protocol


class Closable(Protocol):
    def close(self) -> None: ...


opened: set[Closable] = set()


def close_all() -> None:
    """End the networks' own processes, and remove each cgroup that is empty.

    Call it before the processes of commands are counted, since the networks' are not among them, and again once the
    commands have ended.
    """
    for each in list(opened):
        each.close()
