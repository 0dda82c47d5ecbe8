"""When API tokens and browser sessions were last used: noted in memory, and written apart from the requests.

Otherwise no one could read while the database can be read, but not written: during a long import on SQLite, on a full
disk.
"""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

from sqlalchemy import Update, or_, update
from sqlalchemy.orm import Session

from control_plane.core import Caller, Core
from control_plane.db.access import ApiToken, WebSession
from shared.errors import FleetError
from shared.terminal import logs

log = logs.get(__name__)
NOTE_EVERY = timedelta(minutes=1)


class LastUses:
    """Keeps the uses in this process's memory, until `flush` writes them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._noted: dict[str, datetime] = {}
        """The token or session, and when its use was noted."""
        self._unwritten: dict[str, Update] = {}

    def note(self, at: datetime, caller: Caller, address: str) -> None:
        """Note that the caller's session, or else token, was used from this network address; once a minute."""
        used = caller.login_session_id or caller.token_id
        if used is None:
            return
        with self._lock:
            if used not in self._noted or at - self._noted[used] >= NOTE_EVERY:
                self._noted[used] = at
                self._unwritten[used] = _noting(at, caller, address)

    def flush(self, core: Core) -> None:
        """Write what was noted. If the database cannot be written, it is kept."""
        now = core.clock.now()
        with self._lock:
            self._noted = {used: at for used, at in self._noted.items() if now - at < NOTE_EVERY}
            unwritten = dict(self._unwritten)
        if not unwritten:
            return

        def write(db: Session) -> None:
            # In the same order in every process, so that none waits for a row of another that waits for its own.
            for used in sorted(unwritten):
                db.execute(unwritten[used])

        try:
            core.database.transact(write)
        except FleetError as fault:
            log.warning("last uses are not yet written", uses=len(unwritten), why=fault.what)
            return
        with self._lock:
            left = {used: each for used, each in self._unwritten.items() if each is not unwritten.get(used)}
            self._unwritten = left


def _noting(at: datetime, caller: Caller, address: str) -> Update:
    # Another process may have written a later use.
    if caller.login_session_id is None:
        earlier = or_(ApiToken.last_used_at.is_(None), ApiToken.last_used_at < at)
        return update(ApiToken).where(ApiToken.id == caller.token_id, earlier).values(last_used_at=at)
    earlier = or_(WebSession.last_used_at.is_(None), WebSession.last_used_at < at)
    used = {"last_used_at": at, "address": address[: WebSession.ADDRESS_LENGTH]}
    return update(WebSession).where(WebSession.id == caller.login_session_id, earlier).values(used)
