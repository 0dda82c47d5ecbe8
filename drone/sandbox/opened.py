"""What this process holds open for its sandboxes: networks and cgroups. `close_all` ends them."""

from __future__ import annotations

from typing import Protocol


class Closable(Protocol):
    def close(self) -> None: ...


opened: set[Closable] = set()


def close_all() -> None:
    """Close everything: helper processes are not among those that commands left behind."""
    for each in list(opened):
        each.close()
