"""Returns reserved money of runs whose end said nothing about it, so that no reservation stays for ever."""

from __future__ import annotations

from control_plane.core import Core
from control_plane.spending.settlement import settle_forgotten


def settle(core: Core) -> None:
    """Settle the blocks of runs that were closed a minute ago."""
    while core.database.transact(lambda db: settle_forgotten(db, core)):
        pass
