"""A clock that jumps deletes nothing: what is deleted by age waits until the clock has been right for a day."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import func, select

from control_plane.core import Core
from control_plane.db.audit import AuditSeal
from shared.terminal import logs

log = logs.get(__name__)

JUMP_SECONDS = 24 * 3600.0
"""A smaller error deletes what had at most a day left."""
WAIT_SECONDS = 24 * 3600.0
"""Time to notice a wrong clock, and to set it right."""


class ClockWatch:
    """Runs a deletion by age only while the wall clock agrees with the time since boot.

    At the start there is nothing to compare with but the newest signature of the audit log. If that is old, no
    supervisor ran or the clock jumped meanwhile: both wait.
    """

    def __init__(self, core: Core, deletion: Callable[[Core], object]) -> None:
        self._core = core
        self._deletion = deletion
        self._seen = self._newest_seal() or core.clock.now(), core.clock.boottime()
        """The wall clock when it was last looked at, and the seconds since boot then."""
        self._steady_from = 0.0

    def run(self) -> None:
        if self._is_steady():
            self._deletion(self._core)

    def _is_steady(self) -> bool:
        now, running = self._core.clock.now(), self._core.clock.boottime()
        (before, then), self._seen = self._seen, (now, running)
        off = (now - before).total_seconds() - (running - then)
        if abs(off) > JUMP_SECONDS:
            self._steady_from = running + WAIT_SECONDS
            log.warning(
                "the clock jumped, or no supervisor ran: nothing is deleted by age for a day", seconds=round(off)
            )
        return running >= self._steady_from

    def _newest_seal(self) -> datetime | None:
        with self._core.database.read() as db:
            return db.scalar(select(func.max(AuditSeal.at)))
